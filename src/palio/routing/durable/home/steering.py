"""Steering durable subscriptions at their home: pause, resume, and seek (moving them to another position).

1. A pause is on disk, under the identity of the subscription, and goes with it to other homes. What comes is
   kept as ever; nothing is handed out. What is out when it begins may still be acknowledged or rejected.
2. A subscription is moved in one atomic write: the deliveries that are not wanted go, and the position is what
   it was told to be. That is written when all writes that were asked for before are on disk, so that none of
   them brings back what was dropped.
3. Moving back lowers the position, which otherwise only grows (invariant 1 of `subscription`). The journals
   keep everything after the position that was told before, as they always do; what is before that is read again
   as far as it is there. A delivery that waits is not fetched a second time (`Durable.reread`): the journal may
   have let go of it.
4. What had been acknowledged and is read again is a new delivery, with a new number and attempt 1.
"""

from __future__ import annotations

from math import isfinite

from palio.protocol.durable.control import Pause, Paused, Resume, Seek, Sought
from palio.protocol.durable.wishes import NotHome, WrongAttachment, require_position
from palio.protocol.envelope import Envelope
from palio.protocol.requests import Refused
from palio.routing.durable.alarm import Alarm
from palio.routing.durable.desk import Desk
from palio.routing.durable.facts import FactKind
from palio.routing.durable.home.homes import Homes
from palio.routing.durable.home.subscription import Durable, HomeState
from palio.routing.durable.home.takers import Takers
from palio.routing.durable.home.writing import Writing

# Seconds by which the clock of whoever asks may be ahead of ours.
_CLOCKS_DIFFER = 60.0


class SoughtPlace:
    """Where a subscription shall go on."""

    def __init__(self, seek: Seek, now: float) -> None:
        since, after = seek.since, seek.after or {}
        if (since is None) == (not after):
            raise WrongAttachment("since", "Name a time, `now`, `all`, or a position, and one of these only.")
        if isinstance(since, str) and since not in ("now", "all"):
            raise WrongAttachment("since", "It is a time, now, or all.")
        self._now = since == "now"
        named = {"now": now, "all": 0.0}
        self.since = named[since] if isinstance(since, str) else since
        if self.since is not None:
            if not (isfinite(self.since) and 0.0 <= self.since <= now + _CLOCKS_DIFFER):
                raise WrongAttachment("since", "It is a time that is not in the future.")
            self.since = min(self.since, now)
        require_position(after)
        self.after = after

    def wants(self, envelope: Envelope) -> bool:
        """Whether something that waits is still wanted."""
        if self._now:
            return False
        if self.since is not None:
            return envelope.time >= self.since
        return envelope.sequence > self.after.get(envelope.origin, 0)

    def position(self, before: dict[str, int]) -> dict[str, int]:
        """From which sequences on journals are read: from the first, for a time in the past."""
        if self.since is None or self._now:
            return {**before, **self.after}
        return dict.fromkeys(before, 0)

    def begin(self, durable: Durable) -> None:
        """What is live has read everything: from now on it wants what comes, whatever clocks say."""
        if self._now and durable.state is HomeState.LIVE and not durable.catching_up:
            self.since = 0.0

    def passes_over(self, durable: Durable) -> bool:
        """Whether something may be passed over that is not read yet."""
        if self.since is not None:
            return self.since > 0.0 and (durable.state is not HomeState.LIVE or bool(durable.catching_up))
        return any(sequence > durable.position.get(origin, 0) for origin, sequence in self.after.items())


class Steering:
    """Pause, resume and seek for a subscription that is at home here. Raises `NotHome` for any other."""

    def __init__(self, desk: Desk, homes: Homes, writing: Writing, takers: Takers, settling: Alarm) -> None:
        self._desk = desk
        self._homes = homes
        self._writing = writing
        self._takers = takers
        self._settling = settling

    def pause(self, session: str, message: Pause) -> None:
        """Pauses a subscription: nothing is delivered any more."""
        self._set(session, self._homes.named(message.name), message, True)

    def resume(self, session: str, message: Resume) -> None:
        durable = self._homes.named(message.name)
        self._set(session, durable, message, False)
        self._takers.go_on(durable)

    def _set(self, session: str, durable: Durable, message: Pause | Resume, paused: bool) -> None:
        durable.paused = paused
        answer = Paused(durable.name, paused, number=message.number)
        fact, value = FactKind.PAUSED.of(durable.identity), 1 if paused else None
        self._desk.save(fact, value, lambda: self._desk.answer(session, answer))

    def seek(self, session: str, message: Seek) -> None:
        durable = self._homes.named(message.name)
        place = SoughtPlace(message, self._desk.now)
        if message.dry:
            dropped = len(self._unwanted(durable, place))
            passed = place.passes_over(durable)
            self._desk.answer(session, Sought(durable.name, dropped, passed, number=message.number))
            return
        unread = place.passes_over(durable)
        place.begin(durable)
        durable.stop()

        def written() -> None:
            if self._homes.subscriptions.get(durable.name) is not durable or durable.state is HomeState.MOVING:
                problem = NotHome(durable.name)
                self._desk.answer(session, Refused.of(f"seek {durable.name}", problem, message.number))
                return
            durable.stop()
            if durable.spooling:  # something came meanwhile
                self._writing.when_written(durable, written)
            else:
                self._move(session, durable, place, message, unread)

        self._writing.when_written(durable, written)

    def _unwanted(self, durable: Durable, place: SoughtPlace) -> tuple[int, ...]:
        waiting = durable.outbox.deliveries.values()
        return tuple([one.number for one in waiting if not place.wants(one.envelope)])

    def _move(self, session: str, durable: Durable, place: SoughtPlace, message: Seek, unread: bool) -> None:
        dropped = self._unwanted(durable, place)
        for number in dropped:
            durable.outbox.remove(number)
        former, durable.position = durable.position, place.position(durable.position)
        # Where somebody else says that it is, nobody knows of which lineage, until the journals are heard of.
        moved = [origin for origin, sequence in durable.position.items() if former.get(origin) != sequence]
        for origin in moved:
            if durable.lineages.pop(origin, None) is not None:
                durable.unwritten.add(origin)
        durable.since = place.since or 0.0
        durable.look_for_reread()
        position = dict(durable.position)
        durable.written_position = dict(position)
        places = durable.places(position.items())

        def stored() -> None:
            durable.stored_position.update(places)
            self._desk.answer(session, Sought(durable.name, len(dropped), unread, number=message.number))

        filter = self._homes.filter_to_write(durable)
        self._writing.subscription(durable, filter, stored, remove=dropped, position=tuple(position.items()))
        self._settling.set()
