"""Catching up: what durable subscriptions have missed becomes known when brokers say how far journals are.

See `subscription` for how a subscription becomes live, `going_live` for how all of them are brought there, and
`reading` for how what they have missed is read.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from palio.protocol.durable.lineage import JournalGap
from palio.protocol.durable.peers import Head
from palio.protocol.durable.subscriptions import DurableReady
from palio.routing.durable import shortcuts
from palio.routing.durable.alarm import Alarm
from palio.routing.durable.desk import Desk
from palio.routing.durable.forks import JournalForks
from palio.routing.durable.home.homes import Homes
from palio.routing.durable.home.reading import JournalReads
from palio.routing.durable.home.room import Room
from palio.routing.durable.home.subscription import CatchUp, Durable, HomeState, JournalPlace

# A new subscription that begins with what is published from now on has this for the time of its beginning,
# until its position is known.
FROM_NOW = -1.0


@dataclass(eq=False, repr=False)
class CatchingUp:
    """Catch-up of the durable subscriptions here: what each has missed, and has to fetch from journals.

    `settling` is set when one is to be brought up to date.
    """

    _desk: Desk
    _homes: Homes
    _room: Room
    _reading: JournalReads
    _forks: JournalForks
    _settling: Alarm

    def behind(self) -> tuple[str, ...]:
        """The names of those that are to be brought up to date, and have room for it."""
        here = self._homes.subscriptions.values()
        behind = [one for one in here if one.state is HomeState.BEHIND and self._room.is_half_empty(one)]
        return tuple([one.name for one in behind])

    def begin_asking(self, names: Iterable[str]) -> None:
        """Note, as a wave begins, for which changes of filters it asks: what it will say is true of these."""
        for name in names:
            if name in self._homes.changes:
                self._homes.changes[name].asked = True

    def collect(self, names: Iterable[str]) -> None:
        """Begin to buffer what comes live, as everyone is asked how far the journals are."""
        for name in names:
            durable = self._homes.subscriptions.get(name)
            if durable is not None and durable.state is HomeState.BEHIND:
                durable.collecting = {}

    def readers(self, names: Iterable[str]) -> dict[tuple[str, str], int]:
        """By what the journals know those of the subscriptions that are still here: identities and names.

        With their generations.
        """
        here = self._homes.subscriptions
        return {(here[name].identity, name): here[name].generation for name in names if name in here}

    def places(self, names: Iterable[str]) -> tuple[tuple[str, int, str], ...]:
        """The furthest that any of the subscriptions is in each journal, with the incarnation that is of."""
        furthest: dict[str, JournalPlace] = {}
        for name in names:
            if (durable := self._homes.subscriptions.get(name)) is not None:
                for origin, place in durable.places(durable.position.items()).items():
                    if place[1] and place > furthest.get(origin, (0, "")):
                        furthest[origin] = place
        return tuple([(origin, *place) for origin, place in furthest.items()])

    def complete(self, names: Iterable[str], epoch: int, heads: tuple[Head, ...], *, everyone: bool) -> None:
        """Starts the catch-up: in one epoch, all know the filters and say how far they are (invariant 5).

        With `everyone`, these are all brokers that were ever heard of: none of them trims what we need.
        """
        changes = self._homes.changes
        for name in names:
            durable = self._homes.subscriptions.get(name)
            if durable is None or durable.state is not HomeState.BEHIND:
                continue
            if durable.collecting is None or (name in changes and not changes[name].asked):
                # It is another one of that name, or has another filter by now: the answers are not about it.
                durable.collecting = None
                self._settling.set()
                continue
            durable.epoch = epoch
            durable.go("complete")
            first = durable.since == FROM_NOW
            collected, durable.collecting = durable.collecting, None
            # Another filter comes into force at a position that all origins have agreed on, or not yet.
            changing = everyone and name in changes
            if changing:
                changes[name].agreed = epoch
            news = self._meet(durable, heads)
            reading, durable.catching_up = durable.catching_up, {}
            for head in heads:
                origin = head.origin
                catching_up = collected.get(origin) or CatchUp()
                catching_up.reach(head.head)
                expected = max(catching_up.target, catching_up.marked)
                if durable.position[origin] < expected or catching_up.buffer or changing:
                    catching_up.go_on_from(reading.get(origin), durable.position[origin])
                    durable.catching_up[origin] = catching_up
            if not everyone:
                for origin, one in reading.items():
                    if all(origin != head.origin for head in heads):
                        one.away, one.limit = True, 0
                        durable.catching_up[origin] = one
            if first:
                durable.since = 0.0
            told = durable.ready_told and durable.position == durable.written_position
            if not (shortcuts.TAKEN and told) or first or news:  # otherwise it would write what is written
                self._save(durable, dict(durable.position), news, everyone=everyone)
            self._reading.begin(durable)
        self._reading.ask()

    def heard(self, asked: Iterable[tuple[str, str]], heads: tuple[Head, ...]) -> None:
        """Reads what the journals are known to have, whether or not all have said so in one epoch.

        Those who were asked know these readers, and keep what they have not read (invariant 10).
        """
        for identity, name in asked:
            durable = self._homes.subscriptions.get(name)
            if durable is None or durable.identity != identity or durable.state is not HomeState.BEHIND:
                continue
            change = self._homes.changes.get(name)
            if (change is not None and change.writing) or not self._room.is_half_empty(durable):
                continue
            present = [head for head in heads if self._is_present(durable, head)]
            if news := self._meet(durable, present):
                self._reading.save(durable, dict(durable.position), news)
            for head in present:
                position = durable.position[head.origin]
                reading = durable.catching_up.pop(head.origin, None)
                if position < head.head:
                    durable.catching_up[head.origin] = catching_up = CatchUp(head.head)
                    catching_up.go_on_from(reading, position)
            self._reading.begin(durable)
        self._reading.ask()

    def _is_present(self, durable: Durable, head: Head) -> bool:
        """Whether an origin has said this in no earlier life than what was heard of it before.

        Only the agreement on an epoch shows that of a broker which tells no lineage.
        """
        known = durable.lineages.get(head.origin, ())
        return bool(head.lineage) and (not known or known[-1].number <= head.lineage[-1].number)

    def _meet(self, durable: Durable, heads: Iterable[Head]) -> tuple[JournalGap, ...]:
        """Positions meet their journals, where a new one begins. Returns what may be missing as of now."""
        first, before = durable.since == FROM_NOW, durable.gaps
        for head in heads:
            origin = head.origin
            durable.position.setdefault(origin, head.head if first else head.begins)
            self._forks.meet(durable, head)
            durable.position[origin] = max(durable.position[origin], head.begins)
        return tuple([gap for gap in durable.gaps if gap not in before])

    def _save(
        self, durable: Durable, position: dict[str, int], gaps: tuple[JournalGap, ...], *, everyone: bool
    ) -> None:
        """Writes from where on everything comes, before anybody relies on it (invariant 3)."""

        def stored() -> None:
            if everyone and durable.state is HomeState.LIVE and not durable.ready_told:
                durable.ready_told = True
                if durable.taker is not None:
                    self._desk.answer(durable.taker, DurableReady(durable.name))

        self._reading.save(durable, position, gaps, stored)
