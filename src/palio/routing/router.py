"""`Router`: one broker, as a state machine. Messages in, effects out.

What a message changes is collected in the tables, and when it has been dealt with, `_settle` tells each port
what has changed there, in one update. So however much a message causes, a neighbour never sees half of it.

A link is used once both ends have said hello and found that they go together; then each sends the other what
it has to know, as an update like any other. When a link goes, all that came on it is dropped, and what that
means for others follows from the tables. (That is the simplest of the protocols for a changing network;
another one would decide in `_lost` when rows are dropped.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from palio.model.advertisement import Advertisement
from palio.model.errors import PalioError
from palio.model.filter import Filter
from palio.routing import tables as content
from palio.routing.announcements import Announcements
from palio.routing.configuration import Configuration, Strategy
from palio.routing.effects import CloseLink, Effect, Reply, Send
from palio.routing.facts import Facts
from palio.routing.forwarding import Forwarding, ForwardingStatistics
from palio.routing.links import COUNTERPART, Link, Naming
from palio.routing.messages import (
    Accepted,
    Acknowledge,
    Advertise,
    Close,
    Ended,
    Envelope,
    Forward,
    Goodbye,
    Hello,
    Interest,
    Joined,
    Known,
    LinkDown,
    LinkKind,
    LinkState,
    LinkUp,
    Message,
    Open,
    Publish,
    Published,
    Ready,
    Refused,
    Release,
    Subscribe,
    Unadvertise,
    Unsubscribe,
    Update,
)
from palio.routing.sessions import Sessions
from palio.routing.table import GRAPH
from palio.routing.tables import Tables
from palio.routing.waves import Progress, Waves

# What may come on a link before both ends have agreed to use it.
_BEFORE_HELLO = frozenset((Hello, Goodbye, LinkDown))


class RouterStatistics(msgspec.Struct, frozen=True):
    """What a router holds, and what came of the notifications."""

    sessions: int
    links: int
    filters: int
    advertisements: int
    rows_received: int
    rows_sent: int
    forwarding: ForwardingStatistics


class Router:
    """A broker without its sockets. `handle` and `on_timer` are the only ways in; they return what to do.

    The effects are to be carried out in their order. Routers of one process may share their `facts`.
    """

    def __init__(self, configuration: Configuration, facts: Facts | None = None) -> None:
        self.configuration = configuration
        self.broker = configuration.broker
        self._tables = Tables(configuration, facts if facts is not None else Facts())
        self._sessions = Sessions(self._tables)
        self._links: dict[str, Link] = {}
        self._graph_links: dict[str, Link] = {}
        self._naming = Naming(self.broker)
        self._waves = Waves()
        self._announcements = Announcements(
            self.broker, configuration.incarnation, self._tables, self._waves, self._graph_links
        )
        self._forwarding = Forwarding(configuration, self._tables, self._links, self._announcements)
        self._sequence = 0
        self._effects: list[Effect] = []
        self._now = 0.0
        self._client_handlers: dict[type, Callable[[str, Any], None]] = {
            Open: self._on_open,
            Close: self._on_close,
            Subscribe: self._on_subscribe,
            Advertise: self._on_advertise,
            Release: self._on_release,
            Unsubscribe: self._on_unsubscribe,
            Unadvertise: self._on_unadvertise,
            Publish: self._on_publish,
        }
        self._link_handlers: dict[type, Callable[[Link, Any], None]] = {
            Hello: self._on_hello,
            Goodbye: self._on_goodbye,
            LinkDown: self._on_link_down,
            Joined: self._on_joined,
            Update: self._on_update,
            Acknowledge: self._on_acknowledge,
            Forward: self._on_forward,
            LinkState: self._on_link_state,
            Interest: self._on_interest,
            Known: self._on_known,
        }

    # The ways in

    def handle(self, message: Message, source: str, now: float) -> list[Effect]:
        """Take a message from a session, from a neighbour, or about the link to a neighbour.

        Messages on links that are not up are ignored: they were under way when the link went.
        """
        effects: list[Effect] = []
        self._effects = effects
        self._now = now
        kind = type(message)
        on_link = self._link_handlers.get(kind)
        if on_link is not None:
            link = self._links.get(source)
            if link is not None and (link.established or kind in _BEFORE_HELLO):
                on_link(link, message)
        elif isinstance(message, LinkUp):
            self._on_link_up(source, message)
        else:
            self._from_client(self._client_handlers[kind], source, message)
        if kind is not Forward:
            self._settle()
        return effects

    def on_timer(self, name: str, now: float) -> list[Effect]:
        """A timer that was set has come due. None is set so far: a link that goes is dealt with at once."""
        return []

    # Clients

    def _from_client(self, handler: Callable[[str, Any], None], session: str, message: Any) -> None:
        try:
            handler(session, message)
        except PalioError as problem:
            subject = getattr(message, "handle", type(message).__name__.lower())
            if isinstance(message, Publish):
                subject = f"publish {message.request}"
            self._effects.append(Reply(session, Refused(subject, type(problem).__name__, str(problem))))

    def _on_open(self, session: str, message: Open) -> None:
        self._sessions.open(session)

    def _on_close(self, session: str, message: Close) -> None:
        self._sessions.close(session)

    def _on_subscribe(self, session: str, message: Subscribe) -> None:
        self._hold(session, message.handle, message.filter, message.ready)

    def _on_advertise(self, session: str, message: Advertise) -> None:
        self._hold(session, message.handle, message.advertisement, message.ready)

    def _hold(self, session: str, handle: str, item: Filter | Advertisement, ready: bool) -> None:
        self._sessions.hold(session, handle, item)
        self._effects.append(Reply(session, Accepted(handle)))
        if ready:
            self._waves.begin(Reply(session, Ready(handle)), None)

    def _on_release(self, session: str, message: Release) -> None:
        self._sessions.release(session, message.handle)
        self._effects.append(Reply(session, Ended((message.handle,))))

    def _on_unsubscribe(self, session: str, message: Unsubscribe) -> None:
        self._effects.append(Reply(session, Ended(self._sessions.cancel(session, message.filter))))

    def _on_unadvertise(self, session: str, message: Unadvertise) -> None:
        self._effects.append(Reply(session, Ended(self._sessions.cancel(session, message.advertisement))))

    def _on_publish(self, session: str, message: Publish) -> None:
        self._sessions.get(session)
        if self.configuration.advertisements:
            self._sessions.require_advertised(session, message.notifications)
        first = self._sequence + 1
        self._sequence += len(message.notifications)
        envelopes = tuple(
            [
                Envelope(self.broker, sequence, self._now, 0, self.broker, notification)
                for sequence, notification in enumerate(message.notifications, first)
            ]
        )
        if message.request:
            self._effects.append(Reply(session, Published(message.request, self.broker, first)))
        self._effects += self._forwarding.take(envelopes, None)

    # Links: their beginning

    def _on_link_up(self, broker: str, message: LinkUp) -> None:
        if broker in self._links:
            return
        link = self._links[broker] = Link(broker, message.kind, message.cost)
        link.told = self._naming.component, self._naming.path
        hello = Hello(message.kind, message.cost, self.configuration.terms, *link.told)
        self._effects.append(Send(broker, hello))

    def _on_hello(self, link: Link, hello: Hello) -> None:
        if link.established:
            return
        reason = self._objection(link, hello)
        if reason is not None:
            self._give_up(link, reason)
            return
        link.established = True
        if link.kind is LinkKind.GRAPH:
            self._join_graph(link)
        else:
            self._join_tree(link, hello)

    def _objection(self, link: Link, hello: Hello) -> str | None:
        """Why the link must not be used, as a sentence."""
        ours, theirs = self.broker, link.broker
        if ours == theirs:
            return f"The broker {ours} cannot be its own neighbour."
        if hello.terms != self.configuration.terms:
            return f"{theirs} does {hello.terms} routing, {ours} {self.configuration.terms} routing."
        if hello.kind is not COUNTERPART[link.kind]:
            kinds = f"{link.kind.value} and {hello.kind.value}"
            return f"{ours} and {theirs} do not agree what they are to each other: {kinds}."
        others = [other.kind for other in self._links.values() if other.established]
        if link.kind is LinkKind.MASTER and LinkKind.MASTER in others:
            return f"{ours} has a master already."
        if {LinkKind.MASTER, LinkKind.GRAPH} <= {*others, link.kind}:
            return f"{ours} has a master; only the top of a hierarchy can be part of a graph."
        connected = (
            link.told is not None and hello.component in (link.told[0], self._naming.component)
        ) or ours in hello.path
        if link.kind is not LinkKind.GRAPH and connected:
            return f"{ours} and {theirs} are connected already; this link would close a cycle."
        return None

    def _join_tree(self, link: Link, hello: Hello) -> None:
        flooding = self.configuration.strategy is Strategy.FLOODING
        if flooding or link.kind is LinkKind.MASTER:
            self._forwarding.takes_all[link.broker] = None
        if not flooding and link.kind is not LinkKind.BELOW:
            self._waves.ports[link.broker] = Progress()
            self._tables.open_port(link.broker, attracts_all=link.kind is LinkKind.MASTER)
        assert link.told is not None
        if hello.component < link.told[0]:
            self._naming.adopt(hello.component, hello.path, link.broker)
            self._spread_name(link)
        else:
            self._tell_name(link)

    def _join_graph(self, link: Link) -> None:
        self._graph_links[link.broker] = link
        self._effects += self._announcements.link_established(link, self._naming.component)
        if GRAPH not in self._waves.ports and self.configuration.strategy is not Strategy.FLOODING:
            self._waves.ports[GRAPH] = Progress(self._announcements.first_version)
            self._tables.open_port(GRAPH)

    # Links: their end

    def _give_up(self, link: Link, reason: str) -> None:
        """Refuse a link, or stop using it, and say why."""
        self._effects += [Send(link.broker, Goodbye(reason)), CloseLink(link.broker, reason)]
        self._lost(link)

    def _on_goodbye(self, link: Link, message: Goodbye) -> None:
        self._effects.append(CloseLink(link.broker, message.reason))
        self._lost(link)

    def _on_link_down(self, link: Link, message: LinkDown) -> None:
        self._lost(link)

    def _lost(self, link: Link) -> None:
        """A link is gone: what came on it is dropped, and nobody waits for it any more."""
        name = link.broker
        del self._links[name]
        if not link.established:
            return
        if link.kind is LinkKind.GRAPH:
            del self._graph_links[name]
            self._end_waves(self._announcements.link_lost(name, self._naming.component))
            return
        self._forwarding.takes_all.pop(name, None)
        self._tables.close_port(name)
        self._tables.filters.drop(link.rows, list(link.rows), name)
        self._tables.advertisements.drop(link.advertisements, list(link.advertisements), name)
        progress = self._waves.ports.pop(name, None)
        if progress is not None:
            self._end_waves([wave.effect for wave in progress.abandon()])
        if self._naming.lose(name):
            self._spread_name(None)

    # Links: the name of the part that they connect

    def _on_joined(self, link: Link, message: Joined) -> None:
        match self._naming.hear(message.component, message.path, link.broker):
            case "adopted":
                self._spread_name(link)
            case "ours":
                link.told = None  # it has let go of what it was told
                self._tell_name(link)
            case "cycle":
                self._give_up(link, f"{self.broker} and {link.broker} are connected by another way, too.")

    def _spread_name(self, source: Link | None) -> None:
        for link in self._links.values():
            if link is not source and link.established and link.kind is not LinkKind.GRAPH:
                self._tell_name(link)
        if self._graph_links:
            self._effects += self._announcements.announce_links(self._naming.component)
            self._leave_graph_if_not_alone()

    def _tell_name(self, link: Link) -> None:
        name = self._naming.component, self._naming.path
        if link.told != name:
            link.told = name
            self._effects.append(Send(link.broker, Joined(*name)))

    # Neighbours

    def _on_update(self, link: Link, message: Update) -> None:
        name = link.broker
        advertises = bool(message.advertise or message.withdraw)
        if not _fits(message.add, message.remove, link.rows) or (
            advertises and not _fits(message.advertise, message.withdraw, link.advertisements)
        ):
            self._give_up(link, f"{name} sent an update that does not fit what it sent before.")
            return
        if advertises:
            self._tables.advertisements.receive(link.advertisements, message.advertise, name)
            self._tables.advertisements.drop(link.advertisements, message.withdraw, name)
        if message.add:
            self._tables.filters.receive(link.rows, message.add, name)
        if message.remove:
            self._tables.filters.drop(link.rows, message.remove, name)
        if message.confirm:
            self._waves.begin(Send(name, Acknowledge(message.version)), name)

    def _on_acknowledge(self, link: Link, message: Acknowledge) -> None:
        progress = self._waves.ports.get(link.broker)
        if progress is not None:
            self._end_waves([wave.effect for wave in progress.confirm(message.version)])

    def _on_forward(self, link: Link, message: Forward) -> None:
        self._effects += self._forwarding.take(message.envelopes, link.broker)

    # The graph

    def _on_link_state(self, link: Link, message: LinkState) -> None:
        self._effects += self._announcements.hear_links(link.broker, message)
        self._leave_graph_if_not_alone()

    def _on_interest(self, link: Link, message: Interest) -> None:
        effects = self._announcements.hear_interest(link.broker, message)
        if effects is None:
            self._give_up(link, f"{link.broker} left out updates of {message.broker}; connect again.")
        else:
            self._end_waves(effects)

    def _on_known(self, link: Link, message: Known) -> None:
        self._end_waves(self._announcements.hear_known(link.broker, message))

    def _leave_graph_if_not_alone(self) -> None:
        """A cluster has one gateway to the graph; of two, the one with the larger name withdraws."""
        for state in self._announcements.graph.states.values():
            same_cluster = state.component == self._naming.component and state.links
            if same_cluster and state.broker < self.broker:
                for link in list(self._graph_links.values()):
                    self._give_up(link, f"{state.broker} is the gateway of this cluster already.")
                return

    # What follows

    def _settle(self) -> None:
        """Tell each port what has changed, ask it to confirm where somebody waits for that, start the waves."""
        waves = self._waves
        starting = waves.starting
        for port, changes in self._tables.settle().items():
            self._update(port, changes, confirm=starting and waves.asks(port))
        if not starting:
            return
        for port, progress in waves.ports.items():
            if progress.sent > progress.asked and waves.asks(port):
                self._update(port, None, confirm=True)
        self._end_waves(waves.launch())

    def _update(self, port: str, changes: Any, *, confirm: bool) -> None:
        progress = self._waves.ports[port]
        progress.sent += 1
        if confirm:
            progress.asked = progress.sent
        update = content.update(progress.sent, changes, confirm=confirm)
        if port == GRAPH:
            self._end_waves(self._announcements.announce(update))
        else:
            self._effects.append(Send(port, update))

    def _end_waves(self, effects: list[Effect]) -> None:
        """Effects, of which answers that nobody waits for any more are left out."""
        for effect in effects:
            match effect:
                case Reply(session, Ready(handle)) if not self._sessions.has(session, handle):
                    continue
                case Send(broker) if broker not in self._links:
                    continue
            self._effects.append(effect)

    # Looking in

    def sent(self, neighbour: str) -> dict[int, Filter]:
        """The rows that a neighbour of the acyclic network was told of."""
        return self._tables.filters.table.sent(neighbour)

    def received(self, neighbour: str) -> dict[int, Filter]:
        """The rows that came from a neighbour of the acyclic network."""
        return {number: entry.item for number, entry in self._links[neighbour].rows.items()}

    def sent_advertisements(self, neighbour: str) -> dict[int, Advertisement]:
        """The advertisements that a neighbour of the acyclic network was told of."""
        return self._tables.advertisements.table.sent(neighbour)

    def received_advertisements(self, neighbour: str) -> dict[int, Advertisement]:
        """The advertisements that came from a neighbour of the acyclic network."""
        return {number: entry.item for number, entry in self._links[neighbour].advertisements.items()}

    def neighbours(self) -> dict[str, LinkKind]:
        """The brokers to which there is a link in use, and what they are to this one."""
        return {name: link.kind for name, link in self._links.items() if link.established}

    def interest(self) -> dict[str, list[Filter]]:
        """What each broker of the graph wants; this broker's entry is what it has told the others."""
        known = {
            name: [entry.item for entry in one.rows.values()] for name, one in self._announcements.known.items()
        }
        return known | {self.broker: list(self._tables.filters.table.sent(GRAPH).values())}

    def statistics(self) -> RouterStatistics:
        known = self._announcements.known.values()
        return RouterStatistics(
            sessions=len(self._sessions),
            links=len(self.neighbours()),
            filters=len(self._tables.filters.table),
            advertisements=len(self._tables.advertisements.table),
            rows_received=sum(len(link.rows) for link in self._links.values())
            + sum(len(one.rows) for one in known),
            rows_sent=sum(len(self.sent(port)) for port in self._waves.ports),
            forwarding=self._forwarding.statistics(),
        )


def _fits(add: Iterable[tuple[int, Any]], remove: Iterable[int], rows: dict[int, Any]) -> bool:
    """Whether all numbers that are added are new, and all that are removed are there."""
    for number, _ in add:
        if number in rows:
            return False
    for number in remove:  # noqa: SIM110 (this is on the way of every update)
        if number not in rows:
            return False
    return True
