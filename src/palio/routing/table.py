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

from collections.abc import Iterable
from typing import Any, Final, Generic, TypeAlias, TypeVar

Port: TypeAlias = str
Ports: TypeAlias = tuple[Port, ...]
GRAPH: Final[Port] = ""  # no broker has the empty name

Item = TypeVar("Item")


_NOBODY: dict[Any, Any] = {}  # shared by all entries that need none of their own; never changed


class Entry(Generic[Item]):
    """A filter or an advertisement in the table.

    Most entries have one source, a port, and go to all other ports. So `ports` and `sent` are never changed,
    only replaced, and entries that are alike in them share them.
    """

    __slots__ = (
        "above",
        "brokers",
        "excluded",
        "holders",
        "item",
        "partners",
        "place",
        "ports",
        "rank",
        "sent",
    )

    def __init__(self, item: Item, place: Any = None) -> None:
        self.item = item
        self.place = place
        self.rank = 0  # which of the table's entries it was to come; also the number of its rows
        # What local sessions hold; how many rows each port has for it; and of how many those of the graph are.
        self.holders: dict[Any, None] = _NOBODY
        self.ports: dict[Port, int] = _NOBODY
        self.brokers: dict[str, int] = _NOBODY
        self.excluded: Port | None = None  # the one port that the entry is not for; None if it is for all
        self.sent: Ports = ()  # where it is sent; `above` is for covering
        self.above: dict[Port | None, int] | None = None
        self.partners: dict[Entry[Any], None] = _NOBODY

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
        # Made once and shared by entries: the ports but the one excluded, and one row from a port.
        self._all_but: dict[Port | None, Ports] = {}
        self._one_from: dict[Port, dict[Port, int]] = {}
        self._latest = 0
        self._dirty: dict[Entry[Item], None] = {}

    # Sources come and go

    def hold(self, item: Item, holder: Any) -> tuple[Entry[Item], bool]:
        """A local session wants it. Returns the entry, and whether it is new."""
        entry, fresh = self._obtain(item)
        if not entry.holders:
            entry.holders = {}
        entry.holders[holder] = None
        self._source_gained(entry, fresh)
        return entry, fresh

    def let_go(self, entry: Entry[Item], holder: Any) -> bool:
        """A local session does not want it any more. Returns whether the entry is gone."""
        del entry.holders[holder]
        return self._source_lost(entry)

    def receive(self, item: Item, port: Port, broker: str | None = None) -> tuple[Entry[Item], bool]:
        """A row came on a port, in the graph of some broker. Returns the entry, and whether it is new."""
        entry, fresh = self._obtain(item)
        if entry.ports:
            entry.ports = {**entry.ports, port: entry.ports.get(port, 0) + 1}
        else:
            entry.ports = self._one_from.get(port) or self._one_from.setdefault(port, {port: 1})
        if broker is not None:
            if not entry.brokers:
                entry.brokers = {}
            entry.brokers[broker] = entry.brokers.get(broker, 0) + 1
        self._source_gained(entry, fresh)
        return entry, fresh

    def drop(self, entry: Entry[Item], port: Port, broker: str | None = None) -> bool:
        """A row was removed on its port. Returns whether the entry is gone."""
        entry.ports = dict(entry.ports)
        _count_down(entry.ports, port)
        if broker is not None:
            _count_down(entry.brokers, broker)
        return self._source_lost(entry)

    # Ports open and close

    def open_port(self, port: Port, *, attracts_all: bool = False) -> None:
        """Rows are sent on this port from now on; with `attracts_all`, whatever is advertised there."""
        self._ports[port] = None
        self._all_but.clear()
        if attracts_all:
            self._attracts_all[port] = None
        self._dirty.update(dict.fromkeys(self._entries.values()))

    def close_port(self, port: Port) -> None:
        """The port is gone, and all that was sent there forgotten. What came on it is dropped row by row."""
        if port in self._ports:
            del self._ports[port]
            self._all_but.clear()
            self._attracts_all.pop(port, None)
            for entry in self._entries.values():
                if port in entry.sent:
                    entry.sent = tuple([other for other in entry.sent if other != port])

    # What to send

    def partners_changed(self, entries: Iterable[Entry[Item]]) -> None:
        """The ports on which overlapping entries of the other table came have changed."""
        self._dirty.update(dict.fromkeys(entries))

    @property
    def is_settled(self) -> bool:
        """Whether nothing has changed that ports may have to be told."""
        return not self._dirty

    def settle(self) -> Settled[Item]:
        """What to tell each port so that it has the rows which it should. Empty if nothing changed."""
        if not self._dirty:
            return _SETTLED
        settled: Settled[Item] = {}
        if self._ports:
            # What is told does not depend on the order in which others, who share the facts, came to know them.
            for entry in sorted(self._dirty, key=_rank) if len(self._dirty) > 1 else self._dirty:
                targets = self._targets(entry) if entry.holders or entry.ports else ()
                if targets is not entry.sent:
                    self._retarget(settled, entry, targets)
            self._finish(settled)
        self._dirty.clear()
        return settled

    def _retarget(self, settled: Settled[Item], entry: Entry[Item], targets: Ports) -> None:
        """The entry shall be sent on these ports, whichever it was sent on before."""
        sent = entry.sent
        begun, ended = targets, sent
        kept: Ports = ()
        if sent and targets:
            before, after = set(sent), set(targets)
            begun = tuple([port for port in targets if port not in before])
            kept = tuple([port for port in sent if port in after])
            ended = tuple([port for port in sent if port not in after])
        for port in begun:
            self._begin(settled, port, entry)
        for port in ended:
            self._end(settled, port, entry)
        entry.sent = (*kept, *begun) if kept else begun

    def sent(self, port: Port) -> dict[int, Item]:
        """The rows that the port has been told of, by number."""
        return {entry.rank: entry.item for entry in self._entries.values() if port in entry.sent}

    def __len__(self) -> int:
        return len(self._entries)

    def entries(self) -> Iterable[Entry[Item]]:
        return self._entries.values()

    def _begin(self, settled: Settled[Item], port: Port, entry: Entry[Item]) -> None:
        """The port shall have what the entry selects."""
        self._changes(settled, port).add.append((entry.rank, entry.item))

    def _end(self, settled: Settled[Item], port: Port, entry: Entry[Item]) -> None:
        """The port need not have what the entry selects any more."""
        self._changes(settled, port).remove.append(entry.rank)

    def _finish(self, settled: Settled[Item]) -> None:
        """All entries have been looked at."""

    def _changes(self, settled: Settled[Item], port: Port) -> Changes[Item]:
        changes = settled.get(port)
        if changes is None:
            changes = settled[port] = Changes()
        return changes

    # What strategies decide

    def _obtain(self, item: Item) -> tuple[Entry[Item], bool]:
        """The entry for an item; one without sources if it is new."""
        entry = self._entries.get(item)
        if entry is not None:
            return entry, False
        entry = self._entries[item] = Entry(item, item)
        return entry, True

    def _targets(self, entry: Entry[Item]) -> Ports:
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

    def _source_gained(self, entry: Entry[Item], fresh: bool) -> None:
        if fresh:
            self._dirty[entry] = None
            self._latest += 1
            entry.rank = self._latest
            entry.excluded = _excluded(entry)
            self._entered(entry)
        else:
            self._source_changed(entry)

    def _source_changed(self, entry: Entry[Item]) -> None:
        before, entry.excluded = entry.excluded, _excluded(entry)
        if entry.excluded != before:
            self._dirty[entry] = None
            self._changed(entry, before)

    def _source_lost(self, entry: Entry[Item]) -> bool:
        if entry.holders or entry.ports:
            self._source_changed(entry)
            return False
        self._dirty[entry] = None
        self._left(entry, entry.excluded)
        return True

    def _wanted_on(self, entry: Entry[Item]) -> Ports:
        """The ports that the entry is for and where somebody may publish what it selects."""
        excluded = entry.excluded
        if not self._by_partners:
            wanted = self._all_but.get(excluded)
            if wanted is None:
                wanted = self._all_but[excluded] = tuple([port for port in self._ports if port != excluded])
            return wanted
        attracted: dict[Port, None] = dict(self._attracts_all)
        for partner in entry.partners:
            attracted |= dict.fromkeys(partner.ports)
        return tuple([port for port in attracted if port in self._ports and port != excluded])


def _excluded(entry: Entry[Any]) -> Port | None:
    if entry.holders or len(entry.ports) != 1:
        return None
    for port in entry.ports:
        return port
    return None


def _rank(entry: Entry[Any]) -> int:
    return entry.rank


def _count_down(counts: dict[str, int], key: str) -> None:
    if counts[key] == 1:
        del counts[key]
    else:
        counts[key] -= 1


class Identity(Table[Item]):
    """Each different filter is sent once: equal ones from several sources are one row."""

    def _targets(self, entry: Entry[Item]) -> Ports:
        return self._wanted_on(entry)


class Simple(Identity[Item]):
    """Each subscription is sent, whoever else has the same."""

    def _obtain(self, item: Item) -> tuple[Entry[Item], bool]:
        entry = Entry(item)
        entry.place = entry
        self._entries[entry] = entry
        return entry, True
