"""Routers on a table: a network whose messages go one by one, and a router with imagined neighbours."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable

from palio import Filter, Notification
from palio.model.form import VERSION as FORM
from palio.protocol.inquiries import Hop, Trace, Traced
from palio.protocol.peers import Component, Forward, Hello, LinkKind, Update
from palio.protocol.requests import Publish, Subscribe
from palio.protocol.vocabulary import Answer, ClientMessage, PeerMessage
from palio.routing import Configuration, Router, Strategy
from palio.routing.effects import CloseLink, Deliver, Effect, Reply, Send, SetTimer
from palio.routing.occurrences import LinkDown, LinkUp, Message, Open

OTHER_END = {LinkKind.MASTER: LinkKind.BELOW, LinkKind.BELOW: LinkKind.MASTER}


def router(
    name: str, strategy: str = "covering", *, advertisements: bool = False, excess: float = 0.0
) -> Router:
    return Router(
        Configuration(
            broker=name, strategy=Strategy(strategy), advertisements=advertisements, merging_excess=excess
        )
    )


class Network:
    """Brokers, links and sessions; `run` delivers all messages, oldest first, until none is left."""

    def __init__(
        self,
        links: Iterable[tuple[str, str]] = (),
        *,
        kind: LinkKind = LinkKind.PEER,
        brokers: Iterable[str] = (),
        strategy: str = "covering",
        advertisements: bool = False,
        excess: float = 0.0,
    ) -> None:
        links = list(links)
        names = dict.fromkeys([*brokers, *[name for link in links for name in link]])
        self.routers = {
            name: router(name, strategy, advertisements=advertisements, excess=excess) for name in names
        }
        self.under_way: deque[tuple[str, Message, str]] = deque()
        self.sent: list[tuple[str, str, PeerMessage]] = []
        self.delivered: list[tuple[str, Notification, tuple[str, ...]]] = []
        self.answers: list[tuple[str, Answer]] = []
        self.closed: list[tuple[str, str, str]] = []
        self.timers: dict[tuple[str, str], float] = {}
        for one, other in links:
            self.connect(one, other, kind)
        self.run()

    def connect(self, one: str, other: str, kind: LinkKind = LinkKind.PEER, cost: float = 1.0) -> None:
        """Link two brokers; the kind is what the other one is to the first."""
        self.under_way.append((one, LinkUp(kind, cost), other))
        self.under_way.append((other, LinkUp(OTHER_END.get(kind, kind), cost), one))

    def disconnect(self, one: str, other: str) -> None:
        # What is under way on the link is lost with it.
        self.under_way = deque([item for item in self.under_way if {item[0], item[2]} != {one, other}])
        self.under_way.append((one, LinkDown(), other))
        self.under_way.append((other, LinkDown(), one))

    def ask(self, broker: str, session: str, *messages: ClientMessage) -> None:
        """Messages of a session, and all that follows from them."""
        self.under_way += [(broker, message, session) for message in messages]
        self.run()

    def subscribe(self, broker: str, session: str, *filters: str) -> None:
        self.ask(broker, session, Open(), *[Subscribe(text, Filter.parse(text), True) for text in filters])

    def publish(self, broker: str, session: str, **attributes: object) -> None:
        self.ask(broker, session, Open(), Publish((Notification(attributes),)))

    def trace(self, broker: str, session: str, notification: Notification) -> Hop:
        """The way that a notification would take."""
        self.answers = [one for one in self.answers if not isinstance(one[1], Traced)]
        self.ask(broker, session, Open(), Trace(1, notification))
        (route,) = [answer.route for _, answer in self.answers if isinstance(answer, Traced)]
        return route

    def wait(self) -> None:
        """Time passes until the next timer is due."""
        (name, timer), at = min(self.timers.items(), key=lambda item: item[1])
        del self.timers[name, timer]
        self._carry_out(name, self.routers[name].on_timer(timer, at))
        self.run()

    def run(self) -> None:
        while self.under_way:
            self.step()

    def step(self, choose: random.Random | None = None) -> None:
        """Deliver the oldest message, or the oldest of some link or session."""
        if choose is not None:
            ways = list(dict.fromkeys([(name, source) for name, _, source in self.under_way]))
            way = choose.choice(ways)
            index = next(i for i, (name, _, source) in enumerate(self.under_way) if (name, source) == way)
            self.under_way.rotate(-index)
            item = self.under_way.popleft()
            self.under_way.rotate(index)
        else:
            item = self.under_way.popleft()
        name, message, source = item
        self._carry_out(name, self.routers[name].handle(message, source, 0.0))

    def _carry_out(self, name: str, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Send(broker, message):
                    self.sent.append((name, broker, message))
                    self.under_way.append((broker, message, name))
                case Deliver(session, envelopes, handles):
                    self.delivered += [(session, envelope.notification, handles) for envelope in envelopes]
                case Reply(session, answer):
                    self.answers.append((session, answer))
                case SetTimer(timer, at):
                    self.timers[name, timer] = at
                case CloseLink(broker, reason):
                    self.closed.append((name, broker, reason))

    def forget(self) -> None:
        """Forget what was recorded so far."""
        for record in (self.sent, self.delivered, self.answers, self.closed):
            record.clear()

    def ways(self, kind: type = Forward) -> list[tuple[str, str]]:
        """From where to where messages of a kind went, in their order."""
        return [(one, other) for one, other, message in self.sent if isinstance(message, kind)]

    def takers(self) -> list[str]:
        """The sessions that got something, once for each notification."""
        return sorted(session for session, _, _ in self.delivered)


class Bench:
    """One router, whose neighbours are imagined: what it sends them is looked at, not delivered."""

    def __init__(self, *neighbours: str, strategy: str = "covering", kind: LinkKind = LinkKind.PEER) -> None:
        self.router = router("1", strategy)
        self._versions: dict[str, int] = {}
        self._numbers: dict[tuple[str, str], int] = {}
        for name in neighbours:
            self.router.handle(LinkUp(kind), name, 0.0)
            hello = Hello(
                OTHER_END.get(kind, kind), 1.0, self.router.configuration.terms, Component(name), (name,), FORM
            )
            self.router.handle(hello, name, 0.0)

    def hear(self, neighbour: str, add: str | None = None, remove: str | None = None) -> dict[str, set[str]]:
        """An update from a neighbour. Returns what it makes the router tell the others."""
        version = self._versions[neighbour] = self._versions.get(neighbour, 0) + 1
        rows, numbers = (), ()
        if add is not None:
            self._numbers[neighbour, add] = version
            rows = ((version, Filter.parse(add)),)
        if remove is not None:
            numbers = (self._numbers.pop((neighbour, remove)),)
        return self.told(self.router.handle(Update(version, rows, numbers), neighbour, 0.0))

    def ask(self, session: str, *messages: ClientMessage) -> dict[str, set[str]]:
        """Requests of a client. Returns what the last one makes the router tell its neighbours."""
        before = {name: self.router.sent(name) for name in self.router.neighbours()}
        effects = []
        for message in (Open(), *messages):
            before = {name: self.router.sent(name) for name in self.router.neighbours()}
            effects = self.router.handle(message, session, 0.0)
        return self.told(effects, before)

    def told(
        self, effects: list[Effect], before: dict[str, dict[int, Filter]] | None = None
    ) -> dict[str, set[str]]:
        """For each neighbour the filters that were added (+) and removed (-), which is one update each."""
        told: dict[str, set[str]] = {}
        for effect in effects:
            if isinstance(effect, Send) and isinstance(effect.message, Update):
                assert effect.broker not in told
                told[effect.broker] = {f"+ {filter}" for _, filter in effect.message.add} | {
                    f"- {(before or {}).get(effect.broker, {}).get(number, number)}"
                    for number in effect.message.remove
                }
        return told


def brokers_of(hop: Hop) -> list[str]:
    """The brokers of a route, from its root on."""
    return [hop.broker, *[name for one in hop.onward for name in brokers_of(one)]]


def recipients_of(hop: Hop) -> dict[str, list[str]]:
    """The sessions of a route, with their handles."""
    found = {one.name: sorted(one.handles) for one in hop.recipients if not one.durable}
    for onward in hop.onward:
        found |= recipients_of(onward)
    return found
