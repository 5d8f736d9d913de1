"""Palio: content-based publish/subscribe. Say what you want with a filter over the content.

>>> import palio
>>> f = palio.Filter.parse('symbol = "ACME" and price > 100')
>>> f.matches(palio.Notification({"symbol": "ACME", "price": 101.5}))
True

Who talks to a network begins with `palio.connect`; `palio.sync` has the same for programs without an event
loop, and `palio.testing` a network for tests.
"""

from typing import TYPE_CHECKING, Any

from palio.matching import MatchIndex
from palio.matching.hints import Hints
from palio.model.advertisement import Advertisement
from palio.model.errors import (
    ContradictoryFilter,
    DuplicateId,
    EventTooLarge,
    FilterDiffers,
    FilterError,
    FilterSyntaxError,
    FilterTooLarge,
    HistoryUnavailable,
    ImpossiblePattern,
    InvalidNotification,
    MissingDependency,
    NoSuchAttribute,
    NoSuchSubscription,
    NotAllowed,
    NotAuthenticated,
    PalioError,
    PatternError,
    PatternSyntaxError,
    PatternTooLarge,
    ReadOnlyIndex,
    TokenExpired,
    TooFast,
    UnboundedPattern,
    UnknownId,
    UnreadableHints,
    UnreadableIndex,
    UnsupportedColumn,
    UnsupportedId,
    WrongKind,
)
from palio.model.explanation import Explanation
from palio.model.filter import Filter
from palio.model.merging import Merge
from palio.model.notification import Notification
from palio.model.patterns.pattern import Pattern
from palio.model.valueset import ValueSet

if TYPE_CHECKING:
    from palio.client import (
        Advertised,
        AlreadySubscribed,
        Backoff,
        Client,
        ClientClosed,
        Confirmation,
        ConnectionLost,
        Detection,
        DurableSubscription,
        Event,
        EventsLost,
        HomeUnreachable,
        NoEvent,
        NoRequest,
        NotConnected,
        NotHome,
        NotTaker,
        Replay,
        ReplierFailed,
        Replies,
        RequestRefused,
        RequestTimeout,
        SlowConsumer,
        State,
        Subscription,
        SubscriptionEnded,
        Survey,
        TakenOver,
        TooMuchUnsent,
        UndecodableEvent,
        UntrustedCertificate,
        Watch,
        WrongAddress,
        WrongAttachment,
        WrongPort,
        WrongType,
        connect,
    )

# These come with the client, which is loaded when one of them is first asked for.
_OF_THE_CLIENT = frozenset(
    {
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
    }
)

__all__ = [
    "Advertised",
    "Advertisement",
    "AlreadySubscribed",
    "Backoff",
    "Client",
    "ClientClosed",
    "Confirmation",
    "ConnectionLost",
    "ContradictoryFilter",
    "Detection",
    "DuplicateId",
    "DurableSubscription",
    "Event",
    "EventTooLarge",
    "EventsLost",
    "Explanation",
    "Filter",
    "FilterDiffers",
    "FilterError",
    "FilterSyntaxError",
    "FilterTooLarge",
    "Hints",
    "HistoryUnavailable",
    "HomeUnreachable",
    "ImpossiblePattern",
    "InvalidNotification",
    "MatchIndex",
    "Merge",
    "MissingDependency",
    "NoEvent",
    "NoRequest",
    "NoSuchAttribute",
    "NoSuchSubscription",
    "NotAllowed",
    "NotAuthenticated",
    "NotConnected",
    "NotHome",
    "NotTaker",
    "Notification",
    "PalioError",
    "Pattern",
    "PatternError",
    "PatternSyntaxError",
    "PatternTooLarge",
    "ReadOnlyIndex",
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
    "TokenExpired",
    "TooFast",
    "TooMuchUnsent",
    "UnboundedPattern",
    "UndecodableEvent",
    "UnknownId",
    "UnreadableHints",
    "UnreadableIndex",
    "UnsupportedColumn",
    "UnsupportedId",
    "UntrustedCertificate",
    "ValueSet",
    "Watch",
    "WrongAddress",
    "WrongAttachment",
    "WrongKind",
    "WrongPort",
    "WrongType",
    "connect",
]


def __getattr__(name: str) -> Any:
    if name in _OF_THE_CLIENT:
        from palio import client  # noqa: PLC0415 (see above)

        return globals().setdefault(name, getattr(client, name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
