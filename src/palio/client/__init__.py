"""The client: publish, subscribe, and everything else that a program does with a network."""

from palio.client.client import Client, connect
from palio.client.errors import (
    ClientClosed,
    ConnectionLost,
    EventsLost,
    NotConnected,
    RequestRefused,
    RequestTimeout,
    SlowConsumer,
    SubscriptionEnded,
    TakenOver,
    TooMuchUnsent,
)
from palio.client.event import Event
from palio.client.publishing import Confirmation
from palio.client.subscription import Subscription

__all__ = [
    "Client",
    "ClientClosed",
    "Confirmation",
    "ConnectionLost",
    "Event",
    "EventsLost",
    "NotConnected",
    "RequestRefused",
    "RequestTimeout",
    "SlowConsumer",
    "Subscription",
    "SubscriptionEnded",
    "TakenOver",
    "TooMuchUnsent",
    "connect",
]
