"""`FilterBlocks`: filters in columns of where their stretches begin and end; thousands asked in one operation.

The idea. Filters stand in blocks of up to 8,192, each in a slot of its block. In a block there is a column
for each attribute: the places where the filters' stretches begin (see `outline`) are cut into groups, and for
each cut there is a bitmap, a Python int with a bit for each slot, of the filters whose stretch begins before
that cut; and the like for where stretches end. "Begins at or before x" is then one look-up, correct but for
the few filters between two neighbouring cuts, "begins at or after x" is the complement of another, and a
whole question is a few ands of bitmaps:

- covered by g: for each attribute of g, those that have it and whose stretch lies within that of g;
- covering g: for each attribute of g, those that do not have it or whose stretch contains that of g; and none
  that has an attribute which g does not name.

Going through all attributes that g does not name would cost much where there are thousands. So each filter is
anchored at its rarest attribute: what is anchored at no attribute of g does not cover it. What remains are
filters all of whose attributes are common, and there are few attributes that a sixteenth of the filters name.

The slots that are left are looked at one by one (`Outline.may_cover`); what passes is a candidate. All blocks
share the cuts of an attribute as far as these fit, so that a place is searched once and not once for each
block.

Changes. A new filter waits in a list that is searched one by one. When 128 or more are waiting they become
a block; when eight blocks of a size have come together they become one of eight times the size, up to the
largest. So a filter is built into a block three times. A removed filter leaves a hole, a cleared bit; a
block with more holes than filters is built anew from what is left.

Invariants: a filter either waits or has exactly one slot; a bit of `alive` is set iff its slot is taken;
bitmaps may hold filters that do not fit but never lack one that does.

Costs, for n filters: a question takes two to three operations on bitmaps for each block and attribute of g,
and a look at what lies between the same two cuts as g. Both grow in proportion with n, but slowly: a block of
8,192 filters takes some ten microseconds. Memory is bounded by 2 × 2,560 bits for each filter if attributes
are common, whatever their number. The longest pause is the building of a largest block.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from typing import Any

import msgspec

from palio.matching.outline import Outline, Place, looked_at

# How many filters wait before they become a block; searching so many takes as long as some ten blocks.
MAX_WAITING = 128
# How many blocks of a size become one of the next.
FANOUT = 8
# The largest block. Building it takes 100 to 300 milliseconds; larger ones would not be searched faster.
MAX_BLOCK = 8_192
# Cuts of a block, shared out evenly among its common attributes, and of the column of any other attribute.
# Memory grows with them (twice this many bits for each filter); what is left to look at one by one falls.
MAX_CUTS = 2_560
MAX_RARE_CUTS = 32
# A column is cut so that at least this many filters lie between neighbouring cuts.
MIN_BETWEEN_CUTS = 6
# Cuts are made anew if, of so many samples, more than so many different ones lie between two of them.
FIT_SAMPLES = 64
MAX_TOGETHER = 12
# An attribute is common in a block if at least one filter in so many names it.
COMMON_SHARE = 16


class CandidateEntry:
    """A filter's place: its outline, the owner's value, and the block and slot where it is, unless it waits."""

    __slots__ = ("block", "names", "outline", "owner", "slot")

    def __init__(self, outline: Outline, owner: Any) -> None:
        self.outline = outline
        self.names = outline.names
        self.owner = owner
        self.block: _Block | None = None
        self.slot = 0


class FilterBlocks:
    """Filters in blocks, and those that wait to become one."""

    def __init__(self) -> None:
        self._waiting: dict[CandidateEntry, None] = {}
        self._blocks: list[_Block] = []
        self._cuts: dict[str, _Cuts] = {}

    def add(self, entry: CandidateEntry) -> None:
        self._waiting[entry] = None

    def remove(self, entry: CandidateEntry) -> None:
        block = entry.block
        if block is None:
            del self._waiting[entry]
            return
        block.clear(entry)
        if 2 * block.taken < len(block.entries):
            self._blocks.remove(block)
            self._settle(block.remaining())

    def covering(
        self, outline: Outline, among: Container[CandidateEntry] | None = None
    ) -> list[CandidateEntry]:
        self._settle_waiting()
        names = outline.names
        waiting = looked_at(_only(self._waiting, among))
        found = [entry for entry in waiting if entry.names <= names and entry.outline.may_cover(outline)]
        aims = [_Aim(name, *stretch) for name, stretch in outline.inner.items()]
        for block in list(self._blocks):
            if slots := block.covering(aims, names):
                possible = looked_at(_only(block.at(slots), among))
                found += [entry for entry in possible if entry.outline.may_cover(outline)]
        return found

    def covered(self, outline: Outline, among: Container[CandidateEntry] | None = None) -> list[CandidateEntry]:
        self._settle_waiting()
        names, may_cover = outline.names, outline.may_cover
        waiting = looked_at(_only(self._waiting, among))
        found = [entry for entry in waiting if names <= entry.names and may_cover(entry.outline)]
        aims = [_Aim(name, *stretch) for name, stretch in outline.outer.items()]
        for block in list(self._blocks):
            if slots := block.covered(aims):
                found += [
                    entry for entry in looked_at(_only(block.at(slots), among)) if may_cover(entry.outline)
                ]
        return found

    @property
    def blocks(self) -> int:
        return len(self._blocks)

    def __iter__(self) -> Iterator[CandidateEntry]:
        yield from self._waiting
        for block in self._blocks:
            yield from block.remaining()

    def _settle_waiting(self) -> None:
        """Before a question: more than a few would be searched one by one."""
        if len(self._waiting) >= MAX_WAITING:
            waiting, self._waiting = list(self._waiting), {}
            for start in range(0, len(waiting), MAX_BLOCK):
                self._settle(waiting[start : start + MAX_BLOCK])

    def _settle(self, entries: list[CandidateEntry]) -> None:
        """Make a block of the entries, or of them and of all blocks of their size if these are enough."""
        while True:
            size = _size_class(len(entries))
            alike = [block for block in self._blocks if _size_class(len(block.entries)) == size]
            if size >= MAX_BLOCK or len(alike) < FANOUT - 1:
                break
            self._blocks = [block for block in self._blocks if block not in alike]
            self._forget_unused_cuts()
            entries = [entry for block in alike for entry in block.remaining()] + entries
        for start in range(0, len(entries), MAX_BLOCK):
            self._blocks.append(_Block(entries[start : start + MAX_BLOCK], self._cuts))

    def _forget_unused_cuts(self) -> None:
        """Names of attributes come and go with the filters; what is known of them must not pile up."""
        used = {name for block in self._blocks for name in block.columns}
        self._cuts = {name: cuts for name, cuts in self._cuts.items() if name in used}


def _only(
    entries: Iterable[CandidateEntry], among: Container[CandidateEntry] | None
) -> Iterable[CandidateEntry]:
    """Those that are wanted. All at once: others may have their turn while they are looked at."""
    return list(entries) if among is None else [entry for entry in entries if entry in among]


def _size_class(count: int) -> int:
    """The least size at which a block with so many entries begins, of 1, 128, 1,024 and so on."""
    size = MAX_WAITING
    if count < size:
        return 1
    while size * FANOUT <= count and size < MAX_BLOCK:
        size *= FANOUT
    return size


class _Block:
    """Filters in slots, and a column for each attribute that one of them names."""

    __slots__ = ("alive", "anchored", "columns", "common", "entries", "taken")

    def __init__(self, entries: list[CandidateEntry], cuts: dict[str, _Cuts]) -> None:
        self.entries: list[CandidateEntry | None] = list(entries)
        self.taken = len(entries)
        self.alive = (1 << len(entries)) - 1
        members: dict[str, list[int]] = {}
        for slot, entry in enumerate(entries):
            entry.block, entry.slot = self, slot
            for name in entry.outline.outer:
                members.setdefault(name, []).append(slot)
        common = [name for name, slots in members.items() if len(slots) * COMMON_SHARE >= len(entries)]
        limits = dict.fromkeys(common, MAX_CUTS // max(1, len(common)))
        self.columns = {
            name: _Column(
                name, slots, entries, everyone=self.alive, limit=limits.get(name, MAX_RARE_CUTS), known=cuts
            )
            for name, slots in members.items()
        }
        self.common = [(name, self.alive ^ _bitmap(members[name], len(entries))) for name in common]
        self.anchored = _anchored(entries, Counter({name: len(slots) for name, slots in members.items()}))

    def clear(self, entry: CandidateEntry) -> None:
        self.entries[entry.slot] = None
        self.alive &= ~(1 << entry.slot)
        self.taken -= 1
        entry.block = None

    def remaining(self) -> list[CandidateEntry]:
        return [entry for entry in self.entries if entry is not None]

    def at(self, slots: int) -> Iterator[CandidateEntry]:
        """The entries of a bitmap; by words of 64 bits, as taking bits out of a long int is slow."""
        entries = self.entries
        words = (len(entries) + 63) // 64
        for index, word in enumerate(struct.unpack(f"<{words}Q", slots.to_bytes(8 * words, "little"))):
            while word:
                lowest = word & -word
                word ^= lowest
                entry = entries[64 * index + lowest.bit_length() - 1]
                if entry is not None:
                    yield entry

    def covering(self, aims: list[_Aim], names: frozenset[str]) -> int:
        """The slots of filters that may cover what is aimed at, which has these names."""
        anchored = self.anchored
        possible = anchored.get(None, 0)
        for name in names:
            possible |= anchored.get(name, 0)
        possible &= self.alive
        if not possible:
            return 0
        columns = self.columns
        for aim in aims:
            column = columns.get(aim.name)
            if column is None:
                continue
            if column.cuts is not aim.cuts:
                aim.locate(column.cuts)
            possible &= column.begins_before[aim.begin]
            if aim.end:
                possible &= ~column.ends_before[aim.end - 1]
            if not possible:
                return 0
        for name, without in self.common:
            if name not in names:
                possible &= without
        return possible

    def covered(self, aims: list[_Aim]) -> int:
        """The slots of filters that what is aimed at may cover."""
        columns = self.columns
        for aim in aims:
            if aim.name not in columns:
                return 0
        possible = self.alive
        for aim in aims:
            column = columns[aim.name]
            if column.cuts is not aim.cuts:
                aim.locate(column.cuts)
            fits = column.ends_before[aim.end]
            if aim.begin:
                fits &= ~column.begins_before[aim.begin - 1]
            if column.loose:
                fits |= column.loose
            possible &= fits
            if not possible:
                return 0
        return possible


def _anchored(entries: list[CandidateEntry], uses: Counter[str]) -> dict[str | None, int]:
    """For each attribute the filters for which it is the rarest; None is for filters that name none."""
    slots: dict[str | None, list[int]] = {}
    for slot, entry in enumerate(entries):
        names = entry.outline.outer
        slots.setdefault(min(names, key=uses.__getitem__) if names else None, []).append(slot)
    return {anchor: _bitmap(taken, len(entries)) for anchor, taken in slots.items()}


class _Cuts(msgspec.Struct, frozen=True, eq=False):
    """Where the columns of an attribute are cut, ascending; and how many stretches the cuts were fitted to."""

    begins: list[Place]
    ends: list[Place]
    fitted_to: int


class _Aim:
    """A stretch that is searched for, and behind how many of some column's cuts its ends lie."""

    __slots__ = ("begin", "cuts", "end", "high", "low", "name")

    def __init__(self, name: str, low: Place, high: Place) -> None:
        self.name = name
        self.low = low
        self.high = high
        self.cuts: _Cuts | None = None
        self.begin = self.end = 0

    def locate(self, cuts: _Cuts) -> None:
        self.cuts = cuts
        self.begin = bisect_right(cuts.begins, self.low)
        self.end = bisect_right(cuts.ends, self.high)


class _Column:
    """Where the stretches of one attribute begin and end, in one block.

    `ends_before[i]` has the filters whose stretch ends before the cut i, and one more element has all of them.
    `begins_before` is the like, and has besides all filters that do not have the attribute. Those whose two
    stretches differ are `loose`: they are in `begins_before` only, and pass every test.
    """

    __slots__ = ("begins_before", "cuts", "ends_before", "loose")

    def __init__(
        self,
        name: str,
        slots: list[int],
        entries: list[CandidateEntry],
        *,
        everyone: int,
        limit: int,
        known: dict[str, _Cuts],
    ) -> None:
        size = len(entries)
        loose = [slot for slot in slots if name in entries[slot].outline.loose]
        firm = [slot for slot in slots if name not in entries[slot].outline.loose] if loose else slots
        self.loose = _bitmap(loose, size)
        stretches = [entries[slot].outline.outer[name] for slot in firm]
        lows, highs = [low for low, _ in stretches], [high for _, high in stretches]
        cuts = known.get(name)
        if cuts is None or not (_fit(cuts, cuts.begins, lows) and _fit(cuts, cuts.ends, highs)):
            cuts = known[name] = _Cuts(_cut(lows, limit), _cut(highs, limit), len(firm))
        self.cuts = cuts
        self.ends_before = _bitmaps_before(cuts.ends, highs, firm, size)
        # The one bitmap of a column without cuts has everyone: then all such columns share it.
        others = everyone ^ self.ends_before[-1]
        before = _bitmaps_before(cuts.begins, lows, firm, size)
        self.begins_before = [others | bitmap for bitmap in before[:-1]] + [everyone]


def _fit(cuts: _Cuts, ends: list[Place], places: list[Place]) -> bool:
    """Whether the cuts do for these places: fitted to not far fewer, and not left behind by drifting values."""
    if 2 * cuts.fitted_to < len(places):
        return False
    sample = places[:: max(1, len(places) // FIT_SAMPLES)]
    between: dict[int, set[Place]] = {}
    for place in sample:
        between.setdefault(bisect_right(ends, place), set()).add(place)
    return all(len(different) <= MAX_TOGETHER for different in between.values())


def _cut(places: list[Place], limit: int) -> list[Place]:
    """Cuts, ascending, with about as many places between each two of them."""
    apart = max(MIN_BETWEEN_CUTS, len(places) // limit)
    cuts: list[Place] = []
    since = 0
    previous: Place | None = None
    for place in sorted(places):
        if since >= apart and place != previous:
            cuts.append(place)
            since = 0
        since += 1
        previous = place
    return cuts


def _bitmaps_before(cuts: list[Place], places: list[Place], slots: list[int], size: int) -> list[int]:
    """For each cut the bitmap of the slots whose place lies before it, then that of all."""
    between: list[list[int]] = [[] for _ in range(len(cuts) + 1)]
    for place, slot in zip(places, slots, strict=True):
        between[bisect_right(cuts, place)].append(slot)
    bits = bytearray(size // 8 + 1)
    before = []
    for taken in between:
        for slot in taken:
            bits[slot >> 3] |= 1 << (slot & 7)
        before.append(int.from_bytes(bits, "little"))
    return before


def _bitmap(slots: Iterable[int], size: int) -> int:
    bits = bytearray(size // 8 + 1)
    for slot in slots:
        bits[slot >> 3] |= 1 << (slot & 7)
    return int.from_bytes(bits, "little")
