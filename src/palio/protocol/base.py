"""What all messages of the wire have in common: immutable structs with a tag, and numbers within bounds."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec

# Numbers on the wire count something: they are never negative, and fit into any column, with room to count on.
# Moments and costs are finite.
Number: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
Moment: TypeAlias = Annotated[float, msgspec.Meta(ge=-1e300, le=1e300)]


class WireMessage(msgspec.Struct, frozen=True, tag=str.lower):
    """A message of the wire; its tag is the name of its type."""


class Paired(WireMessage, frozen=True):
    """A request that is always waited for, or its answer: both have the number that the client gave it."""

    number: Number


class Numbered(WireMessage, frozen=True, kw_only=True):
    """A request of a client, or the answer to one: both have the number that the client gave it.

    Who does not wait for the answer gives none: 0.
    """

    number: Number = 0
