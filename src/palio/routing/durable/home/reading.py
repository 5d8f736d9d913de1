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
6. *One read for many.* Those that stand close together in a journal are read for together, with one filter for
   what any of them selects. Each takes its part of the page: from its position up to its own target, what its
   filter selects, and as much as there is room for. That is what it would have got alone. Who gets nothing that
   way is read for alone the next time, so nobody waits for others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain

from msgspec.structs import replace

from palio.matching import MatchIndex
from palio.model.errors import FilterTooLarge
from palio.model.filter import Filter
from palio.model.normal import MAX_CONJUNCTIONS
from palio.protocol.durable.letters import Fetch, Page
from palio.protocol.durable.lineage import JournalGap, agrees
from palio.protocol.envelope import Envelope
from palio.routing.durable import shortcuts
from palio.routing.durable.alarm import Alarm
from palio.routing.durable.desk import Desk
from palio.routing.durable.forks import JournalForks
from palio.routing.durable.home.filter_change import FilterChanges
from palio.routing.durable.home.homes import Homes
from palio.routing.durable.home.room import Room
from palio.routing.durable.home.spool import Spooling
from palio.routing.durable.home.subscription import CatchUp, Durable, HomeState, JournalRead
from palio.routing.durable.home.takers import Takers
from palio.routing.durable.home.writing import Writing
from palio.routing.durable.network.topology import Topology
from palio.routing.durable.network.unicast import Unicast

# How many subscriptions are read for together: a page is taken by all of them in one go, which nobody else
# should have to wait for. A guess.
MOST_READERS = 128
# Ticks until a page is asked for again that did not come, though no link was lost meanwhile (a guess).
_LONGEST_PAUSE = 32.0
MOST_CONJUNCTIONS = MAX_CONJUNCTIONS  # of all their filters together, as of any filter


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
    _topology: Topology
    _tick: Alarm
    _number: int

    def __post_init__(self) -> None:
        # Those that are waited for, by what they are called in letters.
        self._reads: dict[str, JournalRead] = {}
        self._wanting: list[tuple[Durable, str, CatchUp]] = []
        # Reads that were asked for, and how many they would have been one by one; both without retries.
        self.asked = self.one_by_one = 0

    def begin(self, durable: Durable) -> None:
        """Read all that is missing, with the next `ask`."""
        for origin in list(durable.catching_up):
            if origin in durable.catching_up:  # a full outbox may have ended it all
                self.read_on(durable, origin)

    def read_on(self, durable: Durable, origin: str) -> None:
        """Read the next page of a journal with the next `ask`, or go on with what comes live."""
        catching_up = durable.catching_up[origin]
        if catching_up.read is not None or catching_up.limit:
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
            self._wanting.append((durable, origin, catching_up))
            return
        if durable.state is not HomeState.LIVE:
            del durable.catching_up[origin]  # there may be more by now, which is not known yet
            return
        change = self._homes.changes.get(durable.name)
        if change is None or change.agreed != durable.epoch:
            del durable.catching_up[origin]
            self._spooling.drain(durable, origin, catching_up)
        elif all(durable.position[o] >= one.target for o, one in durable.catching_up.items()):
            self._changes.write(durable, change)

    def ask(self) -> None:
        """Ask for what is wanted by now, once for all that stand close together in one journal (6)."""
        wanting, self._wanting = self._wanting, []
        groups: dict[tuple[str, float], list[tuple[Durable, CatchUp]]] = {}
        for durable, origin, catching_up in wanting:
            if durable.catching_up.get(origin) is catching_up:  # a full outbox may have ended it
                groups.setdefault((origin, durable.since), []).append((durable, catching_up))
        for (origin, _), group in groups.items():
            together = ReadTogether(origin, self._desk.settings.page)
            for durable, catching_up in sorted(group, key=lambda one: one[0].position[origin]):
                narrow = self._desk.scopes.narrow(durable.name, durable.filter)
                if not together.takes(durable, catching_up, narrow):
                    self._begin(together)
                    together = ReadTogether(origin, self._desk.settings.page)
                together.add(durable, catching_up, narrow)
            self._begin(together)

    def _begin(self, together: ReadTogether) -> None:
        try:
            read = together.read(f"{self._number + 1}", self._desk.now)
        except FilterTooLarge:  # to be said in one
            for one in together.apart():
                self._begin(one)
            return
        self._number += 1
        self.asked += 1
        self.one_by_one += len(read.readers)
        for durable in read.readers:
            durable.catching_up[read.origin].read = read
        self._ask(read)

    def _ask(self, read: JournalRead) -> None:
        tick, epoch = self._desk.settings.tick, self._topology.epoch
        read.pause = min(2 * read.pause, _LONGEST_PAUSE * tick) if read.pause and read.epoch == epoch else tick
        read.asked_at, read.epoch = self._desk.now, epoch
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
                self._takers.history_missing(durable, origin, replace(page, after=durable.position[origin]))
        elif page.after < page.upto <= read.fetch.upto:
            del self._reads[page.reader]
            found = selected(read, page)
            for durable in self._waiting(read):
                self._take(durable, page, found[read.readers[durable]], read)
            self.ask()

    def _waiting(self, read: JournalRead) -> list[Durable]:
        """Those that still want what was asked for, and take it whenever it comes."""
        found = []
        for durable in read.readers:
            catching_up = durable.catching_up.get(read.origin)
            if catching_up is not None and catching_up.read is read:
                found.append(durable)
        return found

    def _take(self, durable: Durable, page: Page, found: tuple[Envelope, ...], read: JournalRead) -> None:
        """Takes what of a page is for a subscription: what its filter selects, from its position on."""
        origin = read.origin
        catching_up = durable.catching_up[origin]
        room = max(catching_up.limit, self._room.left(durable))
        catching_up.limit, catching_up.read = 0, None
        after = durable.position[origin]
        if page.after > after:
            return  # it has gone back to where the journal has forked
        if not agrees(page.upto, page.incarnation, durable.lineages.get(origin, ())):
            catching_up.alone = True
            return  # it was read before the journal came back older, or after: it is asked for again (2)
        catching_up.failing_since = None
        part = part_of(page, after, catching_up.target, found, room)
        if part is not None:
            if gaps := self._forks.missing(durable, origin, part):
                self.save(durable, {}, gaps)  # before it is passed, which is written next
            durable.position[origin] = part.upto
            if part.envelopes:
                self._spooling.spool(durable, durable.not_known(origin, part.envelopes), origin)
        catching_up.alone = part is None
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
            elif self._is_due(read) and not all(one.catching_up[read.origin].away for one in waiting):
                self._ask(read)
        missing = False
        for durable in self._homes.subscriptions.values():
            for origin, catching_up in list(durable.catching_up.items()):
                missing |= not catching_up.away
                if origin not in durable.catching_up:
                    break  # a full outbox has ended it all
                if catching_up.looked_at <= due:
                    self.read_on(durable, origin)
        self.ask()
        return missing

    def _is_due(self, read: JournalRead) -> bool:
        """Whether an answer has to be given up. Where nothing has changed it may still be on a slow link."""
        pause = read.pause if read.epoch == self._topology.epoch else self._desk.settings.tick
        return read.asked_at <= self._desk.now - pause


class ReadTogether:
    """Subscriptions for which a journal is read together: close together, with not too many filters."""

    def __init__(self, origin: str, page: int) -> None:
        self._origin = origin
        self._page = page
        self._readers: list[tuple[Durable, CatchUp, int]] = []
        self._filters: dict[bytes, Filter] = {}
        self._conjunctions = 0

    def takes(self, durable: Durable, catching_up: CatchUp, narrow: Filter) -> bool:
        """Whether one more can be read with those that there are."""
        if not self._readers:
            return True
        first, of_first, _ = self._readers[0]
        far = durable.position[self._origin] - first.position[self._origin] >= self._page
        if not shortcuts.TAKEN or far or catching_up.alone or of_first.alone:
            return False
        new = 0 if narrow.form in self._filters else len(narrow.conjunctions)
        return len(self._readers) < MOST_READERS and self._conjunctions + new <= MOST_CONJUNCTIONS

    def add(self, durable: Durable, catching_up: CatchUp, narrow: Filter) -> None:
        """Read for one more."""
        if narrow.form not in self._filters:
            self._filters[narrow.form] = narrow
            self._conjunctions += len(narrow.conjunctions)
        self._readers.append((durable, catching_up, list(self._filters).index(narrow.form)))

    def apart(self) -> Iterator[ReadTogether]:
        """Each of them alone."""
        for durable, catching_up, number in self._readers:
            one = ReadTogether(self._origin, self._page)
            one.add(durable, catching_up, list(self._filters.values())[number])
            yield one

    def read(self, name: str, now: float) -> JournalRead:
        """One read for all of them. Raises `FilterTooLarge` if it cannot be said what they all select."""
        filters = tuple(self._filters.values())
        first, of_first, _ = self._readers[0]
        limit = of_first.limit if len(self._readers) == 1 else self._page
        either = filters[0]
        if len(filters) > 1:
            either = Filter(tuple(chain.from_iterable([one.conjunctions for one in filters])))
            _ = either.form
        upto = max([catching_up.target for _, catching_up, _ in self._readers])
        fetch = Fetch(name, either, first.position[self._origin], upto, first.since, limit)
        readers = {durable: number for durable, _, number in self._readers}
        return JournalRead(self._origin, fetch, now, readers, filters)


def selected(read: JournalRead, page: Page) -> list[tuple[Envelope, ...]]:
    """What each filter of a read selects of a page."""
    if len(read.filters) == 1:
        return [page.envelopes]
    index = MatchIndex()
    for number, filter in enumerate(read.filters):
        index.add(number, filter)
    found: list[list[Envelope]] = [[] for _ in read.filters]
    for envelope in page.envelopes:
        for number in index.match(envelope.notification):
            found[number].append(envelope)
    return [tuple(envelopes) for envelopes in found]


def part_of(page: Page, after: int, target: int, found: tuple[Envelope, ...], room: int) -> Page | None:
    """What of a page is for who stands somewhere in it: up to its target, and as much as there is room for.

    Nothing, if it does not reach beyond that place, or there is no room.
    """
    upto = min(page.upto, target)
    wanted = [envelope for envelope in found if after < envelope.sequence <= upto]
    if len(wanted) > room:
        wanted = wanted[:room]
        upto = wanted[-1].sequence if wanted else after
    if upto <= after:
        return None
    damaged = tuple([sequence for sequence in page.damaged if after < sequence <= upto])
    return replace(page, after=after, upto=upto, envelopes=tuple(wanted), damaged=damaged)
