"""`Candidates`: which of many filters may cover a given one, or be covered by it. Thousands at a time.

The idea. Filters stand in blocks of up to 8,192, each in a slot of its block. For a block and an attribute
there is a column: the lowest places of the stretches (see `outline`) are sorted and cut some 64 times, and
for each cut there is a bitmap, a Python int with a bit for each slot, of the filters whose stretch begins
before the cut; another such list for where the stretches end. "Begins at or before x" and "begins at or after
x" are then one look-up each, correct up to the filters between two neighbouring cuts, and a whole question is
a few ands and ors of such bitmaps:

- covered by g: and, over the attributes of g, of those whose stretch lies within that of g;
- covering g: not one of those with an attribute that g does not name, nor of those that have an attribute of
  g with a stretch that does not contain that of g.

To go through *all* attributes that g does not name would cost much where there are thousands. So each filter
is anchored at its rarest attribute: what is anchored at no attribute of g does not cover it. That leaves the
common attributes, and there are few that a sixteenth of a block's filters name.

The few slots that are left are looked at one by one (`Outline.may_cover`), and what passes is a candidate.

Changes. A new filter waits in a list that is searched one by one. When that holds 128, it becomes a block;
when four blocks of a size have come together, they become one of four times the size, up to the largest. So
each filter is built into a block at most four times, with cuts fitted to its company. A removed filter leaves
a hole, a cleared bit; a block with more holes than filters is built anew from what is left.

Invariants: a filter is either waiting or in exactly one slot; a set bit of `alive` means that the slot is
taken; no column ever misses a filter that fits (they may let others through).

Costs for n filters of k attributes: a question takes some 2k operations on bitmaps for each block, that is,
about a microsecond for a thousand filters, and grows in proportion with n from there on; memory is some 2 ×
64 bits for each filter and attribute that is used in its block. The longest pause is the building of the
largest block. Questions to texts and lists (`contains`, `has`) have no ends that could be sorted: among
filters that differ in nothing else the search is one by one, by an example.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from palio.matching.outline import Outline, Place, Stretch

# How many filters wait before they become a block; searching so many takes as long as some ten blocks.
MAX_WAITING = 128
# How many blocks of a size become one of the next.
FANOUT = 4
# The largest block. Building it takes some tens of milliseconds; larger ones would not be searched faster.
MAX_BLOCK = 8_192
# Cuts of a column. Memory grows with them, and what is left to look at one by one falls.
MAX_CUTS = 64
# A column is cut so that at least this many filters lie between neighbouring cuts.
MIN_BETWEEN_CUTS = 8
# An attribute is common in a block if at least one filter in so many names it.
COMMON_SHARE = 16


class Entry:
    """A filter's place: its outline, the owner's value, and the block and slot where it is, unless it waits."""

    __slots__ = ("block", "outline", "owner", "slot")

    def __init__(self, outline: Outline, owner: Any) -> None:
        self.outline = outline
        self.owner = owner
        self.block: _Block | None = None
        self.slot = 0


class Candidates:
    """Filters by outline."""

    def __init__(self) -> None:
        self._waiting: dict[Entry, None] = {}
        self._blocks: list[_Block] = []

    def add(self, outline: Outline, owner: Any) -> Entry:
        """Add a filter. The entry is what removes it again."""
        entry = Entry(outline, owner)
        self._waiting[entry] = None
        if len(self._waiting) >= MAX_WAITING:
            waiting, self._waiting = list(self._waiting), {}
            self._settle(waiting)
        return entry

    def remove(self, entry: Entry) -> None:
        """Remove a filter that was added and not removed since."""
        block = entry.block
        if block is None:
            del self._waiting[entry]
            return
        block.clear(entry)
        if 2 * block.taken < len(block.entries):
            self._blocks.remove(block)
            self._settle(block.remaining())

    def covering(self, outline: Outline) -> list[Entry]:
        """All filters that may cover the outlined one; this one too, if it is there."""
        found = [entry for entry in self._waiting if entry.outline.may_cover(outline)]
        for block in self._blocks:
            if slots := block.covering(outline):
                found += [entry for entry in block.at(slots) if entry.outline.may_cover(outline)]
        return found

    def covered(self, outline: Outline) -> list[Entry]:
        """All filters that the outlined one may cover; this one too, if it is there."""
        may_cover = outline.may_cover
        found = [entry for entry in self._waiting if may_cover(entry.outline)]
        for block in self._blocks:
            if slots := block.covered(outline):
                found += [entry for entry in block.at(slots) if may_cover(entry.outline)]
        return found

    @property
    def blocks(self) -> int:
        return len(self._blocks)

    def __iter__(self) -> Iterator[Entry]:
        yield from self._waiting
        for block in self._blocks:
            yield from block.remaining()

    def _settle(self, entries: list[Entry]) -> None:
        """Make a block of the entries, or of them and of all blocks of their size if these are enough."""
        while True:
            size = _size_class(len(entries))
            alike = [block for block in self._blocks if _size_class(len(block.entries)) == size]
            if size >= MAX_BLOCK or len(alike) < FANOUT - 1:
                break
            self._blocks = [block for block in self._blocks if block not in alike]
            entries = [entry for block in alike for entry in block.remaining()] + entries
        for start in range(0, len(entries), MAX_BLOCK):
            self._blocks.append(_Block(entries[start : start + MAX_BLOCK]))


def _size_class(count: int) -> int:
    """The least size at which a block with so many entries begins, of 1, 128, 512 and so on."""
    size = MAX_WAITING
    if count < size:
        return 1
    while size * FANOUT <= count and size < MAX_BLOCK:
        size *= FANOUT
    return size


class _Block:
    """Filters in slots, and a column for each attribute that one of them names."""

    __slots__ = ("alive", "anchored", "columns", "common", "entries", "taken")

    def __init__(self, entries: list[Entry]) -> None:
        self.entries: list[Entry | None] = list(entries)
        self.taken = len(entries)
        self.alive = (1 << len(entries)) - 1
        members: dict[str, list[int]] = {}
        for slot, entry in enumerate(entries):
            entry.block, entry.slot = self, slot
            for name in entry.outline.outer:
                members.setdefault(name, []).append(slot)
        self.columns = {name: _Column(name, slots, entries) for name, slots in members.items()}
        self.common = [
            (name, self.columns[name].present)
            for name, slots in members.items()
            if len(slots) * COMMON_SHARE >= len(entries)
        ]
        self.anchored = _anchored(entries, Counter({name: len(slots) for name, slots in members.items()}))

    def clear(self, entry: Entry) -> None:
        self.entries[entry.slot] = None
        self.alive &= ~(1 << entry.slot)
        self.taken -= 1
        entry.block = None

    def remaining(self) -> list[Entry]:
        return [entry for entry in self.entries if entry is not None]

    def at(self, slots: int) -> Iterator[Entry]:
        """The entries of a bitmap, the last slot first."""
        entries = self.entries
        while slots:
            slot = slots.bit_length() - 1
            slots ^= 1 << slot
            entry = entries[slot]
            if entry is not None:
                yield entry

    def covering(self, outline: Outline) -> int:
        """The slots of filters that may cover the outlined one."""
        inner = outline.inner
        anchored = self.anchored
        possible = anchored.get(None, 0)
        for name in inner:
            possible |= anchored.get(name, 0)
        possible &= self.alive
        if not possible:
            return 0
        for name, present in self.common:
            if name not in inner:
                possible &= ~present
        columns = self.columns
        for name, stretch in inner.items():
            if not possible:
                return 0
            if (column := columns.get(name)) is not None:
                possible &= ~column.not_around(stretch)
        return possible

    def covered(self, outline: Outline) -> int:
        """The slots of filters that the outlined one may cover."""
        possible = self.alive
        for name, stretch in outline.outer.items():
            column = self.columns.get(name)
            if column is None:
                return 0
            possible &= column.within(stretch)
            if not possible:
                return 0
        return possible


def _anchored(entries: list[Entry], uses: Counter[str]) -> dict[str | None, int]:
    """For each attribute the filters for which it is the rarest; None is for filters that name none."""
    anchored: dict[str | None, int] = {}
    slots: dict[str | None, list[int]] = {}
    for slot, entry in enumerate(entries):
        names = entry.outline.outer
        slots.setdefault(min(names, key=uses.__getitem__) if names else None, []).append(slot)
    for anchor, taken in slots.items():
        anchored[anchor] = _bitmap(taken, len(entries))
    return anchored


class _Column:
    """Where the stretches of one attribute begin and end, in one block.

    `begins_before[i]` has the filters whose stretch begins before `begin_cuts[i]`, and one more element has all
    of `firm`; likewise for the ends. `loose` has those whose two stretches differ: they pass every test.
    """

    __slots__ = ("begin_cuts", "begins_before", "end_cuts", "ends_before", "firm", "loose", "present")

    def __init__(self, name: str, slots: list[int], entries: list[Entry]) -> None:
        size = len(entries)
        loose = [slot for slot in slots if name in entries[slot].outline.loose]
        firm = [slot for slot in slots if name not in entries[slot].outline.loose] if loose else slots
        self.present = _bitmap(slots, size)
        self.loose = _bitmap(loose, size)
        self.firm = self.present ^ self.loose
        stretches = [entries[slot].outline.outer[name] for slot in firm]
        begins = [low for low, _ in stretches]
        ends = [high for _, high in stretches]
        self.begin_cuts, self.begins_before = _cut(begins, firm, size)
        self.end_cuts, self.ends_before = _cut(ends, firm, size)

    def not_around(self, stretch: Stretch) -> int:
        """Filters that have the attribute, surely without containing the stretch."""
        low, high = stretch
        fits = self.begins_before[bisect_right(self.begin_cuts, low)]
        cut = bisect_right(self.end_cuts, high)
        if cut:
            fits &= ~self.ends_before[cut - 1]
        return self.firm ^ fits

    def within(self, stretch: Stretch) -> int:
        """Filters that have the attribute and may lie within the stretch there."""
        low, high = stretch
        fits = self.ends_before[bisect_right(self.end_cuts, high)]
        cut = bisect_right(self.begin_cuts, low)
        if cut:
            fits &= ~self.begins_before[cut - 1]
        return fits | self.loose


def _cut(places: list[Place], slots: list[int], size: int) -> tuple[list[Place], list[int]]:
    """Cuts, ascending, and for each the bitmap of the slots whose place lies before it; then that of all."""
    apart = max(MIN_BETWEEN_CUTS, len(slots) // MAX_CUTS)
    cuts: list[Place] = []
    before: list[int] = []
    bits = bytearray(size // 8 + 1)
    since = 0
    previous: Place | None = None
    for place, slot in sorted(zip(places, slots, strict=True)):
        if since >= apart and place != previous:
            cuts.append(place)
            before.append(int.from_bytes(bits, "little"))
            since = 0
        bits[slot >> 3] |= 1 << (slot & 7)
        since += 1
        previous = place
    before.append(int.from_bytes(bits, "little"))
    return cuts, before


def _bitmap(slots: Iterable[int], size: int) -> int:
    bits = bytearray(size // 8 + 1)
    for slot in slots:
        bits[slot >> 3] |= 1 << (slot & 7)
    return int.from_bytes(bits, "little")
