"""Forwarding: the way of a notification through one broker, matched, delivered and passed on.

It is matched once, together with all that came with it. Each local session with a subscription that it
satisfies gets one copy, with the handles of all of these; each link behind which somebody wants it gets one
copy; never the link on which it came. A master gets everything that came from elsewhere, since it alone can
know who else wants it. With flooding, every link does.

In the graph a notification travels the shortest-path tree of the broker at which it entered the graph, to those
children of the tree that have interested brokers below them.

Safety net: a notification that was here before (by origin and sequence) is dropped, and so is one that has made
too many hops. On networks that are in order neither happens; while brokers disagree about links, it may.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import compress
from operator import attrgetter
from typing import Any, TypeAlias

import msgspec

from palio.model.filter import Filter
from palio.protocol.envelope import Envelope
from palio.protocol.peers import Forward, LinkKind
from palio.routing.announcements import Announcements
from palio.routing.configuration import Configuration, Strategy
from palio.routing.effects import Deliver, Effect, Send
from palio.routing.links import NeighbourLink
from palio.routing.scopes import Scopes, may_tell_of_links, owner_of
from palio.routing.sessions import SessionEntry
from palio.routing.table import GRAPH, Port, Sources, TableEntry
from palio.routing.tables import Tables

# How far apart notifications of one origin may overtake each other before the later ones are taken for known.
SEEN_WINDOW = 4_096
_MASK = (1 << SEEN_WINDOW) - 1

# Routes are remembered for up to so many different sources of entries, and so many of them.
MAX_ROUTE_SOURCES = 64
MAX_ROUTES = 4_096

_sources_of = attrgetter("sources")


class Seen:
    """Deduplication of notifications in bounded memory: for each origin a window below the highest sequence."""

    def __init__(self) -> None:
        self._origins: dict[str, tuple[int, int]] = {}
        self._former: dict[str, tuple[int, int]] = {}  # of earlier lives of an origin

    def add(self, origin: str, sequence: int) -> bool:
        """Note a notification; False if it is a duplicate, or too old to tell."""
        highest, bits = self._origins.get(origin, (0, 0))
        ahead = sequence - highest
        if ahead > 0:
            # Usually by one. A wider jump must not shift by more than the window.
            bits = (bits << ahead | 1) & _MASK if ahead < SEEN_WINDOW else 1
            self._origins[origin] = sequence, bits
            return True
        if -ahead >= SEEN_WINDOW or bits & (bit := 1 << -ahead):
            return False
        self._origins[origin] = highest, bits | bit
        return True

    def begin_anew(self, origin: str) -> None:
        """Begin another window for an origin that may give sequences that it gave before."""
        window = self._origins.pop(origin, None)
        if window is not None:
            self._former[origin] = _together(window, self._former.get(origin, (0, 0)))

    def was_before(self, origin: str, sequence: int) -> bool:
        """Whether an earlier life of an origin had that sequence, or it is too old to tell. Notes it there."""
        window = self._former.get(origin)
        if window is None or sequence > window[0]:
            return False
        highest, bits = window
        ahead = highest - sequence
        if ahead >= SEEN_WINDOW or bits & (bit := 1 << ahead):
            return True
        self._former[origin] = highest, bits | bit
        return False

    def add_run(self, origin: str, first: int, last: int) -> None:
        """Note notifications that cannot have been here, numbered one after the other above all others."""
        count = last - first + 1
        bits = self._origins.get(origin, (0, 0))[1]
        ones = (1 << min(count, SEEN_WINDOW)) - 1
        self._origins[origin] = last, (bits << min(count, SEEN_WINDOW) | ones) & _MASK


def _together(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    """Two windows as one, below the highest sequence of both."""
    (highest, bits), (lower, below) = max(one, other), min(one, other)
    ahead = highest - lower
    return highest, bits | (below << ahead & _MASK if ahead < SEEN_WINDOW else 0)


class _Route(msgspec.Struct, frozen=True, gc=False):
    """Where notifications go that satisfy entries from the same sources. Holds until tables or links change."""

    sessions: tuple[tuple[str, tuple[str, ...]], ...]  # with handles
    durable: tuple[Any, ...]
    ports: tuple[Port, ...]  # of the acyclic network
    brokers: frozenset[str]  # of the graph


class Way(msgspec.Struct, frozen=True):
    """Where one envelope would go from here: what it satisfies, which sessions get it, and who is next."""

    entries: list[TableEntry[Filter]]
    sessions: tuple[tuple[str, tuple[str, ...]], ...]  # with handles
    ports: list[Port]
    onward: Envelope


_Delivery: TypeAlias = tuple[str, tuple[str, ...], list[Envelope]]  # session, handles, what


class _Passing:
    """A batch that is being forwarded: from where it came, and what is to be done with it so far."""

    __slots__ = ("_latest", "deliveries", "from_graph", "onward", "source")

    def __init__(self, source: Port | None, from_graph: bool) -> None:
        self.source = source
        self.from_graph = from_graph
        self.onward: dict[str, list[Envelope]] = {}
        self.deliveries: list[_Delivery] = []
        self._latest: dict[str, tuple[tuple[str, ...], list[Envelope]]] = {}  # by session

    def deliver(self, session: str, handles: tuple[str, ...], run: list[Envelope]) -> None:
        """What a session gets for the same handles, one after the other, is one delivery."""
        latest = self._latest.get(session)
        if latest is not None and latest[0] == handles:
            latest[1].extend(run)
            return
        envelopes = list(run)
        self._latest[session] = handles, envelopes
        self.deliveries.append((session, handles, envelopes))

    def effects(self, scopes: Scopes, envelopes: tuple[Envelope, ...]) -> list[Effect]:
        """What follows for these envelopes."""
        deliveries = self.deliveries
        if scopes.on and deliveries:
            inspected = may_tell_of_links([envelope.notification for envelope in envelopes])
            deliveries = _seen(deliveries, scopes, inspected=inspected)
        effects: list[Effect] = [
            Deliver(session, tuple(envelopes), handles) for session, handles, envelopes in deliveries
        ]
        effects += [Send(broker, Forward(tuple(envelopes))) for broker, envelopes in self.onward.items()]
        return effects


def _seen(deliveries: list[_Delivery], scopes: Scopes, *, inspected: bool) -> list[_Delivery]:
    """Only what the sessions' owners may see now; what several sessions of an owner get is looked at once.

    Who has subscribed to nothing beyond that was matched by its scope already, unless some of it is for those
    alone who may inspect.
    """
    known: dict[tuple[str, tuple[int, ...]], list[bool] | None] = {}
    kept: list[_Delivery] = []
    for session, handles, envelopes in deliveries:
        if not inspected and scopes.is_exact(session):
            kept.append((session, handles, envelopes))
            continue
        key = owner_of(session), tuple(map(id, envelopes))
        if key not in known:
            known[key] = scopes.visible(session, envelopes, "delivery")
        visible = known[key]
        left = envelopes if visible is None else list(compress(envelopes, visible))
        if left:
            kept.append((session, handles, left))
    return kept


class ForwardingStatistics(msgspec.Struct, frozen=True):
    """What came of the notifications. `dropped` counts by reason; `wasted` were of no use here or behind."""

    taken: int
    matched: int
    delivered: int
    forwarded: int
    wasted: int
    dropped: dict[str, int]


class Forwarding:
    """Matches notifications, delivers them to sessions, and forwards them to neighbours."""

    def __init__(
        self,
        configuration: Configuration,
        tables: Tables,
        links: dict[str, NeighbourLink],
        announcements: Announcements,
        scopes: Scopes,
    ) -> None:
        self._scopes = scopes
        self._broker = configuration.broker
        self._hop_limit = configuration.hop_limit
        self._flooding = configuration.strategy is Strategy.FLOODING
        self._filters = tables.filters
        self._links = links
        self._announcements = announcements
        # Set where durable delivery is on: the present epoch, and who takes what is for durable subscriptions.
        self.epoch: Callable[[], int] = int
        self.take_durable: Callable[[Any, Envelope], None] = lambda holder, envelope: None
        self.takes_all: dict[Port, None] = {}  # links of the acyclic network that get every notification
        self._seen = Seen()
        self._routes: dict[tuple[Sources, ...], _Route] = {}
        self._taken = self._matched = self._delivered = self._forwarded = self._wasted = 0
        self._dropped: Counter[str] = Counter()

    def statistics(self) -> ForwardingStatistics:
        dropped = self._dropped + Counter({f"rights, {what}": n for what, n in self._scopes.withheld.items()})
        return ForwardingStatistics(
            self._taken, self._matched, self._delivered, self._forwarded, self._wasted, dict(dropped)
        )

    def take(self, envelopes: tuple[Envelope, ...], source: Port | None) -> list[Effect]:
        """Forwards envelopes from a neighbour, or from a local session (no source), in their order.

        Raises `InvalidNotification`, before anything is done, if the bytes of one are none.
        """
        passing = _Passing(source, source is not None and self._links[source].kind is LinkKind.GRAPH)
        if len(envelopes) == 1:
            self._take_one(envelopes[0], passing)
        elif envelopes:
            self._take_several(envelopes, passing)
        for onward in passing.onward.values():
            self._forwarded += len(onward)
        return passing.effects(self._scopes, envelopes)

    def _take_one(self, envelope: Envelope, passing: _Passing) -> None:
        entries = self._filters.match(envelope.notification)
        if passing.source is None:
            self._seen.add_run(envelope.origin, envelope.sequence, envelope.sequence)
        elif not self._is_fresh(envelope):
            return
        self._take_run([envelope], entries, passing)

    def _take_several(self, envelopes: tuple[Envelope, ...], passing: _Passing) -> None:
        found = self._filters.match_all(envelopes)
        if passing.source is None:
            # Our own numbers, which nobody can have seen.
            self._seen.add_run(envelopes[0].origin, envelopes[0].sequence, envelopes[-1].sequence)
        else:
            fresh = [self._is_fresh(envelope) for envelope in envelopes]
            if not all(fresh):
                found = list(compress(found, fresh))
                envelopes = tuple(compress(envelopes, fresh))
        # What follows one another and satisfies the same goes the same way.
        run: list[Envelope] = []
        same: list[TableEntry[Filter]] = []
        for envelope, entries in zip(envelopes, found, strict=True):
            if entries != same:
                if run:
                    self._take_run(run, same, passing)
                    run = []
                same = entries
            run.append(envelope)
        if run:
            self._take_run(run, same, passing)

    def _is_fresh(self, envelope: Envelope) -> bool:
        # What has met one epoch only, the present one, is of the present life of its origin, whatever had its
        # sequence before.
        was_before = envelope.epoch != self.epoch() and self._seen.was_before(
            envelope.origin, envelope.sequence
        )
        if was_before or not self._seen.add(envelope.origin, envelope.sequence):
            self._dropped["duplicate"] += 1
            return False
        if envelope.hops > self._hop_limit:
            self._dropped["hops"] += 1
            return False
        return True

    def began_anew(self, origin: str) -> None:
        """Handles another life of a broker: its disk may have come back older, and it gives sequences again."""
        self._seen.begin_anew(origin)

    def forget_routes(self) -> None:
        """Forget cached routes: who wants what, or where they are, may have changed."""
        if self._routes:
            self._routes.clear()

    def _take_run(self, run: list[Envelope], entries: list[TableEntry[Filter]], passing: _Passing) -> None:
        """Forwards envelopes that satisfy the same entries."""
        count = len(run)
        self._taken += count
        self._matched += count * len(entries)
        # However many entries there are, most have one of few sources.
        key = (entries[0].sources,) if len(entries) == 1 else tuple(dict.fromkeys(map(_sources_of, entries)))
        route = self._routes.get(key)
        if route is None:
            route = self._route(key)
            if len(key) <= MAX_ROUTE_SOURCES:
                if len(self._routes) >= MAX_ROUTES:
                    self._routes.clear()
                self._routes[key] = route
        for holder in route.durable:
            for envelope in run:
                self.take_durable(holder, envelope)
        for session, handles in route.sessions:
            passing.deliver(session, handles, run)
        self._delivered += count * len(route.sessions)
        wasted = 0
        if route.ports or route.brokers or self._flooding:
            wasted = sum([not self._send_on(envelope, route, passing) for envelope in run])
        elif passing.source is not None:
            wasted = count
        if not route.sessions and not route.durable:
            self._wasted += wasted

    def _send_on(self, envelope: Envelope, route: _Route, passing: _Passing) -> bool:
        """Sends to the neighbours that are next. Returns False if it came from elsewhere and there are none."""
        source = passing.source
        onward: Envelope | None = None
        for port in self._ports(route, envelope, source, passing.from_graph):
            if port != source:
                if onward is None:
                    onward = self._onward(envelope, passing.from_graph)
                passing.onward.setdefault(port, []).append(onward)
        return onward is not None or source is None

    def way(self, envelope: Envelope, source: Port | None) -> Way:
        """The way of an envelope that is not taken, only asked about."""
        from_graph = source is not None and self._links[source].kind is LinkKind.GRAPH
        entries = self._filters.match(envelope.notification)
        route = self._route(dict.fromkeys(map(_sources_of, entries)))
        ports = [port for port in self._ports(route, envelope, source, from_graph) if port != source]
        return Way(entries, route.sessions, ports, self._onward(envelope, from_graph))

    def _ports(
        self, route: _Route, envelope: Envelope, source: Port | None, from_graph: bool
    ) -> Iterable[Port]:
        """The neighbours that are next; perhaps the source, too, which is not."""
        if not route.brokers and not self._flooding:
            return route.ports
        entry_point = envelope.entry if from_graph else self._broker
        return sorted({*route.ports, *self._towards(route.brokers, entry_point, source)})

    def _onward(self, one: Envelope, from_graph: bool) -> Envelope:
        entry = one.entry if from_graph else self._broker
        epoch = one.epoch if one.epoch == self.epoch() else 0
        return Envelope(one.origin, one.sequence, one.time, one.hops + 1, entry, one.notification, epoch)

    def _route(self, all_sources: Iterable[Sources]) -> _Route:
        handles: dict[str, dict[str, None]] = {}
        ports: dict[Port, Any] = dict(self.takes_all)
        brokers: set[str] = set()
        durable: list[Any] = []
        for sources in all_sources:
            held: SessionEntry
            for held in sources.holders:
                if held.session:
                    if held.handles:  # otherwise it is to be taken down
                        handles.setdefault(held.session, {}).update(held.handles)
                else:
                    durable.append(held)
            ports |= sources.ports
            brokers.update(sources.brokers)
        # What came on a link that is lost may still have to be taken down.
        ports = {port: None for port in ports if port in self._links and port != GRAPH}
        # The index promises no order; effects have one that depends on names alone.
        sessions = tuple([(session, tuple(sorted(handles[session]))) for session in sorted(handles)])
        return _Route(sessions, tuple(durable), tuple(sorted(ports)), frozenset(brokers))

    def _towards(self, brokers: frozenset[str], entry_point: str, source: Port | None) -> dict[Port, None]:
        """The neighbours in the tree of the entry point towards interested brokers."""
        branches = self._announcements.graph.branches(entry_point)
        wanted = branches.values() if self._flooding else [branches.get(broker) for broker in brokers]
        return {neighbour: None for neighbour in wanted if neighbour is not None and neighbour != source}
