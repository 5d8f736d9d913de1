"""Palio: content-based publish/subscribe. Say what you want with a filter over the content.

>>> import palio
>>> f = palio.Filter.parse('symbol = "ACME" and price > 100')
>>> f.matches(palio.Notification({"symbol": "ACME", "price": 101.5}))
True
"""

from palio.matching import MatchIndex
from palio.model.advertisement import Advertisement
from palio.model.errors import (
    ContradictoryFilter,
    DuplicateId,
    FilterError,
    FilterSyntaxError,
    FilterTooLarge,
    InvalidNotification,
    MissingDependency,
    PalioError,
    ReadOnlyIndex,
    UnknownId,
    UnreadableIndex,
    UnsupportedColumn,
    UnsupportedId,
)
from palio.model.explanation import Explanation
from palio.model.filter import Filter
from palio.model.merging import Merge
from palio.model.notification import Notification
from palio.model.valueset import ValueSet

__all__ = [
    "Advertisement",
    "ContradictoryFilter",
    "DuplicateId",
    "Explanation",
    "Filter",
    "FilterError",
    "FilterSyntaxError",
    "FilterTooLarge",
    "InvalidNotification",
    "MatchIndex",
    "Merge",
    "MissingDependency",
    "Notification",
    "PalioError",
    "ReadOnlyIndex",
    "UnknownId",
    "UnreadableIndex",
    "UnsupportedColumn",
    "UnsupportedId",
    "ValueSet",
]
