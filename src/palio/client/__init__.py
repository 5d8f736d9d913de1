"""The client: publish, subscribe, and everything else that a program does with a network."""

from palio.client.client import Client, connect
from palio.client.detecting import Detection
from palio.client.errors import (
    AlreadySubscribed,
    ClientClosed,
    ConnectionLost,
    EventsLost,
    NoEvent,
    NotConnected,
    RequestRefused,
    RequestTimeout,
    SlowConsumer,
    SubscriptionEnded,
    TakenOver,
    TooMuchUnsent,
    UntrustedCertificate,
    WrongPort,
)
from palio.client.event import Event
from palio.client.history import Replay, Survey
from palio.client.inquiries import Replies, Watch
from palio.client.publishing import Confirmation
from palio.client.subscription import Subscription

__all__ = [
    "AlreadySubscribed",
    "Client",
    "ClientClosed",
    "Confirmation",
    "ConnectionLost",
    "Detection",
    "Event",
    "EventsLost",
    "NoEvent",
    "NotConnected",
    "Replay",
    "Replies",
    "RequestRefused",
    "RequestTimeout",
    "SlowConsumer",
    "Subscription",
    "SubscriptionEnded",
    "Survey",
    "TakenOver",
    "TooMuchUnsent",
    "UntrustedCertificate",
    "Watch",
    "WrongPort",
    "connect",
]
