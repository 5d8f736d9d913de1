"""`Look`: brokers are asked for a link, one after the other, each once, until one grants it or nobody is left.

1. One is asked at a time; who does not answer in time is not waited for.
2. Who is full names others, which are asked next: so many of them, and then the others who were chosen.
3. If nobody grants a link, those that are full are asked once more, insisting.
4. Whoever has told of several that cannot be reached is believed last.
5. A look ends, whatever those say who are asked.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from zlib import crc32

import msgspec

from palio.protocol.overlay import MOST_CONTACTS
from palio.protocol.peers import Goodbye, LinkKind
from palio.routing.effects import Effect
from palio.routing.links import NeighbourLink
from palio.routing.occurrences import NotReached
from palio.routing.overlay.contacts import ContactBook, KnownBroker
from palio.routing.overlay.effects import NOT_REACHED, REFUSED, Dial, OverlayEvent
from palio.routing.overlay.manager import FULL, LATER, REASONS, REMOVED, TERMS, Refusal
from palio.routing.overlay.settings import OverlaySettings

# How many are asked in one look, and of those who were not reached lately (guesses: all who were near).
MOST_ASKED = 24
MOST_UNREACHED = 3
# How many of them that the same broker has told of, and how many others that those who are full have named.
# Once `MOST_UNREACHED` that somebody has told of did not answer, all others are asked first (guesses).
MOST_OF_ONE = 8
MOST_DETOURS = 16
# How long somebody is waited for who has not answered at all, if another one would take us (a guess).
_PATIENCE = 0.5


class Asking(msgspec.Struct, eq=False):
    """Who is being asked for a link, since when, and how far it is."""

    known: KnownBroker
    since: float
    insists: bool
    broker: str = ""
    distance: float = 0.0


class HeardRefusal(msgspec.Struct, frozen=True):
    """Who has refused a link, why, and whether it was insisted."""

    known: KnownBroker
    why: str
    insisted: bool


@dataclass(frozen=True, slots=True)
class OverlayShell:
    """What a router gives its overlay: `give_up` ends a link with a refusal, effects go into `effects()`."""

    broker: str
    settings: OverlaySettings
    links: dict[str, NeighbourLink]
    effects: Callable[[], list[Effect]]
    now: Callable[[], float]
    give_up: Callable[[NeighbourLink, Refusal], None]


class Look:
    """The looks of one broker. `is_wanted` says of somebody whether it is still to be asked."""

    def __init__(
        self,
        around: OverlayShell,
        book: ContactBook,
        kind: LinkKind,
        is_wanted: Callable[[KnownBroker], bool],
    ) -> None:
        self._broker = around.broker
        self._book = book
        self._ask_within = around.settings.ask_within
        self._kind = kind
        self._links = around.links
        self._effects = around.effects
        self._now = around.now
        self._give_up = around.give_up
        self._is_wanted = is_wanted
        self.asking: Asking | None = None
        self.is_on = False
        self.asked = 0  # in all looks
        self.refused: Counter[str] = Counter()  # by reason
        self._candidates: deque[KnownBroker] = deque()
        self._detours: deque[KnownBroker] = deque(maxlen=MOST_CONTACTS)  # who is asked before them
        self._detoured = 0
        self._in_vain: Counter[str] = Counter()  # who was not reached, by who has told of them
        self._addresses: set[str] = set()  # that were asked at; each once, and those that are full once more
        self._full: list[KnownBroker] = []
        self._insists = False

    # Whom to ask

    def begin(self, found: Iterable[KnownBroker]) -> None:
        """A look at these, in their order; at some of them, if they are many."""
        self.is_on = True
        unreached, chosen = 0, []
        of_one: Counter[str] = Counter()
        for known in found:
            unreached += known.failures > 0
            of_one[known.source] += 1
            is_one_more = known.source and of_one[known.source] > MOST_OF_ONE
            if not is_one_more and not (known.failures and unreached > MOST_UNREACHED):
                chosen.append(known)
        self._candidates.extend([one for one in chosen[:MOST_ASKED] if one not in self._candidates])

    def add(self, known: KnownBroker) -> None:
        """It is asked after all others."""
        self._candidates.append(known)

    def put_first(self, known: KnownBroker) -> None:
        """It is asked next, unless there were too many such in this look."""
        for waiting in (self._candidates, self._detours):
            if known in waiting:
                waiting.remove(known)
        self._detours.appendleft(known)

    @property
    def has_detours(self) -> bool:
        """Whether there is somebody who is to be asked before all others."""
        return bool(self._detours)

    def go_on(self) -> bool:
        """Asks the next one. Returns False if nobody is left; then the look is over."""
        while self._detours or self._candidates:
            detours = bool(self._detours) and self._detoured < MOST_DETOURS
            if not detours and not self._candidates:
                break
            known = (self._detours if detours else self._candidates).popleft()
            if (known.address not in self._addresses or self._insists) and self._is_wanted(known):
                self._detoured += detours
                self.ask(known)
                return True
        if self._full and not self._insists:
            self._insists = True
            self._candidates.extend(self._full)
            self._full.clear()
            return self.go_on()
        self.end()
        return False

    def ask(self, known: KnownBroker, *, insists: bool = False) -> None:
        """Asks this one."""
        self.asked += 1
        known.asked = self._now()
        self._addresses.add(known.address)
        self.asking = Asking(known, known.asked, insists or self._insists)
        self._effects().append(Dial(known.address, self._kind))

    def end(self) -> None:
        """Nobody is asked any more."""
        self.asking = None
        self._candidates.clear()
        self._detours.clear()
        self._detoured = 0
        self._in_vain.clear()
        self._full.clear()
        self._addresses.clear()
        self.is_on = self._insists = False

    def chance(self, known: KnownBroker) -> int:
        """An order of our own, so that not everyone asks the same."""
        return crc32(f"{self._broker} {known.broker or known.address}".encode())

    # What they say

    @property
    def due(self) -> float | None:
        """Until when an answer is waited for."""
        return None if self.asking is None else self.asking.since + self._ask_within

    def is_asking(self, link: NeighbourLink) -> bool:
        """Whether this end asks for this link."""
        return link.asks and self.asking is not None and self.asking.broker == link.broker

    def dialled(self, link: NeighbourLink, address: str) -> bool:
        """A link is up that was dialled. Returns whether it is asked for."""
        asking = self.asking
        if asking is None or asking.known.address != address or asking.broker:
            return False
        asking.broker, asking.known.broker = link.broker, link.broker
        asking.known.failures = 0
        asking.distance = asking.known.distance = self._now() - asking.since
        return True

    def granted(self, link: NeighbourLink) -> Asking | None:
        """A link is in use. Returns who was asked for it, if this end has asked."""
        if not self.is_asking(link) or self.asking is None:
            return None
        asking, self.asking = self.asking, None
        asking.known.broker = link.broker
        return asking

    def refuse(self, link: NeighbourLink, goodbye: Goodbye) -> HeardRefusal | None:
        """Handles the refusal of a link, if this end has asked for it."""
        if not self.is_asking(link) or self.asking is None:
            return None
        asked, insisted = self.asking.known, self.asking.insists
        self.asking = None
        why = goodbye.why if goodbye.why in REASONS else TERMS
        self.refused[why] += 1
        self._effects().append(OverlayEvent(REFUSED, link.broker, why, goodbye.reason))
        if why == TERMS:
            asked.last = True
        elif why == REMOVED:
            self._book.bar(link.broker)
        elif why == FULL:
            self._full.append(asked)
            now, others = self._now(), goodbye.others
            found = [
                self._book.meet(one.broker, one.address, now, source=link.broker, distance=one.distance)
                for one in others
            ]
            # Everyone chooses others of them, so that the network does not grow on one side.
            for known in sorted([known for known in found if known is not None], key=self.chance):
                if known not in self._full:
                    self.put_first(known)
        return HeardRefusal(asked, why, insisted)

    def not_reached(self, message: NotReached) -> None:
        """Somebody cannot be asked."""
        asking = self.asking
        if asking is None or asking.known.address != message.address or asking.broker:
            return
        self._no_answer(asking, message.reason, "not reached")

    def lost(self, link: NeighbourLink) -> None:
        """A link is gone, which may have been asked for."""
        if self.is_asking(link):
            self.asking = None

    def on_timer(self) -> None:
        """Whoever has not answered in time is not waited for any more."""
        asking, due = self.asking, self.due
        if asking is None or due is None or self._now() < due:
            return
        self._no_answer(asking, "It did not answer in time.", "no answer")
        link = self._links.get(asking.broker)
        if link is not None and link.asks and not link.established:
            self._give_up(link, Refusal(LATER, f"{asking.broker} did not answer in time."))

    def hurry(self) -> None:
        """Somebody else would take us: who has not answered at all for a while can wait."""
        asking = self.asking
        if asking is not None and not asking.broker and self._now() - asking.since > _PATIENCE:
            self.asking = None

    def _no_answer(self, asking: Asking, reason: str, why: str) -> None:
        self.asking = None
        self.refused[why] += 1
        known = asking.known
        name = asking.broker or known.broker or known.address
        self._effects().append(OverlayEvent(NOT_REACHED, name, why, reason))
        known.failures += 1
        source = known.source
        self._in_vain[source] += 1
        if source and self._in_vain[source] == MOST_UNREACHED:
            waiting = [*self._detours, *self._candidates]
            put_off = [one for one in waiting if one.source == source]
            self._detours.clear()
            self._candidates = deque([one for one in waiting if one not in put_off] + put_off)
