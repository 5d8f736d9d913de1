"""Reading a journal below where it was trimmed: in the lake to which it is archived.

`Archive` reads pages: what a filter selects after one sequence up to another, in order, and up to where that is
complete. It always reads the newest version of the lake, so what was forgotten there does not come back; where
the last page of somebody ended is remembered for a while, so that the next one need not begin anew.

What the lake says of a journal decides: one that it does not know was never archived, and there is nothing. One
that it knows it has without gaps, but for what was forgotten, up to a position; if that lies before the end of
what was trimmed, something is in neither, which is an error and not skipped. What it has of a journal that has
forked from this one since counts for nothing beyond the fork, whether the lake knows of that or not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import msgspec

from palio.model.errors import MissingDependency
from palio.model.filter import Filter
from palio.protocol.durable.lineage import Lineage, fork_point
from palio.store.lake.errors import LakeBehind
from palio.store.lake.manifests import Lake, LakeState

if TYPE_CHECKING:
    from palio.store.lake.events import LakeEvents, Row

# Readers of which it is remembered where they are: each has some files open.
MAX_OPEN = 8
# After so many seconds a page is given as it is: somebody else may want something, too.
TURN = 0.25
# What is read at a time for somebody who wants all of it.
PAGE = 4_096
PAGE_BYTES = 8 << 20

_Place = tuple[int, bytes, float]  # the sequence after which somebody goes on, its filter, and its time


class LakePage(msgspec.Struct, frozen=True):
    """What was found: all that is selected up to `upto`, in order."""

    rows: list[Row]
    upto: int


class Archive:
    """A journal in a lake. Used by one thread at a time."""

    def __init__(self, place: str, journal: str, clock: Callable[[], float] = time.monotonic) -> None:
        """Raises `WrongLake`, and `MissingDependency` where Arrow is not installed. The lake may come later."""
        try:
            import pyarrow  # noqa: F401, PLC0415
        except ImportError:
            raise MissingDependency("pyarrow", "arrow") from None
        self._lake = Lake(place)
        self._journal = journal
        self.lineage: Lineage = ()  # of the journal; if it is not known, the lake is believed
        self._clock = clock
        self._state: LakeState | None = None
        self._open: dict[_Place, LakeEvents] = {}

    @property
    def place(self) -> str:
        return str(self._lake.root)

    def position(self) -> int | None:
        """Up to which sequence the lake has everything of this journal; None if it does not know the journal.

        Raises `NoLake`, `LakeTooNew` or `LakeDamaged`.
        """
        state = self._newest()
        position = state.positions.get(self._journal)
        if position is None:
            return None
        return fork_point(position, state.lineages.get(self._journal, ()), self.lineage)

    def page(
        self,
        filter: Filter,
        *,
        after: int,
        upto: int,
        trimmed: int,
        limit: int,
        limit_bytes: int,
        since: float = 0.0,
    ) -> LakePage:
        """Some of what there is after one sequence up to another, of a journal that begins after `trimmed`.

        It reaches further than `after`, if not always up to where it was asked for. Raises `LakeBehind`,
        `NoLake`, `LakeTooNew` or `LakeDamaged`.
        """
        position = self.position()
        upto = min(upto, trimmed)
        if position is None or after >= upto:
            return LakePage([], upto)
        if position < upto:
            if after >= position:
                raise LakeBehind(self.place, self._journal, position, trimmed)
            upto = position
        events = self._take((after, filter.form, since), filter)
        try:
            rows, reached = self._read(events, (after, upto), limit, limit_bytes)
        except BaseException:
            events.close()
            self._state = None  # whoever repairs a lake may have gone back to an earlier version
            raise
        if reached < trimmed and events.frontier is not None:
            self._put_back((reached, filter.form, since), events)
        else:
            events.close()
        return LakePage(rows, reached)

    def read(self, filter: Filter, *, after: int, upto: int, since: float = 0.0) -> Iterator[Row]:
        """All of what was trimmed after one sequence up to another, in order. Raises what `page` raises."""
        limits = {"limit": PAGE, "limit_bytes": PAGE_BYTES}
        while after < upto:
            page = self.page(filter, after=after, upto=upto, trimmed=upto, since=since, **limits)
            yield from page.rows
            after = page.upto

    def _read(
        self, events: LakeEvents, span: tuple[int, int], limit: int, limit_bytes: int
    ) -> tuple[list[Row], int]:
        after, upto = span
        until = self._clock() + TURN
        rows: list[Row] = []
        size = 0
        while (frontier := events.frontier) is not None and frontier <= upto:
            row = events.next(upto)
            if row is None:
                if frontier - 1 > after and self._clock() >= until:
                    return rows, frontier - 1
                events.read_on()
                continue
            rows.append(row)
            size += row[-1].body.size
            if len(rows) == limit or size >= limit_bytes:
                return rows, row[0]
        return rows, upto

    def _newest(self) -> LakeState:
        if self._state is None or not self._lake.is_newest(self._state.version):
            self.forget_places()
            self._state = self._lake.state()
        return self._state

    def _take(self, place: _Place, filter: Filter) -> LakeEvents:
        from palio.store.lake.events import LakeEvents  # noqa: PLC0415 (Arrow is not everywhere)

        found = self._open.pop(place, None)
        if found is not None:
            return found
        state, end = self._newest(), self.position() or 0
        own = [one for one in state.events() if one.journal == self._journal]
        files = [(one, upto) for one in own if (upto := min(end, state.upto(one))) >= one.first]
        return LakeEvents(self._lake.root, files, filter, after=place[0], since=place[2])

    def _put_back(self, place: _Place, events: LakeEvents) -> None:
        former = self._open.pop(place, None)
        if former is not None:
            former.close()
        self._open[place] = events
        if len(self._open) > MAX_OPEN:
            self._open.pop(next(iter(self._open))).close()

    def forget_places(self) -> None:
        """Close all files, and forget where readers were."""
        for events in self._open.values():
            events.close()
        self._open.clear()
