"""`OverlayWorld`: brokers on a map, of which any two can connect, and one queue of events.

How long a message takes depends on how far two brokers are from each other. A connection keeps the order of
what is sent on it; what was under way when it breaks is lost. To dial somebody takes two ways: it succeeds, is
refused (nobody listens there, or the two are connected already), or is not answered at all. An address with a
name is resolved each time, perhaps to somebody else for each who asks (`names`).

Each broker subscribes to what is meant for it. Events that are published meanwhile are counted: how often each
has come to a broker, and whether it was delivered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from math import dist
from random import Random
from typing import Any

from palio.model.filter import Filter
from palio.model.notification import Notification
from palio.protocol.overlay import Contact
from palio.protocol.peers import Forward, Hello
from palio.protocol.requests import Publish, Ready, Subscribe
from palio.routing.configuration import Configuration, Strategy
from palio.routing.effects import CloseLink, Deliver, Reply, Send
from palio.routing.facts import Facts
from palio.routing.occurrences import LinkDown, LinkUp, NotReached, Open
from palio.routing.overlay.effects import Dial, OverlayEvent
from palio.routing.overlay.settings import OverlaySettings, normal
from palio.routing.reconfiguration.settings import ReconfigurationSettings
from palio.routing.router import Router
from palio.sim.effect_loop import EffectLoop
from palio.sim.overlay.script import (
    BEGIN_WITHIN,
    CrashBrokers,
    CutConnection,
    JoinBroker,
    LeaveBroker,
    OverlayScenario,
    PartNetwork,
    SlowNetwork,
)

# Seconds: between two brokers side by side, and between opposite corners of the map on top of that.
_NEAR, _FAR = 0.0005, 0.08
# Until a silent end is noticed: three heartbeats; and until somebody who dials gives up.
SILENCE = 3.0
_UNANSWERED = 5.0
# Messages for each broker after which a network is taken for one that does not come to rest. In a mesh all are
# told of all links, by each of their neighbours.
MOST_SAID = {"tree": 1_000, "mesh": 10_000}

RouterMaker = Callable[..., Router]


class OverlayBroker:
    """A broker at a place. `life` counts how often it has begun."""

    def __init__(self, number: int, place: tuple[float, float]) -> None:
        self.number = number
        self.name = f"b{number}"
        self.address = f"10.0.{number // 250}.{number % 250 + 1}:7070"
        self.place = place
        self.router: Router | None = None
        self.life = 0
        self.gone = False
        self.timers: dict[str, int] = {}
        self.connections: dict[str, Connection] = {}  # as this broker knows them


class Connection:
    """A connection of two brokers; each end may know of it or not."""

    def __init__(self, ends: tuple[OverlayBroker, OverlayBroker]) -> None:
        self.ends = ends
        self.up = True
        self.arrival = {one.name: 0.0 for one in ends}

    def other(self, broker: OverlayBroker) -> OverlayBroker:
        return self.ends[1] if broker is self.ends[0] else self.ends[0]


class OverlayWorld:
    """One run: `begin`, then `run` until some time; `happen` lets something go wrong."""

    def __init__(
        self, scenario: OverlayScenario, make_router: RouterMaker = Router, *, subscribing: bool = True
    ) -> None:
        self.scenario = scenario
        self._subscribing = subscribing  # otherwise nobody wants anything, and there are no rows
        self._make_router = make_router
        self._chance = Random(f"overlay world {scenario.seed}")
        self._facts = Facts()
        self._loop = EffectLoop[OverlayBroker](
            {
                Send: lambda broker, effect: self._send(broker, effect.broker, effect.message),
                CloseLink: lambda broker, effect: self._close(broker, effect.broker),
                Dial: self._dial,
                Reply: self._reply,
                Deliver: self._deliver,
                OverlayEvent: self._note,
            },
            is_over=lambda: self.restless,
        )
        self.after, self.run = self._loop.after, self._loop.run
        self._handle, self._carry_out = self._loop.handle, self._loop.carry_out
        places = [(self._chance.random(), self._chance.random()) for _ in range(scenario.brokers)]
        self.brokers = [OverlayBroker(number, place) for number, place in enumerate(places)]
        self._places = {broker.name: broker.place for broker in self.brokers}
        self.by_address = {normal(broker.address): broker for broker in self.brokers}
        self._apart: list[frozenset[int]] = []
        self._slower = 1.0
        self._lost = 0.0
        self.sent: Counter[str] = Counter()  # messages, by type
        self.dialled = 0
        self.insisted: Counter[str] = Counter()  # how often a broker was told that nobody else takes somebody
        self.asked: set[str] = set()  # who has asked for a link
        self.last_message = 0.0
        self.names: dict[str, Callable[[OverlayBroker], OverlayBroker | None]] = {}  # by address with a name
        self.settings: dict[str, dict[str, Any]] = {}  # what a broker has instead of what all have, by its name
        self.dials: Counter[tuple[str, str]] = Counter()  # by broker and address
        self.copies: Counter[tuple[str, tuple[str, Any]]] = Counter()  # by broker and event
        self.delivered: Counter[tuple[str, Any]] = Counter()  # by broker and number of the event
        self.ready: dict[tuple[str, str], float] = {}  # by broker and handle: since when
        self._published = 0
        self.events: list[tuple[float, str, OverlayEvent]] = []
        self.told: dict[str, list[OverlayEvent]] = {}  # by each broker in its present life
        self._met: dict[str, tuple[Contact, ...]] = {}  # what each broker has kept
        self.most_said: float = MOST_SAID[scenario.kind] * scenario.brokers
        self._said = 0

    # Time

    @property
    def now(self) -> float:
        return self._loop.now

    @property
    def restless(self) -> bool:
        """Whether the brokers do not come to rest."""
        return self._said > self.most_said

    def play(self) -> float:
        """All that the script says. Returns when the last fault was over."""
        late, end = self.scenario.late, BEGIN_WITHIN
        for broker in self.brokers:
            if broker.number not in late:
                self.after(self._chance.uniform(0.0, BEGIN_WITHIN), self.begin, broker)
        for happening in self.scenario.happenings:
            self.after(BEGIN_WITHIN + happening.at, self.happen, happening)
            lasts = getattr(happening, "lasts", getattr(happening, "back", 0.0))
            end = max(end, BEGIN_WITHIN + happening.at + lasts + SILENCE)
        self.run(end)
        return end

    def happen(self, happening: Any) -> None:
        match happening:
            case CrashBrokers(_, brokers, back, silent):
                for number in brokers:
                    self.crash(self.brokers[number], silent=silent)
                    self.after(back, self.begin, self.brokers[number])
            case LeaveBroker(_, number):
                self.leave(self.brokers[number])
            case JoinBroker(_, number):
                self.begin(self.brokers[number])
            case PartNetwork(_, brokers, lasts):
                self.part(frozenset(brokers), lasts)
            case CutConnection(_, place):
                there = [one for one in self.connections() if one.up]
                if there:
                    self._break(there[min(int(place * len(there)), len(there) - 1)], silent=False)
            case SlowNetwork(_, times, lost, lasts):
                self._slower, self._lost = times, lost
                self.after(lasts, self._fast)

    # Brokers

    def begin(self, broker: OverlayBroker) -> None:
        if broker.router is not None or broker.gone:
            return
        broker.life += 1
        join = tuple([self.brokers[number].address for number in self.scenario.joins])
        scenario = self.scenario
        given: dict[str, Any] = {"kind": scenario.kind, "degree": scenario.degree, "links": scenario.links}
        given["join"] = join
        overlay = OverlaySettings(**(given | self.settings.get(broker.name, {})))
        configuration = Configuration(
            broker=broker.name,
            incarnation=broker.life,
            strategy=Strategy(self.scenario.strategy),
            overlay=overlay,
            reconfiguration=ReconfigurationSettings(protocol=self.scenario.reconfiguration),
        )
        broker.router = self._make_router(configuration, self._facts)
        self.told[broker.name] = []
        self._handle(broker, Open(), "session")
        if self._subscribing:
            self._handle(broker, Subscribe("h", Filter.parse(f'at = "{broker.name}"')), "session")
        met = self._met.get(broker.name, ())
        self._carry_out(broker, broker.router.begin(broker.address, self.now, met))

    def subscribe(self, broker: OverlayBroker, text: str, handle: str) -> None:
        """A client of a broker subscribes to something; `ready` says when the network has known of it."""
        self._handle(broker, Subscribe(handle, Filter.parse(text), ready=True), "session")

    def publish(self, broker: OverlayBroker, **attributes: Any) -> int:
        """A client of a broker publishes an event. Returns its number."""
        self._published += 1
        self._handle(broker, Publish((Notification({"number": self._published, **attributes}),)), "session")
        return self._published

    def crash(self, broker: OverlayBroker, *, silent: bool = False) -> None:
        """A broker ends at once; its machine says so, or nobody does."""
        self._end(broker)
        for connection in list(broker.connections.values()):
            self._break(connection, silent=silent)
        broker.connections.clear()

    def leave(self, broker: OverlayBroker) -> None:
        """A broker ends in order, for good."""
        broker.gone = True
        self._end(broker)
        for connection in list(broker.connections.values()):
            self._break(connection, silent=False, orderly=True)
        broker.connections.clear()

    def _note(self, broker: OverlayBroker, event: OverlayEvent) -> None:
        self.events.append((self.now, broker.name, event))
        self.told[broker.name].append(event)

    def remove_link(self, broker: OverlayBroker, other: str) -> None:
        """An operator of a broker wants no link to another one."""
        assert broker.router is not None
        self._carry_out(broker, broker.router.remove_link(other, self.now))

    def _end(self, broker: OverlayBroker) -> None:
        if broker.router is not None and self.scenario.keeps:
            self._met[broker.name] = broker.router.overlay().known
        broker.router = None
        broker.life += 1
        broker.timers.clear()

    def _reply(self, broker: OverlayBroker, effect: Reply) -> None:
        if isinstance(effect.answer, Ready):
            self.ready[broker.name, effect.answer.handle] = self.now

    def _deliver(self, broker: OverlayBroker, effect: Deliver) -> None:
        for envelope in effect.envelopes:
            self.delivered[broker.name, envelope.notification["number"]] += 1

    # Connections

    def reaches(self, one: OverlayBroker, other: OverlayBroker) -> bool:
        """Whether two machines can reach each other."""
        return all((one.number in some) == (other.number in some) for some in self._apart)

    def latency(self, one: str, other: str) -> float:
        """How long a message takes from one broker to another, by their names, if nothing is slow."""
        return _NEAR + _FAR * dist(self._places[one], self._places[other])

    def _way(self, one: OverlayBroker, other: OverlayBroker) -> float:
        return self.latency(one.name, other.name) * self._slower * self._chance.uniform(0.9, 1.3)

    def connections(self) -> list[Connection]:
        found: dict[Connection, None] = {}
        for broker in self.brokers:
            found.update(dict.fromkeys(broker.connections.values()))
        return list(found)

    def part(self, brokers: frozenset[int], lasts: float) -> None:
        """Some brokers and all others cannot reach each other for so long."""
        self._apart.append(brokers)
        for connection in self.connections():
            if connection.up and not self.reaches(*connection.ends):
                self._break(connection, silent=True)
        self.after(lasts, self._apart.remove, brokers)

    def _fast(self) -> None:
        self._slower, self._lost = 1.0, 0.0

    def _dial(self, broker: OverlayBroker, dial: Dial) -> None:
        address = dial.address
        self.dialled += 1
        self.dials[broker.name, address] += 1
        resolve = self.names.get(address)
        other = resolve(broker) if resolve is not None else self.by_address.get(address)
        if other is None or not self.reaches(broker, other) or self._chance.random() < self._lost:
            self.after(_UNANSWERED, self._not_reached, broker, broker.life, address, "It did not answer.")
        else:
            way = self._way(broker, other)
            self.after(way, self._greet, broker, broker.life, other, dial, way)

    def _not_reached(self, broker: OverlayBroker, life: int, address: str, reason: str) -> None:
        if broker.life == life:
            self._handle(broker, NotReached(address, reason), "")

    def _greet(self, broker: OverlayBroker, life: int, other: OverlayBroker, dial: Dial, way: float) -> None:
        if broker.life != life:
            return
        reason = "Nobody listens there." if other.router is None else ""
        if other.name in broker.connections or broker.name in other.connections or broker is other:
            reason = "There is a link already."
        if reason:
            self.after(way, self._not_reached, broker, life, dial.address, reason)
            return
        connection = Connection((broker, other))
        broker.connections[other.name] = other.connections[broker.name] = connection
        self.after(way, self._welcome, connection, dial)
        host = broker.address.partition(":")[0]
        self._handle(other, LinkUp(dial.kind, asked=True, host=host), broker.name)

    def connect(self, broker: OverlayBroker, other: OverlayBroker) -> None:
        """A broker dials a link that its settings name, unless it is there."""
        there = broker.router is not None and other.router is not None and self.reaches(broker, other)
        if not there or other.name in broker.connections or broker.name in other.connections:
            return
        connection = Connection((broker, other))
        broker.connections[other.name] = other.connections[broker.name] = connection
        for end, beside in ((broker, other), (other, broker)):
            self._handle(end, LinkUp(), beside.name)

    def _welcome(self, connection: Connection, dial: Dial) -> None:
        broker, other = connection.ends
        if connection.up and broker.connections.get(other.name) is connection:
            self._handle(broker, LinkUp(dial.kind, dialled=dial.address), other.name)

    def _send(self, broker: OverlayBroker, to: str, message: Any) -> None:
        self.sent[type(message).__name__] += 1
        self._said += 1
        self.last_message = self.now
        if isinstance(message, Hello) and message.standing is not None and message.standing.asks:
            self.asked.add(broker.name)
            self.insisted[to] += message.standing.insists
        connection = broker.connections.get(to)
        if connection is None or not connection.up:
            return
        other = connection.other(broker)
        arrival = max(connection.arrival[to], self.now + self._way(broker, other))
        # What is said before the welcome has arrived comes after it.
        connection.arrival[to] = arrival
        self.after(arrival - self.now, self._arrive, connection, broker, message)

    def _arrive(self, connection: Connection, sender: OverlayBroker, message: Any) -> None:
        other = connection.other(sender)
        if connection.up and other.connections.get(sender.name) is connection:
            if isinstance(message, Forward):
                self.copies.update(
                    [(other.name, (one.origin, one.notification["number"])) for one in message.envelopes]
                )
            self._handle(other, message, sender.name)

    def _close(self, broker: OverlayBroker, to: str) -> None:
        """A broker will not use a connection; what it has said before still arrives."""
        connection = broker.connections.pop(to, None)
        if connection is None:
            return
        other = connection.other(broker)
        arrival = max(connection.arrival[to], self.now + self._way(broker, other))
        self.after(arrival - self.now, self._notice, connection, other, True, False)

    def _break(self, connection: Connection, *, silent: bool, orderly: bool = False) -> None:
        connection.up = False
        for end in connection.ends:
            wait = self._way(*connection.ends)
            if silent:
                wait = SILENCE * self._chance.uniform(0.7, 1.0)
            self.after(wait, self._notice, connection, end, orderly, silent)

    def _notice(self, connection: Connection, broker: OverlayBroker, orderly: bool, silent: bool) -> None:
        connection.up = False
        name = connection.other(broker).name
        if broker.connections.get(name) is connection:
            del broker.connections[name]
            self._handle(broker, LinkDown(orderly, silent), name)

    # Looking in

    def there(self) -> list[OverlayBroker]:
        """Brokers that run."""
        return [broker for broker in self.brokers if broker.router is not None]

    def links(self) -> list[tuple[str, str]]:
        """Links that both ends use."""
        routers = {broker.name: broker.router for broker in self.there()}
        by_name = {name: router.neighbours() for name, router in routers.items() if router is not None}
        return [
            (one, other)
            for one, neighbours in by_name.items()
            for other in neighbours
            if one < other and one in by_name.get(other, {})
        ]
