"""`ContactBook`: brokers that this one could ask for a link, and which of them first.

1. Only addresses of machines, in networks that are allowed, come in from others; what an operator says comes
   in as it is.
2. The book is bounded. Who has told of most loses first, the oldest of them: so nobody's news go because
   somebody else tells much.
3. Who was found to be in our own part need not be asked again until our part has changed (`in_part`).
4. Who was not reached comes behind who was not tried as often, so that all have their turn; who has refused for
   good, or cannot be relied on, comes last. Nobody is never asked, but whose link an operator has removed.
5. What a broker says of itself counts for more than what others say of it: they cannot rename it.
6. Where this broker is reached by TLS, nobody is dialled without it because somebody has told so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import log2
from zlib import crc32

import msgspec

from palio.protocol.addresses import is_protected
from palio.protocol.overlay import Contact
from palio.routing.overlay.settings import Passable, normal

# How many brokers are remembered beside those to join (a guess).
MOST_KNOWN = 64
# How many brokers are remembered whose links were removed by hand (a guess: more than anybody does by hand).
MOST_BARRED = 1_024
# A broker that nobody has heard of for so long is forgotten, in seconds (a guess: a day).
FORGET_AFTER = 86_400.0
# A link that was lost sooner counts against its broker; so many times, and it comes last for a while (guesses).
STEADY = 10.0
MOST_STRIKES = 3
DAMPED_FOR = 60.0
# Distances closer than this count as equal, in seconds: within one machine room.
_NEAR = 0.001

# How near the tree says that a broker is: who was the parent, its parent, its other neighbours, and anybody.
PARENT, GRANDPARENT, SIBLING, MET = range(4)


class KnownBroker(msgspec.Struct, eq=False):
    """A broker that could be asked."""

    address: str
    broker: str = ""
    place: int = MET
    to_join: bool = False  # said by an operator: it is never forgotten
    led_by: str = ""  # the name to join that leads to it
    distance: float = 0.0
    source: str = ""  # who has told of it first; nobody if it was itself
    sure: bool = False  # it has said its name itself
    told_by: str = ""  # the neighbour that has told of it last
    heard: float = 0.0
    in_part: bool = False
    last: bool = False  # only if nobody else is left
    asked: float = float("-inf")  # when
    failures: int = 0  # to reach it, since it was last heard of
    strikes: int = 0
    damped_until: float = 0.0


class ContactBook:
    """Contacts by address. `own` is the broker whose book it is."""

    def __init__(self, own: str, join: Iterable[str], passable: Passable) -> None:
        self._own = own
        self._passable = passable
        self._known = {address: KnownBroker(address, to_join=True) for address in map(normal, join)}
        self._own_address = ""
        self._also_own: set[str] = set()  # at which this broker has found itself
        self._barred: dict[str, None] = {}  # brokers

    def begin(self, address: str, met: Iterable[Contact] = (), now: float = 0.0) -> None:
        """This is where others reach this broker: it asks nobody there. These it has met in a former life."""
        self._own_address = normal(address)
        self._known.pop(self._own_address, None)
        for contact in met:
            self.meet(contact.broker, contact.address, now, distance=contact.distance)

    def meet(
        self,
        broker: str,
        address: str,
        now: float,
        *,
        told_by: str = "",
        source: str = "",
        distance: float = 0.0,
    ) -> KnownBroker | None:
        """Somebody has told of a broker, and says `told_by` that it is beside it, or the broker itself.

        Returns the broker, unless its address cannot be used.
        """
        if broker == self._own or not self._passable(address):
            return None
        address = normal(address)
        if address == self._own_address or (is_protected(self._own_address) and not is_protected(address)):
            return None
        known = self._known.get(address)
        if known is None:
            self._make_room(now)
            known = self._known[address] = KnownBroker(address, broker, source=source or told_by)
            if told_by == broker:
                known.source = ""
        if told_by == broker or not known.sure or known.broker == broker:
            known.broker, known.told_by = broker, told_by
            known.sure = known.sure or told_by == broker
        known.heard, known.failures = now, 0
        if distance and (told_by == broker or not known.distance):
            known.distance = distance
        return known

    def own(self, address: str) -> None:
        """This broker has found itself at this address."""
        if len(self._also_own) < MOST_KNOWN:
            self._also_own.add(normal(address))
        self._known.pop(normal(address), None)

    def lead(self, name: str, addresses: Iterable[str]) -> bool:
        """A name to join leads to these addresses, and to no others. Returns whether one was not known."""
        found = [one for one in dict.fromkeys(map(normal, addresses)) if one not in self._also_own]
        found = [one for one in found if one != self._own_address][:MOST_KNOWN]
        for known in list(self._known.values()):
            if known.led_by == name and known.address not in found:
                del self._known[known.address]
        new = [one for one in found if one not in self._known]
        self._known |= {one: KnownBroker(one, to_join=True, led_by=name) for one in new}
        return bool(new)

    def bar(self, broker: str) -> None:
        """Do not ask this broker any more: an operator, here or there, has removed the link."""
        self._barred[broker] = None
        if len(self._barred) > MOST_BARRED:
            del self._barred[next(iter(self._barred))]

    def unbar(self, broker: str) -> None:
        """There is a link again."""
        self._barred.pop(broker, None)

    def is_barred(self, known: KnownBroker) -> bool:
        """Whether an operator does not want it to be asked."""
        return known.broker in self._barred

    def untold(self, neighbour: str, but: Iterable[Contact] = ()) -> None:
        """A neighbour does not tell any more of whom it has told before, but for these."""
        still = {contact.address for contact in but}
        for known in self._known.values():
            if known.told_by == neighbour and known.address not in still:
                known.told_by = ""

    def of(self, broker: str) -> list[KnownBroker]:
        """The addresses at which a broker was met."""
        return [known for known in self._known.values() if known.broker == broker]

    def begin_anew(self) -> None:
        """Our part is another one: whoever was in it may not be any more, and what was far may be near."""
        for known in self._known.values():
            known.in_part = known.last = False
            known.place = MET

    def doubt(self) -> None:
        """Our part is smaller: whoever was in it may be in what is gone."""
        for known in self._known.values():
            known.in_part = False

    def struck(self, broker: str, lasted: float, now: float) -> bool:
        """A link to a broker was lost, after so many seconds. Returns whether it is damped by that."""
        damped = False
        for known in self.of(broker):
            known.strikes = known.strikes + 1 if lasted < STEADY else 0
            if known.strikes >= MOST_STRIKES:
                known.damped_until, known.strikes, damped = now + DAMPED_FOR, 0, True
        return damped

    def others(self, now: float) -> list[KnownBroker]:
        """All that may be asked, the nearest first, wherever they are."""
        found = [known for known in self._known.values() if not self.is_barred(known)]
        return sorted(found, key=lambda known: self._order(known, now))

    def candidates(self, neighbours: Iterable[str], now: float) -> list[KnownBroker]:
        """Whom to ask, the nearest first; nobody who is known to be in our part."""
        inside = set(neighbours)
        return [
            known
            for known in self.others(now)
            if not known.in_part and known.broker not in inside and known.told_by not in inside
        ]

    def _order(self, known: KnownBroker, now: float) -> tuple[bool, int, int, bool, int, int]:
        # Those who are equally near are asked in an order of our own: not everyone asks the same.
        away = round(log2(known.distance / _NEAR)) if known.distance > _NEAR else 0
        chance = crc32(f"{self._own} {known.broker or known.address}".encode())
        last = known.last or known.damped_until > now
        return last, known.failures, known.place, known.to_join, away, chance

    def _make_room(self, now: float) -> None:
        told = [known for known in self._known.values() if not known.to_join]
        for known in told:
            if now - known.heard > FORGET_AFTER:
                del self._known[known.address]
        if len(told) >= MOST_KNOWN:
            [(source, _)] = Counter([known.source for known in told]).most_common(1)
            theirs = [known for known in told if known.source == source]
            self._known.pop(min(theirs, key=lambda known: known.heard).address, None)

    def contacts(self) -> list[Contact]:
        """All of them, as they can be told."""
        return [Contact(known.broker, known.address, known.distance) for known in self._known.values()]
