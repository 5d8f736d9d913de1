"""Keepers: brokers that keep the current documents of the whole network, as those with `[documents] keep` do.

What a keeper does is decided in `routing.documents.keeping`, as at every broker. Here is who does it: a session
of its own, which begins with its broker and goes on until that crashes, and the disk.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from functools import partial
from typing import TYPE_CHECKING, Any

from palio.model.errors import PalioError
from palio.model.filter import Filter
from palio.protocol.deliveries import Handed
from palio.protocol.durable.lineage import JournalGap
from palio.protocol.durable.subscriptions import Attached, GapNoticed, Taken
from palio.protocol.requests import Ended, Refused
from palio.routing.documents.keeping import (
    AskBroker,
    AwaitMessage,
    KeepingWish,
    KeptDocuments,
    LookUp,
    TellBroker,
    WriteRecords,
)
from palio.routing.durable.effects import Append, KeyedRecord
from palio.routing.occurrences import Close, Open
from palio.sim.faults.disk import RecordsOnDisk
from palio.sim.faults.inspection import subscription_at
from palio.sim.faults.record import Taking

if TYPE_CHECKING:
    from palio.routing.durable.effects import Hand
    from palio.routing.durable.home.subscription import Durable
    from palio.sim.faults.station import FaultyStation
    from palio.sim.faults.world import World

_AGAIN = 1.0  # seconds until it is tried again, as at a broker
_LOOK_EACH = 0.002  # seconds in which something is looked up


class RefusedInSimulator(PalioError):
    """A broker has refused what a keeper asked for, or its disk what it wanted written."""

    reason: str
    sentence = "It was refused: {reason}"


class FaultKeeper:
    """Keeps documents of others at one broker."""

    def __init__(self, world: World, station: FaultyStation, filter: Filter) -> None:
        self.world = world
        self.station = station
        self.filter = filter
        self.name = f"documents-{station.name}"
        self.taking = world.record.takings_of_keepers[station.name] = Taking(self.name, "all")
        self._begin_anew()

    def _begin_anew(self) -> None:
        """Nothing is remembered of what was before."""
        self.kept = KeptDocuments(self.filter, self.station.name)
        self._session = ""
        self._sessions = 0
        self._inbox: deque[Handed | Taken] = deque()
        self._keeping: Generator[KeepingWish, Any, None] | None = None
        self._wish: KeepingWish | None = None

    def heard(self, origin: str) -> int | None:
        return self.kept.heard(self.subscription(), origin)

    def subscription(self) -> Durable | None:
        return subscription_at(self.station, self.name)

    def owns(self, session: str) -> bool:
        return session.startswith(f"{self.name}.")

    # Coming and going

    def connect(self) -> None:
        """Begin, at a broker that has just begun."""
        self._begin_anew()
        self._try(self.station.life)

    def lost(self) -> None:
        """The broker has crashed."""
        self._begin_anew()

    def _try(self, life: int) -> None:
        if life != self.station.life or self.station.router is None:
            return
        self._sessions += 1
        self._session = f"{self.name}.{life}-{self._sessions}"
        self._inbox.clear()
        self.world.post(self.station, Open(), self._session)
        self._keeping = self.kept.keep(self.name, self.name)
        self._go_on(self._session, partial(next, self._keeping))

    def _give_up(self, why: object) -> None:
        """Leave, and try again in a while."""
        self.world.note(self.name, f"keeps nothing for now: {why}", self.name)
        self.world.post(self.station, Close(), self._session)
        self._session, self._wish = "", None
        self.world.after(_AGAIN, self._try, self.station.life)

    # What it wants done

    def _go_on(self, session: str, do: Callable[[], KeepingWish]) -> None:
        try:
            wish = self._wish = do()
        except StopIteration:
            self._give_up("Another one has taken over.")
        except PalioError as problem:
            self._give_up(problem)
        else:
            self._do(session, wish)

    def _done(self, session: str, result: Any) -> None:
        if session == self._session and self._keeping is not None:
            self._go_on(session, partial(self._keeping.send, result))

    def _failed(self, session: str, reason: str) -> None:
        if session == self._session and self._keeping is not None:
            self._go_on(session, partial(self._keeping.throw, RefusedInSimulator(reason)))

    def _do(self, session: str, wish: KeepingWish) -> None:
        world, station = self.world, self.station
        match wish:
            case AskBroker(request):
                world.post(station, request, session)
            case TellBroker(message):
                world.post(station, message, session)
                world.after(0.0, self._done, session, None)
            case AwaitMessage():
                self._take(session)
            case LookUp():
                world.after(_LOOK_EACH, self._look, session, wish)
            case WriteRecords(records):
                write_records(world, station, records, partial(self._written, session))

    def _look(self, session: str, wish: LookUp) -> None:
        if session == self._session:  # nobody looks at a disk of a broker that is down
            self._done(session, wish.look(RecordsOnDisk(self.station.disk)))

    def _written(self, session: str, there: bool) -> None:
        if there:
            self._done(session, None)
        else:
            self._failed(session, "The disk is full.")

    def _take(self, session: str) -> None:
        if session == self._session and self._inbox and isinstance(self._wish, AwaitMessage):
            self._wish = None
            self.world.after(0.0, self._done, session, self._inbox.popleft())

    def unanswered(self) -> list[str]:
        waits = isinstance(self._wish, AwaitMessage) and not self._inbox
        return [] if waits else [f"{self.name} does not wait for documents"]

    # Hearing

    def answered(self, session: str, answer: object) -> None:
        if session != self._session:
            return
        if isinstance(answer, GapNoticed):
            gap = JournalGap(answer.origin, answer.after, answer.upto, answer.noticed, answer.what)
            self.taking.gaps.append(gap)
        elif isinstance(answer, Taken):
            self._inbox.append(answer)
            self._take(session)
        elif isinstance(self._wish, AskBroker) and isinstance(answer, Attached | Ended | Refused):
            self._wish = None
            if isinstance(answer, Refused):
                self._failed(session, answer.reason)
            else:
                self._done(session, answer)

    def handed(self, hand: Hand) -> None:
        if hand.session == self._session:
            self._inbox.append(Handed(hand.name, hand.deliveries))
            self._take(hand.session)


def write_records(
    world: World, station: FaultyStation, records: tuple[KeyedRecord, ...], then: Callable[[bool], None]
) -> None:
    """Write records; `then` is told whether they are on disk, unless the broker crashes before."""
    token = -world.next_number()
    station.keeping[token] = then
    world.write(station, Append(token, (), "", records))
