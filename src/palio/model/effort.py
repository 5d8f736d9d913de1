"""A bound on work: whoever decides something spends effort, and gives up when none is left.

Filters come from strangers. Each question about them has an answer, but some would take days to find; every
search therefore gets a fixed amount of effort, and its caller a safe answer for the case that it ran out.

A request may ask very many questions. A `Meter` counts what all of them take together, in steps that are the
same on every machine, whoever asks them and however deep: it is laid around the work, not handed down. It ends
what takes too long (`TooHard`, which no caller has a safe answer for, so that nothing wrong is remembered), and
from time to time lets whoever laid it do something else (`breathe`). So reasoning can be cut into pieces
without knowing of it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from palio.model.errors import TooHard

# Steps, of about a tenth of a microsecond each and up to four times as long, after which a meter lets its owner
# breathe. Everything else at a broker waits until somebody looks at the clock; that takes next to nothing.
BREATH = 1_000
# Steps of a question about two filters, whatever else it takes.
COMPARISON = 20


class Undecided(Exception):
    """The effort ran out before the answer was found."""


class Meter:
    """What was spent, and at most how much, until it is `TooHard`; `breathe` is called every `BREATH` steps."""

    __slots__ = ("_breathe", "_next", "limit", "spent")

    def __init__(self, limit: int, breathe: Callable[[], None] | None = None) -> None:
        self.limit = limit
        self.spent = 0
        self._breathe = breathe
        self._next = BREATH

    def spend(self, steps: int) -> None:
        """Count steps. Raises `TooHard` once there are more than allowed."""
        self.spent += steps
        if self.spent > self.limit:
            raise TooHard(self.limit)
        if self.spent >= self._next:
            self.pause()

    def pause(self) -> None:
        """Let the owner breathe now, for work that is not counted in steps."""
        self._next = self.spent + BREATH
        if self._breathe is not None:
            self._breathe()


_meter: ContextVar[Meter | None] = ContextVar("meter", default=None)


class metered:  # noqa: N801 (used as a function is; one that yields takes several times as long)
    """Count all effort that is spent within; None: let it pass uncounted."""

    __slots__ = ("_meter", "_token")

    def __init__(self, meter: Meter | None) -> None:
        self._meter = meter

    def __enter__(self) -> None:
        self._token = _meter.set(self._meter)

    def __exit__(self, *problem: object) -> None:
        _meter.reset(self._token)


@contextmanager
def uncounted() -> Iterator[None]:
    """Work whose result is remembered: others have their turn, but no steps are counted.

    So what a request takes does not depend on what was asked before; whoever asks counts for the result.
    """
    meter = _meter.get()
    with metered(None if meter is None else Meter(sys.maxsize, meter.pause)):
        yield


def spend(steps: int) -> None:
    """Count steps of something that has no bound of its own. Raises `TooHard`."""
    meter = _meter.get()
    if meter is not None:
        meter.spend(steps)


def pause() -> None:
    """Let others have their turn between two pieces of work that is bounded otherwise."""
    meter = _meter.get()
    if meter is not None:
        meter.pause()


class Effort:
    """How many units of work may still be done; what a unit is, and how many `steps`, the spender says."""

    __slots__ = ("_meter", "_steps", "left")

    def __init__(self, units: int, steps: int = 1) -> None:
        self.left = units
        self._steps = steps
        self._meter = _meter.get()

    def spend(self, units: int) -> None:
        """Raises `Undecided` once more was spent than there was, and `TooHard` as the meter does."""
        self.left -= units
        if self.left < 0:
            raise Undecided
        if self._meter is not None:
            self._meter.spend(units * self._steps)
