"""Catching up: durable subscriptions are brought up to date when all have answered.

See `subscription` for how a subscription becomes live, `going_live` for how all of them are brought there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from palio.protocol.durable.letters import Fetch, Page
from palio.protocol.durable.lineage import JournalGap, agrees
from palio.protocol.durable.peers import Head
from palio.protocol.durable.subscriptions import DurableReady
from palio.routing.durable import shortcuts
from palio.routing.durable.alarm import Alarm
from palio.routing.durable.desk import Desk
from palio.routing.durable.forks import JournalForks
from palio.routing.durable.home.filter_change import FilterChanges
from palio.routing.durable.home.homes import Homes
from palio.routing.durable.home.room import Room
from palio.routing.durable.home.spool import Spooling
from palio.routing.durable.home.subscription import CatchUp, Durable, HomeState, JournalPlace
from palio.routing.durable.home.takers import Takers
from palio.routing.durable.home.writing import Writing
from palio.routing.durable.network.unicast import Unicast

# A new subscription that begins with what is published from now on has this for the time of its beginning,
# until its position is known.
FROM_NOW = -1.0


@dataclass(eq=False, repr=False)
class CatchingUp:
    """Catch-up of the durable subscriptions here: what each has missed, and has to fetch from journals.

    `settling` is set when one is to be brought up to date, `tick` when a page is waited for.
    """

    _desk: Desk
    _homes: Homes
    _writing: Writing
    _spooling: Spooling
    _changes: FilterChanges
    _takers: Takers
    _room: Room
    _letters: Unicast
    _forks: JournalForks
    _settling: Alarm
    _tick: Alarm

    def __post_init__(self) -> None:
        self._fetching: dict[str, str] = {}  # by identity: the names of those that have asked for pages

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
            before = durable.gaps
            for head in heads:
                origin = head.origin
                durable.position.setdefault(origin, head.head if first else head.begins)
                self._forks.meet(durable, head)
                durable.position[origin] = max(durable.position[origin], head.begins)
                catching_up = collected.get(origin) or CatchUp(head.head)
                catching_up.reach(head.head)
                if durable.position[origin] < catching_up.target or catching_up.buffer or changing:
                    durable.catching_up[origin] = catching_up
            if first:
                durable.since = 0.0
            told = durable.ready_told and durable.position == durable.written_position
            news = durable.gaps if durable.gaps != before else ()
            if not (shortcuts.TAKEN and told) or first or news:  # otherwise it would write what is written
                gaps = tuple([gap for gap in news if gap not in before])
                self._save(durable, dict(durable.position), gaps, everyone=everyone)
            for origin in list(durable.catching_up):
                if origin in durable.catching_up:  # a full outbox may have ended it all
                    self._fetch_next(durable, origin)

    def _save(
        self,
        durable: Durable,
        position: dict[str, int],
        gaps: tuple[JournalGap, ...],
        *,
        everyone: bool = False,
    ) -> None:
        """Writes from where on everything comes, before anybody relies on it (invariant 3).

        What may be missing as of now goes with it, and is told when it is on disk.
        """
        durable.written_position.update(position)
        places = durable.places(position.items())

        def stored() -> None:
            durable.stored_position.update(places)
            if durable.state is not HomeState.ENDED:
                self._takers.tell_gaps(durable, gaps)
            if everyone and durable.state is HomeState.LIVE and not durable.ready_told:
                durable.ready_told = True
                if durable.taker is not None:
                    self._desk.answer(durable.taker, DurableReady(durable.name))

        filter = self._homes.filter_to_write(durable)
        more = {"gaps": durable.gaps} if gaps else {}
        self._writing.subscription(durable, filter, stored, position=tuple(position.items()), **more)

    def _fetch_next(self, durable: Durable, origin: str) -> None:
        """Fetch the next page of a journal, or go on with what comes live if nothing is missing."""
        catching_up = durable.catching_up[origin]
        after = durable.position[origin]
        if after < catching_up.target:
            catching_up.limit = 0
            limit = min(self._desk.settings.page, self._room.left(durable))
            catching_up.asked_at = self._desk.now
            if not limit:  # what other origins were asked for will take all the room, or the outbox is full
                if not any(other.limit for other in durable.catching_up.values()):
                    self._spooling.no_room(durable)
                return
            catching_up.limit = limit
            narrow = self._desk.scopes.narrow(durable.name, durable.filter)
            self._fetching[durable.identity] = durable.name
            fetch = Fetch(durable.identity, narrow, after, catching_up.target, durable.since, limit)
            self._letters.write(origin, fetch)
            self._tick.set()
            return
        change = self._homes.changes.get(durable.name)
        if change is None or change.agreed != durable.epoch:
            del durable.catching_up[origin]
            self._spooling.drain(durable, catching_up)
        elif all(durable.position[o] >= one.target for o, one in durable.catching_up.items()):
            self._changes.write(durable, change)

    def fetched(self, origin: str, page: Page) -> None:
        """Handles a page of a journal, or that it cannot be read at its origin."""
        durable = self._homes.subscriptions.get(self._fetching.get(page.reader, ""))
        if durable is None or durable.identity != page.reader:
            return  # it is not here any more
        if page.problem is not None:
            self._takers.history_missing(durable, origin, page)
            return
        if durable.state is not HomeState.LIVE:
            return
        catching_up = durable.catching_up.get(origin)
        if catching_up is None or page.after != durable.position[origin] or page.upto <= page.after:
            return
        if not agrees(page.upto, page.incarnation, durable.lineages.get(origin, ())):
            return  # it was read before the journal came back older, and is asked for again (invariant 9)
        catching_up.failing_since = None
        if gaps := self._forks.missing(durable, origin, page):
            self._save(durable, {}, gaps)  # before it is passed, which is written next
        durable.position[origin] = page.upto
        catching_up.limit = 0
        if page.envelopes:
            self._spooling.spool(durable, durable.not_known(origin, page.envelopes), origin)
        if durable.state is HomeState.LIVE:
            self._fetch_next(durable, origin)

    def fetch_again(self) -> bool:
        """Retry: fetch again pages that did not come. Returns whether any are missing."""
        missing = False
        for durable in self._homes.subscriptions.values():
            for origin, catching_up in list(durable.catching_up.items()):
                missing = True
                if origin not in durable.catching_up:
                    break  # a full outbox has ended it all
                asked = catching_up.asked_at
                if asked is not None and asked + self._desk.settings.tick <= self._desk.now:
                    self._fetch_next(durable, origin)
        return missing

    def give_up(self, durable: Durable) -> None:
        """Forget the fetches for a subscription: no page is for it any more."""
        self._fetching.pop(durable.identity, None)
