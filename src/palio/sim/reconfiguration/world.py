"""`TreeWorld`: routers in a tree that somebody else rebuilds, and one queue of events.

Who is linked with whom is decided from outside: links are cut, made and replaced, brokers die. Every message
takes the latency of its link and keeps its place in the order; what is under way on a link that is cut is lost.
Both ends of a link hear of it at the same moment. So all that differs between two protocols is what they say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from itertools import count
from math import inf
from typing import Any

from msgspec.structs import replace

from palio.protocol.peers import Forward, Update
from palio.routing.configuration import Configuration
from palio.routing.effects import CloseLink, Deliver, Reply, Send, SetTimer
from palio.routing.facts import Facts
from palio.routing.occurrences import LinkDown, LinkUp, Open
from palio.routing.router import Router

RouterMaker = Callable[[Configuration, Facts], Router]


class TreeWorld:
    """Brokers by name. `said` counts messages by type, and rows that are added and removed."""

    def __init__(
        self,
        names: Iterable[str],
        configuration: Configuration,
        *,
        latency: Callable[[str, str], float] = lambda one, other: 0.01,
        make_router: RouterMaker = Router,
    ) -> None:
        self.now = 0.0
        self.said: Counter[str] = Counter()
        self.delivered: list[tuple[float, str, Any]] = []  # when, to which session, which notification
        self.answers: list[tuple[str, Any]] = []
        self.heard: Callable[[str, str, Update], None] = lambda source, broker, update: None
        self.loses: type = type(None)  # messages of this type are lost
        self.closed: list[tuple[str, str, str]] = []
        self._latency = latency
        self._queue: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._number = count()
        self._lines: dict[tuple[str, str], int] = {}  # each direction of a link that is up, with its life
        self._timers: dict[tuple[str, str], int] = {}
        facts = Facts()
        self.routers: dict[str, Router] = {}
        for name in names:
            self.routers[name] = make_router(replace(configuration, broker=name), facts)

    # Time

    def after(self, seconds: float, do: Callable[..., None], *arguments: Any) -> None:
        heappush(self._queue, (self.now + seconds, next(self._number), do, arguments))

    def run(self, until: float = inf) -> None:
        """Let everything happen, or what happens until then."""
        while self._queue and self._queue[0][0] <= until:
            self.now, _, do, arguments = heappop(self._queue)
            do(*arguments)
        if until < inf:
            self.now = until

    # The tree

    def link(self, one: str, other: str) -> None:
        life = next(self._number)
        self._lines[one, other] = self._lines[other, one] = life
        for here, there in ((one, other), (other, one)):
            self._handle(here, LinkUp(), there)

    def cut(self, one: str, other: str, *, orderly: bool = False) -> None:
        self._lines.pop((one, other), None)
        self._lines.pop((other, one), None)
        for here, there in ((one, other), (other, one)):
            self._handle(here, LinkDown(orderly), there)

    def crash(self, broker: str) -> list[str]:
        """A broker dies. Returns who were its neighbours."""
        neighbours = self.neighbours(broker)
        del self.routers[broker]
        for name in neighbours:
            self.cut(broker, name)
        return neighbours

    def neighbours(self, broker: str) -> list[str]:
        return [other for one, other in self._lines if one == broker]

    def links(self) -> list[tuple[str, str]]:
        return [(one, other) for one, other in self._lines if one < other]

    # Clients

    def ask(self, broker: str, session: str, *messages: Any) -> None:
        for message in (Open(), *messages):
            self._handle(broker, message, session)

    # What routers say

    def _handle(self, broker: str, message: Any, source: str) -> None:
        router = self.routers.get(broker)
        if router is not None:
            self._carry_out(broker, router.handle(message, source, self.now))

    def _carry_out(self, broker: str, effects: list[Any]) -> None:
        for effect in effects:
            match effect:
                case Send(other, message):
                    self._count(message)
                    life = self._lines.get((broker, other))
                    if life is not None and not isinstance(message, self.loses):
                        self.after(self._latency(broker, other), self._arrive, broker, other, life, message)
                case SetTimer(name, at):
                    number = self._timers[broker, name] = next(self._number)
                    self.after(max(0.0, at - self.now), self._ring, broker, name, number)
                case Deliver(session, envelopes, _):
                    self.delivered += [(self.now, session, envelope.notification) for envelope in envelopes]
                case Reply(session, answer):
                    self.answers.append((session, answer))
                case CloseLink(other, reason):
                    self.closed.append((broker, other, reason))
                    self._close(broker, other)

    def _arrive(self, source: str, broker: str, life: int, message: Any) -> None:
        if self._lines.get((source, broker)) == life:
            if isinstance(message, Update):
                self.heard(source, broker, message)
            self._handle(broker, message, source)

    def _close(self, broker: str, other: str) -> None:
        """A broker does not use a link; what it has said before still arrives."""
        if (broker, other) in self._lines:
            life = self._lines.pop((broker, other))
            self.after(self._latency(broker, other), self._notice, other, broker, life)

    def _notice(self, broker: str, other: str, life: int) -> None:
        if self._lines.get((broker, other)) == life:
            del self._lines[broker, other]
            self._handle(broker, LinkDown(), other)

    def _ring(self, broker: str, name: str, number: int) -> None:
        if self._timers.get((broker, name)) == number and broker in self.routers:
            self._carry_out(broker, self.routers[broker].on_timer(name, self.now))

    def _count(self, message: Any) -> None:
        self.said[type(message).__name__] += 1
        if isinstance(message, Update):
            self.said["added"] += len(message.add) + len(message.advertise)
            self.said["removed"] += len(message.remove) + len(message.withdraw)
        elif isinstance(message, Forward):
            self.said["forwarded"] += len(message.envelopes)
