"""`Timers`: what the router wants to be reminded of, by name; one of the same name is replaced."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol, TypeAlias

from palio.routing.effects import SetTimer


class Cancellable(Protocol):
    """A call that can be cancelled."""

    def cancel(self) -> None:
        """Cancel it."""


CallAt: TypeAlias = Callable[[str, float, Callable[[], None]], Cancellable]


class Timers:
    """`call_at` is given a name, a time and what is to be called then; `due` is told which timer it was."""

    def __init__(self, call_at: CallAt, due: Callable[[str], None]) -> None:
        self._call_at = call_at
        self._due = due
        self._timers: dict[str, Cancellable] = {}

    def set(self, effect: SetTimer) -> None:
        known = self._timers.pop(effect.name, None)
        if known is not None:
            known.cancel()
        self._timers[effect.name] = self._call_at(effect.name, effect.at, partial(self._fire, effect.name))

    def _fire(self, name: str) -> None:
        del self._timers[name]
        self._due(name)

    def cancel(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
