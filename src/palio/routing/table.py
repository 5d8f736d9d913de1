"""The table of a broker: who wants what, and which of it the neighbours are told.

An *entry* is a filter (or, in a second table, an advertisement) with its sources: the local sessions that
hold it and the ports on which it came. A *port* is a link of an acyclic network, named by the neighbour, or
all of the general graph at once, named `GRAPH`. What came on a port never goes back there; so an entry whose
only source is one port is *for* all ports but that one, and any other entry is for all.

Strategies differ only in which entries are sent where. `Simple` has one entry for each subscription and sends
all of them; `Identity` has one for equal filters; `covering.Covering` withholds what is covered, and
`merging.Merging` sends several as one. Each is a function from the entries to the rows on each port. It is
maintained step by step: a change marks the entries whose answer may differ, `settle` looks at these again and
returns, port by port, what to add and what to remove.

Invariants between calls of `settle`:
- a row is in `sent` of a port iff the neighbour was told to add it and not told to remove it since;
- every entry has a source; nothing is kept of entries without one;
- for each port, whatever selects something for others is selected by a row sent there.

With advertisements, an entry of the filters' table is wanted on a port only if an advertisement that came on
that port overlaps it. `partners` holds, for each entry, those of the other table that it overlaps.
"""

from __future__ import annotations

from collections.abc import Iterable, KeysView
from typing import Any, Final, Generic, TypeAlias, TypeVar

Port: TypeAlias = str
GRAPH: Final[Port] = ""  # no broker has the empty name

Item = TypeVar("Item")


_NOBODY: dict[Any, Any] = {}  # shared by all entries that need none of their own; never changed


class Entry(Generic[Item]):
    """A filter or an advertisement in the table."""

    __slots__ = ("above", "brokers", "holders", "item", "partners", "place", "ports", "rank", "sent")

    def __init__(self, item: Item, place: Any = None) -> None:
        self.item = item
        self.place = place
        self.rank = 0  # which of the table's entries it was to come
        # What local sessions hold; how many rows each port has for it; and of how many those of the graph are.
        self.holders: dict[Any, None] = {}
        self.ports: dict[Port, int] = {}
        self.brokers: dict[str, int] = _NOBODY
        # The number of the row on each port where it is sent; `above` is for covering.
        self.sent: dict[Port, int] = {}
        self.above: dict[Port | None, int] | None = None
        self.partners: dict[Entry[Any], None] = _NOBODY

    @property
    def excluded(self) -> Port | None:
        """The one port that the entry is not for; None if it is for all."""
        if self.holders or len(self.ports) != 1:
            return None
        for port in self.ports:
            return port
        return None

    def __repr__(self) -> str:
        return f"<Entry {str(self.item)!r}>"


class Changes(Generic[Item]):
    """What to tell one port: numbered additions, and the numbers of removals."""

    __slots__ = ("add", "remove")

    def __init__(self) -> None:
        self.add: list[tuple[int, Item]] = []
        self.remove: list[int] = []


Settled: TypeAlias = dict[Port, Changes[Item]]
_SETTLED: Settled[Any] = {}  # nothing to tell; never changed


class Table(Generic[Item]):
    """The common part of all strategies: entries, sources, and settling. As it stands, it sends nothing."""

    def __init__(self, *, by_partners: bool = False) -> None:
        self._by_partners = by_partners
        self._entries: dict[Any, Entry[Item]] = {}
        self._ports: dict[Port, None] = {}
        self._attracts_all: dict[Port, None] = {}
        self._numbers: dict[Port, int] = {}
        self._latest = 0
        self._dirty: dict[Entry[Item], None] = {}

    # Sources come and go

    def hold(self, item: Item, holder: Any) -> tuple[Entry[Item], bool]:
        """A local session wants it. Returns the entry, and whether it is new."""
        entry, fresh = self._obtain(item)
        before = None if fresh else entry.excluded
        entry.holders[holder] = None
        self._source_gained(entry, fresh, before)
        return entry, fresh

    def let_go(self, entry: Entry[Item], holder: Any) -> bool:
        """A local session does not want it any more. Returns whether the entry is gone."""
        before = entry.excluded
        del entry.holders[holder]
        return self._source_lost(entry, before)

    def receive(self, item: Item, port: Port, broker: str | None = None) -> tuple[Entry[Item], bool]:
        """A row came on a port, in the graph of some broker. Returns the entry, and whether it is new."""
        entry, fresh = self._obtain(item)
        before = None if fresh else entry.excluded
        entry.ports[port] = entry.ports.get(port, 0) + 1
        if broker is not None:
            if entry.brokers is _NOBODY:
                entry.brokers = {}
            entry.brokers[broker] = entry.brokers.get(broker, 0) + 1
        self._source_gained(entry, fresh, before)
        return entry, fresh

    def drop(self, entry: Entry[Item], port: Port, broker: str | None = None) -> bool:
        """A row was removed on its port. Returns whether the entry is gone."""
        before = entry.excluded
        _count_down(entry.ports, port)
        if broker is not None:
            _count_down(entry.brokers, broker)
        return self._source_lost(entry, before)

    # Ports open and close

    def open_port(self, port: Port, *, attracts_all: bool = False) -> None:
        """Rows are sent on this port from now on; with `attracts_all`, whatever is advertised there."""
        self._ports[port] = None
        if attracts_all:
            self._attracts_all[port] = None
        self._numbers.setdefault(port, 0)
        self._dirty.update(dict.fromkeys(self._entries.values()))

    def close_port(self, port: Port) -> None:
        """The port is gone, and all that was sent there forgotten. What came on it is dropped row by row."""
        if port in self._ports:
            del self._ports[port]
            self._attracts_all.pop(port, None)
            for entry in self._entries.values():
                entry.sent.pop(port, None)

    # What to send

    def partners_changed(self, entries: Iterable[Entry[Item]]) -> None:
        """The ports on which overlapping entries of the other table came have changed."""
        self._dirty.update(dict.fromkeys(entries))

    def settle(self) -> Settled[Item]:
        """What to tell each port so that it has the rows which it should. Empty if nothing changed."""
        if not self._dirty:
            return _SETTLED
        settled: Settled[Item] = {}
        if self._ports:
            # What is told does not depend on the order in which others, who share the facts, came to know them.
            for entry in sorted(self._dirty, key=_rank) if len(self._dirty) > 1 else self._dirty:
                sent = entry.sent
                targets = self._targets(entry) if entry.holders or entry.ports else ()
                for port in targets:
                    if port not in sent:
                        sent[port] = self._begin(settled, port, entry)
                if len(sent) != len(targets):
                    for port in [port for port in sent if port not in targets]:
                        self._end(settled, port, entry)
                        del sent[port]
            self._finish(settled)
        self._dirty.clear()
        return settled

    def sent(self, port: Port) -> dict[int, Item]:
        """The rows that the port has been told of, by number."""
        return {entry.sent[port]: entry.item for entry in self._entries.values() if port in entry.sent}

    def __len__(self) -> int:
        return len(self._entries)

    def entries(self) -> Iterable[Entry[Item]]:
        return self._entries.values()

    def _begin(self, settled: Settled[Item], port: Port, entry: Entry[Item]) -> int:
        """The port shall have what the entry selects. Returns the number of its row, or 0."""
        return self._send(settled, port, entry.item)

    def _end(self, settled: Settled[Item], port: Port, entry: Entry[Item]) -> None:
        """The port need not have what the entry selects any more."""
        self._unsend(settled, port, entry.sent[port])

    def _finish(self, settled: Settled[Item]) -> None:
        """All entries have been looked at."""

    def _send(self, settled: Settled[Item], port: Port, item: Item) -> int:
        number = self._numbers[port] = self._numbers[port] + 1
        settled.setdefault(port, Changes()).add.append((number, item))
        return number

    def _unsend(self, settled: Settled[Item], port: Port, number: int) -> None:
        settled.setdefault(port, Changes()).remove.append(number)

    # What strategies decide

    def _obtain(self, item: Item) -> tuple[Entry[Item], bool]:
        """The entry for an item; one without sources if it is new."""
        entry = self._entries.get(item)
        if entry is not None:
            return entry, False
        entry = self._entries[item] = Entry(item, item)
        return entry, True

    def _targets(self, entry: Entry[Item]) -> KeysView[Port] | tuple[Port, ...]:
        """The ports on which an entry that has sources shall be sent."""
        return ()

    def _entered(self, entry: Entry[Item]) -> None:
        """The entry is new and has its first source."""

    def _changed(self, entry: Entry[Item], before: Port | None) -> None:
        """The port that the entry is not for was another one."""

    def _left(self, entry: Entry[Item], before: Port | None) -> None:
        """Nothing is a source of the entry any more; the port that it was not for is given."""
        del self._entries[entry.place]

    # The mechanics of sources

    def _source_gained(self, entry: Entry[Item], fresh: bool, before: Port | None) -> None:
        if fresh:
            self._dirty[entry] = None
            self._latest += 1
            entry.rank = self._latest
            self._entered(entry)
        else:
            self._source_changed(entry, before)

    def _source_changed(self, entry: Entry[Item], before: Port | None) -> None:
        if entry.excluded != before:
            self._dirty[entry] = None
            self._changed(entry, before)

    def _source_lost(self, entry: Entry[Item], before: Port | None) -> bool:
        if entry.holders or entry.ports:
            self._source_changed(entry, before)
            return False
        self._dirty[entry] = None
        self._left(entry, before)
        return True

    def _wanted_on(self, entry: Entry[Item]) -> KeysView[Port] | tuple[Port, ...]:
        """The ports that the entry is for and where somebody may publish what it selects."""
        ports: dict[Port, None] = self._ports
        if self._by_partners:
            attracted: dict[Port, None] = dict(self._attracts_all)
            for partner in entry.partners:
                attracted |= dict.fromkeys(partner.ports)
            ports = {port: None for port in attracted if port in ports}
        excluded = entry.excluded
        if excluded is not None and excluded in ports:
            return tuple([port for port in ports if port != excluded])
        return ports.keys()


def _rank(entry: Entry[Any]) -> int:
    return entry.rank


def _count_down(counts: dict[str, int], key: str) -> None:
    if counts[key] == 1:
        del counts[key]
    else:
        counts[key] -= 1


class Identity(Table[Item]):
    """Each different filter is sent once: equal ones from several sources are one row."""

    def _targets(self, entry: Entry[Item]) -> KeysView[Port] | tuple[Port, ...]:
        return self._wanted_on(entry)


class Simple(Identity[Item]):
    """Each subscription is sent, whoever else has the same."""

    def _obtain(self, item: Item) -> tuple[Entry[Item], bool]:
        entry = Entry(item)
        entry.place = entry
        self._entries[entry] = entry
        return entry, True
