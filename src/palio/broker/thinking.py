"""`Thought`: something that may take long, done a little at a time.

Understanding a filter, and comparing it with very many others, may take a second; a broker that did it in one
go would be deaf for as long. A thought runs as a stack of its own (a greenlet) beside the event loop. Reasoning
counts its steps (`model.effort`), and every so often the thought looks whether its turn is over: then it stops,
wherever it is, and goes on there with its next turn. What it does meanwhile concerns nobody else: it asks, and
changes nothing but what is its own (`router.consider`). What it has found out is then acted upon in one go.

It takes as many steps on every machine, and what takes too many is ended (`TooHard`). How far it gets in a turn
is a matter of time, and of no consequence.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import perf_counter

from greenlet import GreenletExit, getcurrent, greenlet

from palio.model.effort import Meter


class Thought:
    """A function that is called once, over several turns if need be. What it raises, `go_on` raises."""

    __slots__ = ("_stack", "_until")

    def __init__(self, function: Callable[[Meter], None], limit: int) -> None:
        """The function is given the meter for what may be interrupted (`effort.metered`)."""
        self._until = 0.0
        self._stack = greenlet(partial(function, Meter(limit, self._breathe)))

    def go_on(self, until: float) -> bool:
        """Think until about a moment of `perf_counter`. Returns whether it has come to its end."""
        self._until = until
        self._stack.switch()
        return bool(self._stack.dead)

    @property
    def is_current(self) -> bool:
        """Whether it is what is being done just now."""
        return getcurrent() is self._stack

    def give_up(self) -> None:
        """Nobody is interested in it any more."""
        self._stack.throw(GreenletExit)

    def _breathe(self) -> None:
        if perf_counter() >= self._until:
            self._stack.parent.switch()
