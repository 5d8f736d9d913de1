"""Filters as text: `read_filter` takes (text, dialect), wherever text comes in that shall be a filter.

A dialect is a function from text to a `Filter`. A new one is a file of this room and a line in `DIALECTS`.
Texts that Palio has written itself (in stores, saved indexes and plans) are in its own language, and
`Filter.parse` reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from palio.language import subscriptions_api
from palio.language.errors import UnknownDialect
from palio.model.filter import Filter

PALIO = "palio"
DIALECTS: Mapping[str, Callable[[str], Filter]] = MappingProxyType(
    {PALIO: Filter.parse, "cloudevents": subscriptions_api.parse_filters}
)


def read_filter(given: str | Filter, dialect: str = PALIO) -> Filter:
    """The filter that a text means in a dialect; a filter is returned as it is.

    Raises `UnknownDialect`, or what is wrong with the text: a `FilterError`.
    """
    read = DIALECTS.get(dialect)
    if read is None:
        raise UnknownDialect("", dialect, tuple(DIALECTS))
    return given if isinstance(given, Filter) else read(given)
