"""`Router`: one broker, as a state machine."""

from __future__ import annotations

from palio.matching.poset import Poset
from palio.routing.configuration import Configuration
from palio.routing.effects import Effect
from palio.routing.messages import Message


class Router:
    """A broker without its sockets. `handle` and `on_timer` are the only ways in; they return what to do."""

    def __init__(self, configuration: Configuration, order: Poset | None = None) -> None:
        self.configuration = configuration
        self.broker = configuration.broker

    def handle(self, message: Message, source: str, now: float) -> list[Effect]:
        """Take a message from a session, from a neighbour, or about the link to a neighbour."""
        raise NotImplementedError

    def on_timer(self, name: str, now: float) -> list[Effect]:
        """A timer that was set has come due."""
        raise NotImplementedError
