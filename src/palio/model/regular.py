"""Regular languages as tables: what `like`, `regex` and texts that ignore case come down to.

A pattern is first a small syntax tree: characters, one after the other, one or the other, repeated. Each of its
sets of characters is a *place* (Glushkov's automaton: a place is where one character was read, and what may
come behind each place is a set of places, kept as the bits of an integer). The table has one state for each set
of places that can be reached at once, and is then made as small as it can be (`automaton.smallest`). Reading a
text takes one look-up a character, whatever the pattern; the compiled core runs the same table.

Sets of places can be exponentially many, and counted repetitions multiply. So places, states and the work to
find them are bounded; whatever is beyond is refused when a filter is read, with what it would have taken.

1. What is refused is refused for its size alone, before work that grows with it is done: places are counted
   from the tree (`_size`), and nothing is unrolled that has too many.
2. The table of a language is unique: two patterns that mean the same have equal tables.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import TypeAlias

import msgspec

from palio.model.automaton import Language, smallest
from palio.model.codes import ALPHABET, code_of
from palio.model.effort import Effort, Undecided, uncounted
from palio.model.texts import TextMistake

# A pattern of a person has some twenty places and as many states. These bounds let `[0-9]{1,1000}` pass; a
# table of that size takes a few ten milliseconds to make, once, and some ten kilobytes in an index.
MAX_PLACES = 1_024
MAX_STATES = 1_024
# States times classes of characters: a table of so many takes 128 KiB in an index.
MAX_CELLS = 65_536
# In places that are joined and transitions that are written while a table is made.
MAX_BUILDING = 400_000
# What a state of a table counts for a meter, whether the table is made or remembered.
STATE_STEPS = 400

# Characters as ranges [first, behind the last) of codes, ascending.
Ranges: TypeAlias = tuple[tuple[int, int], ...]
EVERY: Ranges = ((0, ALPHABET),)


class Letter(msgspec.Struct, frozen=True):
    """One character of a set."""

    ranges: Ranges


class Chain(msgspec.Struct, frozen=True):
    parts: tuple[Shape, ...]


class OneOf(msgspec.Struct, frozen=True):
    parts: tuple[Shape, ...]


class Repeated(msgspec.Struct, frozen=True):
    """From `least` to `most` times; None is any number."""

    part: Shape
    least: int
    most: int | None


Shape: TypeAlias = "Letter | Chain | OneOf | Repeated"


def letter(*characters: str) -> Letter:
    """One of these characters."""
    return Letter(ranges_of((code_of(one), code_of(one) + 1) for one in characters))


def ranges_of(pairs: Iterable[tuple[int, int]]) -> Ranges:
    """Ranges in order, those that touch joined."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(pairs):
        if found and low <= found[-1][1]:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return tuple(found)


def others(ranges: Ranges) -> Ranges:
    """All characters that are not in the ranges."""
    ends = [0, *[end for pair in ranges for end in pair], ALPHABET]
    return tuple((low, high) for low, high in zip(ends[::2], ends[1::2], strict=True) if low < high)


def read_through(language: Language, text: str) -> bool:
    """Whether a text is in a language."""
    cuts, table, state = language.cuts, language.table, 0
    for character in text:
        state = table[state][bisect_right(cuts, code_of(character)) - 1]
    return language.accepting[state]


def tabulate(shape: Shape, what: str) -> Language:
    """The table of a pattern, uncounted. Raises `TextMistake`, which calls the pattern `what`."""
    size = _size(shape)
    if size > MAX_PLACES:
        raise TextMistake(0, f"{what} has {size:,} places once it is written out; the limit is {MAX_PLACES:,}.")
    try:
        with uncounted():
            table = _Places(shape).table()
    except Undecided:
        raise TextMistake(
            0, f"{what} takes more than {MAX_STATES:,} states, or too many steps to find them."
        ) from None
    cells = len(table.table) * len(table.cuts)
    if cells > MAX_CELLS:
        sizes = f"{len(table.table):,} states for {len(table.cuts):,} classes of characters"
        raise TextMistake(0, f"{what} takes {sizes}; the limit is {MAX_CELLS:,} for the product of both.")
    return table


def _size(shape: Shape) -> int:
    match shape:
        case Letter():
            return 1
        case Chain(parts) | OneOf(parts):
            return sum(map(_size, parts)) or 1  # nothing is repeated no more often than something
        case Repeated(part, least, most):
            return _size(part) * max(1, least if most is None else most)


class _Ends(msgspec.Struct, frozen=True):
    """Of a part: whether it may be nothing, and the places that it can begin and end with."""

    nullable: bool
    first: int
    last: int


_NOTHING_READ = _Ends(nullable=True, first=0, last=0)


class _Places:
    def __init__(self, shape: Shape) -> None:
        self.letters: list[Ranges] = []
        self.following: list[int] = []
        self.effort = Effort(MAX_BUILDING)
        self.ends = self._add(shape)

    def _add(self, shape: Shape) -> _Ends:
        match shape:
            case Letter(ranges):
                place = 1 << len(self.letters)
                self.letters.append(ranges)
                self.following.append(0)
                return _Ends(nullable=False, first=place, last=place)
            case Chain(parts):
                ends = _NOTHING_READ
                for part in parts:
                    ends = self._behind(ends, self._add(part))
                return ends
            case OneOf(parts):
                several = [self._add(part) for part in parts]
                first = last = 0
                for one in several:
                    first |= one.first
                    last |= one.last
                return _Ends(any(one.nullable for one in several), first, last)
            case Repeated(part, least, most):
                return self._repeated(part, least, most)

    def _behind(self, before: _Ends, behind: _Ends) -> _Ends:
        self._join(before.last, behind.first)
        return _Ends(
            before.nullable and behind.nullable,
            before.first | behind.first if before.nullable else before.first,
            before.last | behind.last if behind.nullable else behind.last,
        )

    def _repeated(self, part: Shape, least: int, most: int | None) -> _Ends:
        """`x{1,3}` as `x(x(x)?)?`, from its end: so each time is joined to the next one only."""
        copies = max(1, least) if most is None else most
        ends = _NOTHING_READ
        for count in reversed(range(copies)):
            one = self._add(part)
            if most is None and count == copies - 1:
                self._join(one.last, one.first)
            ends = self._behind(one, ends)
            if count >= least:
                ends = _Ends(nullable=True, first=ends.first, last=ends.last)
        return ends

    def _join(self, places: int, behind: int) -> None:
        for place in self._bits(places):
            self.following[place] |= behind

    def _bits(self, places: int) -> list[int]:
        found = []
        while places:
            lowest = places & -places
            found.append(lowest.bit_length() - 1)
            places ^= lowest
        self.effort.spend(1 + len(found))
        return found

    def table(self) -> Language:
        """Raises `Undecided` past the bounds."""
        cuts = sorted({0} | {end for ranges in self.letters for pair in ranges for end in pair} - {ALPHABET})
        reached = [0] * len(cuts)
        for place, ranges in enumerate(self.letters):
            for low, high in ranges:
                start = bisect_right(cuts, low) - 1
                stop = bisect_right(cuts, high - 1)
                self.effort.spend(stop - start)
                for index in range(start, stop):
                    reached[index] |= 1 << place
        start = 1 << len(self.letters)  # before anything was read
        numbers = {start: 0}
        rows: list[tuple[int, ...]] = []
        accepting: list[bool] = []
        for state in (waiting := [start]):
            self.effort.spend(len(cuts))
            if state == start:
                behind = self.ends.first
                accepting.append(self.ends.nullable)
            else:
                behind = 0
                for place in self._bits(state):
                    behind |= self.following[place]
                accepting.append(state & self.ends.last != 0)
            row = []
            for mask in reached:
                to = behind & mask
                if to not in numbers:
                    if len(numbers) > MAX_STATES:
                        raise Undecided
                    numbers[to] = len(numbers)
                    waiting.append(to)
                row.append(numbers[to])
            rows.append(tuple(row))
        return smallest(cuts, rows, accepting)
