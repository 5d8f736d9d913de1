"""`Thought`: something that may take long, done a little at a time.

Understanding a filter, and comparing it with very many others, may take a second; a broker that did it in one
go would be deaf for as long. A thought runs as a stack of its own (a greenlet) beside the event loop. Reasoning
counts its steps (`model.effort`), and every so often the thought looks whether its turn is over: then it stops,
wherever it is, and goes on there with its next turn. What it does meanwhile concerns nobody else: it asks, and
changes nothing but what is its own (`router.consider`). What it has found out is then acted upon in one go.

It takes as many steps on every machine, and what takes too many is ended (`TooHard`). How far it gets in a turn
is a matter of time, and of no consequence.

A stack takes longer to make than most thoughts take. So those that are done with are used again (`Stacks`).
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

from greenlet import GreenletExit, getcurrent, greenlet

from palio.model.effort import Meter

# Stacks that are kept for later: as many thoughts as are often begun and not ended at the same time.
MAX_IDLE = 16


class _Stack:
    """Runs one function after the other, and can be left in the middle of each."""

    __slots__ = ("_function", "_problem", "greenlet", "is_done")

    def __init__(self) -> None:
        self.greenlet = greenlet(self._run)
        self._function: Callable[[], None] | None = None
        self._problem: BaseException | None = None
        self.is_done = False

    def begin(self, function: Callable[[], None]) -> None:
        self._function, self.is_done = function, False

    def go_on(self) -> None:
        """Raises what the function raises."""
        self.greenlet.switch()
        if self._problem is not None:
            problem, self._problem = self._problem, None
            try:
                raise problem
            finally:
                del problem  # whose traceback has this frame: nobody would find out that both are done with

    def give_up(self) -> None:
        """End it where it is. It is of no use afterwards."""
        self.greenlet.throw(GreenletExit)
        self._function = None

    def _run(self) -> None:
        while True:
            assert self._function is not None, "It is only begun with a function."
            try:
                self._function()
            except GreenletExit:
                raise
            except BaseException as problem:  # noqa: BLE001 (it is raised where it is waited for)
                self._problem = problem
            self._function, self.is_done = None, True
            self.greenlet.parent.switch()


class Stacks:
    """Stacks that are not in use."""

    def __init__(self) -> None:
        self._idle: list[_Stack] = []

    def take(self) -> _Stack:
        return self._idle.pop() if self._idle else _Stack()

    def put(self, stack: _Stack) -> None:
        if len(self._idle) < MAX_IDLE:
            self._idle.append(stack)


class Thought:
    """A function that is called once, over several turns if need be. What it raises, `go_on` raises."""

    __slots__ = ("_stack", "_stacks", "_until")

    def __init__(self, function: Callable[[Meter], None], limit: int, stacks: Stacks) -> None:
        """The function is given the meter for what may be interrupted (`effort.metered`)."""
        self._until = 0.0
        self._stacks = stacks
        self._stack: _Stack | None = stacks.take()  # until it has come to its end
        meter = Meter(limit, self._breathe)
        self._stack.begin(lambda: function(meter))

    def go_on(self, until: float) -> bool:
        """Think until about a moment of `perf_counter`. Returns whether it has come to its end."""
        stack = self._stack
        assert stack is not None, "It has come to its end before."
        self._until = until
        try:
            stack.go_on()
        finally:
            if stack.is_done:
                self._stack = None
                self._stacks.put(stack)
        return stack.is_done

    @property
    def is_current(self) -> bool:
        """Whether it is what is being done just now."""
        return self._stack is not None and getcurrent() is self._stack.greenlet

    def give_up(self) -> None:
        """Nobody is interested in it any more; which does nothing if it has come to its end."""
        stack, self._stack = self._stack, None
        if stack is not None:
            stack.give_up()

    def _breathe(self) -> None:
        if self._stack is not None and perf_counter() >= self._until:
            self._stack.greenlet.parent.switch()
