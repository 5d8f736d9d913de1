"""`MeshOverlay`: brokers that keep themselves connected as a general graph, each with some neighbours.

Every broker knows the whole graph (`routing.graph`): who is there, and how all are linked. So nobody has to ask
whether two parts are connected already, cycles are welcome, and most losses of a link part nobody. What has to
be found by each broker is whom to be linked with, and who is missing:

- *Near ones.* Whoever has fewer than `links` neighbours looks for the nearest ones it knows of: neighbours tell
  their neighbours, and how far these are. Once it has as many, it tries those that must be nearer than one it
  has, and drops the longest for them.
- *A far one.* The longest link is kept, so that the graph does not fall into clumps: it mostly leads to where
  a broker has joined.
- *Those who are missing.* A broker whose last state is known, and that cannot be reached, is looked for by one
  of those who know where it is: the first by name of its former neighbours, or else of theirs, or else of all.

Invariants:

1. Who has enough neighbours asks nobody but those who are missing, and those who are surely nearer.
2. Nobody is dropped unless it keeps `links` neighbours, and all stay connected, as far as is known. Two links
   that are dropped at the same moment may part the graph nevertheless; then who is missing is looked for.
3. Who has twice as many neighbours as it should refuses more, unless it is told that nobody else accepts.
4. What others tell of addresses and distances is a hint, as in a tree; nobody is told faster than at a pace.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any
from zlib import crc32

from palio.protocol.overlay import Contact, Nearby, Standing
from palio.protocol.peers import Goodbye, Hello, LinkKind
from palio.routing.effects import SetTimer
from palio.routing.graph import NetworkGraph
from palio.routing.links import NeighbourLink
from palio.routing.occurrences import LinkDown, NotReached, Resolved
from palio.routing.overlay.beside import Beside, OverlayLink
from palio.routing.overlay.contacts import MET, PARENT, SIBLING, KnownBroker
from palio.routing.overlay.effects import DAMPED, REPAIR_BEGUN, REPAIR_DONE, REPLACED, OverlayEvent
from palio.routing.overlay.look import Look, OverlayShell
from palio.routing.overlay.manager import (
    FIRST_PAUSE,
    FULL,
    GROWTH,
    LATER,
    MOST_BEYOND,
    REMOVED,
    SEEKS_FOR,
    TERMS,
    TIMER,
    OverlayStatistics,
    Refusal,
    ended_how,
)
from palio.routing.overlay.names import book_and_names
from palio.routing.overlay.settings import SPARE

# How long news of others' links are waited for before this broker thinks about who is missing, in seconds; and
# how long after a link is made it looks for the next, as its neighbour tells of others (guesses).
THINKS_AFTER = 1.0
NEXT_AFTER = 0.25
# Another one is tried if its link must be shorter by this factor (a guess: less is not worth the change).
NEARER = 0.8


class MeshOverlay:
    """The overlay of one broker."""

    repairs = True

    def __init__(self, around: OverlayShell, graph: NetworkGraph) -> None:
        self._broker = around.broker
        self._settings = around.settings
        self._effects = around.effects
        self._now = around.now
        self._all_links = around.links
        self._give_up = around.give_up
        self._graph = graph
        self._address = ""  # where others can reach this broker
        self._book, self._names = book_and_names(around)
        self._beside = Beside(self._book, around.effects, around.now)
        self._links = self._beside.links
        self._look = Look(around, self._book, LinkKind.GRAPH, self._is_wanted)
        self._begun = False
        self._has_news = False  # for neighbours: who is beside us has changed
        self._first_look = True  # whoever is to be joined has not been asked yet
        self._pause = FIRST_PAUSE
        self._look_at: float | None = None
        self._think_at: float | None = None
        self._timer_at: float | None = None
        self._seeks_until: float | None = None
        self._lacking_since: float | None = None
        self._repairing: tuple[str, str] | None = None  # whom we have lost, and how
        self._counts: Counter[str] = Counter()
        self._repair_seconds = 0.0

    # What is known of the graph

    def _reached(self) -> set[str]:
        """All brokers of our part."""
        return {self._broker, *self._graph.branches(self._broker)}

    def _degree(self, broker: str) -> int:
        state = self._graph.states.get(broker)
        return 0 if state is None else len(state.links)

    def _former(self, brokers: Iterable[str]) -> set[str]:
        """The neighbours that some brokers had when they were last heard of."""
        states = self._graph.states
        return {name for broker in brokers if broker in states for name, _ in states[broker].links}

    def _looks_for(self, known: KnownBroker, reached: set[str]) -> bool:
        """Whether it is this broker that looks for somebody who is missing."""
        if self._first_look:
            return True
        near = self._former([known.broker])
        for some in (near & reached, self._former(near) & reached):
            if some:
                return self._broker == min(some)
        return self._broker == min(reached)

    def _is_lacking(self) -> bool:
        return len(self._links) < self._settings.links

    def _estimated(self, known: KnownBroker) -> float:
        """How far a broker is at the most: as measured, or by way of who has told of it."""
        teller = self._links.get(known.told_by)
        return known.distance if teller is None else teller.distance + known.distance

    def _nearer(self, known: KnownBroker) -> bool:
        """Whether a broker is surely nearer than one of the near neighbours, so that it is worth a change."""
        is_measured = known.distance > 0 and (known.sure or known.told_by in self._links)
        if len(self._links) != self._settings.links or not is_measured:
            return False
        worst = self._droppable()
        return worst is not None and self._estimated(known) < NEARER * self._links[worst].distance

    def _is_wanted(self, known: KnownBroker) -> bool:
        if known.broker in self._links or known.broker == self._broker or self._book.is_barred(known):
            return False
        reached = self._reached()
        if known.broker not in reached:
            return self._looks_for(known, reached)
        return self._is_lacking() or self._nearer(known)

    # Hellos

    def standing(self, link: NeighbourLink) -> Standing | None:
        if link.kind is not LinkKind.GRAPH:
            return None
        asking = self._look.asking
        if asking is None or not self._look.is_asking(link):
            return Standing(self._address, network=self._settings.name)
        return Standing(
            self._address,
            asks=True,
            insists=asking.insists,
            distance=asking.distance,
            network=self._settings.name,
        )

    def objection(self, link: NeighbourLink, hello: Hello) -> Refusal | None:
        ours, theirs, standing = self._broker, link.broker, hello.standing
        if standing is None:
            return None
        if link.kind is not LinkKind.GRAPH:
            return Refusal(TERMS, f"{ours} keeps a mesh, {theirs} does not; give both the same overlay.")
        if (refusal := self._beside.stranger(ours, link, standing, self._settings.name)) is not None:
            return refusal
        if link.asks:
            wanted = self._look.asking is not None and self._is_wanted(self._look.asking.known)
            return None if wanted else Refusal(LATER, f"{ours} does not need this link any more.")
        if not standing.asks:
            return None
        self._beside.contact_of(link, standing)
        most = (MOST_BEYOND if standing.insists else SPARE) * self._settings.links
        if len(self._links) >= most:
            reason = f"{ours} has {len(self._links)} neighbours, as many as it should have."
            return Refusal(FULL, reason, self._beside.contacts(but=theirs))
        return None

    def adopts(self, link: NeighbourLink, hello: Hello) -> bool | None:
        return None

    # Links

    def dialled(self, link: NeighbourLink, address: str) -> bool:
        return self._look.dialled(link, address)

    def gained(self, link: NeighbourLink, hello: Hello) -> None:
        standing, now = hello.standing, self._now()
        if link.kind is not LinkKind.GRAPH:
            return
        known = self._beside.add(link, standing)
        self._has_news = True
        if len(self._links) > SPARE * self._settings.links:
            self._counts["beyond"] += 1
        if (asking := self._look.granted(link)) is not None:
            known.distance = asking.distance
            known.address = known.address or asking.known.address
            self._counts["linked"] += 1
            self._look.end()
            self._pause = FIRST_PAUSE
            self._look_at = now + NEXT_AFTER
        elif standing is not None:
            self._counts["taken"] += standing.asks
        if self._repairing is not None and self._lacking_since is not None:
            former, how = self._repairing
            seconds = now - self._lacking_since
            self._tell(OverlayEvent(REPLACED, link.broker, how, seconds=seconds, former=former))
        self._seeks_until = None
        self._think_at = now

    def refused(self, link: NeighbourLink, goodbye: Goodbye) -> None:
        self._look.refuse(link, goodbye)

    def lost(self, link: NeighbourLink, message: LinkDown | Goodbye | None) -> None:
        now = self._now()
        self._look.lost(link)
        former = self._links.pop(link.broker, None)
        if former is None:
            return
        self._has_news = True
        self._counts["lost"] += 1
        how = ended_how(message)
        if how == REMOVED:
            self._book.bar(link.broker)
        if how in ("lost", "silent"):
            if self._book.struck(link.broker, now - former.since, now):
                self._counts["damped"] += 1
                self._tell(OverlayEvent(DAMPED, link.broker))
            self._prefer_those_beside(link.broker, former, silent=how == "silent")
        if self._is_lacking() and self._repairing is None:
            self._repairing = link.broker, how
            self._lacking_since = now
            self._tell(OverlayEvent(REPAIR_BEGUN, link.broker, how))
        self._book.untold(link.broker)
        self._pause = FIRST_PAUSE
        self._think_at = self._look_at = now
        if not self._links:
            self._seeks_until = now + SEEKS_FOR * self._settings.ask_within

    def _prefer_those_beside(self, broker: str, former: OverlayLink, *, silent: bool) -> None:
        """Whoever was linked by a lost neighbour looks for the others; it itself may be there still."""
        self._book.begin_anew()
        for known in [one for contact in former.contacts for one in self._book.of(contact.broker)]:
            known.place = SIBLING
        for known in self._book.of(broker):
            known.place = MET if silent else PARENT
            known.failures += silent

    def closed_a_loop(self, link: NeighbourLink) -> None:
        pass  # they are welcome

    def bar(self, broker: str) -> None:
        self._book.bar(broker)

    def _droppable(self) -> str | None:
        """The longest link but one that can go: both ends keep enough neighbours, and all stay connected."""
        by_length = sorted(self._links, key=lambda name: (-self._links[name].distance, name))
        for name in by_length[1:]:
            if self._degree(name) > self._settings.links and self._is_connected_without(name):
                return name
        return None

    def _is_connected_without(self, neighbour: str) -> bool:
        """Whether a neighbour can be reached another way."""
        seen, left = {self._broker}, [name for name in self._links if name != neighbour]
        states = self._graph.states
        while left:
            name = left.pop()
            if name == neighbour:
                return True
            if name not in seen and name in states:
                seen.add(name)
                left += [other for other, _ in states[name].links if other not in seen]
        return False

    def _drop_if_too_many(self) -> None:
        """Give up the least useful link, if there are too many, or a nearer one was found for it."""
        improved = len(self._links) == self._settings.links + 1 and self._counts["nearer"]
        if len(self._links) <= SPARE * self._settings.links and not improved:
            return
        self._counts["nearer"] = 0
        name = self._droppable()
        if name is not None:
            self._counts["dropped"] += 1
            reason = f"{self._broker} has enough neighbours that are nearer than {name}."
            self._give_up(self._all_links[name], Refusal(FULL, reason, self._beside.contacts(but=name)))

    # What neighbours tell

    def hear(self, neighbour: str, message: Any) -> None:
        link = self._links.get(neighbour)
        if link is None:
            return
        if type(message) is Nearby:
            self._beside.hear(neighbour, message)
            if self._look_at is None:
                self._think_soon()

    def heard_of_links(self) -> None:
        """Somebody's links have changed."""
        self._think_soon()

    def _think_soon(self) -> None:
        if self._think_at is None:
            self._think_at = self._now() + THINKS_AFTER

    def not_reached(self, message: NotReached) -> None:
        self._look.not_reached(message)
        if message.is_own:
            self._book.own(message.address)

    def resolved(self, message: Resolved) -> None:
        is_new = self._names.resolved(message)
        if is_new or (self._look_at is None and not self._links):
            self._look_at = self._now()

    # Looking

    def begin(self, address: str, met: Sequence[Contact]) -> None:
        now = self._now()
        self._address = self._settings.address or address
        self._book.begin(self._address, met, self._now())
        self._begun = True
        self._names.begin_anew()
        self._look_at = self._lacking_since = now
        self._seeks_until = now + SEEKS_FOR * self._settings.ask_within

    def on_timer(self) -> None:
        now = self._now()
        self._timer_at = None
        if self._seeks_until is not None and now >= self._seeks_until:
            self._seeks_until = None
        self._look.on_timer()

    def settle(self) -> None:
        if not self._begun:
            return
        now = self._now()
        if self._think_at is not None and now >= self._think_at:
            self._think_at = None
            self._drop_if_too_many()
            self._look_names_up()
            if self._look_at is None and self._candidates():
                self._look_at = now
        self._names.look()
        if self._look.asking is None and self._look_at is not None and now >= self._look_at:
            self._ask_somebody()
        self._note_repairs()
        owed_at = self._beside.owed_at
        if self._has_news or (owed_at is not None and now >= owed_at):
            self._has_news = False
            self._beside.tell(lambda name: Nearby(self._beside.contacts(but=name)))
        self._set_timer()

    def _look_names_up(self) -> None:
        """One broker of each part goes on with that: the first by name."""
        if self._links and self._broker != min(self._reached()):
            self._names.rest()
        elif self._names.due is None:
            self._names.begin_anew()

    def _note_repairs(self) -> None:
        """There are neighbours enough, or nobody is left to ask."""
        if self._lacking_since is None or (self._is_lacking() and self._look_at is not None):
            return
        seconds = self._now() - self._lacking_since
        if self._repairing is not None:
            (former, _), self._repairing = self._repairing, None
            why = "nobody is left" if self._is_lacking() else ""
            self._tell(OverlayEvent(REPAIR_DONE, "", why, seconds=seconds, former=former))
        self._counts["repairs"] += 1
        self._repair_seconds += seconds
        self._lacking_since = None

    def _candidates(self) -> list[KnownBroker]:
        """Whom to ask: those who are missing, then the nearest."""
        reached = self._reached()
        found = [known for known in self._book.others(self._now()) if self._is_wanted(known)]
        missing = [known for known in found if known.broker not in reached]
        near = sorted(
            [known for known in found if known.broker in reached],
            key=lambda known: (known.last, known.failures, self._estimated(known)),
        )
        # Whoever has nobody takes anybody; others look for the missing first.
        return missing + near

    def _ask_somebody(self) -> None:
        if not self._look.is_on:
            self._look.begin(self._candidates())
        if self._look.go_on():
            asking = self._look.asking
            self._counts["nearer"] = int(asking is not None and self._nearer(asking.known))
            return
        self._first_look = False
        if not self._names.are_awaited:
            self._seeks_until = None
        if not self._candidates():
            self._look_at = None
            return
        chance = crc32(f"{self._broker} {self._look.asked}".encode()) / 2**32
        self._look_at = self._now() + self._pause * (0.75 + 0.5 * chance)
        self._pause = min(GROWTH * self._pause, self._settings.look_every)

    def _set_timer(self) -> None:
        due = self._look_at if self._look.asking is None else self._look.due
        for other in (self._beside.owed_at, self._seeks_until, self._think_at, self._names.due):
            if other is not None and (due is None or other < due):
                due = other
        if due is not None and due != self._timer_at:
            self._timer_at = due
            self._effects().append(SetTimer(TIMER, due))

    def is_seeking(self) -> bool:
        return self._seeks_until is not None

    def _tell(self, event: OverlayEvent) -> None:
        self._effects().append(event)

    def statistics(self) -> OverlayStatistics:
        counts, reached = self._counts, self._reached()
        return OverlayStatistics(
            "mesh",
            self._address,
            component=min(reached),
            size=len(reached),
            looking=self._look_at is not None or self._look.asking is not None,
            neighbours=self._beside.contacts(but=""),
            known=tuple(self._book.contacts()),
            asked=self._look.asked,
            taken=counts["taken"],
            linked=counts["linked"],
            lost=counts["lost"],
            given_up=counts["dropped"],
            damped=counts["damped"],
            beyond=counts["beyond"],
            refused=dict(self._look.refused),
            repairs=counts["repairs"],
            repair_seconds=self._repair_seconds,
        )
