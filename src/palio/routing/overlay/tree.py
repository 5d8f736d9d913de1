"""`TreeOverlay`: brokers that keep themselves connected as a tree (LSTree), whoever comes and goes.

The names by which an acyclic network notices cycles (`routing.links`) are a rooted tree already: who made the
name of a part is its root, the neighbour from which the name came is the parent, and the path by which it came
are the brokers in between. So one rule covers newcomers, those who have lost their parent, and partitions:
*who made the name of its own part looks for a link into another part.*

A look goes on like this, one broker at a time:

1. choose the nearest candidate: the parent of the lost parent, those beside, whoever was met, those to join;
2. `Dial` it, and say hello, with the name and the size of our own part;
3. it says hello, too, and the link is in use: we take its name, which goes down to all who were below us; or it
   refuses, with a reason (`REASONS`) and others that could be asked instead;
   who is told that we shall ask, while we join somebody else, is suggested to whom we join;
4. then the next one is asked; if all are full, they are asked once more, insisting;
5. if nobody is left, this broker stays the root of its part, and looks again after a pause that grows.

Invariants:

1. Only a root asks, and it takes the name of who is asked: a link never turns round, so each broker of the part
   that is joined hears one new name, from its parent.
2. A part asks larger ones only: who is asked by a larger part refuses, and its own root asks instead. So few
   have to hear a new name. Of two parts that ask each other at the same moment only one is taken, as far as
   they know how large they are; where they do not, a loop closes, and `links` gives up one of its links.
3. Nobody is asked who is in our own part as far as is known; once all who are known are there, a root is
   silent.
4. Who takes a broker beyond its `degree` was told that nobody else would; a root may find a parent beyond it.
5. Only those who have said a `Standing` are told anything that brokers without an overlay do not know.
6. Whatever others tell is bounded, and is a hint: wrong sizes, addresses and suggestions cost attempts. A look
   has an end, and whoever has told of some who cannot be reached does not keep others from being asked.
7. However fast neighbours change what they tell, others are told at a pace.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any
from zlib import crc32

import msgspec

from palio.protocol.overlay import MOST_CONTACTS, Contact, Nearby, Standing, Suggest
from palio.protocol.peers import Component, Goodbye, Hello, LinkKind
from palio.routing.effects import Send, SetTimer
from palio.routing.links import Naming, NeighbourLink
from palio.routing.occurrences import LinkDown, NotReached, Resolved
from palio.routing.overlay.beside import NEWS_AT_ONCE, NEWS_EVERY, Beside
from palio.routing.overlay.contacts import GRANDPARENT, MET, PARENT, SIBLING, KnownBroker
from palio.routing.overlay.effects import (
    DAMPED,
    GIVEN_UP,
    REPAIR_BEGUN,
    REPAIR_DONE,
    REPLACED,
    OverlayEvent,
)
from palio.routing.overlay.look import Look, OverlayShell
from palio.routing.overlay.manager import (
    CYCLE,
    FIRST_PAUSE,
    FULL,
    GROWTH,
    LATER,
    MOST_BEYOND,
    REMOVED,
    SEEKS_FOR,
    SMALLER,
    TERMS,
    TIMER,
    OverlayStatistics,
    Refusal,
    ended_how,
)
from palio.routing.overlay.names import book_and_names
from palio.routing.pace import Pace

# No part counts as larger: far more than there will be, and far less than a number on the wire may be.
MOST_BROKERS = 2**31
# So often our part may be doubted at once, and then once in each `look_every` (a guess).
MOST_DOUBTS = 4
# How long a name may be the one of before, because the newer one is still on its way (a guess).
STALE_FOR = 5.0
# How long the root of a smaller part has to ask for a link, before it is asked nevertheless (measured: `palio
# chaos --faults kill`; with 2 seconds one dead root of four was replaced only after 2.4, others after 0.4).
SUGGESTED_WITHIN = 1.0
# Others are told how large a part is when it has grown or shrunk by this factor (a guess).
_NOTABLE = 2.0


class TreeOverlay:
    """The overlay of one broker."""

    repairs = True

    def __init__(self, around: OverlayShell, naming: Naming) -> None:
        self._broker = around.broker
        self._settings = around.settings
        self._effects = around.effects
        self._now = around.now
        self._naming = naming
        self._address = ""  # where others can reach this broker
        self._book, self._names = book_and_names(around)
        self._beside = Beside(self._book, around.effects, around.now)
        self._links = self._beside.links
        self._look = Look(around, self._book, LinkKind.PEER, self._is_wanted)
        self._waits_for: KnownBroker | None = None  # whose root shall ask us
        self._promised: dict[str, Contact] = {}  # who was told that we ask, and was not asked yet
        self._suggestions = Pace(NEWS_AT_ONCE, NEWS_EVERY)  # of brokers that ask
        self._doubts = Pace(MOST_DOUBTS, around.settings.look_every)
        self._stale: tuple[Component, dict[str, float]] = naming.component, {}  # who was above us, since when
        self._pause = FIRST_PAUSE
        self._look_at: float | None = None
        self._timer_at: float | None = None
        self._named: Component | None = None  # the name that was ours when it was last looked at
        self._size = 1  # of the part, as told from above, or to those below
        self._alone_since: float | None = None
        self._repairing: tuple[str, str] | None = None  # the parent that was lost, and how
        self._found_by = ""  # who has just asked for a link, and got it
        self._seeks_until: float | None = None  # we are a root, and the first look is not over
        self._begun = False
        self._counts: Counter[str] = Counter()
        self._repair_seconds = 0.0

    # What is known of the tree

    @property
    def _is_root(self) -> bool:
        return self._naming.toward is None

    def _below(self) -> int:
        """How many brokers are on this side of the link to the parent."""
        below = [link.size for name, link in self._links.items() if name != self._naming.toward]
        return min(1 + sum(below), MOST_BROKERS)

    def _part_size(self) -> int:
        return self._below() if self._is_root else max(self._size, self._below())

    # Hellos

    def standing(self, link: NeighbourLink) -> Standing | None:
        if link.kind is not LinkKind.PEER:
            return None
        asking, asks = self._look.asking, self._look.is_asking(link)
        ours = Standing(self._address, self._part_size(), network=self._settings.name)
        if not asks or asking is None:
            return ours
        return msgspec.structs.replace(ours, asks=asks, insists=asking.insists, distance=asking.distance)

    def objection(self, link: NeighbourLink, hello: Hello) -> Refusal | None:
        ours, theirs = self._broker, link.broker
        if hello.standing is not None:
            if link.kind is not LinkKind.PEER:
                return Refusal(TERMS, f"{ours} keeps a tree, {theirs} does not; give both the same overlay.")
            refusal = self._beside.stranger(ours, link, hello.standing, self._settings.name)
            if refusal is not None:
                return refusal
        if link.asks and (link.told is None or self._naming.component != link.told[0] or not self._is_root):
            return Refusal(LATER, f"{ours} does not need this link any more.")
        standing = hello.standing
        if standing is None or not standing.asks or link.asks:
            return None
        if self._was_above(theirs):
            return Refusal(LATER, f"{ours} was below {theirs} a moment ago.")
        contact = self._beside.contact_of(link, standing)
        if standing.insists and len(self._links) < MOST_BEYOND * self._settings.degree:
            return None
        if not standing.insists and self._is_smaller(standing, hello.component):
            if self._suggestions.takes(self._now()):
                self._suggest(contact)
            return Refusal(SMALLER, f"{ours} is in a smaller part of the network, which is going to ask.")
        if len(self._links) >= self._settings.degree:
            reason = f"{ours} has {len(self._links)} neighbours, as many as it should have."
            return Refusal(FULL, reason, self._beside.contacts(but=theirs))
        return None

    def _was_above(self, broker: str) -> bool:
        """Whether who asks may still be above us, as our name is not the newest; that does not last."""
        if broker not in self._naming.path:
            return False
        if self._stale[0] != self._naming.component:
            self._stale = self._naming.component, {}
        return self._now() < self._stale[1].setdefault(broker, self._now()) + STALE_FOR

    def _is_smaller(self, standing: Standing, component: Component) -> bool:
        """Whether we shall ask who asks us. Among equals names decide, unless there is nothing to lose."""
        size = self._part_size()
        if standing.size != size:
            return standing.size > size
        return component > self._naming.component and (not self._is_root or self._look.asking is not None)

    def adopts(self, link: NeighbourLink, hello: Hello) -> bool | None:
        standing = hello.standing
        if standing is None:
            return None
        if link.asks != standing.asks:
            return link.asks
        return None

    # Links

    def gained(self, link: NeighbourLink, hello: Hello) -> None:
        standing, now = hello.standing, self._now()
        if link.kind is not LinkKind.PEER:
            return
        known = self._beside.add(link, standing)
        if standing is not None:
            known.size = _counted(standing.size)
            if link.broker == self._naming.toward:
                self._size = min(known.size + self._below(), MOST_BROKERS)
            if standing.asks and not link.asks:
                self._waits_for = None  # perhaps it was this one's part; otherwise there will be another look
                self._counts["taken"] += 1
                self._found_by = link.broker
        if len(self._links) > self._settings.degree:
            self._counts["beyond"] += 1
        if (asking := self._look.granted(link)) is not None:
            known.distance = asking.distance
            known.address = known.address or asking.known.address
            self._counts["linked"] += 1
            self._repair_seconds += now - self._alone_since if self._alone_since is not None else 0.0
            self._hand_on_promises(link.broker)
            self._end_look()

    def refused(self, link: NeighbourLink, goodbye: Goodbye) -> None:
        refused = self._look.refuse(link, goodbye)
        if refused is None:
            return
        if refused.why == CYCLE:
            refused.known.in_part = True
        elif refused.why == SMALLER and not refused.insisted and not self._look.has_detours:
            self._waits_for = refused.known
            self._look_at = self._now() + SUGGESTED_WITHIN

    def lost(self, link: NeighbourLink, message: LinkDown | Goodbye | None) -> None:
        now = self._now()
        self._look.lost(link)
        former = self._links.pop(link.broker, None)
        if former is None:
            return
        self._counts["lost"] += 1
        how = ended_how(message)
        if self._book.struck(link.broker, now - former.since, now):
            self._counts["damped"] += 1
            self._tell(OverlayEvent(DAMPED, link.broker))
        self._book.untold(link.broker)
        if how == REMOVED:
            self._book.bar(link.broker)
        if self._is_root and self._naming.component != self._named:  # it was the parent
            self._become_root()
            self._repairing = link.broker, how
            self._tell(OverlayEvent(REPAIR_BEGUN, link.broker, how))
            beside = {contact.broker: contact for contact in former.contacts}
            for known in [one for name in beside for one in self._book.of(name)]:
                known.place = GRANDPARENT if known.broker == former.parent else SIBLING
            for known in self._book.of(link.broker):
                likely_there = how in ("lost", "given up")
                known.place = PARENT if likely_there else MET
                known.failures += not likely_there
        elif self._is_root:
            self._shrunk()

    def _become_root(self) -> None:
        self._named = self._naming.component
        self._book.begin_anew()
        self._end_look()
        self._alone_since = self._now()
        self._pause = FIRST_PAUSE
        self._look_at = self._now()
        self._seeks_until = self._now() + SEEKS_FOR * self._settings.ask_within
        self._names.begin_anew()

    def _shrunk(self) -> None:
        """Our part is smaller: who is missing looks for us, and after a while we for them."""
        self._book.doubt()
        if self._look_at is None:
            self._look_at = max(self._now() + self._settings.ask_within, self._doubts.next)
            self._doubts.takes(self._look_at)

    def closed_a_loop(self, link: NeighbourLink) -> None:
        self._counts["given up"] += 1
        self._tell(OverlayEvent(GIVEN_UP, link.broker, CYCLE))

    def bar(self, broker: str) -> None:
        self._book.bar(broker)

    # What neighbours tell

    def hear(self, neighbour: str, message: Any) -> None:
        link = self._links.get(neighbour)
        if link is None:
            return
        if type(message) is Suggest:
            if link.suggestions.takes(self._now()):
                self._suggest(message.contact, neighbour)
            return
        assert type(message) is Nearby
        shrunk = message.size < link.size and neighbour != self._naming.toward
        link.size = _counted(message.size)
        self._beside.hear(neighbour, message)
        if neighbour == self._naming.toward:
            self._size = link.size
        elif shrunk and self._is_root:
            self._shrunk()

    def _suggest(self, contact: Contact | None, source: str = "") -> None:
        """The root of our part may ask this broker, says a neighbour, or the broker itself."""
        if contact is None:
            return
        toward = self._naming.toward
        if toward is not None:
            knows = toward in self._links and self._links[toward].knows
            if knows and toward not in (contact.broker, source):
                self._effects().append(Send(toward, Suggest(contact)))
            return
        known = self._book.meet(
            contact.broker, contact.address, self._now(), source=source, distance=contact.distance
        )
        if known is None:
            return
        if len(self._promised) < MOST_CONTACTS:
            self._promised[contact.broker] = contact
        if self._now() < known.asked + SUGGESTED_WITHIN:
            return  # it has just been asked, and who suggests it knows less
        known.in_part = False
        self._look.hurry()
        if self._waits_for is not None:  # we are the smaller part now
            self._look.add(self._waits_for)
            self._waits_for = None
        asking = self._look.asking
        if asking is None or asking.known is not known:
            self._look.put_first(known)
        self._look_at = self._now()

    def heard_of_links(self) -> None:
        pass

    def _hand_on_promises(self, parent: str) -> None:
        """Those who wait for us to ask them have the root of the part to wait for that we have joined."""
        for contact in self._promised.values():
            if contact.broker not in self._links and self._links[parent].knows:
                self._effects().append(Send(parent, Suggest(contact)))

    # Looking

    def not_reached(self, message: NotReached) -> None:
        self._look.not_reached(message)
        if message.is_own:
            self._book.own(message.address)

    def resolved(self, message: Resolved) -> None:
        is_new = self._names.resolved(message)
        if not self._is_root:
            return
        if is_new or self._look_at is None:
            self._look_at = self._now()
        elif not (self._names.are_awaited or self._look.is_on):
            self._seeks_until = None

    def dialled(self, link: NeighbourLink, address: str) -> bool:
        return self._look.dialled(link, address)

    def begin(self, address: str, met: Sequence[Contact]) -> None:
        self._address = self._settings.address or address
        self._book.begin(self._address, met, self._now())
        self._begun = True
        self._become_root()

    def on_timer(self) -> None:
        now = self._now()
        self._timer_at = None
        if self._seeks_until is not None and now >= self._seeks_until:
            self._seeks_until = None
        self._look.on_timer()

    def settle(self) -> None:
        if not self._begun:
            return
        if not self._is_root:
            self._stop_looking()
        else:
            if self._naming.component != self._named:
                self._become_root()
            if self._found_by:  # another part, before we had found it
                self._tell_of_repair(self._found_by)
            self._names.look()
            self._ask_somebody()
        self._found_by = ""
        self._tell_neighbours()
        self._set_timer()

    def _stop_looking(self) -> None:
        self._named = self._look_at = self._seeks_until = None
        self._names.rest()
        if self._look.asking is None and self._alone_since is not None:
            self._counts["repairs"] += 1
            self._tell_of_repair(self._naming.toward or "")
            self._alone_since = None
        self._end_look()

    def _tell_of_repair(self, by: str) -> None:
        """There is a parent again, or a link to another part; or nobody is left to ask."""
        if self._repairing is None or self._alone_since is None:
            return
        (former, how), self._repairing = self._repairing, None
        seconds = self._now() - self._alone_since
        if by:
            self._tell(OverlayEvent(REPLACED, by, how, seconds=seconds, former=former))
        why = "" if by else "nobody is left"
        self._tell(OverlayEvent(REPAIR_DONE, by, why, seconds=seconds, former=former))

    def _end_look(self) -> None:
        self._look.end()
        self._waits_for = None
        self._promised.clear()

    def _ask_somebody(self) -> None:
        """Ask the next candidate, if it is time and nobody is being asked."""
        now = self._now()
        if self._look.asking is not None or self._look_at is None or now < self._look_at:
            return
        self._look_at = now
        if self._waits_for is not None:  # its root did not ask us in time
            known, self._waits_for = self._waits_for, None
            if known.broker not in self._links:
                self._look.ask(known, insists=True)
                return
        if not self._look.is_on:
            self._look.begin(self._book.candidates(self._links, now))
        if not self._look.go_on():
            self._look_later()

    def _is_wanted(self, known: KnownBroker) -> bool:
        inside = known.in_part or known.broker in self._links or known.broker == self._broker
        return not inside and not self._book.is_barred(known)

    def _look_later(self) -> None:
        """Look again after a pause, if there is anybody who may be in another part."""
        is_over = not self._names.are_awaited
        self._seeks_until = None if is_over else self._seeks_until
        if not self._book.candidates(self._links, self._now()):
            self._look_at = None
            if not is_over:
                return
            self._tell_of_repair("")
            self._alone_since = None
            return
        # Not all at the same moment: those who have lost each other shall not miss each other again and again.
        chance = crc32(f"{self._broker} {self._look.asked}".encode()) / 2**32
        self._look_at = self._now() + self._pause * (0.75 + 0.5 * chance)
        self._pause = min(GROWTH * self._pause, self._settings.look_every)

    def _set_timer(self) -> None:
        due = self._look_at
        if self._look.asking is not None:
            due = self._look.due
        for other in (self._beside.owed_at, self._seeks_until, self._names.due):
            if other is not None and (due is None or other < due):
                due = other
        if due is not None and due != self._timer_at:
            self._timer_at = due
            self._effects().append(SetTimer(TIMER, due))

    # Telling

    def _tell(self, event: OverlayEvent) -> None:
        self._effects().append(event)

    def _tell_neighbours(self) -> None:
        toward, below = self._naming.toward, self._below()
        if self._is_root:
            if not self._size / _NOTABLE < below < self._size * _NOTABLE:
                self._size = below
        contacts = self._beside.contacts

        def news_for(name: str) -> Nearby:
            return Nearby(contacts(but=name), toward or "", below if name == toward else self._size)

        self._beside.tell(news_for)

    def is_seeking(self) -> bool:
        return self._seeks_until is not None

    def statistics(self) -> OverlayStatistics:
        counts = self._counts
        return OverlayStatistics(
            "tree",
            self._address,
            self._naming.component.broker,
            self._naming.toward or "",
            self._naming.path,
            self._part_size(),
            self._look_at is not None or self._look.asking is not None,
            self._beside.contacts(but=""),
            tuple(self._book.contacts()),
            self._look.asked,
            counts["taken"],
            counts["linked"],
            counts["lost"],
            counts["given up"],
            counts["damped"],
            counts["beyond"],
            dict(self._look.refused),
            counts["repairs"],
            self._repair_seconds,
        )


def _counted(size: int) -> int:
    """A number of brokers that somebody has told, as far as it can be."""
    return min(max(1, size), MOST_BROKERS)
