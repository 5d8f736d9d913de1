"""Merging: several filters are sent as one that covers them all.

What covering leaves for a port is put into *groups*. A group sends one filter: of a single member that filter
itself, of several the smallest box around them. A merge is *perfect* if the box selects nothing that no member
selects; an imperfect one is allowed up to a bound on the share of the box that nobody asked for
(`model.merging` says how that is estimated). The bound holds for each group as a whole, against its members,
so it does not creep as a group grows.

Members are remembered, so a cancellation is exact: when one goes, its group is taken apart and the others are
grouped anew, as if they had just come. All of that is one update of the port.

Only conjunctions are merged. Where to look: two boxes merge perfectly if they differ in one attribute; so
each group is filed, for each of its attributes, under all the others. For imperfect merging, the latest
groups with the same attributes are tried as well.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from itertools import islice

from palio.model.conjunction import Conjunction, join
from palio.model.errors import FilterTooLarge
from palio.model.filter import Filter
from palio.routing.covering import Covering
from palio.routing.facts import Facts
from palio.routing.table import Move, Port, Settled, TableEntry, Telling

# A cancellation regroups up to so many members.
MAX_MEMBERS = 32
# How many groups with the same attributes are tried for an imperfect merge.
MAX_TRIED = 8


class Group:
    """Entries that are sent as one filter on one port."""

    __slots__ = ("box", "filter", "members", "number", "sent")

    def __init__(self, entry: TableEntry[Filter], box: Conjunction | None) -> None:
        self.members: dict[TableEntry[Filter], None] = {entry: None}
        self.filter = entry.item
        self.box = box  # None if it cannot be merged
        self.number = 0
        self.sent: Filter | None = None


class Groups:
    """The groups of one port."""

    def __init__(self, facts: Facts, limit: float) -> None:
        self._facts = facts
        self._limit = limit
        self._group_of: dict[TableEntry[Filter], Group] = {}
        self._filed: dict[Hashable, dict[Group, None]] = {}
        self.touched: dict[Group, None] = {}
        self.arriving: dict[TableEntry[Filter], None] = {}
        self.leaving: dict[TableEntry[Filter], None] = {}

    def __iter__(self) -> Iterator[Group]:
        return iter(dict.fromkeys(self._group_of.values()))

    def regroup(self) -> None:
        """Take the leaving out and the arriving in; `touched` then has all groups that differ."""
        for entry in self.leaving:
            self._take_out(entry)
        for entry in self.arriving:
            self._take_in(entry)
        self.leaving.clear()
        self.arriving.clear()

    def _take_out(self, entry: TableEntry[Filter]) -> None:
        group = self._group_of.pop(entry, None)
        if group is None:  # it went together with another member
            return
        self._unfile(group)
        self.touched[group] = None
        for member in group.members:
            if member is not entry and member not in self.leaving:
                self.arriving[member] = None
        for member in group.members:
            self._group_of.pop(member, None)
        group.members = {}

    def _take_in(self, entry: TableEntry[Filter]) -> None:
        boxes = entry.item.conjunctions
        box = boxes[0] if len(boxes) == 1 else None
        for group in self._possible(box):
            if self._join(group, entry, box):
                return
        group = Group(entry, box)
        self._group_of[entry] = group
        self.touched[group] = None
        self._file(group)

    def _join(self, group: Group, entry: TableEntry[Filter], box: Conjunction | None) -> bool:
        if box is None or group.box is None or len(group.members) >= MAX_MEMBERS:
            return False
        if not group.box.includes(box):
            try:
                around = join(group.box, box)
                parts = [member.item.conjunctions[0] for member in group.members]
                more, share = self._facts.excess(around, (*parts, box))
                merged = Filter((around,))
                _ = merged.form  # what no neighbour could read is not merged
            except FilterTooLarge:
                return False
            if share > self._limit or (more and not self._limit):
                return False
            self._unfile(group)
            group.box = around
            group.filter = merged
            self._file(group)
        group.members[entry] = None
        self._group_of[entry] = group
        self.touched[group] = None
        return True

    def _possible(self, box: Conjunction | None) -> Iterator[Group]:
        if box is None:
            return
        tried: dict[Group, None] = {}
        for key in _differing_in_one(box):
            for group in list(self._filed.get(key, ())):
                if group not in tried:
                    tried[group] = None
                    yield group
        if self._limit:
            latest = reversed(self._filed.get(_attributes(box), {}))
            yield from [group for group in islice(latest, MAX_TRIED) if group not in tried]

    def _file(self, group: Group) -> None:
        for key in _keys(group.box):
            self._filed.setdefault(key, {})[group] = None

    def _unfile(self, group: Group) -> None:
        for key in _keys(group.box):
            filed = self._filed[key]
            del filed[group]
            if not filed:
                del self._filed[key]


def _keys(box: Conjunction | None) -> Iterator[Hashable]:
    if box is not None:
        yield from _differing_in_one(box)
        yield _attributes(box)


def _differing_in_one(box: Conjunction) -> Iterator[Hashable]:
    for name in box.sides:
        yield (
            name,
            frozenset([(other, side) for other, side in box.sides.items() if other != name]),
            box.residuals,
        )


def _attributes(box: Conjunction) -> Hashable:
    return frozenset(box.sides)


class Merging(Covering[Filter]):
    """Sends what covering leaves, merged."""

    def __init__(self, facts: Facts, *, limit: float = 0.0, by_partners: bool = False) -> None:
        super().__init__(facts.filters, by_partners=by_partners)
        self._facts = facts
        self._limit = limit
        self._groups: dict[Port, Groups] = {}
        self._rows = 0  # sent ever

    def open_port(self, port: Port, *, attracts_all: bool = False) -> None:
        super().open_port(port, attracts_all=attracts_all)
        self._groups[port] = Groups(self._facts, self._limit)

    def close_port(self, port: Port) -> None:
        super().close_port(port)
        self._groups.pop(port, None)

    def sent(self, port: Port) -> dict[int, Filter]:
        return {number: filter for number, (filter, _) in self.groups(port).items()}

    def groups(self, port: Port) -> dict[int, tuple[Filter, list[Filter]]]:
        """The filter and the members of each row that was sent on a port."""
        return {
            group.number: (group.filter, [member.item for member in group.members])
            for group in self._groups.get(port, ())
        }

    def rows_sent(self) -> int:
        return sum([len(self.groups(port)) for port in self._groups])

    def _told(self, moves: list[Move[Filter]]) -> Settled[Filter]:
        for entry, begun, ended in moves:
            for port in begun:
                self._groups[port].arriving[entry] = None
            for port in ended:
                self._groups[port].leaving[entry] = None
        telling: Telling[Filter] = Telling()
        for port, groups in self._groups.items():
            if not groups.arriving and not groups.leaving:
                continue
            groups.regroup()
            for group in groups.touched:
                if group.members and group.filter is not group.sent:
                    self._rows += 1
                    former, group.number, group.sent = group.number, self._rows, group.filter
                    telling.add(port, group.number, group.filter)
                    if former:
                        telling.remove(port, former)
                elif not group.members and group.number:
                    telling.remove(port, group.number)
            groups.touched.clear()
        return telling.settled()
