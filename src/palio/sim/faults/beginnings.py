"""Beginnings: the current documents with which retroactive subscriptions begin, read page by page.

Where documents end and what comes begins is decided in `routing.documents.beginning`, as at every broker. Here
is a client that asks for it, as soon as it is the taker of its subscription; whoever is interrupted begins with
the documents again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from palio.model.filter import Filter
from palio.routing.documents.beginning import RetroactiveSearch
from palio.routing.documents.pulling import CurrentDocuments
from palio.sim.faults.disk import RecordsOnDisk
from palio.sim.faults.inspection import subscription_at
from palio.sim.faults.record import NEVER, BegunDocuments

if TYPE_CHECKING:
    from palio.sim.faults.station import FaultyStation
    from palio.sim.faults.world import World

_LOOK_EVERY = 0.02
_PAGE = 1  # document, so that something may happen between two pages
_PAGE_EACH = 0.4  # seconds, at half of it at the most, from one page to the next; often there is none


class BeginningReader:
    """Reads current documents for one subscription, once."""

    def __init__(self, world: World, name: str, filter: Filter) -> None:
        self.world = world
        self.name = name
        self.filter = filter
        self.done = False
        self._session = ""

    def attached(self, session: str, station: FaultyStation) -> None:
        """Its client is the taker, in another session than before."""
        if not self.done and session != self._session:
            self._session = session
            keeper = self.world.clients.keepers.get(station.name)
            search = RetroactiveSearch(station.name, None if keeper is None else keeper.filter)
            self._look(session, station, station.life, search)

    def _is_over(self, session: str, station: FaultyStation, life: int) -> bool:
        taker = self.world.clients.takers[self.name]
        is_there = session == self._session and life == station.life and session in taker.sessions
        return not is_there or taker.taking.ending != NEVER

    def _look(self, session: str, station: FaultyStation, life: int, search: RetroactiveSearch) -> None:
        if self._is_over(session, station, life):
            return
        keeper = self.world.clients.keepers.get(station.name)
        heard = _nothing if keeper is None else keeper.heard
        found = search.look(subscription_at(station, self.name), heard, station.disk.head)
        if found is None:
            self.world.after(_LOOK_EVERY, self._look, session, station, life, search)
            return
        record = self.world.record
        reading = BegunDocuments(record.tick(), found, self.filter)
        record.beginnings.setdefault(self.name, []).append(reading)
        self.world.note(self.name, f"begins with the documents up to {found.position}", self.name)
        self._read(session, station, life, reading, None)

    def _read(
        self, session: str, station: FaultyStation, life: int, reading: BegunDocuments, after: str | None
    ) -> None:
        if self._is_over(session, station, life):
            return
        world = self.world
        documents = CurrentDocuments(RecordsOnDisk(station.disk))
        page = documents.select(self.filter, Filter(), after, _PAGE, reading.beginning.position)
        reading.documents += [one.envelope for one in page.documents]
        if page.onward is None:
            self.done = reading.done = True
            return
        luck = world.chance("page", self.name, page.onward)
        world.after(_PAGE_EACH * max(0.0, luck - 0.5), self._read, session, station, life, reading, page.onward)


def _nothing(origin: str) -> None:
    """What a broker has heard of others that keeps nothing of them."""
