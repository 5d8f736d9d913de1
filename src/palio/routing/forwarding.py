"""The way of a notification through one broker.

It is matched once. Each local session with a subscription that it satisfies gets one copy, with the handles of
all of these; each link behind which somebody wants it gets one copy; never the link on which it came. A master
gets everything that came from elsewhere, since it alone can know who else wants it. With flooding, every link
does.

In the graph a notification travels the shortest-path tree of the broker at which it entered the graph, to those
children of the tree that have interested brokers below them.

Safety net: a notification that was here before (by origin and sequence) is dropped, and so is one that has made
too many hops. On networks that are in order neither happens; while brokers disagree about links, it may.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec

from palio.routing.announcements import Announcements
from palio.routing.configuration import Configuration, Strategy
from palio.routing.effects import Deliver, Effect, Send
from palio.routing.links import Link
from palio.routing.messages import Envelope, Forward, LinkKind
from palio.routing.sessions import Held
from palio.routing.table import GRAPH, Port
from palio.routing.tables import Tables

# How far apart notifications of one origin may overtake each other before the later ones are taken for known.
SEEN_WINDOW = 4_096
_MASK = (1 << SEEN_WINDOW) - 1


class Seen:
    """Which notifications were here, in bounded memory: for each origin a window below the highest sequence."""

    def __init__(self) -> None:
        self._origins: dict[str, tuple[int, int]] = {}

    def add(self, origin: str, sequence: int) -> bool:
        """Note a notification; False if it was noted before, or is too old to tell."""
        highest, bits = self._origins.get(origin, (0, 0))
        ahead = sequence - highest
        if ahead > 0:
            # Usually by one. A wider jump must not shift by more than the window.
            bits = (bits << ahead | 1) & _MASK if ahead < SEEN_WINDOW else 1
            self._origins[origin] = sequence, bits
            return True
        bit = 1 << -ahead
        if -ahead >= SEEN_WINDOW or bits & bit:
            return False
        self._origins[origin] = highest, bits | bit
        return True


class ForwardingStatistics(msgspec.Struct, frozen=True):
    """What came of the notifications. `dropped` counts by reason; `wasted` were of no use here or behind."""

    taken: int
    matched: int
    delivered: int
    forwarded: int
    wasted: int
    dropped: dict[str, int]


class Forwarding:
    """Matches notifications and sends them on."""

    def __init__(
        self,
        configuration: Configuration,
        tables: Tables,
        links: dict[str, Link],
        announcements: Announcements,
    ) -> None:
        self._broker = configuration.broker
        self._hop_limit = configuration.hop_limit
        self._flooding = configuration.strategy is Strategy.FLOODING
        self._tables = tables
        self._links = links
        self._announcements = announcements
        # Set where durable delivery is on: the present epoch, and who takes what is for durable subscriptions.
        self.epoch: Callable[[], int] = int
        self.take_durable: Callable[[Any, Envelope], None] = lambda holder, envelope: None
        self.takes_all: dict[Port, None] = {}  # links of the acyclic network that get every notification
        self._seen = Seen()
        self._taken = self._matched = self._delivered = self._forwarded = self._wasted = 0
        self._dropped: Counter[str] = Counter()

    def statistics(self) -> ForwardingStatistics:
        return ForwardingStatistics(
            self._taken, self._matched, self._delivered, self._forwarded, self._wasted, dict(self._dropped)
        )

    def take(self, envelopes: tuple[Envelope, ...], source: Port | None) -> list[Effect]:
        """Envelopes from a neighbour, or from a local session (no source), in their order."""
        effects: list[Effect] = []
        onward: dict[str, list[Envelope]] = {}
        from_graph = source is not None and self._links[source].kind is LinkKind.GRAPH
        for envelope in envelopes:
            if not self._seen.add(envelope.origin, envelope.sequence):
                self._dropped["duplicate"] += 1
            elif envelope.hops > self._hop_limit:
                self._dropped["hops"] += 1
            else:
                self._take_one(envelope, source, from_graph, effects, onward)
        for broker, batch in onward.items():
            self._forwarded += len(batch)
            effects.append(Send(broker, Forward(tuple(batch))))
        return effects

    def _take_one(
        self,
        envelope: Envelope,
        source: Port | None,
        from_graph: bool,
        effects: list[Effect],
        onward: dict[str, list[Envelope]],
    ) -> None:
        self._taken += 1
        entries = self._tables.match(envelope.notification)
        self._matched += len(entries)
        handles: dict[str, dict[str, None]] = {}
        ports: dict[Port, Any] = dict(self.takes_all)
        brokers: set[str] = set()
        durable: list[Any] = []
        sources: dict[Port, int] | None = None
        for entry in entries:
            held: Held
            for held in entry.holders:
                if held.session:
                    handles.setdefault(held.session, {}).update(held.handles)
                else:
                    durable.append(held)
            if entry.ports is not sources:  # entries from one port share it
                sources = entry.ports
                ports |= sources
            if entry.brokers:
                brokers.update(entry.brokers)
        self._delivered += len(handles)
        for one in durable:
            self.take_durable(one, envelope)
        # The index promises no order; effects have one that depends on names alone.
        effects += [Deliver(session, envelope, tuple(sorted(handles[session]))) for session in sorted(handles)]
        ports.pop(GRAPH, None)
        if source is not None:
            ports.pop(source, None)
        if ports or brokers or self._flooding:
            entry_point = envelope.entry if from_graph else self._broker
            onward_envelope = Envelope(
                envelope.origin,
                envelope.sequence,
                envelope.time,
                envelope.hops + 1,
                entry_point,
                envelope.notification,
                envelope.epoch if envelope.epoch == self.epoch() else 0,
            )
            if brokers or self._flooding:
                ports |= self._towards(brokers, entry_point, source)
            for port in sorted(ports):
                onward.setdefault(port, []).append(onward_envelope)
        if source is not None and not handles and not ports and not durable:
            self._wasted += 1

    def _towards(self, brokers: set[str], entry_point: str, source: Port | None) -> dict[Port, None]:
        """The neighbours in the tree of the entry point towards interested brokers."""
        branches = self._announcements.graph.branches(entry_point)
        wanted = branches.values() if self._flooding else [branches.get(broker) for broker in brokers]
        return {neighbour: None for neighbour in wanted if neighbour is not None and neighbour != source}
