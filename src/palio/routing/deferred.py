"""Deferred work: what has no hurry is done a little at a time, for whom it is.

A client leaves with a hundred thousand subscriptions, or a link is lost with as many rows. Nothing goes there
from then on; to take down what is left is a matter of tidying up, since rows without anybody behind them only
attract events that nobody takes. So that is an iterator, each step of which leaves the tables in order, and a
shell that has other things to do lets it go on now and then (`Router.work`). Where a router is not `patient`,
all of it is done at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Hashable, Iterator


class DeferredWork:
    """Iterators by who they are for, each in the order in which they came."""

    def __init__(self, *, patient: bool) -> None:
        self._patient = patient
        self._work: dict[Hashable, deque[Iterator[object]]] = {}

    def add(self, owner: Hashable, work: Iterator[object]) -> None:
        """Do something for an owner: by and by, or at once."""
        if self._patient:
            self._work.setdefault(owner, deque()).append(work)
        else:
            for _ in work:
                pass

    @property
    def owners(self) -> Collection[Hashable]:
        """Those for whom there is something to do: as it changes, not as it was."""
        return self._work.keys()

    def go_on(self, owner: Hashable, steps: int) -> bool:
        """Do so many steps for an owner. Returns whether there are more."""
        queue = self._work.get(owner)
        while queue and steps:
            for _ in queue[0]:
                steps -= 1
                if not steps:
                    return True
            queue.popleft()
        if not queue:
            self._work.pop(owner, None)
        return bool(queue)
