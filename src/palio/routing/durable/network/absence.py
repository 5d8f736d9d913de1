"""Absence: who has not been in reach for too long is forgotten, where an operator has said so beforehand.

With the setting `forget_after`, a broker looks after each change of the network who does not answer. If
somebody still does not when that time is over, it lets the broker be forgotten as `Forget` does: that is
flooded, and gives up what only the absent one had. At rest nobody is asked: nobody comes or goes without a
change.

1. *Whoever is forgotten was away all the time.* It did not answer when it was first missed, nor at any change
   of the network since, nor now; and its count of changes is what it was then, so it has met nobody of this
   part. The answers that this rests on are those of one epoch.
2. *Of two parts that do not see each other, at most one forgets the other*: the one with more than half of all
   brokers that were ever heard of, or with half of them and the one whose name comes first. So a broker that
   was cut off alone does not come back and make everybody forget everybody else.
3. The time is counted by the clock of who waits, and anew after it has begun anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from palio.protocol.durable.peers import Told
from palio.routing.durable.alarm import FORGET, Alarm
from palio.routing.durable.desk import ANSWER_WITHIN, Desk
from palio.routing.durable.network.answering import Answering
from palio.routing.durable.network.polling import Polling
from palio.routing.durable.network.topology import Topology
from palio.routing.effects import SetTimer


@dataclass(eq=False, repr=False)
class Absentees:
    """Who is away, and since when. `give_up` lets a broker be forgotten, `tick` is set to look who is there."""

    _desk: Desk
    _topology: Topology
    _polling: Polling
    _answering: Answering
    _tick: Alarm
    _give_up: Callable[[str], None]

    def __post_init__(self) -> None:
        self._since: dict[str, tuple[float, int]] = {}  # when it was missed, and its count of changes then
        self._is_due = False  # whether to look who is there
        self._question: int | None = None
        self._until = 0.0  # when the answer to it is overdue

    def epoch_changed(self) -> None:
        """Handles another epoch, or that this broker has begun: somebody may have come or gone."""
        if self._desk.settings.forget_after:
            self._is_due = True
            self._tick.set()

    def on_timer(self) -> None:
        """Somebody has been away for long enough, if still nobody has heard of it."""
        self._is_due = True
        self._tick.set()

    def again(self) -> bool:
        """Look who is there, if that is due, or was not answered. Returns whether an answer is waited for."""
        if self._question is not None and self._until <= self._desk.now:
            self._is_due = True  # the answer was lost
        if self._is_due:
            self._is_due = False
            self._until = self._desk.now + ANSWER_WITHIN * self._desk.settings.tick
            ask = self._polling.ask(then=self._told)
            self._question = ask.number
            self._answering.answer(ask)
        return self._question is not None

    def _told(self, told: Told) -> None:
        if told.number != self._question:
            return
        self._question = None
        if set(told.epochs) != {self._topology.epoch}:
            self._is_due = True  # somebody comes or goes just now
            self._tick.set()
            return
        now, known = self._desk.now, self._topology.known
        present = {head.origin for head in told.heads} & known
        versions = self._topology.versions
        before, self._since = self._since, {}
        for broker in sorted(known - present):
            since, version = before.get(broker, (now, versions[broker]))
            self._since[broker] = (since if version == versions[broker] else now), versions[broker]
        if self._since and self._may_forget(present):
            self._forget_overdue()

    def _may_forget(self, present: set[str]) -> bool:
        """Whether this is the part of the network that may forget others (2)."""
        twice, known = 2 * len(present), self._topology.known
        return twice > len(known) or (twice == len(known) and min(known) in present)

    def _forget_overdue(self) -> None:
        after, now = self._desk.settings.forget_after, self._desk.now
        for broker in [one for one, (since, _) in self._since.items() if since + after <= now]:
            del self._since[broker]
            self._give_up(broker)
        if self._since:
            due = min([since for since, _ in self._since.values()]) + after
            self._desk.effects.append(SetTimer(FORGET, due))
