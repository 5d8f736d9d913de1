"""The routing core of a broker: messages in, effects out; no clock, socket, disk, task or random number."""

from palio.routing.configuration import Configuration, Strategy
from palio.routing.router import Router

__all__ = ["Configuration", "Router", "Strategy"]
