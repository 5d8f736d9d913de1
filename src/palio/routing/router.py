"""`Router`: one broker, as a state machine. Messages in, effects out."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from palio.model.advertisement import Advertisement
from palio.model.filter import Filter
from palio.protocol.overlay import Contact
from palio.protocol.peers import Forward, LinkKind
from palio.protocol.requests import Publish
from palio.protocol.sharing import SharedRecord
from palio.routing.clients import ClientRequests, NoJournal
from palio.routing.configuration import Configuration
from palio.routing.considering import Considering
from palio.routing.core import Core
from palio.routing.durable.effects import Recovered
from palio.routing.durable.leaving import CannotLeave, Leaving
from palio.routing.durable.relay import Relay
from palio.routing.durable.service import Service
from palio.routing.echoes import TIMER as ECHOES
from palio.routing.echoes import EchoStatistics
from palio.routing.effects import Effect
from palio.routing.facts import Facts
from palio.routing.forwarding import ForwardingStatistics
from palio.routing.inquiry_routing import PASSING, InquiryRouting
from palio.routing.neighbours import NAMES, Neighbours
from palio.routing.occurrences import Message, PublishPart, StoreMessage
from palio.routing.overlay.manager import TIMER as OVERLAY
from palio.routing.overlay.manager import OverlayStatistics
from palio.routing.reconfiguration.protocols import TIMERS as RECONFIGURATION
from palio.routing.reconfiguration.protocols import ReconfigurationStatistics
from palio.routing.reconfiguration.settings import ReconfigurationSettings
from palio.routing.scopes import SetScope, owner_of
from palio.routing.shared import SharedRecords, SharedStatistics
from palio.routing.sharing import TIMER as SHARING
from palio.routing.table import GRAPH

# What leaves the tables and the links as they are.
_PASSING = PASSING | {Forward, Publish, PublishPart}


class RouterStatistics(msgspec.Struct, frozen=True):
    """What a router holds, and what came of the notifications."""

    sessions: int
    links: int
    filters: int
    advertisements: int
    rows_received: int
    rows_sent: int
    forwarding: ForwardingStatistics
    inquiries: EchoStatistics
    shared: SharedStatistics
    handed: int  # deliveries of durable subscriptions, also those that came again


class Router:
    """A broker without its sockets. `handle`, `complete`, `share` and `on_timer` are the ways in; they return
    the effects.

    The effects are to be carried out in their order. Routers of one process may share their `facts`. A broker
    that begins anew is given what is `recovered` from its disk.
    """

    def __init__(
        self,
        configuration: Configuration,
        facts: Facts | None = None,
        recovered: Recovered = Recovered(),  # noqa: B008 (it is immutable)
    ) -> None:
        self.configuration = configuration
        self.broker = configuration.broker
        facts = facts if facts is not None else Facts()
        self._core = Core(configuration, facts, recovered)
        self._asking = InquiryRouting(self._core)
        self._watching = self._asking.watching
        self._clients = ClientRequests(self._core, self._asking)
        self.consider = Considering(self._core, facts, self._watching, self._clients).consider
        self.require_advertised = self._clients.require_advertised
        self._neighbours = Neighbours(self._core, self._asking)
        self.owners_of_work = self._core.deferred.owners  # for whom there is something to do

    def handle(self, message: Message | SetScope, source: str, now: float) -> list[Effect]:
        """Handles a message from a session, from a neighbour, or about the link to a neighbour."""
        core = self._core
        effects = core.begin(now)
        durable = core.durable
        kind = type(message)
        if kind not in _PASSING:
            core.forwarding.forget_routes()
        if self._neighbours.handle(kind, message, source):
            pass
        elif isinstance(message, SetScope):
            self._set_scope(message)
        elif durable is not None and kind in durable.store_handlers:
            durable.store_handlers[kind](message)
        else:
            self._clients.handle(kind, message, source)
        if durable is not None:
            durable.settle()
        if kind is not Forward:
            core.settle()
            self._watching.settle()
        return effects

    def complete(self, messages: Iterable[StoreMessage], now: float) -> list[Effect]:
        """Handles completions of the store, as `handle` does one after the other, in as few writes as possible.

        What several publishes bring to a durable subscription is spooled, and handed out, together. Whatever
        else is completed finds, and leaves, everything settled.
        """
        core, durable = self._core, self._core.durable
        assert durable is not None, "Without durable delivery nothing is asked of a store."
        effects = core.begin(now)
        core.forwarding.forget_routes()
        for message in messages:
            delivers = durable.only_delivers(message)
            if not delivers:
                self._settle()
            durable.store_handlers[type(message)](message)
            if not delivers:
                self._settle()
        self._settle()
        return effects

    def _settle(self) -> None:
        core = self._core
        if core.durable is not None:
            core.durable.settle()
        core.settle()
        self._watching.settle()
        core.forwarding.forget_routes()

    def leave(self, to: str, now: float, *, parting: bool = False, own: str = "") -> list[Effect]:
        """Begins to leave the network, or goes on with it; durable subscriptions go `to` that neighbour.

        One that is the broker's `own` ends. Raises `CannotLeave`, and `NoJournal` where there is none.
        """
        return self._steer(lambda leaving: leaving.leave(to, parting=parting, own=own), now)

    def stay(self, now: float) -> list[Effect]:
        """Stays in the network after all. Raises `CannotLeave` if it is too late, and `NoJournal`."""
        return self._steer(Leaving.stay, now)

    def _steer(self, do: Callable[[Leaving], None], now: float) -> list[Effect]:
        leaving = self.leaving
        effects = self._core.begin(now)
        do(leaving)
        return effects

    @property
    def leaving(self) -> Leaving:
        """This broker on its way out. Raises `CannotLeave` and `NoJournal` where nobody waits for it."""
        if self._core.relay is not None:
            raise CannotLeave(self.broker, "it is a relay, for which nobody waits. Stop it instead.")
        if self._core.durable is None:
            raise NoJournal
        return self._core.durable.leaving

    def work(self, owner: Hashable, steps: int, now: float) -> tuple[list[Effect], bool]:
        """Does so many steps of what has no hurry, for an owner. Returns the effects, and if there is more."""
        core = self._core
        effects = core.begin(now)
        core.forwarding.forget_routes()
        more = core.deferred.go_on(owner, steps)
        core.settle()
        self._watching.settle()
        return effects, more

    def share(
        self, records: tuple[SharedRecord, ...], token: int, now: float, *, everywhere: bool
    ) -> list[Effect]:
        """Shares versions that were made by `shared.changed` in this moment. Returns the effects.

        One of them says with the token when they are on disk: here, or at all brokers in reach.
        """
        core = self._core
        effects = core.begin(now)
        core.sharing.put(records, token, everywhere=everywhere)
        return effects

    def begin(self, address: str, now: float, met: Sequence[Contact] = ()) -> list[Effect]:
        """Handles that the broker runs, and can be reached at this address by others. Returns the effects.

        `met` are brokers that it knew of in a former life.
        """
        effects = self._core.begin(now)
        self._neighbours.begin(address, met)
        return effects

    def remove_link(self, broker: str, now: float) -> list[Effect]:
        """Removes the link to a neighbour, as an operator wants it. There is nothing to do for a stranger."""
        core = self._core
        effects = core.begin(now)
        self._neighbours.remove(broker)
        self._settle()
        return effects

    def reconfigure(self, settings: ReconfigurationSettings) -> None:
        """Use other settings, from the next link on that is lost or made."""
        self._neighbours.reconfiguration.settings = settings

    def _set_scope(self, message: SetScope) -> None:
        if self._core.scopes.set(message):
            self._core.sessions.scope_changed(message.owner)
            self._asking.watching.scope_changed(message.owner)
            if self._core.durable is not None:
                self._core.durable.scope_changed(message.owner)

    def on_timer(self, name: str, now: float) -> list[Effect]:
        """Handles a timer that was set and has come due."""
        core = self._core
        effects = core.begin(now)
        core.forwarding.forget_routes()
        if name == ECHOES:
            self._asking.on_timer()
        elif name == SHARING:
            core.sharing.on_timer()
        elif name == OVERLAY:
            self._neighbours.on_timer()
        elif name == NAMES:
            self._neighbours.tell_names()
        elif name in RECONFIGURATION:
            self._neighbours.on_reconfiguration_timer(name)
        elif core.between is not None:
            core.between.on_timer(name)
        if core.durable is not None:
            core.durable.settle()
        core.settle()
        self._watching.settle()
        return effects

    # Looking in

    @property
    def durable(self) -> Service | None:
        """Durable delivery, where it is on."""
        return self._core.durable

    @property
    def relay(self) -> Relay | None:
        """The part of a relay in durable delivery, where this broker is one."""
        return self._core.relay

    @property
    def epoch(self) -> int | None:
        """The epoch in which this broker is, where there are any."""
        return self._core.between.epoch if self._core.between is not None else None

    @property
    def shared(self) -> SharedRecords:
        """What all brokers know. It is changed by `share` only."""
        return self._core.sharing.records

    def sent(self, neighbour: str) -> dict[int, Filter]:
        """The rows that a neighbour of the acyclic network was told of."""
        return self._core.tables.filters.table.sent(neighbour)

    def received(self, neighbour: str) -> dict[int, Filter]:
        """The rows that came from a neighbour of the acyclic network."""
        return {number: entry.item for number, entry in self._core.links[neighbour].rows.items()}

    def sent_advertisements(self, neighbour: str) -> dict[int, Advertisement]:
        """The advertisements that a neighbour of the acyclic network was told of."""
        return self._core.tables.advertisements.table.sent(neighbour)

    def received_advertisements(self, neighbour: str) -> dict[int, Advertisement]:
        """The advertisements that came from a neighbour of the acyclic network."""
        return {number: entry.item for number, entry in self._core.links[neighbour].advertisements.items()}

    def neighbours(self) -> dict[str, LinkKind]:
        """The brokers to which there is a link in use, and what they are to this one."""
        return self._core.neighbours()

    def is_relay(self, neighbour: str) -> bool:
        """Whether a neighbour to which there is a link in use keeps nothing."""
        link = self._core.links.get(neighbour)
        return link is not None and link.is_relay

    def overlay(self) -> OverlayStatistics:
        """How this broker is linked with the others, and what it took to be."""
        return self._neighbours.overlay.statistics()

    def reconfiguration(self) -> ReconfigurationStatistics:
        """What became of the rows of lost links."""
        return self._neighbours.reconfiguration.statistics()

    def interest(self) -> dict[str, list[Filter]]:
        """What each broker of the graph wants; this broker's entry is what it has told the others."""
        known = {
            name: [entry.item for entry in one.rows.values()]
            for name, one in self._core.announcements.known.items()
        }
        return known | {self._core.broker: list(self._core.tables.filters.table.sent(GRAPH).values())}

    def holds(self, session: str) -> int:
        """How many handles a session has; a large filter counts as several."""
        return self._core.sessions.count(session)

    def is_full(self, session: str, limit: int) -> bool:
        """Whether a session has so many handles; durable subscriptions count, those of its owner that are here.

        Where nobody has a name, those that the session takes.
        """
        left = limit - self.holds(session)
        durable = self.durable.homes.subscriptions if self.durable is not None else {}
        if left > len(durable):  # so it is nearly always, and nobody has to be counted
            return False
        if self._core.configuration.scoped:
            owner = owner_of(session)
            return left <= sum([owner_of(name) == owner for name in durable])
        return left <= sum([one.taker == session for one in durable.values()])

    def kept(self, session: str) -> tuple[int, int]:
        """Bytes of memory, about, for what the sessions of an owner hold; and for those of all."""
        kept = self._core.sessions.kept
        return kept[owner_of(session)], kept.total()

    def has_room_for(self, session: str, name: str, limit: int) -> bool:
        """Whether a session may take a durable subscription: one that is here, or one more.

        Where nobody has a name, all that are here count: whoever has left them would leave more.
        """
        durable = self.durable.homes.subscriptions if self.durable is not None else {}
        if name in durable or not self._core.configuration.scoped:
            return name in durable or len(durable) + self.holds(session) < limit
        return not self.is_full(session, limit)

    def subscriptions(self) -> Iterator[dict[str, Any]]:
        """Every subscription of this broker's clients, as plain data."""
        for entry in list(self._core.tables.filters.table.entries()):
            for held in list(entry.sources.holders):
                if held.session and held.handles:
                    handles = sorted(held.handles)
                    yield {"session": held.session, "handles": handles, "filter": str(entry.item)}
        if self.durable is not None:
            yield from map(msgspec.structs.asdict, self.durable.statistics().subscriptions)

    def statistics(self) -> RouterStatistics:
        known = self._core.announcements.known.values()
        return RouterStatistics(
            sessions=len(self._core.sessions),
            links=len(self._core.neighbours()),
            filters=len(self._core.tables.filters.table),
            advertisements=len(self._core.tables.advertisements.table),
            rows_received=sum(len(link.rows) for link in self._core.links.values())
            + sum(len(one.rows) for one in known),
            rows_sent=self._core.tables.filters.table.rows_sent(),
            forwarding=self._core.forwarding.statistics(),
            inquiries=self._asking.statistics(),
            shared=self._core.sharing.records.statistics(),
            handed=self.durable.parts.handing.handed if self.durable is not None else 0,
        )
