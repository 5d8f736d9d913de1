"""Spooling: what comes live for the durable subscriptions here is put on disk, and from there it goes out.

A position is only written together with what it stands for (invariant 2 of `subscription`). What does not fit
into an outbox is not taken (invariant 7): it stays in the journal of its origin, and is fetched later.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from palio.protocol.envelope import Envelope
from palio.routing.durable import shortcuts
from palio.routing.durable.alarm import Alarm
from palio.routing.durable.desk import Desk
from palio.routing.durable.home.handing import HandingOut
from palio.routing.durable.home.homes import FilterChange, Homes
from palio.routing.durable.home.outbox import has_expired
from palio.routing.durable.home.room import Room
from palio.routing.durable.home.subscription import CatchUp, Durable, HomeState
from palio.routing.durable.home.tick_turns import TickTurns
from palio.routing.durable.home.writing import Writing


@dataclass(eq=False, repr=False, slots=True)
class _TakenEvents:
    """What was taken for a subscription and is not spooled yet."""

    envelopes: list[Envelope] = field(default_factory=list)
    bytes: int = 0  # about


@dataclass(eq=False, repr=False)
class Spooling:
    """Spools events for the subscriptions here. `settling` is set when one has to catch up."""

    _desk: Desk
    _homes: Homes
    _writing: Writing
    _handing: HandingOut
    _room: Room
    _settling: Alarm

    def __post_init__(self) -> None:
        self._taken: dict[Durable, _TakenEvents] = {}
        self._saving = TickTurns[Durable]()

    def take(self, holder: Durable | FilterChange, envelope: Envelope) -> None:
        """Takes an event of the present epoch that the filter of a subscription here selects."""
        durable = holder.owner if isinstance(holder, FilterChange) else holder
        if durable.name in self._homes.changes and not durable.buffers(envelope.origin):
            if not durable.filter.matches(envelope.notification):
                return  # only the filter that is to come selects it
        taken = self._taken.get(durable)
        if (
            durable.state is HomeState.LIVE
            and not self._has_room(durable, taken)
            and not durable.buffers(envelope.origin)
        ):
            self.no_room(durable)
        elif durable.take(envelope):
            if taken is None:
                taken = self._taken[durable] = _TakenEvents()
            taken.envelopes.append(envelope)
            taken.bytes += envelope.notification.body.size

    def mark(self, origin: str, sequence: int) -> None:
        """Handles a mark (a watermark): everything of an origin up to a sequence has come."""
        for durable in self._homes.subscriptions.values():
            durable.advance(origin, sequence)

    def settle(self) -> None:
        """Spool what has been brought since, in one write for each subscription."""
        if self._taken:
            all_taken, self._taken = self._taken, {}
            for durable, taken in all_taken.items():
                self.spool(durable, taken.envelopes)

    def drop(self, durable: Durable) -> None:
        """Drops what was taken for a subscription and is not spooled yet."""
        self._taken.pop(durable, None)

    def save_positions(self) -> bool:
        """Write positions that marks have moved, if it is their turn. Returns whether there are more."""
        for durable in self._saving.of(self._homes.subscriptions.values()):
            moved = {o: s for o, s in durable.position.items() if s != durable.written_position.get(o)}
            if moved and durable.state in (HomeState.LIVE, HomeState.BEHIND) and not durable.saving:
                self._saving.taken()
                durable.saving = True
                self._writing.deliveries(durable, position=tuple(moved.items()), then=durable.saved)
        return not self._saving.is_over

    def spool(self, durable: Durable, envelopes: list[Envelope], *origins_read: str) -> None:
        """Write what was taken with the positions of these origins; then it may go out (invariant 3)."""
        entries = []
        for envelope in envelopes:
            if not has_expired(envelope, self._desk.now):
                entries.append((durable.next_delivery, 0, envelope))
                durable.next_delivery += 1
        origins = dict.fromkeys([*origins_read, *[envelope.origin for envelope in envelopes]])
        position = {origin: durable.position[origin] for origin in origins}
        size = sum([envelope.notification.body.size for _, _, envelope in entries])

        def stored() -> None:
            durable.spooling -= len(entries)
            durable.spooling_bytes -= size
            for number, attempts, envelope in entries:
                durable.outbox.add(number, attempts, envelope)
            self._handing.pump(durable)

        durable.spooling += len(entries)
        durable.spooling_bytes += size
        self._writing.deliveries(durable, add=tuple(entries), position=tuple(position.items()), then=stored)
        if self._room.is_full(durable):
            self.no_room(durable)

    def drain(self, durable: Durable, origin: str, catching_up: CatchUp) -> None:
        """Takes what waited in the buffer of an origin that was caught up with, and its mark (invariant 6)."""
        waiting = [envelope for envelope in catching_up.buffer if durable.filter.matches(envelope.notification)]
        room = self._room.left(durable)
        taken = [envelope for envelope in waiting[:room] if durable.take(envelope)]
        if taken:
            self.spool(durable, taken)
        if len(waiting) > room:
            self.no_room(durable)
        durable.advance(origin, catching_up.marked)

    def no_room(self, durable: Durable) -> None:
        """Backpressure: what does not fit stays in its journal until there is room, which may be now."""
        durable.stop()
        if self._room.is_half_empty(durable):
            self._settling.set()

    def _has_room(self, durable: Durable, taken: _TakenEvents | None) -> bool:
        """Whether there is room for one more than those that were taken (invariant 7); asked for each event."""
        count, size = (0, 0) if taken is None else (len(taken.envelopes), taken.bytes)
        if shortcuts.TAKEN and not durable.catching_up:
            return not self._room.is_full(durable, count, size)
        return self._room.left(durable, count, size) > 0
