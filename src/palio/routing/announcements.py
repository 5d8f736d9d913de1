"""Announcements: the brokers of a general graph flood their links (link state) and their interest to everyone.

To the tables of a broker the whole graph is one port. What they send on it is this broker's *interest*, for all
others; the rows that come on it belong each to one of the other brokers. So covering and merging work within
the interest of one broker, and it does not matter over which links it came: when links come and go, trees
change, interest does not.

An update of somebody's interest is passed on to all other neighbours when it is heard for the first time. As
every broker passes on each broker's updates in the order of their versions, and every link keeps order, they
are complete at every broker; a new neighbour gets the whole interest of everyone first.

Confirming (see `waves`) follows the flood: a broker answers the neighbour from which it first heard of an
update once all its other neighbours have answered it, or have sent it the same update, which says as much.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from palio.model.advertisement import Advertisement
from palio.model.filter import Filter
from palio.protocol.peers import Component, Interest, Known, LinkState, Update
from palio.routing.effects import Effect, Send
from palio.routing.graph import NetworkGraph
from palio.routing.links import NeighbourLink
from palio.routing.table import GRAPH, TableEntry
from palio.routing.tables import Side, Tables
from palio.routing.waves import Wave, Waves

# The incarnation of a broker is the upper part of its versions.
INCARNATION_BITS = 30  # versions have at most 62 bits on the wire


class Announced(msgspec.Struct, eq=False):
    """What is known of the interest of one other broker."""

    version: int = -1
    rows: dict[int, TableEntry[Filter]] = {}
    advertisements: dict[int, TableEntry[Advertisement]] = {}


class Announcements:
    """This broker's part in flooding link states and interest."""

    def __init__(
        self, broker: str, incarnation: int, tables: Tables, waves: Waves, links: dict[str, NeighbourLink]
    ) -> None:
        self._broker = broker
        self._tables = tables
        self._waves = waves
        self._links = links  # of the graph, established ones only
        self.graph = NetworkGraph(broker)
        self.known: dict[str, Announced] = {}
        self.first_version = incarnation << INCARNATION_BITS
        self._state_version = self.first_version
        # For each broker the updates that are being confirmed, by version: the wave (none for our own), and
        # the neighbours that have not answered.
        self._echoes: dict[str, dict[int, tuple[Wave | None, set[str]]]] = {}

    # Links

    def link_established(self, link: NeighbourLink, component: Component) -> list[Effect]:
        """Handles a new link of the graph: the neighbour is told everything, and everyone of the link."""
        name = link.broker
        states = [state for state in self.graph.states.values() if state.broker != self._broker]
        effects: list[Effect] = [Send(name, state) for state in states]
        effects += [Send(name, whole) for whole in self._whole_interests()]
        return effects + self.announce_links(component)

    def link_lost(self, broker: str, component: Component) -> list[Effect]:
        """Handles a lost link of the graph; nobody waits for an answer from there."""
        effects = self.announce_links(component)
        for name, echoes in list(self._echoes.items()):
            effects += self._answered(name, max(echoes), broker)
        return effects

    def announce_links(self, component: Component) -> list[Effect]:
        """Floods the state of this broker's links."""
        self._state_version += 1
        costs = tuple(sorted([(link.broker, link.cost) for link in self._links.values()]))
        state = LinkState(self._broker, self._state_version, costs, component)
        self.graph.learn(state)
        return [Send(name, state) for name in self._links]

    def hear_links(self, source: str, state: LinkState) -> list[Effect]:
        if state.broker == self._broker or not self.graph.learn(state):
            return []
        return [Send(name, state) for name in self._links if name != source]

    # Interest

    def announce(self, update: Update) -> list[Effect]:
        """Floods an update of this broker's own interest."""
        interest = Interest(self._broker, update)
        effects: list[Effect] = [Send(name, interest) for name in self._links]
        if update.confirm:
            self._echoes.setdefault(self._broker, {})[update.version] = None, set(self._links)
            effects += self._answered(self._broker, update.version, None)
        return effects

    def hear_interest(self, source: str, interest: Interest) -> list[Effect] | None:
        """Handles an `Interest` that a neighbour passes on. None if updates before it are missing."""
        update = interest.update
        answered = self._answered(interest.broker, update.version, source)
        if interest.broker == self._broker:
            return answered
        known = self.known.get(interest.broker)
        version = -1 if known is None else known.version
        if update.version <= version:
            return answered
        if not interest.whole and not _follows(update.version, version):
            return None
        if known is None:
            known = self.known[interest.broker] = Announced()
        elif version >> INCARNATION_BITS != update.version >> INCARNATION_BITS:
            self._forget(interest.broker, known)  # it began anew, and so did its numbers
        self._apply(interest, known)
        others = {name for name in self._links if name != source}
        effects = [*answered, *[Send(name, interest) for name in self._links if name in others]]
        if update.confirm:
            wave = self._waves.begin(Send(source, Known(interest.broker, update.version)), GRAPH)
            if others:
                wave.missing += 1
                self._echoes.setdefault(interest.broker, {})[update.version] = wave, others
        return effects

    def hear_known(self, source: str, known: Known) -> list[Effect]:
        """Handles a `Known`: everyone behind a neighbour knows an update."""
        return self._answered(known.broker, known.version, source)

    def _apply(self, interest: Interest, known: Announced) -> None:
        name, update = interest.broker, interest.update
        sides: tuple[tuple[Side[Any], dict[int, Any], Iterable[Any], Iterable[int]], ...] = (
            (self._tables.filters, known.rows, update.add, update.remove),
            (self._tables.advertisements, known.advertisements, update.advertise, update.withdraw),
        )
        for side, rows, add, remove in sides:
            if interest.whole:
                told = {number for number, _ in add}
                remove = [number for number in rows if number not in told]
                add = [row for row in add if row[0] not in rows]
            side.receive(rows, add, GRAPH, name)
            side.drop(rows, remove, GRAPH, name)
        known.version = update.version

    def _forget(self, name: str, known: Announced) -> None:
        self._tables.filters.drop(known.rows, list(known.rows), GRAPH, name)
        self._tables.advertisements.drop(known.advertisements, list(known.advertisements), GRAPH, name)

    def _whole_interests(self) -> Iterable[Interest]:
        progress = self._waves.ports.get(GRAPH)
        if progress is not None and progress.sent > self.first_version:
            own = tuple(self._tables.filters.table.sent(GRAPH).items())
            advertised = tuple(self._tables.advertisements.table.sent(GRAPH).items())
            yield Interest(self._broker, Update(progress.sent, add=own, advertise=advertised), whole=True)
        for broker, known in self.known.items():
            rows = tuple([(number, entry.item) for number, entry in known.rows.items()])
            advertisements = tuple([(number, entry.item) for number, entry in known.advertisements.items()])
            yield Interest(broker, Update(known.version, add=rows, advertise=advertisements), whole=True)

    def _answered(self, broker: str, version: int, source: str | None) -> list[Effect]:
        """Notes that a neighbour has answered, or sent such an update itself: it knows all up to this one."""
        effects: list[Effect] = []
        echoes = self._echoes.get(broker, {})
        for asked in [asked for asked in echoes if asked <= version]:
            wave, missing = echoes[asked]
            missing.discard(source or "")
            if missing:
                continue
            del echoes[asked]
            if wave is None:  # our own update: the port as a whole has confirmed it
                effects += [ended.effect for ended in self._waves.ports[GRAPH].confirm(asked)]
            else:
                wave.missing -= 1
                if not wave.missing:
                    effects.append(wave.effect)
        if not echoes:
            self._echoes.pop(broker, None)
        return effects


def _follows(version: int, known: int) -> bool:
    """Whether a version is the next one, or the first of its broker's incarnation."""
    return version == known + 1 or version & ((1 << INCARNATION_BITS) - 1) == 1
