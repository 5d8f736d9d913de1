"""Palio: content-based publish/subscribe. Say what you want with a filter over the content.

>>> import palio
>>> f = palio.Filter.parse('symbol = "ACME" and price > 100')
>>> f.matches(palio.Notification({"symbol": "ACME", "price": 101.5}))
True

Who talks to a network begins with `palio.connect`; `palio.sync` has the same for programs without an event
loop, and `palio.testing` a network for tests.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from palio.client import *
    from palio.matching import MatchIndex
    from palio.matching.hints import Hints
    from palio.model.advertisement import Advertisement
    from palio.model.errors import *
    from palio.model.explanation import Explanation
    from palio.model.filter import Filter
    from palio.model.merging import Merge
    from palio.model.notification import Notification
    from palio.model.patterns.pattern import Pattern
    from palio.model.valueset import ValueSet

# Each is loaded when it is first asked for: who publishes an event needs no match index. What is not named here
# is an error of the model, or comes with the client.
_WHERE = {
    "Advertisement": "palio.model.advertisement",
    "Explanation": "palio.model.explanation",
    "Filter": "palio.model.filter",
    "Hints": "palio.matching.hints",
    "MatchIndex": "palio.matching",
    "Merge": "palio.model.merging",
    "Notification": "palio.model.notification",
    "Pattern": "palio.model.patterns.pattern",
    "ValueSet": "palio.model.valueset",
}

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
    "Throttled",
    "TokenExpired",
    "TooFast",
    "TooHard",
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
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = _WHERE.get(name)
    if module is None:
        module = "palio.model.errors" if name in vars(import_module("palio.model.errors")) else "palio.client"
    return globals().setdefault(name, getattr(import_module(module), name))


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
