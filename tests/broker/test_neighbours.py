"""What one client does costs others a bounded number of steps and bytes: `palio bench neighbours`, counted.

A broker in this process, with connections whose other ends are the test's. Its clock goes on with the steps
that are spent, so that every run is the same: a turn is some thousand steps. An attacker says what it says
without end, and beside it somebody asks for little. Counted are the turns and the steps of others between the
arrival of each of its requests and the answer, and the bytes that are held for the attacker.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import logging
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from benchmarks.live import attackers

from palio import Filter, Notification
from palio.broker import connection as connections
from palio.broker import scheduling, thinking
from palio.broker.access.principal import Holder, Principal
from palio.broker.access.rights import EVERYTHING
from palio.broker.accounts import FAR, GRACE, ShareUsedUp
from palio.broker.broker import BrokerServer
from palio.broker.connection import LINK_WEIGHT, READ_AHEAD, BrokerConnection
from palio.broker.metrics import Metrics
from palio.broker.outgoing import HIGH_WATER
from palio.broker.restraint import LONG, PATIENCE, SLOWEST, HeldBack, SlowFrame
from palio.broker.settings import Limits, Settings
from palio.model import effort
from palio.model.effort import BREATH
from palio.protocol.encoding import decode, encode
from palio.protocol.envelope import Envelope
from palio.protocol.frames import Frames, frame
from palio.protocol.greeting import PROTOCOL, Greet, Role
from palio.protocol.peers import Component, Forward, Hello
from palio.protocol.requests import Publish, Published, Subscribe

STEP = 1e-7  # seconds
LOOK = 1_000  # steps that a look at the clock stands for: whatever is done in between without counting any
# What others may do while somebody waits: the turn that was under way, and one more.
TURNS = 2
STEPS = TURNS * (scheduling.TURN / STEP + 2 * BREATH)
LIMITS = Limits(held=2 << 20, held_in_all=8 << 20)
Chunks = Iterator[bytes]


class Wire:
    """The transport of a connection, whose other end reads or does not."""

    def __init__(self, *, reads: bool) -> None:
        self._reads = reads
        self.open = True  # to what the other end says
        self.closed = False
        self.unread = 0
        self._full = False
        self.connection: BrokerConnection
        self._frames = Frames()
        self.heard: list[Any] = []

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 1) if name == "peername" else default

    def set_write_buffer_limits(self, high: int) -> None:
        assert high == HIGH_WATER

    def get_write_buffer_size(self) -> int:
        return self.unread

    def write(self, data: bytes) -> None:
        if self._reads:
            self.heard += [decode(payload) for payload in self._frames.feed(data)]
            return
        self.unread += len(data)
        if self.unread > HIGH_WATER and not self._full:
            self._full = True
            self.connection.pause_writing()

    def pause_reading(self) -> None:
        self.open = False

    def resume_reading(self) -> None:
        self.open = True

    def is_closing(self) -> bool:
        return self.closed

    def abort(self) -> None:
        if not self.closed:
            self.closed = True
            asyncio.get_running_loop().call_soon(self.connection.connection_lost, None)

    close = abort


class Attacked:
    """The broker, and what is done at it."""

    def __init__(self, broker: BrokerServer, spent: list[int]) -> None:
        self.broker = broker
        self._spent = spent
        self._names = map(str, itertools.count())
        self.turns: list[BrokerConnection] = []

    def connect(self, who: str, *, reads: bool = True, role: Role = Role.CLIENT) -> Wire:
        wire = Wire(reads=reads)
        wire.connection = connection = BrokerConnection(self.broker)
        connection.acting_for = Principal(who, Holder(EVERYTHING))
        connection.connection_made(wire)  # type: ignore[arg-type]
        greet = Greet(PROTOCOL, role, f"{who} {next(self._names)}", None, heartbeat=60.0)
        connection.data_received(frame(encode(greet)))
        return wire

    async def ask(self, wire: Wire, number: int) -> tuple[int, int]:
        """Publish something with confirmation. Returns the turns and steps of others until that was heard."""
        turns, steps = len(self.turns), self._spent[0]
        wire.connection.data_received(frame(encode(Publish((Notification({"mine": number}),), number))))
        while not any(isinstance(one, Published) and one.number == number for one in wire.heard):
            await asyncio.sleep(0)
        others = [one for one in self.turns[turns:] if one is not wire.connection]
        return len(others), self._spent[0] - steps


@asynccontextmanager
async def attacked(monkeypatch: pytest.MonkeyPatch, look: int = LOOK) -> AsyncIterator[Attacked]:
    """A broker whose clock goes on with the steps that are spent, and a little whenever it is looked at."""
    spent = [0]
    looks = itertools.count()
    for module in (scheduling, thinking, connections):
        monkeypatch.setattr(module, "perf_counter", lambda: STEP * (spent[0] + look * next(looks)))
    plain = effort.Meter.spend

    def spend(meter: effort.Meter, steps: int) -> None:
        spent[0] += steps
        plain(meter, steps)

    monkeypatch.setattr(effort.Meter, "spend", spend)
    address = "127.0.0.1:0"
    settings = Settings(name="b", listen=address, http="off", journal=False, limits=LIMITS, heartbeat=60.0)
    broker = BrokerServer(settings)
    await broker.start()
    scene = Attacked(broker, spent)
    take_turn = BrokerConnection.take_turn

    def counted(connection: BrokerConnection, until: float) -> bool:
        scene.turns.append(connection)
        return take_turn(connection, until)

    monkeypatch.setattr(BrokerConnection, "take_turn", counted)
    try:
        yield scene
    finally:
        await broker.stop()


def _subscriptions(count: int) -> Chunks:
    for number, filter in enumerate(attackers._suffixes(count)):
        yield attackers.said("subscribe", handle=f"h{number}", filter=filter, ready=False, number=number + 1)


def unsubscribing() -> Chunks:
    yield from _subscriptions(50)
    for number in itertools.count(1_000):
        yield attackers.said("unsubscribe", filter=attackers._HARD, number=number)


def watching() -> Chunks:
    yield from _subscriptions(50)
    for number in itertools.count(1_000):
        text = f'(exists(string t) and {attackers._HARD} and not t contains "{number}")'
        yield attackers.said("watch", handle="w", advertisement=text, number=number)
        yield attackers.said("release", handle="w", number=number)


def globs() -> Chunks:
    for number in itertools.count(1):
        text = " and ".join(f'not name matches "*{part}{number}*{part}*"' for part in range(12))
        yield attackers.said("subscribe", handle=f"h{number}", filter=text, ready=False, number=number)


def inspecting() -> Chunks:
    for number in itertools.count(1):
        yield attackers.said("inspect", number=number, what="stats", argument={})


def flooding() -> Chunks:
    yield frame(encode(Subscribe("all", Filter())))
    while True:
        yield attackers.flood(600, {"topic": "attack", "text": "x" * 100})


def unfinished() -> Chunks:
    yield (12 << 20).to_bytes(4)
    while True:
        yield bytes(64 * 1024)


def large_filters() -> Chunks:
    for number in itertools.count(1):
        parts = [f'(a{n} > {n + number} and t{n % 7} contains "{n}y{number}")' for n in range(30)]
        yield attackers.said("subscribe", handle=f"h{number}", filter=" or ".join(parts), number=number)


ATTACKS: list[Callable[[], Chunks]] = [
    unsubscribing, watching, globs, inspecting, flooding, unfinished, large_filters,
]  # fmt: skip


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
async def test_nobody_waits_for_more_than_two_turns_of_others(attack, monkeypatch, caplog):
    """However much an attacker asks for, by several connections, and reads or not."""
    caplog.set_level(logging.CRITICAL)
    async with attacked(monkeypatch) as scene:
        wires = [(scene.connect("mallory", reads=False), attack()) for _ in range(4)]
        neighbour = scene.connect("neighbour")
        most_held = 0
        for number in range(1, 40):
            for place, (wire, chunks) in enumerate(wires):
                if wire.closed:
                    wires[place] = scene.connect("mallory", reads=False), attack()
                for chunk in itertools.islice(chunks, 6):
                    if not wire.open or wire.closed:
                        break
                    wire.connection.data_received(chunk)
            turns, steps = await scene.ask(neighbour, number)
            assert turns <= TURNS
            assert steps <= STEPS
            most_held = max(most_held, scene.broker.accounts.held("mallory"))
        assert most_held <= FAR * LIMITS.held + READ_AHEAD
        if attack is unfinished:
            later = asyncio.get_running_loop().time() + GRACE + 0.1
            for wire, _ in wires:
                wire.connection.beat(later, 0.0)
            assert scene.broker.statistics().refused[ShareUsedUp.__name__] >= 1
            assert any(wire.closed for wire, _ in wires)


async def test_a_neighbour_that_floods_is_slowed_down_and_that_is_counted(monkeypatch, caplog):
    """A broker that was linked sends events without end: it has more turns than a client, and that is all."""
    async with attacked(monkeypatch, 20 * LOOK) as scene:
        link = scene.connect("flooder", role=Role.PEER)
        await asyncio.sleep(0)
        hello = next(one for one in link.heard if isinstance(one, Hello))
        name = link.connection.name
        answer = Hello(hello.kind, hello.cost, hello.terms, Component(name), (name,), hello.form)
        link.connection.data_received(frame(encode(answer)))
        client, events = scene.connect("neighbour"), itertools.count(1)

        def flood() -> bytes:
            several = [Notification({"n": n, "text": "x" * 500}) for n in itertools.islice(events, 1_000)]
            envelopes = [Envelope(name, one["n"], 1.0, 0, name, one) for one in several]
            return frame(encode(Forward(tuple(envelopes))))

        for number in range(1, 15):
            for _ in range(20):
                if link.open:
                    link.connection.data_received(flood())
            assert not link.open, "it is not read from, as its turn has not come"
            turns, _ = await scene.ask(client, number)
            assert turns <= LINK_WEIGHT + TURNS
        now = asyncio.get_running_loop().time()
        link.connection.beat(now + 0.9 * LONG, 0.0)
        assert "has to wait" not in caplog.text
        for _ in range(2):
            link.connection.beat(now + LONG + 1.0, 0.0)
        assert caplog.text.count("A neighbour sends more than is taken, and has to wait.") == 1
        while not link.open:
            await asyncio.sleep(0)
        assert link.connection.statistics().throttled > 0.0
        metrics = {metric.name: metric for metric in Metrics(scene.broker).collect()}
        [sample] = metrics["palio_link_throttled_seconds"].samples
        assert sample.labels == {"broker": "b", "link": name}
        assert sample.value > 0.0


async def test_a_neighbour_that_does_not_finish_a_frame_is_left(monkeypatch, caplog):
    async with attacked(monkeypatch) as scene:
        link = scene.connect("slow", role=Role.PEER)
        link.connection.data_received((100 << 20).to_bytes(4) + bytes(1_000))
        now = asyncio.get_running_loop().time()
        for seconds in (0.0, PATIENCE):
            link.connection.beat(now + seconds, 0.0)
            assert not link.closed
        link.connection.data_received(bytes(1_000))
        link.connection.beat(now + PATIENCE + 1.0, 0.0)
        assert link.closed
        assert link.connection.reason == "The neighbour did not finish what it began to send."


def test_a_frame_may_take_as_long_as_a_slow_line_takes():
    slow = SlowFrame()
    assert not any(slow.is_slow(7, int(seconds * SLOWEST), seconds) for seconds in range(1, 1_000))
    assert not slow.is_slow(8, 100, 1_000.0), "it is another frame"
    assert not slow.is_slow(8, 0, 5_000.0), "nothing is under way"
    assert not slow.is_slow(8, 1, 5_010.0)
    assert slow.is_slow(8, 1, 5_100.0)


def test_who_is_held_back_now_and_then_is_counted_and_not_told_of():
    held = HeldBack()
    for second in range(10):
        held.begin(float(second))
        assert not held.to_be_told(second + 0.5)
        held.end(second + 0.5)
        held.end(second + 0.7)
    assert held.seconds(100.0) == pytest.approx(5.0)
    held.begin(100.0)
    assert held.seconds(101.0) == pytest.approx(6.0)
    assert held.to_be_told(100.0 + LONG) == pytest.approx(LONG)
    assert not held.to_be_told(100.0 + 2 * LONG)


@pytest.mark.parametrize(
    "said",
    [
        b"",
        frame(b"\xc1"),
        b"GET / HTTP/1.1\r\n\r\n",
        frame(encode(Subscribe("h", Filter.parse("a = 1")))),
        frame(encode(Publish((Notification({"a": 1}),), 1))),
        (1 << 20).to_bytes(4) + bytes(1_000),
    ],
    ids=["nothing", "garbage", "http", "a subscription", "an event", "half a frame"],
)
@pytest.mark.parametrize("role", Role)
async def test_nothing_is_left_of_a_connection_that_is_gone(said, role, monkeypatch, caplog):
    """Not even garbage: what is only found by looking for it piles up, megabytes of it, until somebody does."""
    caplog.set_level(logging.CRITICAL)
    async with attacked(monkeypatch) as scene:
        wire = scene.connect("mallory", role=role)
        if said:
            wire.connection.data_received(said)
        gone = weakref.ref(wire.connection)
        scene.turns.clear()
        wire.abort()
        gc.disable()
        try:
            del wire
            for _ in range(10):
                await asyncio.sleep(0)
            scene.turns.clear()
            assert gone() is None
        finally:
            gc.enable()
