"""Completions of the store that come together: the same is handed out as one by one, in fewer writes."""

from __future__ import annotations

from random import Random

import pytest

from palio import Filter, Notification
from palio.protocol.durable.subscriptions import Acknowledged, Attach, Done
from palio.protocol.requests import Publish, Published, Refused, Subscribe
from palio.routing import Configuration, Router
from palio.routing.durable.alarm import SYNC, TICK
from palio.routing.durable.desk import DurableSettings
from palio.routing.durable.effects import STORE_EFFECTS, Append, Hand, Spool
from palio.routing.durable.origin.appending import TOGETHER
from palio.routing.effects import Deliver, Reply
from palio.routing.occurrences import Failed, Open, Stored, StoreMessage
from palio.sim.faults.disk import Disk

FILTERS = {"all": "true", "low": "n < 20", "odd": "odd = 1", "high": "n >= 20"}
EVENTS = 60


class Station:
    """A router and its disk, of which it is told together or one by one."""

    def __init__(self, *, together: bool, outbox: int) -> None:
        settings = DurableSettings(outbox=outbox, settle_within=0.0)
        self.router = Router(Configuration(broker="b", durable=settings, incarnation=1))
        self.together = together
        self.disk = Disk()
        self.disk.open(1, "one")
        self.handed: dict[str, list[tuple[int, int]]] = {name: [] for name in FILTERS}  # delivery, n
        self.acknowledged = dict.fromkeys(FILTERS, 0)  # how many of them
        self.done: dict[str, list[int]] = {name: [] for name in FILTERS}
        self.confirmed: list[int] = []
        self.spools = 0
        self.now = 1.0

    def say(self, message: object, session: str = "s") -> None:
        self._carry_out(self.router.handle(message, session, self.now))  # type: ignore[arg-type]

    def acknowledge(self, name: str, most: int) -> None:
        at = self.acknowledged[name]
        numbers = tuple([number for number, _ in self.handed[name][at : at + most]])
        if numbers:
            self.acknowledged[name] += len(numbers)
            self.say(Acknowledged(name, numbers), name)

    def write(self, count: int) -> None:
        """So many of what waits for the disk is done."""
        waiting = min(count, len(self.disk.queue))
        told = [self.disk.complete() for _ in range(waiting)]
        messages = [message for message in told if message is not None]
        if self.together:
            self._carry_out(self.router.complete(iter(messages), self.now))
        for message in () if self.together else messages:
            self._carry_out(self.router.handle(message, "", self.now))

    def come_to_rest(self) -> None:
        """Nothing waits any more: not for the disk, nor to be acknowledged, nor to be fetched."""
        quiet, handed = 0, -1
        while quiet < 5:
            for name in FILTERS:
                self.acknowledge(name, EVENTS)
            while self.disk.queue:
                self.write(len(self.disk.queue))
            self.now += 0.5
            for timer in (SYNC, TICK):
                self._carry_out(self.router.on_timer(timer, self.now))
            now_handed = sum(map(len, self.handed.values()))
            quiet, handed = (0 if now_handed > handed else quiet + 1), now_handed

    def _carry_out(self, effects: list[object]) -> None:
        for effect in effects:
            if isinstance(effect, STORE_EFFECTS):
                self.spools += isinstance(effect, Spool)
                self.disk.queue.append(effect)  # type: ignore[arg-type]
            match effect:
                case Hand(_, name, deliveries):
                    self.handed[name] += [(one, envelope.notification["n"]) for one, _, envelope in deliveries]
                case Reply(_, Done(name, numbers)):
                    self.done[name] += numbers
                case Reply(_, Published(number)):
                    self.confirmed.append(number)


def run(seed: int, *, together: bool, outbox: int) -> Station:
    """Publishes one by one, while the disk is done with any number of writes, and takers with what they got."""
    chance = Random(seed)
    station = Station(together=together, outbox=outbox)
    station.say(Open())
    for name, text in FILTERS.items():
        station.say(Open(), name)
        station.say(Attach(name, Filter.parse(text), in_flight=EVENTS), name)
    station.come_to_rest()
    spools = station.spools
    for n in range(EVENTS):
        station.say(Publish((Notification({"n": n, "odd": n % 2}),), n + 1))
        if chance.random() < 0.3:
            station.write(chance.randint(1, 40))
        station.acknowledge(chance.choice([*FILTERS]), chance.randint(0, 5))
    station.come_to_rest()
    station.spools -= spools
    return station


@pytest.mark.parametrize("outbox", [1, 5, 1_000])
@pytest.mark.parametrize("seed", range(20))
def test_the_same_is_handed_out_confirmed_and_done(seed: int, outbox: int) -> None:
    ours, theirs = [run(seed, together=together, outbox=outbox) for together in (True, False)]
    wanted = {name: Filter.parse(text) for name, text in FILTERS.items()}
    for name, filter in wanted.items():
        selected = [n for n in range(EVENTS) if filter.matches(Notification({"n": n, "odd": n % 2}))]
        assert [n for _, n in ours.handed[name]] == selected
    assert ours.handed == theirs.handed
    assert ours.confirmed == theirs.confirmed == [*range(1, EVENTS + 1)]
    assert ours.done == theirs.done == {name: [one for one, _ in ours.handed[name]] for name in FILTERS}
    assert ours.disk.subscriptions.keys() == theirs.disk.subscriptions.keys()
    for name, kept in ours.disk.subscriptions.items():
        assert (kept.spool, kept.position) == ({}, theirs.disk.subscriptions[name].position)


def test_what_comes_together_is_spooled_together() -> None:
    counts = [sum([run(seed, together=one, outbox=1_000).spools for seed in range(5)]) for one in (True, False)]
    assert counts[0] < 0.8 * counts[1]


def published(station: Station, count: int) -> None:
    """So many publishes, one by one, before the disk is done with any."""
    for n in range(count):
        station.say(Publish((Notification({"n": n, "odd": n % 2}),), n + 1))


def told(station: Station, answers: list[StoreMessage]) -> list[tuple[str, int]]:
    """What a broker with one subscriber that keeps nothing says, when it hears all of that at once."""
    found: list[tuple[str, int]] = []
    for effect in station.router.complete(iter(answers), station.now):
        match effect:
            case Reply(_, Published(number)):
                found.append(("confirms", number))
            case Reply(_, Refused(subject)):
                found.append(("refuses", int(subject.split()[1])))
            case Deliver(_, envelopes):
                found += [("delivers", envelope.sequence) for envelope in envelopes]
    return found


def listening() -> Station:
    station = Station(together=True, outbox=1_000)
    for session in ("s", "listener"):
        station.say(Open(), session)
    station.say(Subscribe("all", Filter.parse("true")), "listener")
    station.come_to_rest()
    return station


def test_what_is_confirmed_together_is_delivered_in_order_and_some_at_a_time() -> None:
    station, count = listening(), 2 * TOGETHER + 5
    published(station, count)
    tokens = [effect.token for effect in station.disk.queue if isinstance(effect, Append)]
    said = told(station, [Stored(token) for token in tokens])
    for what in ("confirms", "delivers"):
        assert [number for one, number in said if one == what] == [*range(1, count + 1)]
    changes = [one for (one, _), (before, _) in zip(said[1:], said, strict=False) if one != before]
    assert changes == ["delivers", "confirms"] * 2 + ["delivers"]


def test_what_fails_in_the_middle_is_refused_when_all_before_it_is_delivered() -> None:
    station = listening()
    published(station, 5)
    first, second, *others = [effect.token for effect in station.disk.queue if isinstance(effect, Append)]
    answers = [Stored(first), Stored(second), *[Failed(token, "It is full.") for token in others]]
    assert told(station, answers) == [
        *[("confirms", 1), ("confirms", 2), ("delivers", 1), ("delivers", 2)],
        *[("refuses", 3), ("refuses", 4), ("refuses", 5)],
    ]
    station.disk.queue.clear()
    station.say(Publish((Notification({"n": 3, "odd": 1}),), 9))
    (again,) = [effect for effect in station.disk.queue if isinstance(effect, Append)]
    assert [one.sequence for one in again.envelopes] == [3]
    assert told(station, [Stored(again.token)]) == [("confirms", 9), ("delivers", 3)]
