"""The routing table of a broker: who wants what, and which of it the neighbours are told.

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

While rows of lost links are parked, a port that has come since does not see these (`reconfiguration.sight`).
For such a port it is decided one entry at a time what it is told; for all others nothing is different.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

from palio.routing.reconfiguration.sight import Sight

Port: TypeAlias = str
Ports: TypeAlias = tuple[Port, ...]
GRAPH: Final[Port] = ""  # no broker has the empty name

Item = TypeVar("Item")

_NOBODY: dict[Any, Any] = {}  # shared by all that need none of their own; never changed


class Sources:
    """Where an entry comes from, and so where it leads: who holds it here, and on which ports it came.

    Most entries came once, on one port; those of a port share their sources. So sources are changed only by the
    table, which takes care that they are an entry's own before. `ports` are never changed, only replaced.
    """

    __slots__ = ("brokers", "excluded", "holders", "ports")

    def __init__(self, holders: dict[Any, None], ports: dict[Port, int], brokers: dict[str, int]) -> None:
        # What local sessions hold; how many rows each port has for it; and of how many those of the graph are.
        self.holders = holders
        self.ports = ports
        self.brokers = brokers
        self.excluded = self.only_port()  # the one port that the entry is not for; None if it is for all

    def only_port(self) -> Port | None:
        """The port on which all of it came; None if there are several, or a holder."""
        if not self.holders and len(self.ports) == 1:
            (port,) = self.ports
            return port
        return None


_NO_SOURCES = Sources(_NOBODY, _NOBODY, _NOBODY)


class TableEntry(Generic[Item]):
    """A filter or an advertisement in the routing table. `sent` is shared, too: only ever replaced."""

    __slots__ = ("above", "item", "partners", "place", "rank", "sent", "sources")

    def __init__(self, item: Item, place: Any, rank: int, sources: Sources) -> None:
        self.item = item
        self.place = place
        self.rank = rank  # which of the table's entries it was to come; also the number of its rows
        self.sources = sources
        self.sent: Ports = ()  # where it is sent; `above` is for covering
        self.above: dict[Port | None, int] | None = None
        self.partners: dict[TableEntry[Any], None] = _NOBODY

    def __repr__(self) -> str:
        return f"<Entry {str(self.item)!r}>"


class Changes(NamedTuple, Generic[Item]):
    """What to tell one port: numbered additions, and the numbers of removals."""

    add: tuple[tuple[int, Item], ...] = ()
    remove: tuple[int, ...] = ()


NO_CHANGES: Changes[Any] = Changes()
Settled: TypeAlias = dict[Port, Changes[Item]]
_SETTLED: Settled[Any] = {}  # nothing to tell; never changed


class Telling(Generic[Item]):
    """What there is to tell, port by port, as it is put together."""

    __slots__ = ("_ports",)

    def __init__(self) -> None:
        self._ports: dict[Port, tuple[list[tuple[int, Item]], list[int]]] = {}

    def add(self, port: Port, number: int, item: Item) -> None:
        self._of(port)[0].append((number, item))

    def remove(self, port: Port, number: int) -> None:
        self._of(port)[1].append(number)

    def _of(self, port: Port) -> tuple[list[tuple[int, Item]], list[int]]:
        return self._ports.get(port) or self._ports.setdefault(port, ([], []))

    def settled(self) -> Settled[Item]:
        return {port: Changes(tuple(add), tuple(remove)) for port, (add, remove) in self._ports.items()}


# An entry, the ports that shall have what it selects from now on, and those that need not have it any more.
Move: TypeAlias = tuple[TableEntry[Item], Ports, Ports]


class Table(Generic[Item]):
    """The common part of all strategies: entries, sources, and settling. As it stands, it sends nothing."""

    def __init__(self, *, by_partners: bool = False) -> None:
        self._by_partners = by_partners
        self._entries: dict[Any, TableEntry[Item]] = {}
        self._ports: dict[Port, None] = {}
        self._attracts_all: dict[Port, None] = {}
        # Made once and shared by entries: the ports but the one excluded, and one row from a port.
        self._all_but: dict[Port | None, Ports] = {}
        self._one_from: dict[Port, Sources] = {}
        self._latest = 0
        self.unsettled: dict[TableEntry[Item], None] = {}
        self.sight = Sight()

    # Sources come and go

    def hold(self, item: Item, holder: Any) -> tuple[TableEntry[Item], bool]:
        """Adds a filter or advertisement of a local session. Returns the entry, and whether it is new."""
        place = self._place(item)
        entry = self._entries.get(place)
        if entry is None:
            return self._enter(item, place, Sources({holder: None}, _NOBODY, _NOBODY)), True
        self._show(entry, None)
        sources = self._own_sources(entry)
        if not sources.holders:
            sources.holders = {}
        sources.holders[holder] = None
        self._source_changed(entry)
        return entry, False

    def let_go(self, entry: TableEntry[Item], holder: Any) -> bool:
        """Removes a filter or advertisement of a local session. Returns whether the entry is gone."""
        del entry.sources.holders[holder]
        return self._source_lost(entry)

    def receive(self, item: Item, port: Port, broker: str | None = None) -> tuple[TableEntry[Item], bool]:
        """Adds a row that came on a port, in the graph of a broker. Returns the entry and whether it is new."""
        place = self._place(item)
        entry = self._entries.get(place)
        if entry is None:
            sources = self._one_from.get(port) or self._share(port)
            if broker is not None:
                sources = Sources(_NOBODY, sources.ports, {broker: 1})
            return self._enter(item, place, sources), True
        self._show(entry, port)
        sources = self._own_sources(entry)
        sources.ports = {**sources.ports, port: sources.ports.get(port, 0) + 1}
        if broker is not None:
            if not sources.brokers:
                sources.brokers = {}
            sources.brokers[broker] = sources.brokers.get(broker, 0) + 1
        self._source_changed(entry)
        return entry, False

    def drop(self, entry: TableEntry[Item], port: Port, broker: str | None = None) -> bool:
        """Removes a row that came on a port. Returns whether the entry is gone."""
        if entry.sources is self._one_from.get(port):
            entry.sources = _NO_SOURCES
            self._leave(entry, port)
            return True
        sources = self._own_sources(entry)
        sources.ports = dict(sources.ports)
        _count_down(sources.ports, port)
        if broker is not None:
            _count_down(sources.brokers, broker)
        return self._source_lost(entry)

    def park(self, entry: TableEntry[Item], port: Port, parked: Port) -> None:
        """A row that came on a port, which is closed, is from now on one of a port where rows are parked."""
        sources = self._own_sources(entry)
        ports = dict(sources.ports)
        _count_down(ports, port)
        ports[parked] = ports.get(parked, 0) + 1
        sources.ports = ports
        self._source_changed(entry)

    # Ports open and close

    def open_port(self, port: Port, *, attracts_all: bool = False) -> None:
        """Rows are sent on this port from now on; with `attracts_all`, whatever is advertised there."""
        self._ports[port] = None
        self.sight.open(port)
        self._all_but.clear()
        if attracts_all:
            self._attracts_all[port] = None
        self.unsettled.update(dict.fromkeys(self._entries.values()))

    def close_port(self, port: Port) -> None:
        """The port is gone, and all that was sent there forgotten. What came on it is dropped row by row."""
        if port in self._ports:
            del self._ports[port]
            self.sight.close(port)
            self._all_but.clear()
            self._attracts_all.pop(port, None)
            # What has just left is still to be told, but not on this port.
            for entry in (*self._entries.values(), *self.unsettled):
                if port in entry.sent:
                    entry.sent = tuple([other for other in entry.sent if other != port])

    def hold_back(self, port: Port, places: Iterable[Any]) -> None:
        """The port, which is about to be opened, is not told of these before they get another source."""
        self.sight.hold_back(port, places)

    def release(self, port: Port) -> None:
        """Nothing is held back from the port any more."""
        for entry in self.entries_at(self.sight.held_back.get(port, ())):
            self._look_again(entry)
        self.sight.release(port)

    def _show(self, entry: TableEntry[Item], source: Port | None) -> None:
        """The entry gets another source: it is not held back from others any more."""
        if self.sight.held_back and self.sight.show(entry.place, source):
            self._look_again(entry)

    def _look_again(self, entry: TableEntry[Item]) -> None:
        """What ports with a sight of their own are told of the entry, and because of it, may have changed."""
        self.unsettled[entry] = None

    # What to send

    def partners_changed(self, entries: Iterable[TableEntry[Item]]) -> None:
        """The ports on which overlapping entries of the other table came have changed."""
        self.unsettled.update(dict.fromkeys(entries))

    def settle(self) -> Settled[Item]:
        """What to tell each port so that it has the rows which it should. Empty if nothing changed."""
        dirty = self.unsettled
        if not dirty:
            return _SETTLED
        moves: list[Move[Item]] = []
        if self._ports:
            # What is told does not depend on the order in which others, who share the facts, came to know them.
            for entry in sorted(dirty, key=_rank) if len(dirty) > 1 else dirty:
                targets = () if entry.sources is _NO_SOURCES else self._targets(entry)
                if self.sight.limited:
                    targets = self._targets_in_sight(entry, targets)
                if targets is not entry.sent:
                    moves.append(_retarget(entry, targets))
        dirty.clear()
        return self._told(moves) if moves else _SETTLED

    def _targets_in_sight(self, entry: TableEntry[Item], targets: Ports) -> Ports:
        """The targets, where those ports that do not see all sources are decided by what they see."""
        limited = self.sight.limited
        seeing = [port for port in targets if port not in limited]
        if entry.sources is not _NO_SOURCES:
            seeing += [port for port in limited if self._reaches(entry, port)]
        return entry.sent if set(seeing) == set(entry.sent) else tuple(seeing)

    def _told(self, moves: list[Move[Item]]) -> Settled[Item]:
        """What ports are to be told when entries move."""
        if len(moves) == 1:
            entry, begun, ended = moves[0]
            if not ended:  # as usual: it is new, and all ports are told the same
                return dict.fromkeys(begun, Changes(((entry.rank, entry.item),)))
        telling: Telling[Item] = Telling()
        for entry, begun, ended in moves:
            for port in begun:
                telling.add(port, entry.rank, entry.item)
            for port in ended:
                telling.remove(port, entry.rank)
        return telling.settled()

    def sent(self, port: Port) -> dict[int, Item]:
        """The rows that the port has been told of, by number."""
        return {entry.rank: entry.item for entry in self._entries.values() if port in entry.sent}

    def rows_sent(self) -> int:
        """How many rows the ports have been told of."""
        return sum([len(entry.sent) for entry in self._entries.values()])

    def __len__(self) -> int:
        return len(self._entries)

    def entries(self) -> Iterable[TableEntry[Item]]:
        return self._entries.values()

    def entries_at(self, places: Iterable[Any]) -> list[TableEntry[Item]]:
        """The entries at those of the places where there is one."""
        return list(filter(None, map(self._entries.get, places)))

    # What strategies decide

    def _place(self, item: Item) -> Any:
        """Under what an item is filed; what has the same place is one entry."""
        return item

    def _targets(self, entry: TableEntry[Item]) -> Ports:
        """The ports on which an entry that has sources shall be sent."""
        return ()

    def _reaches(self, entry: TableEntry[Item], port: Port) -> bool:
        """Whether an entry that has sources shall be sent on a port, for what this one sees of all entries."""
        return False

    def _entered(self, entry: TableEntry[Item]) -> None:
        """Handles a new entry, which has its first source."""

    def _changed(self, entry: TableEntry[Item], before: Port | None) -> None:
        """Handles that the port which the entry is not for was another one."""

    def _left(self, entry: TableEntry[Item], before: Port | None) -> None:
        """Handles an entry that has no source any more; the port that it was not for is given."""
        del self._entries[entry.place]

    # The mechanics of sources

    def _share(self, port: Port) -> Sources:
        shared = self._one_from[port] = Sources(_NOBODY, {port: 1}, _NOBODY)
        return shared

    def _own_sources(self, entry: TableEntry[Item]) -> Sources:
        """The sources of an entry, to be changed."""
        sources = entry.sources
        if sources.excluded is not None and sources is self._one_from.get(sources.excluded):
            entry.sources = sources = Sources(_NOBODY, sources.ports, _NOBODY)
        return sources

    def _enter(self, item: Item, place: Any, sources: Sources) -> TableEntry[Item]:
        self._latest += 1
        entry = self._entries[place] = TableEntry(item, place, self._latest, sources)
        self.unsettled[entry] = None
        self._entered(entry)
        if self.sight.limited:
            self._look_again(entry)
        return entry

    def _source_changed(self, entry: TableEntry[Item]) -> None:
        sources = entry.sources
        if self.sight.limited:
            self._look_again(entry)
        before, excluded = sources.excluded, sources.only_port()
        if excluded != before:
            sources.excluded = excluded
            self.unsettled[entry] = None
            self._changed(entry, before)
        if excluded is not None and sources.ports[excluded] == 1 and not sources.brokers:
            entry.sources = self._one_from.get(excluded) or self._share(excluded)

    def _source_lost(self, entry: TableEntry[Item]) -> bool:
        sources = entry.sources
        if sources.holders or sources.ports:
            self._source_changed(entry)
            return False
        entry.sources = _NO_SOURCES
        self._leave(entry, sources.excluded)
        return True

    def _leave(self, entry: TableEntry[Item], before: Port | None) -> None:
        self.unsettled[entry] = None
        if self.sight.limited:
            self._look_again(entry)
        self._left(entry, before)

    def _wanted_on(self, entry: TableEntry[Item]) -> Ports:
        """The ports that the entry is for and where somebody may publish what it selects."""
        excluded = entry.sources.excluded
        if not self._by_partners:
            wanted = self._all_but.get(excluded)
            if wanted is None:
                wanted = self._all_but[excluded] = tuple([port for port in self._ports if port != excluded])
            return wanted
        attracted: dict[Port, None] = dict(self._attracts_all)
        for partner in entry.partners:
            attracted |= dict.fromkeys(partner.sources.ports)
        return tuple([port for port in attracted if port in self._ports and port != excluded])

    def _wanted_in_sight(self, entry: TableEntry[Item], port: Port) -> bool:
        """Whether the entry is for a port that does not see all sources, and may be published there."""
        if not self.sight.sees(port, entry.place, entry.sources.holders, entry.sources.ports):
            return False
        if not self._by_partners or port in self._attracts_all:
            return True
        return any(port in partner.sources.ports for partner in entry.partners)


def _retarget(entry: TableEntry[Item], targets: Ports) -> Move[Item]:
    """The entry shall be sent on these ports, whichever it was sent on before."""
    sent = entry.sent
    if not sent or not targets:
        entry.sent = targets
        return entry, targets, sent
    before, after = set(sent), set(targets)
    begun = tuple([port for port in targets if port not in before])
    entry.sent = (*[port for port in sent if port in after], *begun)
    return entry, begun, tuple([port for port in sent if port not in after])


def _rank(entry: TableEntry[Any]) -> int:
    return entry.rank


def _count_down(counts: dict[str, int], key: str) -> None:
    if counts[key] == 1:
        del counts[key]
    else:
        counts[key] -= 1


class Identity(Table[Item]):
    """Each different filter is sent once: equal ones from several sources are one row."""

    def _targets(self, entry: TableEntry[Item]) -> Ports:
        return self._wanted_on(entry)

    def _reaches(self, entry: TableEntry[Item], port: Port) -> bool:
        return self._wanted_in_sight(entry, port)


class Simple(Identity[Item]):
    """Each subscription is sent, whoever else has the same."""

    def _place(self, item: Item) -> Any:
        return object()
