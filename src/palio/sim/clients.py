"""Clients: scripted sessions. A script says at which time which client sends what; nothing in it reacts.

It comes in phases. A phase begins when the one before has come to rest, which is what a simulator can know
and nobody else: so everything that an earlier phase subscribed is known to the whole network.

links
    Every link comes up.
begin
    Sessions open; publishers advertise.
subscribe
    Subscribers subscribe. In some scenarios this happens together with `begin`, so that advertisements and
    subscriptions meet in the middle of the network.
flow
    Publishers publish. With churn, subscriptions end in all the ways there are and others take their place,
    publishers withdraw advertisements and bring them back, links go and come back, all at once.
after
    Only with churn: publishers publish once more, so that what churn left behind is seen.

Every step has a number, and a scenario's `keep` can choose among them; a session always opens.
"""

from __future__ import annotations

from random import Random

import msgspec

from palio.model.filter import Filter
from palio.protocol.requests import Advertise, Publish, Release, Subscribe, Unadvertise, Unsubscribe
from palio.routing.occurrences import Close, Open, SubscriberMessage
from palio.sim.scenario import Scenario
from palio.sim.workloads import PublisherProfile, Workload

# How many seconds of the simulation a phase takes: so long that messages race now and then, but not always.
_SHORTEST = 1.0
_PER_SUBSCRIPTION = 0.005
_PER_NOTIFICATION = 0.01

_IN_FLOW = 0.6  # the share of notifications that are published during churn; the others come after it


class ClientStep(msgspec.Struct, frozen=True):
    """A client sends a message to its access broker."""

    number: int
    time: float
    broker: int
    session: str
    message: SubscriberMessage


class LinkStep(msgspec.Struct, frozen=True):
    """A link comes up or goes down. `delay` is how much later its other end finds out."""

    number: int
    time: float
    link: int
    up: bool
    orderly: bool = True
    delay: float = 0.0


Step = ClientStep | LinkStep


class Phase(msgspec.Struct, frozen=True):
    """Steps in the order of their times, which count from the beginning of the phase."""

    name: str
    steps: tuple[Step, ...]


class _Held(msgspec.Struct, frozen=True):
    """A subscription as the script has made it."""

    broker: int
    session: str
    filter: Filter
    handles: tuple[str, ...]


class Script:
    """What all clients of a scenario do, and when."""

    def __init__(self, scenario: Scenario, workload: Workload, links: int) -> None:
        self._scenario = scenario
        self._workload = workload
        self._chance = workload.chance
        self._links = links
        self._handles = 0
        self._requests = 0
        self._held: list[_Held] = []
        self.phases = self._phases()

    def _phases(self) -> list[Phase]:
        scenario = self._scenario
        flow = max(_SHORTEST, _PER_NOTIFICATION * scenario.notifications) / scenario.haste
        # Everything is drawn in this order whatever the scenario uses of it, so that scenarios compare.
        begin = self._begin()
        subscribe = self._subscribe()
        churned = scenario.churn > 0 or scenario.link_churn > 0
        first = round(scenario.notifications * _IN_FLOW) if churned else scenario.notifications
        flowing = self._publish(first, flow)
        after = self._publish(scenario.notifications - first, flow)
        together = self._chance.random() < 0.3
        flowing += self._churn(flow)
        flowing += self._link_churn(flow)
        phases: list[tuple[str, list[Step]]] = [("links", self._link_ups())]
        phases += [("begin", begin + subscribe)] if together else [("begin", begin), ("subscribe", subscribe)]
        phases += [("flow", flowing), ("after", after)]
        return self._numbered(phases)

    def _numbered(self, phases: list[tuple[str, list[Step]]]) -> list[Phase]:
        keep = None if self._scenario.keep is None else frozenset(self._scenario.keep)
        number = 0
        found = []
        present: set[str] = set()
        for name, steps in phases:
            kept = []
            for step in sorted(steps, key=lambda step: step.time):
                if (keep is None or number in keep or not is_optional(step, name)) and _fits(step, present):
                    kept.append(msgspec.structs.replace(step, number=number))
                number += 1
            found.append(Phase(name, tuple(kept)))
        return found

    # Phases

    def _link_ups(self) -> list[Step]:
        chance = Random(f"links up {self._scenario.seed}")
        return [LinkStep(0, chance.uniform(0.0, 0.1), link, up=True) for link in range(self._links)]

    def _begin(self) -> list[Step]:
        found: list[Step] = []
        for number, broker in enumerate(self._workload.subscribers):
            found.append(ClientStep(0, 0.0, broker, f"s{number}", Open()))
        for number, publisher in enumerate(self._workload.publishers):
            found.append(ClientStep(0, 0.0, publisher.broker, f"p{number}", Open()))
            found += self._advertise(number, publisher, _SHORTEST / self._scenario.haste)
        return found

    def _subscribe(self) -> list[Step]:
        scenario, workload, chance = self._scenario, self._workload, self._chance
        length = max(_SHORTEST, _PER_SUBSCRIPTION * scenario.subscriptions) / scenario.haste
        wanted = []
        for number in range(scenario.subscriptions):
            place = number % scenario.subscribers
            broker, session = workload.subscribers[place], f"s{place}"
            if scenario.both and workload.publishers and chance.random() < scenario.both:
                place = chance.randrange(scenario.publishers)
                broker, session = workload.publishers[place].broker, f"p{place}"
            wanted.append((broker, session, workload.subscription(broker)))
        chance.shuffle(wanted)  # roots were drawn before what they cover; they should not always come first
        found: list[Step] = []
        for broker, session, filter in wanted:
            repeated = scenario.repeats > 0 and chance.random() < scenario.repeats
            found += self._subscription(broker, session, filter, 0.0, length, handles=1 + repeated)
        return found

    def _publish(self, count: int, length: float) -> list[Step]:
        chance = self._chance
        found: list[Step] = []
        while count > 0:
            place = chance.randrange(self._scenario.publishers)
            publisher = self._workload.publishers[place]
            size = min(count, chance.randint(1, self._scenario.batch))
            notifications = tuple(self._workload.notification(publisher) for _ in range(size))
            self._requests += 1
            message = Publish(notifications, self._requests)
            time = chance.uniform(0.0, length)
            found.append(ClientStep(0, time, publisher.broker, f"p{place}", message))
            count -= size
        return found

    # Churn

    def _churn(self, length: float) -> list[Step]:
        scenario, chance = self._scenario, self._chance
        found: list[Step] = []
        if scenario.churn == 0:
            return found
        for held in chance.sample(self._held, min(len(self._held), round(scenario.churn * len(self._held)))):
            time = chance.uniform(0.0, length * 0.9)
            found += self._cancelled(held, time)
            wanted = self._workload.subscription(held.broker)
            # The new one comes a little later, or a little earlier so that there is no gap.
            begin = max(0.0, time + chance.uniform(-0.1, 0.1) * length)
            found += self._subscription(held.broker, held.session, wanted, begin, begin + 0.05 * length)
        for number, publisher in enumerate(self._workload.publishers):
            if chance.random() < scenario.churn:
                found += self._silenced(number, publisher, chance.uniform(0.0, length * 0.9), length * 0.1)
        return found

    def _cancelled(self, held: _Held, time: float) -> list[Step]:
        chance = self._chance

        def step(message: SubscriberMessage) -> ClientStep:
            return ClientStep(0, time, held.broker, held.session, message)

        match chance.choices(range(4), weights=(40, 20, 25, 15))[0]:
            case 0:
                return [step(Release(handle)) for handle in held.handles[: chance.randint(1, 2)]]
            case 1:
                return [step(Unsubscribe(held.filter))]
            case 2:
                return [step(Unsubscribe(self._workload.wider(held.filter)))]
            case _:
                return [step(Close()), step(Open())]

    def _silenced(self, number: int, publisher: PublisherProfile, time: float, pause: float) -> list[Step]:
        """A publisher that withdraws advertisements; what it says until it is back is refused."""
        chance, session = self._chance, f"p{number}"
        withdrawn = chance.choice(self._workload.advertised(publisher))
        back = self._advertise(number, publisher, time + pause, begin=time)
        message: SubscriberMessage = Unadvertise(self._workload.advertisement(publisher, withdrawn))
        if chance.random() < 0.2:
            message = Close()
        if not self._scenario.advertisements and not isinstance(message, Close):
            return back
        found: list[Step] = [ClientStep(0, time, publisher.broker, session, message)]
        if isinstance(message, Close):
            found.append(ClientStep(0, time, publisher.broker, session, Open()))
        return found + back

    def _link_churn(self, length: float) -> list[Step]:
        chance = Random(f"link churn {self._scenario.seed}")
        found: list[Step] = []
        for link in range(self._links):
            if chance.random() >= self._scenario.link_churn:
                continue
            times = chance.randint(1, 2)
            for begin in (length * number / times for number in range(times)):
                down = begin + chance.uniform(0.0, 0.6) * length / times
                up = down + chance.uniform(0.1, 0.4) * length / times
                orderly = chance.random() < 0.5
                delay = 0.0 if orderly else chance.uniform(0.0, 0.1) * length / times
                found.append(LinkStep(0, down, link, up=False, orderly=orderly, delay=delay))
                found.append(LinkStep(0, up, link, up=True))
        return found

    # Pieces

    def _subscription(
        self, broker: int, session: str, filter: Filter, begin: float, end: float, *, handles: int = 1
    ) -> list[Step]:
        found: list[Step] = []
        names = []
        for _ in range(handles):
            names.append(self._handle())
            message = Subscribe(names[-1], filter, ready=self._scenario.ready)
            found.append(ClientStep(0, self._chance.uniform(begin, end), broker, session, message))
        self._held.append(_Held(broker, session, filter, tuple(names)))
        return found

    def _advertise(
        self, number: int, publisher: PublisherProfile, end: float, begin: float = 0.0
    ) -> list[Step]:
        found: list[Step] = []
        for interests in self._workload.advertised(publisher):
            handle = self._handle()
            time = self._chance.uniform(begin, end)
            if self._scenario.advertisements:
                advertisement = self._workload.advertisement(publisher, interests)
                message = Advertise(handle, advertisement, ready=self._scenario.ready)
                found.append(ClientStep(0, time, publisher.broker, f"p{number}", message))
        return found

    def _handle(self) -> str:
        self._handles += 1
        return f"h{self._handles}"


def is_optional(step: Step, phase: str) -> bool:
    """Whether a script without this step is still one that a well-meaning client could follow."""
    if isinstance(step, LinkStep):
        return phase != "links"
    return not isinstance(step.message, Open)


def _fits(step: Step, present: set[str]) -> bool:
    """Whether a session may do this: nobody opens twice. Keeps account of who is there."""
    if isinstance(step, ClientStep):
        if isinstance(step.message, Open):
            if step.session in present:
                return False
            present.add(step.session)
        elif isinstance(step.message, Close):
            present.discard(step.session)
    return True
