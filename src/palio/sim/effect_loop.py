"""`EffectLoop`: one queue of events, and brokers whose effects are carried out on it.

Everything that happens is an event, ordered by time and then by number. A broker is a router with a life, which
is another one after each beginning and each end, and with timers, which count only in the life in which they
were set, and only if they were not set again. What becomes of other effects each world says, by their types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from heapq import heappop, heappush
from itertools import count
from typing import Any, Generic, Protocol, TypeVar

from palio.routing.effects import SetTimer
from palio.routing.router import Router


class LoopedBroker(Protocol):
    """A broker on the loop."""

    router: Router | None
    life: int
    timers: dict[str, int]


_Broker = TypeVar("_Broker", bound=LoopedBroker)


class EffectLoop(Generic[_Broker]):
    """Time, and what happens in it.

    `effects` says what becomes of each type of them, and `done` hears when all of a message are carried out.
    When the world `is_over`, nothing more happens.
    """

    def __init__(
        self,
        effects: Mapping[type, Callable[[_Broker, Any], None]],
        done: Callable[[_Broker], None] = lambda broker: None,
        is_over: Callable[[], bool] = lambda: False,
    ) -> None:
        self._effects = {**effects, SetTimer: self._set_timer}
        self._done = done
        self._is_over = is_over
        self._queue: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._number = count()
        self.now = 0.0

    def after(self, seconds: float, do: Callable[..., None], *arguments: Any) -> None:
        heappush(self._queue, (self.now + seconds, next(self._number), do, arguments))

    def run(self, until: float) -> None:
        """Lets happen what is due until then."""
        while self._queue and self._queue[0][0] <= until:
            self.now, _, do, arguments = heappop(self._queue)
            do(*arguments)
            if self._is_over():
                self._queue.clear()
        self.now = until

    def handle(self, broker: _Broker, message: Any, source: str) -> None:
        """A broker handles a message, if it is there."""
        if broker.router is not None:
            self.carry_out(broker, broker.router.handle(message, source, self.now))

    def carry_out(self, broker: _Broker, effects: list[Any]) -> None:
        """Carries out the effects of a broker; what a world says nothing of is of no interest there."""
        for effect in effects:
            do = self._effects.get(type(effect))
            if do is not None:
                do(broker, effect)
        self._done(broker)

    def _set_timer(self, broker: _Broker, timer: SetTimer) -> None:
        number = broker.timers[timer.name] = next(self._number)
        self.after(max(0.0, timer.at - self.now), self._ring, broker, broker.life, timer.name, number)

    def _ring(self, broker: _Broker, life: int, name: str, number: int) -> None:
        if broker.life == life and broker.router is not None and broker.timers.get(name) == number:
            self.carry_out(broker, broker.router.on_timer(name, self.now))
