"""A small world in which everything goes wrong: brokers with disks that crash, links that break, and one seed.

Everything that can happen next is a choice: a message of some link arrives, the store completes something, a
timer comes due, a broker crashes or begins anew, a link is cut or made. `heal` repairs everything and lets the
world come to rest. The disk is the simulator's. The simulator's own world has clocks, and so an order in which
things happen; in this one they happen in any.
"""

from __future__ import annotations

import random
from collections import deque

from palio import Filter, Notification
from palio.protocol.durable.journals import Forgot
from palio.protocol.durable.retry import Patience
from palio.protocol.durable.subscriptions import (
    Acknowledged,
    Attach,
    Attached,
    Changed,
    Discarded,
    Done,
    DurableReady,
    GapNoticed,
    Requeued,
    Taken,
)
from palio.protocol.peers import LinkKind
from palio.protocol.requests import Publish, Published, Refused
from palio.routing import Configuration, Router, Strategy
from palio.routing.durable.desk import DurableSettings
from palio.routing.durable.effects import Hand, HasLeft, ReportForgotten, ReportGap, Trim
from palio.routing.effects import CloseLink, Reply, Send, SetTimer
from palio.routing.occurrences import Failed, LinkDown, LinkUp, Open
from palio.routing.overlay.effects import OverlayEvent
from palio.sim.faults.disk import Disk

SETTINGS = DurableSettings(
    patience=Patience(in_flight=4, acknowledge_within=5.0, first_pause=0.5, attempts=1_000), page=3, outbox=50
)


class World:
    """Brokers, disks, links and clients, moved on by one random generator."""

    def __init__(self, seed, brokers, links, *, kind=LinkKind.PEER, strategy="covering", relays=()) -> None:
        """The `relays` among the brokers have a disk here that nothing is ever written to."""
        self.choose = random.Random(f"{seed}")
        self.now = 0.0
        self.strategy = strategy
        self.relays = relays
        self.kind = kind
        self.links = {frozenset(link): link for link in links}
        self.up = set()
        self.disks = {name: Disk() for name in brokers}
        self.incarnations = dict.fromkeys(brokers, 0)
        self.routers = {}
        self.messages = {}  # (to, source) -> deque
        self.stores = {}  # broker -> deque of effects that are not completed
        self.timers = {}  # (broker, name) -> time
        self.history = []
        self.takers = {}  # session -> broker
        for name in brokers:
            self.begin(name)
        for link in links:
            self.connect(frozenset(link))

    # What can go wrong

    def begin(self, name) -> None:
        self.incarnations[name] += 1
        configuration = Configuration(
            broker=name,
            strategy=Strategy(self.strategy),
            incarnation=self.incarnations[name],
            durable=None if name in self.relays else SETTINGS,
            relay=name in self.relays,
        )
        self.disks[name].open(self.incarnations[name], f"{name} {self.incarnations[name]}")
        self.routers[name] = Router(configuration, recovered=self.disks[name].recovered())
        self.stores[name] = deque()
        self.note("begins", name)
        self.carry_out(name, self.routers[name].on_timer("begin", self.now))

    def crash(self, name) -> None:
        self.note("crashes", name)
        # What was not completed is lost, but for a prefix that had reached the disk.
        for effect in list(self.stores[name])[: self.choose.randint(0, len(self.stores[name]))]:
            self.disks[name].write(effect)
        del self.routers[name], self.stores[name]
        for key in [key for key in self.timers if key[0] == name]:
            del self.timers[key]
        for link in sorted([link for link in self.up if name in link], key=sorted):
            self.cut(link)
        for session in [session for session, broker in self.takers.items() if broker == name]:
            del self.takers[session]
        self.messages = {key: queue for key, queue in self.messages.items() if key[0] != name}

    def connect(self, link) -> None:
        one, other = self.links[link]
        if link in self.up or one not in self.routers or other not in self.routers:
            return
        self.note("link up", sorted(link))
        self.up.add(link)
        back = {LinkKind.MASTER: LinkKind.BELOW}.get(self.kind, self.kind)
        self.post(one, LinkUp(self.kind), other)
        self.post(other, LinkUp(back), one)

    def cut(self, link) -> None:
        self.note("link down", sorted(link))
        self.up.discard(link)
        one, other = sorted(link)
        for name, neighbour in ((one, other), (other, one)):
            self.messages.pop((name, neighbour), None)
            if name in self.routers:
                self.post(name, LinkDown(orderly=False), neighbour)

    # Mechanics

    def post(self, name, message, source) -> None:
        self.messages.setdefault((name, source), deque()).append(message)

    def step(self) -> bool:
        """One thing happens; False if nothing can but time."""
        ways = [("message", key) for key, queue in self.messages.items() if queue]
        ways += [("store", name) for name, queue in self.stores.items() if queue]
        if not ways:
            return False
        what, key = self.choose.choice(ways)
        if what == "message":
            name, source = key
            self.carry_out(name, self.routers[name].handle(self.messages[key].popleft(), source, self.now))
        else:
            message = self.disks[key].carry_out(self.stores[key].popleft())
            assert not isinstance(message, Failed), "nobody said that this disk would fail"
            self.carry_out(key, self.routers[key].handle(message, "store", self.now))
        return True

    def wait(self) -> bool:
        """Time passes until the next timer; False if there is none within a day."""
        soon = [(at, key) for key, at in self.timers.items() if at < self.now + 86_400.0]
        if not soon:
            return False
        at, (name, timer) = min(soon)
        del self.timers[name, timer]
        self.now = max(self.now, at)
        self.carry_out(name, self.routers[name].on_timer(timer, self.now))
        return True

    def carry_out(self, name, effects) -> None:
        for effect in effects:
            match effect:
                case Send(broker, message):
                    if frozenset((name, broker)) in self.up:
                        self.post(broker, message, name)
                case Reply(session, answer):
                    self.answered(session, answer)
                case Hand():
                    self.handed(name, effect)
                case SetTimer(timer, at):
                    self.timers[name, timer] = at
                case CloseLink(broker, reason):
                    self.up.discard(frozenset((name, broker)))
                    self.note("closed", name, broker, reason)
                case ReportGap(gap, durable):
                    self.note("gap", name, durable, gap.origin, gap.after, gap.upto)
                case ReportForgotten(broker, why):
                    self.note("forgotten", name, broker, why)
                case HasLeft():
                    self.note("left", name)
                case Trim():
                    self.disks[name].write(effect)
                case OverlayEvent():
                    pass
                case _:
                    self.stores[name].append(effect)

    def note(self, *what) -> None:
        self.history.append((round(self.now, 3), *what))

    # Clients

    def attach(self, session, broker, name, text, *, since="now", anew=False) -> None:
        self.takers[session] = broker
        self.note("attach", session, broker, name, text)
        self.post(broker, Open(), session)
        self.post(broker, Attach(name, Filter.parse(text), since, anew, as_is=True), session)

    def publish(self, session, broker, request, notification) -> None:
        self.note("publish", session, broker, request, dict(notification.attributes))
        self.post(broker, Open(), session)
        self.post(broker, Publish((notification,), request), session)

    def answered(self, session, answer) -> None:
        match answer:
            case Attached(name) | DurableReady(name) | Changed(name) | Taken(name) | Forgot(name):
                self.note(type(answer).__name__, session, name)
            case GapNoticed(name, origin, after, upto):
                self.note("GapNoticed", session, name, origin, after, upto)
            case Done(name, deliveries):
                self.note("done", session, name, deliveries)
            case Published(request):
                self.note("confirmed", session, request)
            case Requeued(name, deliveries) | Discarded(name, deliveries):
                self.note(type(answer).__name__, session, name, deliveries)
            case Refused(subject, error, reason):
                self.note("refused", session, subject, error, reason)

    def handed(self, broker, hand: Hand) -> None:
        for delivery, attempt, envelope in hand.deliveries:
            self.note("handed", hand.session, hand.name, delivery, attempt, envelope.origin,
                      envelope.sequence, envelope.notification["n"])  # fmt: skip
            if self.choose.random() < 0.8:
                self.post(broker, Acknowledged(hand.name, (delivery,)), hand.session)

    def run(self, limit=20_000) -> None:
        """Until nothing happens and no timer is left, or everybody only waits for time to pass."""
        for _ in range(limit):
            if not self.step() and not self.wait():
                return
        raise AssertionError("The world does not come to rest.")

    def heal(self) -> None:
        for name in self.disks:
            if name not in self.routers:
                self.begin(name)
        for link in self.links:
            self.connect(link)


def number(n, **attributes) -> Notification:
    return Notification({"n": n, **attributes})
