"""The scheduler: everybody has turns, and in between the event loop looks at its sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable

from palio.broker import scheduling
from palio.broker.scheduling import Scheduler


class Worker:
    """Has some pieces of work, each of which takes some time by a clock of the test."""

    def __init__(self, clock: Clock, owner: Hashable, pieces: int, cost: float, weight: float = 1.0) -> None:
        self.clock, self.owner, self.pieces, self.cost, self.weight = clock, owner, pieces, cost, weight
        self.then: Callable[[], None] = lambda: None

    def take_turn(self, until: float) -> bool:
        assert self.pieces > 0, "nothing is to be done"
        self.pieces -= 1
        self.clock.now += self.cost
        self.clock.turns.append(self)
        self.then()
        return self.pieces > 0


class Clock:
    def __init__(self, monkeypatch) -> None:
        self.now = 0.0
        self.turns: list[Worker] = []
        monkeypatch.setattr(scheduling, "perf_counter", lambda: self.now)


async def rest(scheduler: Scheduler) -> None:
    while len(scheduler):
        await asyncio.sleep(0)


async def test_what_comes_alone_is_done_at_once(monkeypatch):
    clock = Clock(monkeypatch)
    worker = Worker(clock, "a", 1, 0.1)
    Scheduler().ready(worker)
    assert clock.turns == [worker]


async def test_after_a_round_the_loop_goes_on_and_who_comes_then_is_next(monkeypatch):
    clock, scheduler = Clock(monkeypatch), Scheduler()
    greedy = [Worker(clock, "greedy", 50, 1.01 * scheduling.TURN_ALONE) for _ in range(20)]
    for worker in greedy:
        scheduler.ready(worker)
    turns = 0
    while len(scheduler):
        before = len(clock.turns)
        modest = Worker(clock, "modest", 1, 0.0)
        scheduler.ready(modest)
        await asyncio.sleep(0)
        assert clock.turns[before] is modest
        turns += 1
        if len(scheduler):
            assert len(clock.turns) - before <= 2, "one turn of the loop, one round"
    assert turns > 900


async def test_work_that_comes_up_while_somebody_works_waits_for_its_turn(monkeypatch):
    clock, scheduler = Clock(monkeypatch), Scheduler()
    first, second = Worker(clock, "a", 2, 0.0001), Worker(clock, "b", 1, 0.0001)
    first.then = lambda: scheduler.ready(second) if first.pieces else None
    scheduler.ready(first)
    await rest(scheduler)
    assert clock.turns == [first, second, first]


async def test_who_is_held_back_has_no_turn_until_it_is_released(monkeypatch):
    clock, scheduler = Clock(monkeypatch), Scheduler()
    held, other = Worker(clock, "a", 1, 0.1), Worker(clock, "b", 3, 0.1)
    scheduler.hold("a")
    scheduler.ready(held)
    scheduler.ready(other)
    await rest(scheduler)
    assert clock.turns == [other] * 3
    scheduler.release("a")
    await rest(scheduler)
    assert clock.turns == [other] * 3 + [held]


async def test_who_says_who_it_is_works_for_that_one_from_then_on(monkeypatch):
    clock, scheduler = Clock(monkeypatch), Scheduler()
    worker = Worker(clock, "stranger", 3, 1.0)

    def greet() -> None:
        worker.owner = "somebody"

    worker.then = greet
    scheduler.ready(worker)
    await rest(scheduler)
    assert clock.turns == [worker] * 3
    assert list(scheduler._turns._clients) == ["somebody"]


async def test_who_is_gone_has_no_turn(monkeypatch):
    clock, scheduler = Clock(monkeypatch), Scheduler()
    gone, other = Worker(clock, "a", 5, 1.0), Worker(clock, "b", 2, 1.0)
    scheduler.ready(gone)
    scheduler.ready(other)
    scheduler.leave(gone)
    await rest(scheduler)
    assert clock.turns == [gone, other, other]


async def test_it_is_crowded_while_two_owners_want_to_be_served_and_for_a_while_after(monkeypatch):
    clock, scheduler = Clock(monkeypatch), Scheduler()
    told: list[bool] = []
    scheduler.crowding = told.append
    scheduler.ready(Worker(clock, "a", 3, 1.01 * scheduling.TURN_ALONE))
    scheduler.ready(Worker(clock, scheduling.EVERYBODY, 1, 0.0001))
    assert not scheduler.is_crowded, "the store works for everybody"
    scheduler.ready(Worker(clock, "b", 1, 0.0001))
    assert scheduler.is_crowded
    await rest(scheduler)
    assert told == [True]
    clock.now += scheduling.CROWDED
    scheduler.ready(Worker(clock, "a", 1, 0.0001))
    assert not scheduler.is_crowded
    assert told == [True, False]


async def test_what_was_said_is_written_before_others_go_on(monkeypatch):
    clock, scheduler = Clock(monkeypatch), Scheduler()
    scheduler.crowd()
    said: list[str] = []
    written: list[tuple[str, int]] = []

    def speak() -> bool:
        written.extend([(one, len(clock.turns)) for one in said])
        some = bool(said)
        said.clear()
        return some

    scheduler.speak = speak
    scheduler.ready(Worker(clock, "greedy", 9, scheduling.TURN / 10))
    speaker = Worker(clock, "speaker", 1, scheduling.TURN / 100)
    speaker.then = lambda: said.append("hello")
    scheduler.ready(speaker)
    await rest(scheduler)
    turn = clock.turns.index(speaker)
    assert written == [("hello", turn + 1)]


async def test_who_has_cost_more_waits_while_others_are_served_elsewhere(monkeypatch):
    clock, scheduler = Clock(monkeypatch), Scheduler()
    greedy, modest = Worker(clock, "greedy", 100, scheduling.TURN), Worker(clock, "modest", 1, 0.0001)
    scheduler.ready(greedy)
    scheduler.ready(modest)
    while modest.pieces:
        await asyncio.sleep(0)
    scheduler.elsewhere = lambda: {"modest"}
    while scheduler._pausing is None:
        await asyncio.sleep(0)
    before = len(clock.turns)
    await asyncio.sleep(0)
    assert len(clock.turns) == before, "it waits"
    scheduler.ready(Worker(clock, "greedy", 1, 0.0001))
    assert scheduler._pausing is not None, "and does not go on by asking for more"
    newcomer = Worker(clock, scheduling.EVERYBODY, 1, 0.0001)
    scheduler.ready(newcomer)
    await asyncio.sleep(0)
    assert clock.turns[before] is newcomer, "it is no pause for anybody else"
    scheduler.elsewhere = lambda: ()
    await rest(scheduler)
    assert not greedy.pieces


async def test_one_who_is_served_elsewhere_does_not_keep_others_waiting_for_ever(monkeypatch):
    clock, scheduler = Clock(monkeypatch), Scheduler()
    greedy, modest = Worker(clock, "greedy", 6, scheduling.TURN), Worker(clock, "modest", 1, 0.0001)
    scheduler.elsewhere = lambda: {"modest"}
    scheduler.ready(greedy)
    scheduler.ready(modest)
    async with asyncio.timeout(10.0):
        while greedy.pieces:
            await asyncio.sleep(scheduling.PAUSE)
