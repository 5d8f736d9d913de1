"""Requests that are allowed and meant badly: filters, advertisements, names and ids near every limit, as bytes.

`Scene` is a broker with a door, a store and a neighbour. Everything that passes between them is bytes, read
again at the other end; a link that is closed, and anything that is not read, is an error of the scene.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from typing import Any

import msgspec

from palio.broker.access.principal import Holder, Principal
from palio.broker.access.rights import Rights
from palio.broker.request_guard import RequestGuard
from palio.broker.settings import Settings
from palio.model.errors import PalioError
from palio.model.expression import text_of
from palio.model.filter import Filter
from palio.protocol.encoding import decode, encode
from palio.protocol.frames import MAX_FRAME
from palio.protocol.requests import Refused
from palio.routing import Configuration, Router, Strategy
from palio.routing.durable.desk import DurableSettings
from palio.routing.durable.effects import Append, Read, Recovered, Remove, SaveFact, Spool, Trim
from palio.routing.effects import CloseLink, Reply, Send, SetTimer
from palio.routing.occurrences import Found, LinkUp, Open, Stored
from palio.routing.scopes import SetScope
from tests.generators import Maker
from tests.store.driving import Driven

DESK = "desk"
SESSION = "desk/session"
# What lasts twice as often as what does not.
KINDS = (
    *("subscribe", "attach", "advertise", "subscribe", "attach", "advertise", "change", "watch"),
    *("unsubscribe", "unadvertise", "survey", "replay", "release", "finish", "publish"),
)
_STORED = (Append, Spool, SaveFact, Remove)


class Attacker:
    """Plain messages of a client, as MessagePack would have them."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self._maker = Maker(chance)

    def request(self) -> dict[str, Any]:
        kind = self.chance.choice(KINDS)
        request: dict[str, Any] = {"type": kind}
        if kind in ("subscribe", "unsubscribe", "attach", "change", "survey", "replay"):
            request["filter"] = self.filter()
        if kind in ("advertise", "unadvertise", "watch"):
            request["advertisement"] = self.advertisement()
        if kind in ("attach", "change", "finish"):
            request["name"] = self.name()
        if kind in ("subscribe", "advertise", "watch", "release"):
            request["handle"] = self.name()
        if kind in ("survey", "replay"):
            request["number"] = self.chance.choice((0, 1, 2**62, 2**62 + 1))
        if kind == "attach" and self.chance.random() < 0.3:
            request["after"] = {self.name(): self.chance.choice((0, 2**62))}
        if kind == "publish":
            request |= {"notifications": [[b"\x80", self.name()]], "request": 1, "publisher": self.name()}
        return request

    def name(self) -> str:
        one = self.chance.choice("ab\0\n/\\ '\"é\U0001f600\ud7ff")
        return one * self.chance.choice((0, 1, 1, 2, 254, 255, 255, 256, 70_000))

    def advertisement(self) -> str:
        items = [f"({self._about('a')})" for _ in range(self.chance.randint(1, 3))]
        return ", ".join([*items, self.chance.choice(("b *", '`odd "name"` = 5', "(b > 1 and b < 8), b = 20"))])

    def filter(self) -> str:
        choice = self.chance.random()
        if choice < 0.4:
            return self._about("a")
        if choice < 0.6:
            return text_of(self._maker.expression(3))
        if choice < 0.7:
            count = self.chance.choice((2, 63, 64, 65))
            return " or ".join(f'(a{n} contains "x" and b ends with "y{n}")' for n in range(count))
        if choice < 0.8:
            return " and ".join(f"({self._about(name)})" for name in ("a", "b", "c"))
        if choice < 0.9:
            return " and ".join(
                f"`{'n' * 250}{n:03}` = 1" for n in range(self.chance.choice((5, 511, 512, 513)))
            )
        return "(" * 63 + f"not {self._about('a', 5)}" + ")" * 63

    def _about(self, name: str, count: int | None = None) -> str:
        """Many conditions on one attribute, joined in one way."""
        count = count or self.chance.choice((1, 7, 31, 40, 120, 256, 300))
        text = self.chance.choice(("x", "é", "\\u0000", "a/b"))
        condition = self.chance.choice(
            (
                f'not {name} contains "{text}%d"',
                f'not {name} matches "{"x" * 200}%d/*/**"',
                f'{name} ends with "{text}%d"',
                f"{name} has %d",
                f"not {name} has > %d.5",
                f'{name} = "{text * 60}%d"',
                f"{name} != %d",
                f"{name} in (%d, 9007199254740993, 1.5)",
                f'{name} starts with x"ff" and not {name} ends with x"%04d"',
                f"{name} > 0001-01-01T00:00:00.%06dZ",
            )
        )
        return self.chance.choice((" and ", " or ")).join(condition % number for number in range(count))


class Scene:
    """Broker a with a store, and its neighbour b, which keeps nothing."""

    def __init__(self, chance: random.Random, store: str, strategy: str, *, advertisements: bool) -> None:
        self.chance = chance
        self.outcomes: Counter[str] = Counter()
        self._store = store
        self._strategy = strategy
        self._advertisements = advertisements
        self._rights = Filter.parse(
            chance.choice(
                (
                    "true",
                    "not c = 7",
                    " and ".join(f'not a contains "z{number}"' for number in range(40)),
                    " or ".join(f"r{number} = 1" for number in range(8)),
                )
            )
        )
        self._principal = Principal(DESK, Holder(Rights(self._rights, Filter(), frozenset())))
        self._guard = RequestGuard(Settings(), lambda: 0.0)
        self.open()

    def open(self) -> None:
        """Both brokers begin, a with what its store has, and link."""
        self.driven = Driven(self._store, "a")
        self._now = 0.0
        self._under_way: deque[tuple[str, bytes, str]] = deque()
        self._timers: dict[tuple[str, str], float] = {}
        self.routers = {"a": self._router("a", self.driven.recovered), "b": self._router("b", Recovered())}
        self._do("a", SetScope(DESK, self._rights, Filter()), "")
        self._do("a", LinkUp(), "b")
        self._do("b", LinkUp(), "a")
        self._do("a", Open(), SESSION)
        self.rest()

    def close(self) -> None:
        self.driven.store.close()

    def _router(self, name: str, recovered: Recovered) -> Router:
        configuration = Configuration(
            broker=name,
            strategy=Strategy(self._strategy),
            advertisements=self._advertisements,
            merging_excess=0.5 if self._strategy == "merging" else 0.0,
            incarnation=self.driven.incarnation,
            scoped=True,
            durable=DurableSettings(),
        )
        return Router(configuration, recovered=recovered)

    def ask(self, request: dict[str, Any]) -> None:
        """A request comes to the door, as bytes; it is refused there, or carried out with all that follows."""
        try:
            message = decode(msgspec.msgpack.encode(request))
            message = self._guard.check(message, self._principal, SESSION)
        except PalioError as problem:
            if not str(problem).endswith((".", "?")):
                raise
            self.outcomes["refused at the door"] += 1
            return
        self.outcomes["came in"] += 1
        self._do("a", message, SESSION)
        self.rest()

    def rest(self) -> None:
        """Until nothing is under way, and what waits for some seconds has been waited for."""
        until = self._now + 5.0
        for _ in range(6):
            while self._under_way:
                name, payload, source = self._under_way.popleft()
                assert len(payload) <= MAX_FRAME
                self._do(name, decode(payload), source)
            if min(self._timers.values(), default=until) >= until:
                return
            (name, timer), self._now = min(self._timers.items(), key=lambda one: one[1])
            del self._timers[name, timer]
            self._carry_out(name, self.routers[name].on_timer(timer, self._now))

    def _do(self, name: str, message: Any, source: str) -> None:
        self._carry_out(name, self.routers[name].handle(message, source, self._now))

    def _carry_out(self, name: str, effects: list[Any]) -> None:
        for effect in effects:
            match effect:
                case Send(broker, message):
                    self._under_way.append((broker, encode(message), name))
                case Reply(_, answer):
                    self.outcomes["refused" if isinstance(answer, Refused) else "answered"] += 1
                    encode(answer)
                case SetTimer(timer, at):
                    self._timers[name, timer] = at
                case CloseLink(broker, reason):
                    raise AssertionError(f"The link from {name} to {broker} is closed: {reason}")
                case Read(token, _, _, upto) if name == "b":
                    self._do(name, Found(token, upto, ()), "")
                case Trim():
                    pass
                case _ if isinstance(effect, (*_STORED, Read)):
                    answers = [Stored(effect.token)] if name == "b" else self.driven.do(effect)
                    for answer in answers:
                        self._do(name, answer, "")

    def check(self) -> None:
        """The neighbour has what it was told, to the byte."""
        a, b = self.routers["a"], self.routers["b"]
        assert _forms(b.received("a")) == _forms(a.sent("b"))
        assert _forms(b.received_advertisements("a")) == _forms(a.sent_advertisements("b"))

    def durable(self) -> dict[str, bytes]:
        """The durable subscriptions of a, with the forms of their filters."""
        service = self.routers["a"].durable
        assert service is not None
        return {name: one.filter.form for name, one in service.homes.subscriptions.items()}


def _forms(rows: dict[int, Any]) -> dict[int, bytes]:
    return {number: item.form for number, item in rows.items()}
