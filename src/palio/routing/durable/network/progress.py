"""Progress reports: how far origins are (marks, their watermarks), and how far the readers of their journals.

Both go out on the tick, in one message to each neighbour that they concern. Marks take the ways of events;
progress goes towards its origin, a hop a tick. Every broker passes on those of others (`PassingReports`); one
with a journal adds its own (`ProgressReports`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from palio.protocol.durable.peers import Mark, Marks, Progress
from palio.routing.durable.alarm import Alarm
from palio.routing.durable.desk import Desk
from palio.routing.durable.home.homes import Homes
from palio.routing.durable.home.spool import Spooling
from palio.routing.durable.home.subscription import Durable, HomeState, JournalPlace
from palio.routing.durable.home.tick_turns import TickTurns
from palio.routing.durable.network.polling import Polling
from palio.routing.durable.network.topology import Topology
from palio.routing.durable.origin.journal import OriginJournal
from palio.routing.durable.origin.retention import Retention
from palio.routing.effects import Send

_Positions: TypeAlias = Iterable[tuple[str, int]]  # of readers


@dataclass(eq=False, repr=False)
class PassingReports:
    """Marks and progress that wait for the tick. `ways` are those of a mark."""

    _desk: Desk
    _topology: Topology
    _polling: Polling
    _ways: Callable[[str, str | None], list[tuple[str, str]]]
    _tick: Alarm

    def __post_init__(self) -> None:
        self._marks: dict[str, tuple[Mark, str | None]] = {}
        # By origin and incarnation: how far readers are.
        self._progress: dict[tuple[str, str], dict[str, int]] = {}

    def hear(self, source: str, message: Marks) -> None:
        """Handles a progress message (`Marks`) from a neighbour, if it is for others."""
        for one in message.progress:
            self.progress((one.origin, one.incarnation), one.positions)
        for mark in message.marks:
            if self.mark(mark, source):
                self._tick.set()

    def mark(self, mark: Mark, source: str | None) -> bool:
        """Pass on a mark, or begin to tell it. False if it is not of this epoch, and says nothing."""
        if mark.epoch != self._topology.epoch:
            return False
        self._marks[mark.origin] = mark, source
        return True

    def progress(self, of: tuple[str, str], positions: _Positions) -> None:
        """Passes on how far readers are. `of` is the origin and the incarnation of which these are places."""
        self._progress.setdefault(of, {}).update(positions)
        self._tick.set()

    def epoch_changed(self) -> None:
        """Handles another epoch: the homes will tell it again."""
        self._progress.clear()

    def tell(self) -> bool:
        """Sends marks and progress to whom they concern. Returns whether the way to an origin is missing."""
        epoch = self._topology.epoch
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


@dataclass(eq=False, repr=False)
class ProgressReports:
    """What this broker tells of its journal and of its subscriptions, and passes on for others."""

    _desk: Desk
    _journal: OriginJournal
    _topology: Topology
    _retention: Retention
    _homes: Homes
    _spooling: Spooling
    _passing: PassingReports
    _tick: Alarm

    def __post_init__(self) -> None:
        self._own_mark = 0
        self._told: dict[tuple[str, str], JournalPlace] = {}  # by reader and origin: what was told last
        self._telling = TickTurns[Durable]()

    def hear(self, source: str, message: Marks) -> None:
        """Handles a progress message (`Marks`) from a neighbour."""
        for one in message.progress:
            self._pass_on((one.origin, one.incarnation), one.positions)
        for mark in message.marks:
            if self._passing.mark(mark, source):
                self._spooling.mark(mark.origin, mark.sequence)
                self._tick.set()

    def tell(self) -> bool:
        """Sends marks and progress to whom they concern. Returns whether the way to an origin is missing."""
        self._collect_progress()
        own, broker = self._journal.stored, self._desk.broker
        if self._journal.readers and own > self._own_mark:
            self._own_mark = own
            self._passing.mark(Mark(broker, own, broker, self._topology.epoch), None)
            self._spooling.mark(broker, own)
        return self._passing.tell()

    def mark_again(self) -> None:
        """Tell with the next tick how far the journal here is, once more: who caught up did not hear it."""
        self._own_mark = 0

    def epoch_changed(self) -> None:
        """Handles another epoch: everything is sent again."""
        self._own_mark = 0
        self._told.clear()
        self._passing.epoch_changed()

    def _collect_progress(self) -> None:
        """How far those subscriptions here are on disk whose turn it is (invariant 4), as far as that is news.

        What may be a copy that a disk has brought back speaks for nobody (`namesakes`).
        """
        told: dict[tuple[str, str], list[tuple[str, int]]] = {}
        for durable in self._telling.of(self._homes.subscriptions.values()):
            if durable.state is not HomeState.STORING and not durable.unconfirmed:
                places = durable.stored_position.items()
                news = [one for one in places if self._told.get((durable.identity, one[0])) != one[1]]
                if news:
                    self._telling.taken()
                for origin, place in news:
                    self._told[durable.identity, origin] = place
                    sequence, incarnation = place
                    told.setdefault((origin, incarnation), []).append((durable.identity, sequence))
        if not self._telling.is_over:
            self._tick.set()
        for of, positions in told.items():
            self._pass_on(of, tuple(positions))

    def _pass_on(self, of: tuple[str, str], positions: _Positions) -> None:
        """Passes on how far readers are: for the journal here, or for one that hears of it some ticks later.

        `of` is the origin and the incarnation that the positions are places of.
        """
        origin, incarnation = of
        if origin == self._desk.broker:
            self._retention.progress(positions, incarnation)
        else:
            self._passing.progress(of, positions)
