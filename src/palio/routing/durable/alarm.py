"""Alarms: timers of durable delivery that are set once, and then not again until they have rung."""

from __future__ import annotations

from palio.routing.durable.desk import Desk
from palio.routing.effects import SetTimer

# What is due at regular times while there is something to do, and what waits for the network to settle.
TICK = "durable tick"
SYNC = "durable sync"
# The timer for the first subscription that has been without a taker for too long.
ABANDON = "durable abandon"
# The timer for the first broker that has been away for too long.
FORGET = "durable forget"
# The timer for the deliveries of a subscription; its name follows.
DELIVER = "deliver "


class Alarm:
    """A timer that comes due so many seconds after it was first set."""

    def __init__(self, desk: Desk, name: str, seconds: float) -> None:
        self._desk = desk
        self._name = name
        self._seconds = seconds
        self._is_set = False

    def set(self) -> None:
        """Set the timer, unless it is set already."""
        if not self._is_set:
            self._is_set = True
            self._desk.effects.append(SetTimer(self._name, self._desk.now + self._seconds))

    def rang(self) -> None:
        """Note that the timer has come due: it may be set again."""
        self._is_set = False
