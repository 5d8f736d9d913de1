"""Other tongues: the filter dialects of others, compiled to the one `Filter`.

A dialect is a function from its own notation to a `Filter`, without any I/O. What it cannot say exactly it
refuses, with the path of what is wrong. `read_filter` knows them all by name.
"""

from palio.language.dialects import DIALECTS, EVENTBRIDGE, PALIO, read_filter, write_filter
from palio.language.errors import (
    MissingFunction,
    UnknownDialect,
    UnwritableDialect,
    WrongDialectText,
    WrongExpression,
)
from palio.language.subscriptions_api import MEMBERS, read_filters

__all__ = [
    "DIALECTS",
    "EVENTBRIDGE",
    "MEMBERS",
    "PALIO",
    "MissingFunction",
    "UnknownDialect",
    "UnwritableDialect",
    "WrongDialectText",
    "WrongExpression",
    "read_filter",
    "read_filters",
    "write_filter",
]
