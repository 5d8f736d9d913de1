"""Hints: how frequent values are, from somebody who has seen many events, for an index that has seen none.

An index files a filter under its rarest condition. What is rare it learns from the events it sees, and before
that it can only count filters: what few filters name may be in every event. Hints say it from the first
filter on. They count like events that the index has observed itself, so that they fade as it sees its own, and
they decide where a filter is filed and in which order its conditions are asked: never whether it matches.

`palio spark stats --hints` writes them; whoever can write JSON can, too. All that can be wrong with a file is
found when it is read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import msgspec

from palio.model.errors import UnreadableHints
from palio.model.flips import successor
from palio.model.values import KINDS_BY_NAME, MAX_NAME_CHARACTERS, Kind
from palio.model.valueset import ValueSet

FORMAT = "palio-hints"
VERSION = 1
# Files beyond these are refused: hints are a summary, and a broker reads them while it starts.
MAX_BYTES = 16 << 20
MAX_ATTRIBUTES = 4_096
MAX_VALUES = 65_536
MAX_QUANTILES = 1_024
# How many values and quantiles are asked when a condition is no plain equality: it is for an order, no more.
_ASKED = 16

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Plain = str | int | float | bool


class AttributeHints(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, dict=True):
    """What is known of one attribute; all shares are of all events.

    `present` is how often it is there at all, `kinds` how often with a value of each kind. `values` has the
    most frequent values; `distinct` is how many different ones there are in all. `quantiles` divide its
    numbers into equally many.
    """

    present: Share
    kinds: Annotated[dict[str, Share], msgspec.Meta(max_length=len(Kind))] = {}
    distinct: Annotated[int, msgspec.Meta(ge=0)] = 0
    values: Annotated[list[tuple[Plain, Share]], msgspec.Meta(max_length=MAX_VALUES)] = []
    quantiles: Annotated[list[float], msgspec.Meta(max_length=MAX_QUANTILES)] = []

    @cached_property
    def shares(self) -> dict[Any, float]:
        """Shares of values; a bool is not the number that Python takes it for."""
        return {_key(value): share for value, share in self.values}

    @cached_property
    def unlisted(self) -> float:
        """The share of a value that is not listed: what listed ones leave, divided evenly."""
        left = self.present - sum(share for _, share in self.values)
        return max(0.0, min(1.0, left)) / max(1, self.distinct - len(self.values))

    @cached_property
    def _probes(self) -> list[tuple[Plain, float]]:
        """A few values that stand for all, with their weights."""
        listed = list(self.values[:_ASKED])
        rest = max(0.0, self.present - sum(share for _, share in listed))
        if self.quantiles and rest:
            every = max(1, len(self.quantiles) // _ASKED)
            chosen = self.quantiles[every // 2 :: every]
            return [*listed, *((one, rest / len(chosen)) for one in chosen)]
        return [(value, share + rest / len(listed)) for value, share in listed] if listed else []

    def share(self, side: ValueSet) -> float:
        """The share of events whose value lies in a set, about."""
        absent = 1.0 - self.present if side.absent else 0.0
        point = _point(side)
        if point is not None:
            return absent + self.shares.get(_key(point), self.unlisted)
        probes = self._probes
        if not probes:
            return absent + self.present / 2
        return min(1.0, absent + sum(weight for value, weight in probes if value in side))


class Hints(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How frequent attributes and their values are in `events` events.

    `others` is the share of events in which an attribute may be that is not listed.
    """

    attributes: Annotated[dict[str, AttributeHints], msgspec.Meta(max_length=MAX_ATTRIBUTES)]
    events: Annotated[int, msgspec.Meta(ge=0)] = 0
    others: Share = 0.0
    format: str = FORMAT
    version: int = VERSION

    # Reading and writing

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Hints:
        """Read a file. Raises `UnreadableHints`."""
        try:
            with Path(path).open("rb") as file:
                data = file.read(MAX_BYTES + 1)
        except OSError as problem:
            raise UnreadableHints(str(path), f"{problem.strerror or problem}.") from None
        return cls.decode(data, str(path))

    @classmethod
    def decode(cls, data: bytes, origin: str = "hints") -> Hints:
        """Read what `encode` gives. Raises `UnreadableHints`, which names the origin."""
        if len(data) > MAX_BYTES:
            raise UnreadableHints(origin, f"it has more than {MAX_BYTES:,} bytes.")
        try:
            head = msgspec.json.decode(data, type=_Head)
            if head.format != FORMAT:
                raise UnreadableHints(origin, f'its "format" is not "{FORMAT}".')
            if head.version != VERSION:
                raise UnreadableHints(origin, f"its version is {head.version}, and this Palio reads {VERSION}.")
            found = msgspec.json.decode(data, type=cls)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as problem:
            raise UnreadableHints(origin, f"{problem}.") from None
        for name, one in found.attributes.items():
            _check(origin, name, one)
        return found

    def encode(self) -> bytes:
        """As JSON, for a file."""
        document = {"format": self.format, "version": self.version, **msgspec.to_builtins(self)}
        return msgspec.json.encode(document)

    # Asking

    def share(self, name: str, side: ValueSet) -> float:
        """The share of events whose value of an attribute lies in a set, about."""
        known = self.attributes.get(name)
        if known is not None:
            return known.share(side)
        return 1.0 if side.absent else self.others

    def value(self, name: str, value: Any) -> float:
        """The share of events in which an attribute has a value."""
        known = self.attributes.get(name)
        return self.others if known is None else known.shares.get(_key(value), known.unlisted)

    def presence(self, name: str, kind: Kind | None = None) -> float:
        """The share of events that have an attribute; or have it with a value of a kind."""
        known = self.attributes.get(name)
        if known is None:
            return self.others
        return known.present if kind is None else known.kinds.get(kind.name.lower(), known.present)

    def ordered(self, sides: Mapping[str, ValueSet]) -> Iterable[tuple[str, ValueSet]]:
        """The sides of a conjunction, those that hold least often first."""
        if len(sides) < 2:
            return sides.items()
        return sorted(sides.items(), key=lambda item: self.share(*item))


class _Head(msgspec.Struct):
    format: str = ""
    version: int = 0


def _check(origin: str, name: str, given: AttributeHints) -> None:
    """What types cannot say. Raises `UnreadableHints`."""
    if not 0 < len(name) <= MAX_NAME_CHARACTERS:
        raise UnreadableHints(origin, f"{name[:40]!r} is no name of an attribute.")
    for kind in given.kinds:
        if kind not in KINDS_BY_NAME:
            raise UnreadableHints(origin, f"{name!r} has values of the kind {kind!r}, which there is not.")
    if any(later < earlier for earlier, later in pairwise(given.quantiles)):
        raise UnreadableHints(origin, f"the quantiles of {name!r} do not ascend.")


def _key(value: Any) -> Any:
    return (value,) if isinstance(value, bool) else value


def _point(side: ValueSet) -> Any:
    """The one string, bool or number that a set consists of; None if it is another set."""
    if side.absent:
        return None
    found = [(kind, part) for kind, part in enumerate(side.parts) if part]
    if len(found) == 2 and found[0][0] == Kind.INT and found[1][0] == Kind.FLOAT:
        found = found[1:]  # a number without a demanded type: the floats say it as well
    if len(found) != 1:
        return None
    kind, part = found[0]
    if type(part) is not tuple:
        return None
    if kind == Kind.BOOL:
        return len(part) == 1 if part != (False,) else None
    is_plain = kind in (Kind.STRING, Kind.INT, Kind.FLOAT)
    return part[0] if is_plain and len(part) == 2 and part[1] == successor(kind, part[0]) else None
