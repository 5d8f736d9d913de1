"""Delivering: what is on disk goes to the consumer (the taker), as much as it may have in flight.

Nothing goes out that is not on disk (invariant 3 of `subscription`), nothing while the subscription is paused,
stored or moved, and nothing that its owner may not see any more.
"""

from __future__ import annotations

from typing import TypeAlias

from palio.protocol.envelope import Envelope
from palio.routing.durable.alarm import DELIVER, Alarm
from palio.routing.durable.desk import Desk
from palio.routing.durable.effects import Hand
from palio.routing.durable.home.room import Room
from palio.routing.durable.home.subscription import Durable, HomeState
from palio.routing.durable.home.writing import Writing
from palio.routing.effects import SetTimer

Going: TypeAlias = tuple[int, int, Envelope]  # delivery, attempt, what


class HandingOut:
    """Delivers to takers. `settling` is set when there is room again for what did not fit."""

    def __init__(self, desk: Desk, writing: Writing, room: Room, settling: Alarm) -> None:
        self._desk = desk
        self._writing = writing
        self._room = room
        self._settling = settling
        self.handed = 0  # deliveries that went out, also those that came again

    def pump(self, durable: Durable) -> None:
        """Deliver as long as the taker may have more in flight."""
        desk, outbox = self._desk, durable.outbox
        if durable.taker is None or durable.paused or durable.state in (HomeState.STORING, HomeState.MOVING):
            return
        going: list[Going] = []
        while more := outbox.next(desk.now):
            going += self._withhold(durable, more)
        if going:
            desk.effects.append(Hand(durable.taker, durable.name, tuple(going)))
            self.handed += len(going)
        if outbox.lapsed:
            lapsed, outbox.lapsed = tuple(outbox.lapsed), []
            for number in lapsed:
                outbox.remove(number)
            self._writing.deliveries(durable, remove=lapsed)
        wake = outbox.wake_at()
        # A timer that comes due too early finds nothing to do, and is set again.
        if wake is not None and (durable.timer is None or wake < durable.timer):
            durable.timer = max(wake, desk.now)
            desk.effects.append(SetTimer(f"{DELIVER}{durable.name}", durable.timer))
        if durable.state is HomeState.BEHIND and self._room.is_half_empty(durable):
            self._settling.set()

    def _withhold(self, durable: Durable, going: list[Going]) -> list[Going]:
        """Drops deliveries that their owner may not see any more."""
        visible = self._desk.scopes.visible(durable.name, [envelope for *_, envelope in going], "spool")
        if visible is None:
            return going
        hidden = tuple([one[0] for one, seen in zip(going, visible, strict=True) if not seen])
        for number in hidden:
            durable.outbox.remove(number)
        self._writing.deliveries(durable, remove=hidden)
        return [one for one, seen in zip(going, visible, strict=True) if seen]
