"""The client: publish, subscribe, and everything else that a program does with a network."""

from typing import TYPE_CHECKING, Any

from palio.client.client import Client, connect
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
from palio.client.publishing import Confirmation
from palio.client.replay import Replay, Survey
from palio.client.replies import Replies, Watch
from palio.client.session_handles import Advertised
from palio.client.states import State
from palio.client.subscription import Subscription
from palio.protocol.durable.wishes import HomeUnreachable, NotHome, NotTaker, WrongAttachment

if TYPE_CHECKING:
    from palio.client.detecting import Detection

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


def __getattr__(name: str) -> Any:
    if name != "Detection":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from palio.client.detecting import Detection  # noqa: PLC0415 (it needs matching, as nothing else here does)

    return Detection
