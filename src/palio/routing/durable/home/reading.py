"""Reading: what durable subscriptions here have missed is fetched from the journals of origins, page by page.

A subscription that is behind reads what the journals are known to have, in whatever epoch that was said, and
whatever happens to links meanwhile. So it gets on where links change faster than everyone can agree on an
epoch. Becoming live is another matter (`going_live`).

Why that is right (invariant 10 of `subscription`):

1. *A page is about a journal, not about the network.* It has all that the filter selects after one sequence up
   to another, in order. A position may move along it, whatever way it came, and however late.
2. *It fits the position.* It begins at the position, or is not taken. It was numbered in the lineage that the
   position is of (invariant 9), or is not taken: an origin that began anew with an older disk gives no event in
   the place of another one.
3. *It answers what is still wanted.* A read has a number that is given once, also by later lives of this
   broker. Where another place or other rights were asked for, what was read before is not taken
   (`Durable.stop`). What was read for a filter that is being changed was published before the change is in
   force: it was asked for only up to where journals were known to be.
4. *Nothing else brings it meanwhile.* What comes live is taken in one epoch only, and buffered while there is
   something to read (invariant 6).
5. *Journals keep it.* Each has answered a question that names the reader before it is read. So nothing behind
   the position is trimmed; where that was forgotten, the page says where the journal begins, and the gap is
   named.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from palio.protocol.durable.letters import Fetch, Page
from palio.protocol.durable.lineage import JournalGap, agrees
from palio.routing.durable.alarm import Alarm
from palio.routing.durable.desk import Desk
from palio.routing.durable.forks import JournalForks
from palio.routing.durable.home.filter_change import FilterChanges
from palio.routing.durable.home.homes import Homes
from palio.routing.durable.home.room import Room
from palio.routing.durable.home.spool import Spooling
from palio.routing.durable.home.subscription import Durable, HomeState, JournalRead
from palio.routing.durable.home.takers import Takers
from palio.routing.durable.home.writing import Writing
from palio.routing.durable.network.unicast import Unicast


@dataclass(eq=False, repr=False)
class JournalReads:
    """Reads of journals for the durable subscriptions here. `tick` is set when a page is waited for.

    `first` is the number before that of the first read.
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
    _tick: Alarm
    _number: int

    def __post_init__(self) -> None:
        # Those that are waited for, by what they are called in letters.
        self._reads: dict[str, JournalRead] = {}

    def begin(self, durable: Durable) -> None:
        """Read all that is missing."""
        for origin in list(durable.catching_up):
            if origin in durable.catching_up:  # a full outbox may have ended it all
                self.read_on(durable, origin)

    def read_on(self, durable: Durable, origin: str) -> None:
        """Read the next page of a journal, or go on with what comes live if nothing is missing."""
        catching_up = durable.catching_up[origin]
        if catching_up.read is not None:
            return
        after = durable.position[origin]
        if after < catching_up.target:
            if catching_up.away:
                return
            limit = min(self._desk.settings.page, self._room.left(durable))
            catching_up.looked_at = self._desk.now
            if not limit:  # what other origins were asked for will take all the room, or the outbox is full
                if not any(other.limit for other in durable.catching_up.values()):
                    self._spooling.no_room(durable)
                return
            catching_up.limit = limit
            narrow = self._desk.scopes.narrow(durable.name, durable.filter)
            self._number += 1
            fetch = Fetch(f"{self._number}", narrow, after, catching_up.target, durable.since, limit)
            catching_up.read = JournalRead(origin, fetch, self._desk.now, [durable])
            self._ask(catching_up.read)
            return
        if durable.state is not HomeState.LIVE:
            del durable.catching_up[origin]  # there may be more by now, which is not known yet
            return
        change = self._homes.changes.get(durable.name)
        if change is None or change.agreed != durable.epoch:
            del durable.catching_up[origin]
            self._spooling.drain(durable, catching_up)
        elif all(durable.position[o] >= one.target for o, one in durable.catching_up.items()):
            self._changes.write(durable, change)

    def _ask(self, read: JournalRead) -> None:
        read.asked_at = self._desk.now
        self._reads[read.fetch.reader] = read
        self._letters.write(read.origin, read.fetch)
        self._tick.set()

    def fetched(self, origin: str, page: Page) -> None:
        """Handles a page of a journal, or that it cannot be read at its origin."""
        read = self._reads.get(page.reader)
        if read is None or read.origin != origin or page.after != read.fetch.after:
            return  # it has come before
        if page.problem is not None:
            for durable in self._waiting(read):
                self._takers.history_missing(durable, origin, page)
        elif page.after < page.upto <= read.fetch.upto:
            del self._reads[page.reader]
            for durable in self._waiting(read):
                self._take(durable, origin, page)

    def _waiting(self, read: JournalRead) -> list[Durable]:
        """Those that still want what was asked for, and take it whenever it comes."""
        found = []
        for durable in read.readers:
            catching_up = durable.catching_up.get(read.origin)
            if catching_up is not None and catching_up.read is read:
                found.append(durable)
        return found

    def _take(self, durable: Durable, origin: str, page: Page) -> None:
        catching_up = durable.catching_up[origin]
        kept, catching_up.limit, catching_up.read = catching_up.limit, 0, None
        if page.after != durable.position[origin] or len(page.envelopes) > max(kept, self._room.left(durable)):
            return
        if not agrees(page.upto, page.incarnation, durable.lineages.get(origin, ())):
            return  # it was read before the journal came back older, or after: it is asked for again (2)
        catching_up.failing_since = None
        if gaps := self._forks.missing(durable, origin, page):
            self.save(durable, {}, gaps)  # before it is passed, which is written next
        durable.position[origin] = page.upto
        if page.envelopes:
            self._spooling.spool(durable, durable.not_known(origin, page.envelopes), origin)
        if origin in durable.catching_up:  # a full outbox may have ended it
            self.read_on(durable, origin)

    def save(
        self,
        durable: Durable,
        position: dict[str, int],
        gaps: tuple[JournalGap, ...],
        then: Callable[[], None] | None = None,
    ) -> None:
        """Writes where a subscription goes on, and what may be missing as of now.

        That is told when it is on disk.
        """
        durable.written_position.update(position)
        places = durable.places(position.items())

        def stored() -> None:
            durable.stored_position.update(places)
            if durable.state is not HomeState.ENDED:
                self._takers.tell_gaps(durable, gaps)
            if then is not None:
                then()

        filter = self._homes.filter_to_write(durable)
        more = {"gaps": durable.gaps} if gaps else {}
        self._writing.subscription(durable, filter, stored, position=tuple(position.items()), **more)

    def again(self) -> bool:
        """Retry: read again what did not come. Returns whether anything is missing."""
        due = self._desk.now - self._desk.settings.tick
        for name, read in list(self._reads.items()):
            waiting = self._waiting(read)
            if not waiting:
                del self._reads[name]
            elif read.asked_at <= due and not all(one.catching_up[read.origin].away for one in waiting):
                self._ask(read)
        missing = False
        for durable in self._homes.subscriptions.values():
            for origin, catching_up in list(durable.catching_up.items()):
                missing |= not catching_up.away
                if origin not in durable.catching_up:
                    break  # a full outbox has ended it all
                if catching_up.looked_at <= due:
                    self.read_on(durable, origin)
        return missing
