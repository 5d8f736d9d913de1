"""Progress reports: how far origins are (marks, their watermarks), and how far the readers of their journals.

Both go out on the tick, in one message to each neighbour that they concern. Marks take the ways of events;
progress goes towards its origin, a hop a tick.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from palio.protocol.durable.peers import Mark, Marks, Progress
from palio.routing.durable.alarm import Alarm
from palio.routing.durable.desk import Desk
from palio.routing.durable.home.homes import Homes
from palio.routing.durable.home.spool import Spooling
from palio.routing.durable.home.subscription import HomeState, JournalPlace
from palio.routing.durable.network.polling import Polling
from palio.routing.durable.network.topology import Topology
from palio.routing.durable.origin.journal import OriginJournal
from palio.routing.durable.origin.retention import Retention
from palio.routing.effects import Send


@dataclass(eq=False, repr=False)
class ProgressReports:
    """Marks and progress that wait for the tick. `ways` are those of a mark."""

    _desk: Desk
    _journal: OriginJournal
    _topology: Topology
    _retention: Retention
    _homes: Homes
    _spooling: Spooling
    _polling: Polling
    _ways: Callable[[str, str | None], list[tuple[str, str]]]
    _tick: Alarm

    def __post_init__(self) -> None:
        self._marks: dict[str, tuple[Mark, str | None]] = {}
        self._own_mark = 0
        self._told: dict[tuple[str, str], JournalPlace] = {}  # by reader and origin: what was told last
        # By origin and incarnation: how far readers are, to be passed on.
        self._progress: dict[tuple[str, str], dict[str, int]] = {}

    def hear(self, source: str, message: Marks) -> None:
        """Handles a progress message (`Marks`) from a neighbour."""
        for one in message.progress:
            self._pass_on((one.origin, one.incarnation), one.positions)
        for mark in message.marks:
            if mark.epoch == self._topology.epoch:
                self._marks[mark.origin] = mark, source
                self._spooling.mark(mark.origin, mark.sequence)
                self._tick.set()

    def tell(self) -> bool:
        """Sends marks and progress to whom they concern. Returns whether the way to an origin is missing."""
        epoch = self._topology.epoch
        self._collect_progress()
        own, broker = self._journal.stored, self._desk.broker
        if self._journal.readers and own > self._own_mark:
            self._own_mark = own
            self._marks[broker] = Mark(broker, own, broker, epoch), None
            self._spooling.mark(broker, own)
        marks: dict[str, list[Mark]] = {}
        for mark, source in self._marks.values():
            if mark.epoch == epoch:
                for way, entry in self._ways(mark.entry, source):
                    marks.setdefault(way, []).append(Mark(mark.origin, mark.sequence, entry, mark.epoch))
        self._marks.clear()
        progress: dict[str, list[Progress]] = {}
        missing = False
        for (origin, incarnation), positions in self._progress.items():
            way_to_origin = self._polling.way_to(origin)
            if way_to_origin is None:
                missing = True
            else:
                one = Progress(origin, tuple(positions.items()), incarnation)
                progress.setdefault(way_to_origin, []).append(one)
        self._progress.clear()
        for way in {**marks, **progress}:
            message = Marks(tuple(marks.get(way, ())), tuple(progress.get(way, ())))
            self._desk.effects.append(Send(way, message))
        return missing

    def mark_again(self) -> None:
        """Tell with the next tick how far the journal here is, once more: who caught up did not hear it."""
        self._own_mark = 0

    def epoch_changed(self) -> None:
        """Handles another epoch: everything is sent again."""
        self._own_mark = 0
        self._told.clear()
        self._progress.clear()  # the homes will tell it again

    def _collect_progress(self) -> None:
        """How far the subscriptions here are on disk (invariant 4), for each origin, as far as that is news.

        What may be a copy that a disk has brought back speaks for nobody (`namesakes`).
        """
        told: dict[tuple[str, str], list[tuple[str, int]]] = {}
        for durable in self._homes.subscriptions.values():
            if durable.state is not HomeState.STORING and not durable.unconfirmed:
                for origin, place in durable.stored_position.items():
                    if self._told.get((durable.identity, origin)) != place:
                        self._told[durable.identity, origin] = place
                        sequence, incarnation = place
                        told.setdefault((origin, incarnation), []).append((durable.identity, sequence))
        for of, positions in told.items():
            self._pass_on(of, tuple(positions))

    def _pass_on(self, of: tuple[str, str], positions: tuple[tuple[str, int], ...]) -> None:
        """Passes on how far readers are: for the journal here, or for one that hears of it some ticks later.

        `of` is the origin and the incarnation that the positions are places of.
        """
        origin, incarnation = of
        if origin == self._desk.broker:
            self._retention.progress(positions, incarnation)
        else:
            self._progress.setdefault(of, {}).update(positions)
            self._tick.set()
