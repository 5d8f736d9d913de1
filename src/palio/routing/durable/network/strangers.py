"""Strangers: brokers of which only relays have told.

A broker tells a new neighbour of the network when it has it on disk (`membership`), so whoever has heard of the
network can be found from it, whatever crashes. A relay has no disk, and tells what it knows at once. So whoever
is known by what relays tell is a *stranger* at first. It is waited for, its count is in the epoch, and all are
told of it, as of a stranger. It is *heard of* when somebody who has heard of it says that it has this broker on
disk: that one itself, or another to which it leads. That is asked with a tick.

1. *Who has heard of a broker is found from there*, as ever (`membership`, 1): before B has heard of A, A has
   said that it has B on disk, or a third has that has heard of A, and to which A leads, therefore.
2. *Questions come after names.* Whoever hears of a stranger passes that on at once, and has its name on disk
   before it answers what lasts. Links keep order, so who is asked knows the asker, or has forgotten it.
3. What is on disk of a stranger is its name: after a crash it is one again.

A broker that joins by a relay has met the network when it has heard of another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from palio.protocol.durable.peers import Told
from palio.routing.durable.alarm import Alarm
from palio.routing.durable.desk import ANSWER_WITHIN, Desk
from palio.routing.durable.network.answering import Answering
from palio.routing.durable.network.polling import Polling
from palio.routing.durable.network.topology import Topology


@dataclass(eq=False, repr=False)
class Strangers:
    """Asks who has heard of the strangers that this broker knows. `met` takes those of whom somebody has."""

    _desk: Desk
    _topology: Topology
    _polling: Polling
    _answering: Answering
    _tick: Alarm
    _met: Callable[[Iterable[str]], None]

    def __post_init__(self) -> None:
        self._is_due = False
        self._question: int | None = None
        self._until = 0.0  # when the answer to it is overdue

    def epoch_changed(self) -> None:
        """Handles another epoch: there is another stranger, or somebody who knows them."""
        if self._topology.strangers:
            self._is_due = True
            self._tick.set()

    def again(self) -> bool:
        """Ask for them, if that is due or was not answered. Returns whether an answer is waited for."""
        strangers = self._topology.strangers
        if not strangers:
            self._is_due, self._question = False, None
            return False
        if self._question is not None and self._until <= self._desk.now:
            self._is_due = True
        if self._is_due:
            self._is_due = False
            self._until = self._desk.now + ANSWER_WITHIN * self._desk.settings.tick
            ask = self._polling.ask(strangers=tuple(sorted(strangers)), then=self._told)
            self._question = ask.number
            self._answering.answer(ask)
        return self._question is not None

    def _told(self, told: Told) -> None:
        if told.number == self._question:
            self._question = None
        self._met(told.met)
