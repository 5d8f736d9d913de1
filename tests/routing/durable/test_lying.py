"""Neighbours and clients that say what is well-formed and wrong: whatever it is, a broker goes on.

What a neighbour says is believed: it may take subscriptions away, or say that there is nothing to fetch. But it
must not bring the broker down, nor let it ask its store for what no store can keep.
"""

from __future__ import annotations

import math
from typing import Any, get_args

import msgspec
import pytest

from palio import Filter, Notification, PalioError
from palio.protocol.durable.subscriptions import Attach
from palio.protocol.encoding import UnreadableMessage, decode, encode
from palio.protocol.envelope import Envelope
from palio.protocol.peers import Component, Forward, Hello, LinkKind
from palio.protocol.requests import Publish, Subscribe
from palio.routing import Configuration, Router
from palio.routing.durable.effects import StoreEffect
from palio.routing.effects import CloseLink, Deliver, Send, SetTimer
from palio.routing.links import COUNTERPART
from palio.routing.occurrences import LinkDown, LinkUp, Open
from palio.sim.faults.disk import Disk
from tests.routing.durable.world import SETTINGS
from tests.routing.lying import OF_CLIENTS, OF_PEERS, Liar
from tests.slices import sliced

STORED = get_args(StoreEffect)
NAMES = ("a", "b", "liar", "s0", "client", "one", "two", "1 a 1 1", "publish 1")
MESSAGES = 1_500
WITH_A_JOURNAL = Configuration(broker="a", durable=SETTINGS)
A_RELAY = Configuration(broker="a", relay=True)


class Alone:
    """A broker with a disk, two neighbours that do not exist, and a client."""

    def __init__(
        self, kind: LinkKind, configuration: Configuration = WITH_A_JOURNAL, terms: str | None = None
    ) -> None:
        """The neighbours say these `terms`; if not given, those of the broker."""
        self.router = Router(configuration)
        self.kind = kind
        self.terms = terms
        self.disk = Disk()
        self.timers: dict[str, float] = {}
        self.now = 1_000.0
        self.delivered = 0
        for neighbour in ("b", "liar"):
            self.hear(LinkUp(kind), neighbour)
        for client in ("client", "two"):
            self.hear(Open(), client)
        self.hear(Subscribe("h", Filter.parse("n = 77")), "client")
        self.hear(Attach("s0", Filter.parse("n >= 0")), "client")

    def hear(self, message: Any, source: str) -> None:
        self._carry_out(self.router.handle(message, source, self.now))

    def _carry_out(self, effects: list[Any]) -> None:
        closed, hellos = [], []
        for effect in effects:
            if isinstance(effect, STORED):
                check_storable(effect)
                self.disk.queue.append(effect)
            elif isinstance(effect, SetTimer):
                self.timers[effect.name] = effect.at
            elif isinstance(effect, CloseLink):
                closed.append(effect.broker)
            elif isinstance(effect, Send):
                encode(effect.message)
            elif isinstance(effect, Deliver) and effect.session == "client":
                self.delivered += len(effect.envelopes)
            if isinstance(effect, Send) and isinstance(effect.message, Hello):
                hellos.append((effect.broker, effect.message))
        for neighbour, hello in hellos:  # there is no link without a proper one
            kind = COUNTERPART[hello.kind]
            terms = self.terms or hello.terms
            self.hear(Hello(kind, hello.cost, terms, Component(neighbour), (neighbour,), hello.form), neighbour)
        for neighbour in closed:
            self.again(neighbour)

    def again(self, neighbour: str) -> None:
        """The link is lost, and made again."""
        self.hear(LinkDown(), neighbour)
        self.hear(LinkUp(self.kind), neighbour)

    def pass_time(self) -> None:
        """The store completes all that it has; timers come due."""
        while self.disk.queue:
            done = self.disk.complete()
            if done is not None:
                self._carry_out(self.router.handle(done, "", self.now))
        self.now += 0.3
        for name in [name for name, at in self.timers.items() if at <= self.now]:
            del self.timers[name]
            self._carry_out(self.router.on_timer(name, self.now))


def check_storable(value: Any) -> None:
    """Every number in it fits into a column."""
    if isinstance(value, int):
        assert -(2**63) <= value < 2**63
    elif isinstance(value, float):
        assert not math.isnan(value)
    elif isinstance(value, tuple):
        for one in value:
            check_storable(one)
    elif isinstance(value, msgspec.Struct) and not isinstance(value, Envelope):
        for field in value.__struct_fields__:
            check_storable(getattr(value, field))


def heard(message: Any) -> Any:
    """A message as it comes out of the wire; None if it does not get through."""
    try:
        return decode(encode(message))
    except UnreadableMessage:
        return None


@pytest.mark.parametrize("seed", sliced(range(6), 2))
@pytest.mark.parametrize(("source", "kinds"), [("liar", OF_PEERS), ("two", OF_CLIENTS)], ids=["peer", "client"])
def test_a_broker_goes_on_whatever_it_is_told(seed, source, kinds):
    alone = Alone(LinkKind.GRAPH if seed % 2 else LinkKind.PEER)
    lie(alone, seed, source, kinds)
    before = alone.delivered
    alone.hear(Publish((Notification({"n": 77}),), 5), "client")
    for _ in range(20):
        alone.pass_time()
    assert alone.delivered == before + 1, "the client gets what it wants"


@pytest.mark.parametrize("seed", sliced(range(6), 2))
@pytest.mark.parametrize(("ours", "theirs"), [(A_RELAY, WITH_A_JOURNAL), (WITH_A_JOURNAL, A_RELAY)])
def test_a_relay_goes_on_whatever_it_is_told_and_so_does_who_is_told_by_one(seed, ours, theirs):
    alone = Alone(LinkKind.GRAPH if seed % 2 else LinkKind.PEER, ours, theirs.terms)
    # A relay of which it was said that others wait for it would be refused from then on.
    lie(alone, seed, "liar", OF_PEERS, tuple([name for name in NAMES if name not in ("b", "liar")]))
    before = alone.delivered
    alone.hear(Forward((Envelope("b", 1 << 40, 1.0, 1, "b", Notification({"n": 77})),)), "b")
    assert alone.delivered == before + 1, "the client gets what it wants"


def lie(alone: Alone, seed: int, source: str, kinds: tuple[type, ...], names: tuple[str, ...] = NAMES) -> None:
    """Tell a broker a lot, and let time pass meanwhile."""
    liar = Liar(f"{seed} {source}", names)
    for count in range(MESSAGES):
        message = heard(liar.message(kinds))
        if message is not None:
            try:
                alone.hear(message, source)
            except PalioError:  # the connection is ended for it
                alone.again(source)
            except Exception as problem:
                raise AssertionError(f"seed {seed}, message {count}: {message}") from problem
        if count % 7 == 0:
            alone.pass_time()
