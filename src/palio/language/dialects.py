"""Filters as text: `read_filter` takes (text, dialect), wherever text comes in that shall be a filter.

A dialect is a function from text to a `Filter`. A new one is a file of this room and a line in `DIALECTS`.
Texts that Palio has written itself (in stores, saved indexes and plans) are in its own language, and
`Filter.parse` reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from palio.language import (
    cesql,
    eventbridge,
    eventbridge_writing,
    jms,
    jms_writing,
    mqtt,
    mqtt_writing,
    subscriptions_api,
)
from palio.language.errors import UnknownDialect, UnwritableDialect, WrongDialectText
from palio.language.selections import UnknownFamilies, needs_families
from palio.model.errors import FilterSyntaxError
from palio.model.filter import Filter

PALIO = "palio"
EVENTBRIDGE = "eventbridge"
DIALECTS: Mapping[str, Callable[[str], Filter]] = MappingProxyType(
    {
        PALIO: Filter.parse,
        "cesql": cesql.parse_cesql,
        "cloudevents": subscriptions_api.parse_filters,
        EVENTBRIDGE: eventbridge.parse_event_pattern,
        "jms": jms.parse_selector,
        "mqtt": mqtt.parse_topic_filter,
    }
)


# What a filter can be written in again: what is written is read back to an equal filter, or refused.
WRITERS: Mapping[str, Callable[[Filter], str]] = MappingProxyType(
    {
        PALIO: str,
        "cesql": cesql.write_expression,
        EVENTBRIDGE: eventbridge_writing.write_event_pattern,
        "jms": jms_writing.write_selector,
        "mqtt": mqtt_writing.write_topic_filter,
    }
)


def require_dialect(dialect: str, path: str = "") -> str:
    """The dialect itself. Raises `UnknownDialect`; `path` says where it was named, if within a document."""
    if dialect not in DIALECTS:
        raise UnknownDialect(path, str(dialect), tuple(DIALECTS))
    return dialect


def write_filter(filter: Filter, dialect: str = PALIO) -> str:
    """The text of a filter in a dialect.

    Raises `UnknownDialect`, `UnwritableDialect`, or `UnwritableCondition` for what cannot be said there.
    """
    write = WRITERS.get(require_dialect(dialect))
    if write is None:
        raise UnwritableDialect(dialect, tuple(WRITERS))
    return write(filter)


def read_filter(given: str | Filter, dialect: str = PALIO) -> Filter:
    """The filter that a text means in a dialect; a filter is returned as it is.

    Raises `UnknownDialect`, or what is wrong with the text: a `FilterError`.
    """
    read = DIALECTS[require_dialect(dialect)]
    if isinstance(given, Filter):
        return given
    try:
        return read(given)
    except FilterSyntaxError as mistake:
        if dialect == PALIO:
            if needs_families(given):
                raise UnknownFamilies from None
            raise
        said = mistake.text, mistake.column, mistake.problem, mistake.suggestion
        if isinstance(mistake, WrongDialectText):  # a text within this one may be in a dialect of its own
            raise type(mistake)(*said, mistake.dialect or dialect) from None
        raise WrongDialectText(*said, dialect) from None
