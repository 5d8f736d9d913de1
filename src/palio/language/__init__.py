"""Other tongues: the filter dialects of others, compiled to the one `Filter`.

A dialect is a function from its own notation to a `Filter`, without any I/O. What it cannot say exactly it
refuses, with the path of what is wrong. `read_filter` knows them all by name.
"""

from palio.language.dialects import (
    DIALECTS,
    EVENTBRIDGE,
    PALIO,
    WRITERS,
    read_filter,
    require_dialect,
    write_filter,
)
from palio.language.errors import (
    MissingFunction,
    UnknownDialect,
    UnwritableCondition,
    UnwritableDialect,
    WrongDialectText,
    WrongExpression,
)
from palio.language.lines import UnsaidEntry, WrittenEntry, WrongLine, read_entry, written_text
from palio.language.selections import UnknownFamilies, is_selection
from palio.language.subscriptions_api import MEMBERS, read_filters

__all__ = [
    "DIALECTS",
    "EVENTBRIDGE",
    "MEMBERS",
    "PALIO",
    "WRITERS",
    "MissingFunction",
    "UnknownDialect",
    "UnknownFamilies",
    "UnsaidEntry",
    "UnwritableCondition",
    "UnwritableDialect",
    "WrittenEntry",
    "WrongDialectText",
    "WrongExpression",
    "WrongLine",
    "is_selection",
    "read_entry",
    "read_filter",
    "read_filters",
    "require_dialect",
    "write_filter",
    "written_text",
]
