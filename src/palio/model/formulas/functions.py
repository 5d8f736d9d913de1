"""`FUNCTIONS`: all that a formula can call, by name.

Functions of our own language have plain names (`add`, `abs`); those of another language have that language's
before theirs. What a name means never changes: it stands in stores, and other brokers look it up. A broker that
does not know a function cannot read the filter, and takes a neighbour's row with it for everything.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from palio.model.formulas import arithmetic, cesql, comparing, strings
from palio.model.formulas.function import Function

FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    {**arithmetic.FUNCTIONS, **cesql.FUNCTIONS, **comparing.FUNCTIONS, **strings.FUNCTIONS}
)
