"""Both routing tables of a broker, filters and advertisements, with the index that matches notifications."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeAlias, cast

from palio.matching import MatchIndex
from palio.matching.hints import Hints
from palio.model.advertisement import Advertisement
from palio.model.errors import PalioError
from palio.model.filter import Filter
from palio.model.notification import Notification
from palio.protocol.envelope import Envelope
from palio.routing.configuration import Configuration, Strategy
from palio.routing.covering import Covering
from palio.routing.facts import Facts, SharedMatches
from palio.routing.merging import Merging
from palio.routing.table import Identity, Item, Port, Settled, Simple, Table, TableEntry

# Entries that come are put into the index together: at the latest when so many are there, or when it is asked.
# Each broker's index is then in the caches for many of them, and what goes soon costs nothing.
MAX_ARRIVING = 256

Rows: TypeAlias = dict[int, TableEntry[Item]]  # by their numbers


class UnknownRow(PalioError):
    """A neighbour takes back a row that it has not told of."""

    number: int
    sentence = "There is no row {number} that could be removed."


class Side(Generic[Item]):
    """A routing table, and what follows for the other one when entries come and go."""

    def __init__(self, table: Table[Item], overlaps: Callable[[Item, Any], bool]) -> None:
        self.table = table
        self._overlaps = overlaps
        self._index: MatchIndex | None = None
        self._matches: SharedMatches | None = None
        self._arriving: dict[TableEntry[Item], None] = {}  # for the index
        self._partner: Side[Any] | None = None
        self._draws = False
        # Hears of who enters (1) and leaves (-1).
        self.noticed: Callable[[TableEntry[Item], int], None] | None = None

    def be_indexed(self, matches: SharedMatches | None, hints: Hints | None = None) -> None:
        """Keep an index over the entries; or use one for all brokers, whose nodes are the entries' places."""
        self._matches = matches
        if matches is None:
            self._index = MatchIndex(hints=hints)

    def match(self, notification: Notification) -> list[TableEntry[Item]]:
        """The entries that a notification satisfies."""
        if self._matches is not None:
            return self.table.entries_at(self._matches.match(notification))
        index = self._index
        assert index is not None
        if self._arriving:
            self._enter_index(index)
        return index.match(notification)

    def match_all(self, envelopes: Sequence[Envelope]) -> list[list[TableEntry[Item]]]:
        """For each notification, the entries that it satisfies. Raises `InvalidNotification` if one is none."""
        if self._matches is not None:
            return [self.match(envelope.notification) for envelope in envelopes]
        index = self._index
        assert index is not None
        if self._arriving:
            self._enter_index(index)
        return index.match_encoded([envelope.notification.body.attributes for envelope in envelopes])

    def attract(self, other: Side[Any]) -> None:
        """Entries of this side draw those of the other one that they overlap to the ports where they came."""
        self._partner = other
        self._draws = True
        other._partner = self

    def hold(self, item: Item, holder: Any) -> TableEntry[Item]:
        entry, fresh = self.table.hold(item, holder)
        if fresh:
            self._entered(entry)
        return entry

    def let_go(self, entry: TableEntry[Item], holder: Any) -> None:
        if self.table.let_go(entry, holder):
            self._left(entry)

    def receive(
        self, rows: Rows[Item], add: Iterable[tuple[int, Item]], port: Port, broker: str | None = None
    ) -> None:
        """Adds rows that came on a port, in the graph of some broker; they are noted by number."""
        table = self.table
        for number, item in add:
            if number in rows:
                self.drop(rows, (number,), port, broker)
            entry, fresh = table.receive(item, port, broker)
            if fresh:
                self._entered(entry)
            rows[number] = entry
            if self._draws:
                self._ports_changed(entry)

    def drop(self, rows: Rows[Item], remove: Iterable[int], port: Port, broker: str | None = None) -> None:
        for number in remove:
            if number not in rows:
                raise UnknownRow(number)
            entry = rows.pop(number)
            gone = self.table.drop(entry, port, broker)
            if self._draws:
                self._ports_changed(entry)
            if gone:
                self._left(entry)

    def park(self, rows: Rows[Item], port: Port, parked: Port) -> None:
        """Rows that came on a port, which is closed, count from now on as parked there."""
        self.table.sight.park(parked)
        for entry in rows.values():
            self.table.park(entry, port, parked)

    def _entered(self, entry: TableEntry[Item]) -> None:
        if self.noticed is not None:
            self.noticed(entry, 1)
        if self._index is not None:
            self._arriving[entry] = None
            if len(self._arriving) >= MAX_ARRIVING:
                self._enter_index(self._index)
        if self._partner is not None:
            others = self._partner.table.entries()
            entry.partners = {other: None for other in others if self._overlaps(entry.item, other.item)}
            for other in entry.partners:
                other.partners[entry] = None

    def _enter_index(self, index: MatchIndex) -> None:
        for entry in self._arriving:
            index.add(entry, cast("Filter", entry.item))
        self._arriving.clear()

    def _left(self, entry: TableEntry[Item]) -> None:
        if self.noticed is not None:
            self.noticed(entry, -1)
        if self._index is not None:
            if entry in self._arriving:
                del self._arriving[entry]
            else:
                self._index.remove(entry)
        for other in entry.partners:
            del other.partners[entry]

    def _ports_changed(self, entry: TableEntry[Item]) -> None:
        if self._partner is not None:
            self._partner.table.partners_changed(entry.partners)


class Tables:
    """Who wants what and who publishes what, as far as this broker has to know."""

    def __init__(self, configuration: Configuration, facts: Facts) -> None:
        attract = configuration.advertisements and configuration.strategy is not Strategy.FLOODING
        self.attracts = attract  # whether filters and advertisements are compared with each other
        self.filters = Side(
            _filter_table(configuration, facts, attract),
            lambda filter, advertisement: facts.overlap(advertisement, filter),
        )
        self.advertisements = Side(_advertisement_table(configuration, facts, attract), facts.overlap)
        self._wanted, self._advertised = self.filters.table, self.advertisements.table
        by_node = isinstance(self._wanted, Covering)
        self.orders = isinstance(self._wanted, (Covering, Merging))  # whether they are ordered by covering
        self.filters.be_indexed(facts.matches if by_node else None, configuration.hints)
        if attract:
            self.advertisements.attract(self.filters)

    def open_port(self, port: Port, *, attracts_all: bool = False) -> None:
        """Rows are sent on this port from now on."""
        self.filters.table.open_port(port, attracts_all=attracts_all)
        self.advertisements.table.open_port(port)

    def close_port(self, port: Port) -> None:
        """The port is gone; what came on it is dropped by the owner of the rows."""
        self.filters.table.close_port(port)
        self.advertisements.table.close_port(port)

    def park(self, rows: Rows[Filter], advertisements: Rows[Advertisement], port: Port, parked: Port) -> None:
        """What came on a port, which is closed, counts from now on as parked there."""
        self.filters.park(rows, port, parked)
        self.advertisements.park(advertisements, port, parked)

    def unpark(self, parked: Port) -> None:
        """All that was parked there is dropped."""
        self.filters.table.sight.unpark(parked)
        self.advertisements.table.sight.unpark(parked)

    def is_settled(self) -> bool:
        """Whether ports have been told everything."""
        return not (self._wanted.unsettled or self._advertised.unsettled)

    def settle(self) -> tuple[Settled[Filter], Settled[Advertisement]]:
        """All that ports are to be told."""
        return self._wanted.settle(), self._advertised.settle()


def _filter_table(configuration: Configuration, facts: Facts, attract: bool) -> Table[Filter]:
    match configuration.strategy:
        case Strategy.FLOODING:
            return Table()
        case Strategy.SIMPLE:
            return Simple(by_partners=attract)
        case Strategy.IDENTITY:
            return Identity(by_partners=attract)
        case Strategy.COVERING:
            return Covering(facts.filters, by_partners=attract)
        case Strategy.MERGING:
            return Merging(facts, limit=configuration.merging_excess, by_partners=attract)


def _advertisement_table(configuration: Configuration, facts: Facts, attract: bool) -> Table[Advertisement]:
    if not attract:
        return Table()
    match configuration.strategy:
        case Strategy.SIMPLE:
            return Simple()
        case Strategy.IDENTITY:
            return Identity()
        case _:
            return Covering(facts.advertisements)
