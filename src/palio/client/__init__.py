"""The client: publish, subscribe, and everything else that a program does with a network."""

from palio.client.client import Client, connect
from palio.client.detecting import Detection
from palio.client.dialling import Backoff
from palio.client.durable import DurableSubscription
from palio.client.errors import (
    AlreadySubscribed,
    ClientClosed,
    ConnectionLost,
    EventsLost,
    NoEvent,
    NoRequest,
    NotConnected,
    ReplierFailed,
    RequestRefused,
    RequestTimeout,
    SlowConsumer,
    SubscriptionEnded,
    TakenOver,
    TooMuchUnsent,
    UndecodableEvent,
    UntrustedCertificate,
    WrongAddress,
    WrongPort,
    WrongType,
)
from palio.client.event import Event
from palio.client.held import Advertised
from palio.client.history import Replay, Survey
from palio.client.inquiries import Replies, Watch
from palio.client.publishing import Confirmation
from palio.client.states import State
from palio.client.subscription import Subscription
from palio.protocol.durable.wishes import (
    HomeUnreachable,
    NotHome,
    NotTaker,
    WrongAttachment,
)

__all__ = [
    "Advertised",
    "AlreadySubscribed",
    "Backoff",
    "Client",
    "ClientClosed",
    "Confirmation",
    "ConnectionLost",
    "Detection",
    "DurableSubscription",
    "Event",
    "EventsLost",
    "HomeUnreachable",
    "NoEvent",
    "NoRequest",
    "NotConnected",
    "NotHome",
    "NotTaker",
    "Replay",
    "ReplierFailed",
    "Replies",
    "RequestRefused",
    "RequestTimeout",
    "SlowConsumer",
    "State",
    "Subscription",
    "SubscriptionEnded",
    "Survey",
    "TakenOver",
    "TooMuchUnsent",
    "UndecodableEvent",
    "UntrustedCertificate",
    "Watch",
    "WrongAddress",
    "WrongAttachment",
    "WrongPort",
    "WrongType",
    "connect",
]
