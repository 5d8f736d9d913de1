"""Links to neighbours: the handshake, what comes on a link, and how it ends.

A link is used once both ends have said hello and found that they go together; then each sends the other what
it has to know, as an update like any other. When a link goes, all that came on it is dropped, at once or by
and by as `reconfiguration` says; what that means for others follows from the tables. Which links are wanted is
for the `overlay` to say.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import msgspec

from palio.model.form import VERSION as FORM
from palio.protocol import overlay, peers
from palio.protocol.reconfiguration import Activate, Flush, Prepare
from palio.protocol.sharing import Share
from palio.routing.configuration import Strategy, is_relay
from palio.routing.core import Core
from palio.routing.effects import CloseLink, Send, SetTimer
from palio.routing.inquiry_routing import InquiryRouting
from palio.routing.links import COUNTERPART, NeighbourLink
from palio.routing.occurrences import LinkDown, LinkUp, NotReached, Resolved
from palio.routing.overlay.effects import (
    FOUND_DEAD,
    JOINED,
    MADE,
    PARTED,
    REMOVED_IN_ORDER,
    OverlayEvent,
)
from palio.routing.overlay.look import OverlayShell
from palio.routing.overlay.manager import (
    CYCLE,
    LATER,
    REMOVED,
    TERMS,
    FixedLinks,
    Manager,
    Refusal,
    ended_how,
)
from palio.routing.overlay.mesh import MeshOverlay
from palio.routing.overlay.tree import TreeOverlay
from palio.routing.reconfiguration.parking import PARKED
from palio.routing.reconfiguration.protocols import Loss, Reconfiguration
from palio.routing.table import GRAPH
from palio.routing.waves import PortProgress

# The timer of names that are to be told.
NAMES = "names"
# Characters of a reason that somebody else gives.
_LONGEST_REASON = 500
# What may come on a link before both ends have agreed to use it.
_BEFORE_HELLO = frozenset((peers.Hello, peers.Goodbye, LinkDown))
# What the overlay has to look at; and whatever has ended a link.
_ABOUT_LINKS = _BEFORE_HELLO | {
    peers.Joined,
    peers.LinkState,
    overlay.Nearby,
    overlay.Suggest,
    Activate,
}


class Neighbours:
    """Handles what other brokers send to a router."""

    def __init__(self, core: Core, asking: InquiryRouting) -> None:
        self._core = core
        self._asking = asking
        self._links = core.links
        self._filters = core.tables.filters
        self._advertisements = core.tables.advertisements
        # What other parts of the router take, by the name of the neighbour.
        self._others: dict[type, Callable[[str, Any], None]] = asking.link_handlers | core.sharing.link_handlers
        if core.between is not None:
            self._others |= core.between.link_handlers
        self._owing = False  # somebody the name of the part
        self._removed: set[str] = set()  # brokers; by hand, since this one has begun
        self.reconfiguration = Reconfiguration(core, self._open_port)
        self.overlay = self._make_overlay()

    def _make_overlay(self) -> Manager:
        core, settings = self._core, self._core.configuration.overlay
        around = OverlayShell(
            core.broker, settings, core.links, lambda: core.effects, lambda: core.now, self._refuse
        )
        if settings.is_tree:
            return TreeOverlay(around, core.naming)
        if settings.kind == "mesh":
            return MeshOverlay(around, core.announcements.graph)
        return FixedLinks()

    def handle(self, kind: type, message: Any, source: str) -> bool:
        """Handles a message of a neighbour; ignored if the link went down while it was under way.

        Returns False if it is nothing that neighbours say.
        """
        handler = _HANDLERS.get(kind)
        if handler is None and kind not in self._others:
            return self._handle_about_links(kind, message, source)
        link = self._links.get(source)
        if link is None or not (link.established or kind in _BEFORE_HELLO):
            return True
        if handler is not None:
            handler(self, link, message)
        else:
            self._others[kind](source, message)
        if kind in _ABOUT_LINKS or source not in self._links:
            self._settle_overlay()
        return True

    def _handle_about_links(self, kind: type, message: Any, source: str) -> bool:
        if kind is LinkUp:
            self._link_up(source, message)
        elif kind is NotReached:
            self.overlay.not_reached(message)
        elif kind is Resolved:
            self.overlay.resolved(message)
        else:
            return False
        self._settle_overlay()
        return True

    def begin(self, address: str, met: Sequence[overlay.Contact]) -> None:
        """The broker can be reached at this address, and looks for neighbours if it is to."""
        self.overlay.begin(address, met)
        self._settle_overlay()

    def on_timer(self) -> None:
        """It is time for the overlay to look again."""
        self.overlay.on_timer()
        self._settle_overlay()

    def _settle_overlay(self) -> None:
        self.overlay.settle()
        self._core.waves.hold(self.overlay.is_seeking() or self.reconfiguration.is_activating)

    def on_reconfiguration_timer(self, name: str) -> None:
        """It is time to drop what is parked, or to tell what is held back."""
        self.reconfiguration.on_timer(name)
        self._settle_overlay()

    def remove(self, broker: str) -> None:
        """An operator wants no link to this broker; there will be none until one wants it again."""
        link = self._links.get(broker)
        if link is None:
            return
        self._removed.add(broker)
        self.overlay.bar(broker)
        self._refuse(link, self._removal())
        self._settle_overlay()

    def _removal(self) -> Refusal:
        ours = self._core.broker
        return Refusal(
            REMOVED, f"An operator has removed this link at {ours}; there it can be added again, too."
        )

    # Links: their beginning

    def _link_up(self, broker: str, message: LinkUp) -> None:
        if broker in self._core.links:
            return
        link = self._core.links[broker] = NeighbourLink(broker, message.kind, message.cost, host=message.host)
        if message.by_hand:
            self._removed.discard(broker)
        if message.dialled:
            link.asks = self.overlay.dialled(link, message.dialled)
            if not link.asks:
                self._refuse(link, Refusal(LATER, f"{self._core.broker} does not need this link any more."))
                return
        if broker in self._removed:
            self._refuse(link, self._removal())
            return
        if not message.asked:  # otherwise who asks says hello first
            self._say_hello(link)

    def _say_hello(self, link: NeighbourLink) -> None:
        naming = self._core.naming
        link.tell(naming.component, naming.path)
        terms, shared = self._core.configuration.terms, self._core.sharing.records.digests()
        standing = self.overlay.standing(link)
        name = naming.component, naming.path
        hello = peers.Hello(link.kind, link.cost, terms, *name, FORM, shared, standing, reconfigures=True)
        if self.reconfiguration.activates(link):
            hello = msgspec.structs.replace(hello, activates=True)
        self._core.effects.append(Send(link.broker, hello))

    def _on_hello(self, link: NeighbourLink, hello: peers.Hello) -> None:
        if link.established:
            return
        refusal = self._objection(link, hello) or self.overlay.objection(link, hello)
        if refusal is not None:
            self._refuse(link, refusal)
            return
        if link.told is None:
            self._say_hello(link)
        link.established, link.is_relay = True, is_relay(hello.terms)
        part = self._core.naming.component
        self._core.sharing.link_gained(link, hello.shared)  # before any row
        if link.kind is peers.LinkKind.GRAPH:
            self._join_graph(link)
        else:
            self._join_tree(link, hello)
        self.overlay.gained(link, hello)
        self._asking.link_gained()
        if self._core.between is not None:
            self._core.between.link_gained(link.broker, is_relay=link.is_relay)
        self._core.effects.append(OverlayEvent(MADE, link.broker))
        if self._core.naming.component != part:
            self._core.effects.append(OverlayEvent(JOINED, link.broker, part=self._part))

    def _objection(self, link: NeighbourLink, hello: peers.Hello) -> Refusal | None:
        """Why the link must not be used."""
        ours, theirs = self._core.broker, link.broker
        if ours == theirs:
            return Refusal(TERMS, f"The broker {ours} cannot be its own neighbour.")
        if theirs.startswith(PARKED):
            return Refusal(TERMS, f"No broker can be called {theirs!r}.")
        if hello.form != FORM:
            return Refusal(
                TERMS,
                f"{theirs} writes filters in version {hello.form} of their form, {ours} in version {FORM}; "
                "run the same version of Palio at both.",
            )
        if not self._core.configuration.agrees_with(hello.terms):
            terms = f"{theirs} does {hello.terms} routing, {ours} {self._core.configuration.terms} routing."
            return Refusal(TERMS, terms)
        if is_relay(hello.terms) and theirs in self._members():
            return Refusal(
                TERMS,
                f"{theirs} is a relay now, but had a journal, for which others wait. Start it with its journal "
                f"and let it leave (palio leave), or let it be forgotten (palio forget {theirs}).",
            )
        if hello.kind is not COUNTERPART[link.kind]:
            kinds = f"{link.kind.value} and {hello.kind.value}"
            return Refusal(TERMS, f"{ours} and {theirs} do not agree what they are to each other: {kinds}.")
        others = [other.kind for other in self._core.links.values() if other.established]
        if link.kind is peers.LinkKind.MASTER and peers.LinkKind.MASTER in others:
            return Refusal(TERMS, f"{ours} has a master already.")
        if {peers.LinkKind.MASTER, peers.LinkKind.GRAPH} <= {*others, link.kind}:
            return Refusal(TERMS, f"{ours} has a master; only the top of a hierarchy can be part of a graph.")
        names = {self._core.naming.component}
        if link.told is not None:
            names.add(link.told[0])
        connected = hello.component in names or self._core.naming.came_through_us(hello.component, hello.path)
        if link.kind is not peers.LinkKind.GRAPH and connected:
            return Refusal(CYCLE, f"{ours} and {theirs} are connected already; this link would close a cycle.")
        return None

    def _members(self) -> Collection[str]:
        """The brokers whose journals are waited for, as far as this one has a part in that."""
        durable = self._core.durable
        return durable.topology.known if durable is not None else ()

    def _join_tree(self, link: NeighbourLink, hello: peers.Hello) -> None:
        flooding = self._core.configuration.strategy is Strategy.FLOODING
        if flooding or link.kind is peers.LinkKind.MASTER:
            self._core.forwarding.takes_all[link.broker] = None
        link.knows_reconfiguration = hello.reconfigures
        if self.reconfiguration.link_gained(link, hello):
            self._open_port(link)
        assert link.told is not None
        adopts = self.overlay.adopts(link, hello)
        if adopts is None:
            adopts = hello.component < link.told[0]
        if adopts:
            self._core.naming.adopt(hello.component, hello.path, link.broker)
            self._spread_name(link)
        else:
            self._tell_name(link)

    def _open_port(self, link: NeighbourLink) -> None:
        """Begin to tell rows on a link."""
        flooding = self._core.configuration.strategy is Strategy.FLOODING
        if not flooding and link.kind is not peers.LinkKind.BELOW:
            self._core.waves.ports[link.broker] = PortProgress()
            self._core.tables.open_port(link.broker, attracts_all=link.kind is peers.LinkKind.MASTER)

    def _join_graph(self, link: NeighbourLink) -> None:
        self._core.graph_links[link.broker] = link
        self._core.effects += self._core.announcements.link_established(link, self._core.naming.component)
        if (port := self._core.waves.ports.get(GRAPH)) is not None:
            port.asked = min(port.asked, port.sent - 1)  # the neighbour has not confirmed what it is told now
        elif self._core.configuration.strategy is not Strategy.FLOODING:
            self._core.waves.ports[GRAPH] = PortProgress(self._core.announcements.first_version)
            self._core.tables.open_port(GRAPH)

    # Links: their end

    def _give_up(self, link: NeighbourLink, reason: str) -> None:
        """Stop using a link, and say why."""
        self._refuse(link, Refusal("", reason))

    def _refuse(self, link: NeighbourLink, refusal: Refusal) -> None:
        """Refuse a link, or stop using it, and say why."""
        goodbye = peers.Goodbye(refusal.reason, refusal.why, refusal.others)
        self._core.effects += [
            Send(link.broker, goodbye),
            CloseLink(link.broker, refusal.reason, refusal.why),
        ]
        if link.asks and not link.established:
            self.overlay.refused(link, goodbye)
        self._lost(link, None, refusal.why)

    def _on_goodbye(self, link: NeighbourLink, message: peers.Goodbye) -> None:
        message = msgspec.structs.replace(message, reason=message.reason[:_LONGEST_REASON])
        self._core.effects.append(CloseLink(link.broker, message.reason, message.why))
        if not link.established:
            self.overlay.refused(link, message)
        self._lost(link, message)

    def _on_link_down(self, link: NeighbourLink, message: LinkDown) -> None:
        self._lost(link, message)

    def _lost(self, link: NeighbourLink, message: LinkDown | peers.Goodbye | None, why: str = "") -> None:
        """Handles a lost link: what came on it is dropped, and nobody waits for it any more."""
        part = self._core.naming.component
        self._drop(link)
        if link.established:
            self._tell_of_end(link, why or ended_how(message), parted=self._core.naming.component != part)
        self.overlay.lost(link, message)

    def _tell_of_end(self, link: NeighbourLink, how: str, *, parted: bool) -> None:
        what = FOUND_DEAD if how in ("lost", "silent") else REMOVED_IN_ORDER
        looks = parted and self.overlay.repairs
        self._core.effects.append(OverlayEvent(what, link.broker, how, looks=looks))
        if parted:
            self._core.effects.append(OverlayEvent(PARTED, link.broker, how, part=self._part))

    @property
    def _part(self) -> str:
        """What the part of the network is called that this broker is in."""
        component = self._core.naming.component
        return f"{component.broker}.{component.count}"

    def _drop(self, link: NeighbourLink) -> None:
        name = link.broker
        del self._core.links[name]
        if not link.established:
            return
        if self._core.between is not None:
            self._core.between.link_lost(name)
        self._asking.link_lost(name)
        self._core.sharing.link_lost(name)
        if link.kind is peers.LinkKind.GRAPH:
            del self._core.graph_links[name]
            self._core.end_waves(self._core.announcements.link_lost(name, self._core.naming.component))
            return
        self._core.forwarding.takes_all.pop(name, None)
        told_alone = self.reconfiguration.closing(link)
        self._core.tables.close_port(name)
        progress = self._core.waves.ports.pop(name, None)
        naming = self._core.naming
        loss = Loss(name, naming.component, naming.path[:-1], told_alone, self._core.now)
        is_new = naming.lose(name)
        self.reconfiguration.link_lost(link, loss if is_new else None)
        if progress is not None:
            self._core.waves.begin_anew(progress.abandon())
        if is_new:
            self._spread_name(None)

    # Links: the name of the part that they connect

    def _on_joined(self, link: NeighbourLink, message: peers.Joined) -> None:
        match self._core.naming.hear(message.component, message.path, link.broker):
            case "adopted":
                self._spread_name(link)
            case "ours":
                link.told = None  # it has let go of what it was told
                self._tell_name(link)
            case "cycle":
                self.overlay.closed_a_loop(link)
                self._give_up(link, f"{self._core.broker} and {link.broker} are connected by another way, too.")

    def _spread_name(self, source: NeighbourLink | None) -> None:
        self.reconfiguration.named()
        for link in self._core.links.values():
            if link is not source and link.established and link.kind is not peers.LinkKind.GRAPH:
                self._tell_name(link)
        if self._core.graph_links:
            self._core.effects += self._core.announcements.announce_links(self._core.naming.component)
            self._leave_graph_if_not_alone()

    def _tell_name(self, link: NeighbourLink) -> None:
        name = self._core.naming.component, self._core.naming.path
        if link.told == name:
            return
        if link.pace.takes(self._core.now):
            link.tell(*name)
            self._core.effects.append(Send(link.broker, peers.Joined(*name)))
        elif not self._owing:
            self._owing = True
            self._core.effects.append(SetTimer(NAMES, link.pace.next))

    def tell_names(self) -> None:
        """It is time to tell those the name of the part who were told too many of late."""
        self._owing = False
        for link in self._core.links.values():
            # Who has told us the name meanwhile would take it for one that has come round a cycle.
            knows = link.broker == self._core.naming.toward
            if link.established and link.kind is not peers.LinkKind.GRAPH and not knows:
                self._tell_name(link)

    # Neighbours

    def _on_update(self, link: NeighbourLink, message: peers.Update) -> None:
        name = link.broker
        add, remove = message.add, message.remove
        advertises = bool(message.advertise or message.withdraw)
        if not _fits(add, remove, link.rows) or (
            advertises and not _fits(message.advertise, message.withdraw, link.advertisements)
        ):
            self._give_up(link, f"{name} sent an update that does not fit what it sent before.")
            return
        if advertises:
            self._advertisements.receive(link.advertisements, message.advertise, name)
            self._advertisements.drop(link.advertisements, message.withdraw, name)
        if add:
            self._filters.receive(link.rows, add, name)
        if remove:
            self._filters.drop(link.rows, remove, name)
        if message.confirm:
            self._core.waves.begin(Send(name, peers.Acknowledge(message.version)), name)

    def _on_acknowledge(self, link: NeighbourLink, message: peers.Acknowledge) -> None:
        progress = self._core.waves.ports.get(link.broker)
        if progress is not None:
            self._core.end_waves([wave.effect for wave in progress.confirm(message.version)])

    def _on_forward(self, link: NeighbourLink, message: peers.Forward) -> None:
        self._core.effects += self._core.forwarding.take(message.envelopes, link.broker)

    def _on_overlay(self, link: NeighbourLink, message: overlay.Nearby | overlay.Suggest) -> None:
        self.overlay.hear(link.broker, message)

    def _on_reconfiguration(self, link: NeighbourLink, message: Flush | Prepare | Activate) -> None:
        self.reconfiguration.hear(link.broker, message)

    def _on_share(self, link: NeighbourLink, message: Share) -> None:
        reason = self._core.sharing.hear(link.broker, message)
        if reason is not None:
            self._give_up(link, reason)

    # The graph

    def _on_link_state(self, link: NeighbourLink, message: peers.LinkState) -> None:
        self._core.effects += self._core.announcements.hear_links(link.broker, message)
        self._leave_graph_if_not_alone()
        self.overlay.heard_of_links()

    def _on_interest(self, link: NeighbourLink, message: peers.Interest) -> None:
        effects = self._core.announcements.hear_interest(link.broker, message)
        if effects is None:
            self._give_up(link, f"{link.broker} left out updates of {message.broker}; connect again.")
        else:
            self._core.end_waves(effects)

    def _on_known(self, link: NeighbourLink, message: peers.Known) -> None:
        self._core.end_waves(self._core.announcements.hear_known(link.broker, message))

    def _leave_graph_if_not_alone(self) -> None:
        """A cluster has one gateway to the graph; of two, the one with the larger name withdraws."""
        for state in self._core.announcements.graph.states.values():
            same_cluster = state.component == self._core.naming.component and state.links
            if same_cluster and state.broker < self._core.broker:
                for link in list(self._core.graph_links.values()):
                    self._give_up(link, f"{state.broker} is the gateway of this cluster already.")
                return


def _fits(add: Iterable[tuple[int, Any]], remove: Iterable[int], rows: dict[int, Any]) -> bool:
    """Whether all numbers that are added are new, and all that are removed are there."""
    for number, _ in add:
        if number in rows:
            return False
    for number in remove:  # noqa: SIM110 (this is on the way of every update)
        if number not in rows:
            return False
    return True


_HANDLERS: dict[type, Callable[[Neighbours, NeighbourLink, Any], None]] = {
    peers.Hello: Neighbours._on_hello,
    peers.Goodbye: Neighbours._on_goodbye,
    LinkDown: Neighbours._on_link_down,
    peers.Joined: Neighbours._on_joined,
    peers.Update: Neighbours._on_update,
    peers.Acknowledge: Neighbours._on_acknowledge,
    peers.Forward: Neighbours._on_forward,
    peers.LinkState: Neighbours._on_link_state,
    peers.Interest: Neighbours._on_interest,
    peers.Known: Neighbours._on_known,
    Share: Neighbours._on_share,
    overlay.Nearby: Neighbours._on_overlay,
    overlay.Suggest: Neighbours._on_overlay,
    Flush: Neighbours._on_reconfiguration,
    Prepare: Neighbours._on_reconfiguration,
    Activate: Neighbours._on_reconfiguration,
}
