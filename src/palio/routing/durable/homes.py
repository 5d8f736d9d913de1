"""The durable subscriptions that have their home at this broker: taking, spooling, delivering, catching up."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from palio.model.filter import Filter
from palio.routing.durable.desk import Desk, NotTaker
from palio.routing.durable.effects import Hand, Recovered, Remove, SaveCursor, Spool
from palio.routing.durable.messages import (
    Acknowledged,
    Attach,
    Attached,
    Changed,
    Done,
    DurableReady,
    Fetch,
    Head,
    Page,
    Rejected,
    Taken,
)
from palio.routing.durable.outbox import has_expired
from palio.routing.durable.subscription import CatchUp, Durable, State
from palio.routing.effects import SetTimer
from palio.routing.messages import Ended, Envelope
from palio.routing.table import Entry
from palio.routing.tables import Side

# A new subscription that begins with what is published from now on has this for the time of its beginning,
# until its position is known.
FROM_NOW = -1.0
# Cursors of the store under this prefix are generations that ended here, not readers of the journal.
ENDED = "ended: "


class Change:
    """A change of a filter that is under way: the new one is known to the network beside the old one."""

    __slots__ = ("agreed", "asked", "entry", "filter", "handles", "owner", "session", "writing")

    entry: Entry[Filter]

    def __init__(self, owner: Durable, filter: Filter) -> None:
        self.owner = owner
        self.filter = filter
        self.asked = False  # whether a wave has begun since, and the network is being asked
        self.agreed = 0  # the epoch in which everyone has answered
        self.writing = False
        self.session = ""
        self.handles: dict[str, None] = {}


class Homes:
    """All durable subscriptions here. `wake` asks for them to be brought up to date, `fetch` sends a letter."""

    def __init__(
        self,
        desk: Desk,
        filters: Side[Filter],
        *,
        wake: Callable[[], None],
        fetch: Callable[[str, Fetch], None],
        ended: Callable[[Durable], None],
        tick: Callable[[], None],
    ) -> None:
        self._desk = desk
        self._filters = filters
        self._wake = wake
        self._fetch = fetch
        self._ended = ended
        self._tick = tick
        self.subscriptions: dict[str, Durable] = {}
        self.ended: dict[str, int] = {}  # by identity: the generation up to which it is not to be taken back
        self._changes: dict[str, Change] = {}
        self._taken: dict[Durable, list[Envelope]] = {}

    # Beginning and end

    def recover(self, recovered: Recovered) -> None:
        """Take up what is on disk."""
        self.ended = {
            name.removeprefix(ENDED): generation
            for name, generation in recovered.readers
            if name.startswith(ENDED)
        }
        for stored in recovered.subscriptions:
            durable = self._new(stored.name, stored.filter, stored.since, stored.identity, stored.generation)
            durable.position = dict(stored.position)
            durable.stored_position = dict(stored.position)
            durable.written_position = dict(stored.position)
            durable.next_delivery = stored.next_delivery
            durable.dead = {number: (attempts, envelope) for number, attempts, envelope in stored.dead}
            for number, attempts, envelope in stored.spool:
                # Attempts are not written one by one: whatever is on disk may have been delivered before.
                durable.outbox.add(number, attempts + 1, envelope)
            durable.detached_at = self._desk.now
            if stored.moving_to is None:
                self._stored(durable)
            else:
                durable.moving_to = stored.moving_to
                durable.moving_stored = True
                durable.go("moving")

    def create(self, session: str, attach: Attach) -> None:
        """A subscription that is nowhere yet."""
        since = {"now": FROM_NOW, "all": 0.0}.get(attach.since, attach.since)  # type: ignore[arg-type]
        identity = self._desk.unique()
        durable = self._new(attach.name, attach.filter, float(since), identity, 1)
        durable.taker = session

        def stored() -> None:
            self._stored(durable)
            if durable.taker is not None:
                self._desk.answer(durable.taker, Attached(durable.name, self._desk.broker))

        self._desk.effects.append(
            Spool(
                self._desk.token(stored),
                durable.name,
                attach.filter,
                identity,
                durable.generation,
                durable.since,
            )
        )

    def begin_moving(self, durable: Durable, home: str, then: Callable[[], None]) -> None:
        """Hand a subscription over to another home: from now on nothing happens to it here.

        `then` is called once that is on disk. What was asked of the store before is there by then, too, so what
        is handed over is what would be found after a crash.
        """
        self.tell_taken(durable)
        self._end_change(durable)
        durable.go("asked for")
        durable.moving_to = home

        def stored() -> None:
            durable.moving_stored = True
            self._tick()
            then()

        self._desk.effects.append(
            Spool(
                self._desk.token(stored),
                durable.name,
                durable.filter,
                durable.identity,
                durable.generation,
                durable.since,
                moving_to=home,
            )
        )

    def adopt(self, durable: Durable, then: Callable[[], None]) -> None:
        """A subscription that was handed over; `then` is called once it is on disk."""
        self.subscriptions[durable.name] = durable

        def stored() -> None:
            durable.stored_position = dict(durable.position)
            self._stored(durable)
            then()

        self._desk.effects.append(
            Spool(
                self._desk.token(stored),
                durable.name,
                durable.filter,
                durable.identity,
                durable.generation,
                durable.since,
                next_delivery=durable.next_delivery,
                add=tuple(
                    [(one.number, one.attempts, one.envelope) for one in durable.outbox.deliveries.values()]
                ),
                dead=tuple([(number, attempts, what) for number, (attempts, what) in durable.dead.items()]),
                position=tuple(durable.position.items()),
            )
        )

    def finish(self, durable: Durable, event: str = "finished", then: Callable[[], None] | None = None) -> None:
        """End a subscription here: for good, or because it is at another home now."""
        if durable.entry is not None:
            self._filters.let_go(durable.entry, durable)
        self._end_change(durable)
        durable.go(event)
        del self.subscriptions[durable.name]
        self._taken.pop(durable, None)
        # No letter that comes late shall bring it back.
        self.ended[durable.identity] = durable.generation
        cursor = SaveCursor(self._desk.token(), ENDED + durable.identity, durable.generation)
        self._desk.effects.append(cursor)
        self._desk.effects.append(Remove(self._desk.token(then), durable.name))
        if event == "finished":
            self._ended(durable)

    def _new(self, name: str, filter: Filter, since: float, identity: str, generation: int) -> Durable:
        durable = Durable(
            name,
            filter,
            since=since,
            identity=identity,
            generation=generation,
            patience=self._desk.settings.patience,
        )
        self.subscriptions[name] = durable
        return durable

    def _stored(self, durable: Durable) -> None:
        durable.go("stored")
        durable.entry = self._filters.hold(durable.filter, durable)
        self._wake()

    # Takers

    def give_to(self, durable: Durable, session: str) -> None:
        """Make a session the taker."""
        if durable.taker != session:
            self.tell_taken(durable)
        durable.taker = session
        durable.detached_at = None
        if durable.state is not State.STORING:
            self._desk.answer(session, Attached(durable.name, self._desk.broker))
            if durable.ready_told:
                self._desk.answer(session, DurableReady(durable.name))
        self._pump(durable)

    def tell_taken(self, durable: Durable) -> None:
        """The taker, if there is one, is the taker no more."""
        if durable.taker is not None:
            self._desk.answer(durable.taker, Taken(durable.name))
            self.detach(durable)

    def detach(self, durable: Durable) -> None:
        """There is no taker any more."""
        durable.taker = None
        durable.detached_at = self._desk.now
        durable.outbox.recall()

    def of(self, session: str, name: str) -> Durable:
        """The subscription whose taker the session is. Raises `NotTaker`."""
        durable = self.subscriptions.get(name)
        if durable is None or durable.taker != session or durable.state is State.MOVING:
            raise NotTaker(name)
        return durable

    def acknowledge(self, session: str, message: Acknowledged) -> None:
        """Deliveries are done with; the client is told when that is on disk."""
        durable = self.of(session, message.name)
        done = tuple([number for number in message.deliveries if durable.outbox.remove(number) is not None])
        self._write(durable, remove=done, then=lambda: self._done(durable, session, message))

    def reject(self, session: str, message: Rejected) -> None:
        """Deliveries come again, or become dead letters."""
        durable = self.of(session, message.name)
        self._back(durable, [number for number in message.deliveries if number in durable.outbox.deliveries])

    def _done(self, durable: Durable, session: str, message: Acknowledged) -> None:
        self._desk.answer(session, Done(durable.name, message.deliveries))
        self._pump(durable)

    def _back(self, durable: Durable, numbers: Iterable[int]) -> None:
        dead = [number for number in numbers if not durable.outbox.back(number, self._desk.now)]
        letters = []
        for number in dead:
            delivery = durable.outbox.remove(number)
            assert delivery is not None
            letters.append((number, delivery.attempts, delivery.envelope))
            durable.dead[number] = (delivery.attempts, delivery.envelope)
        if letters:
            self._write(durable, remove=tuple(dead), dead=tuple(letters))
        self._pump(durable)

    def on_timer(self, name: str) -> None:
        """A delivery is overdue, or a pause has ended."""
        durable = self.subscriptions.get(name)
        if durable is not None:
            self._back(durable, durable.outbox.overdue(self._desk.now))

    def _pump(self, durable: Durable) -> None:
        """Let deliveries go out as long as the taker may have more."""
        desk, outbox = self._desk, durable.outbox
        if durable.taker is None or durable.state in (State.STORING, State.MOVING):
            return
        while (delivery := outbox.next(desk.now)) is not None:
            desk.effects.append(
                Hand(durable.taker, durable.name, delivery.number, delivery.attempts, delivery.envelope)
            )
        if outbox.lapsed:
            lapsed, outbox.lapsed = tuple(outbox.lapsed), []
            for number in lapsed:
                outbox.remove(number)
            self._write(durable, remove=lapsed)
        wake = outbox.wake_at()
        if wake is not None:
            desk.effects.append(SetTimer(f"deliver {durable.name}", max(wake, desk.now)))
        if durable.state is State.BEHIND and 2 * (len(outbox) + durable.spooling) < desk.settings.outbox:
            self._wake()

    # What comes live

    def take(self, holder: Durable | Change, envelope: Envelope) -> None:
        """A filter here selects what came in the present epoch."""
        durable = holder.owner if isinstance(holder, Change) else holder
        if durable.name in self._changes and not durable.buffers(envelope.origin):
            if not durable.filter.matches(envelope.notification):
                return  # only the filter that is to come selects it
        taken = self._taken.get(durable, ())
        if (
            durable.state is State.LIVE
            and self._room(durable) <= len(taken)
            and not durable.buffers(envelope.origin)
        ):
            self._no_room(durable)
        elif durable.take(envelope):
            self._taken.setdefault(durable, []).append(envelope)

    def mark(self, origin: str, sequence: int) -> None:
        """Everything of an origin up to a sequence has come."""
        for durable in self.subscriptions.values():
            durable.advance(origin, sequence)

    def settle(self) -> None:
        """Spool what this message has brought, in one write for each subscription."""
        if self._taken:
            taken, self._taken = self._taken, {}
            for durable, envelopes in taken.items():
                self._spool(durable, envelopes)

    def save_positions(self) -> None:
        """Write positions that marks have moved."""
        for durable in self.subscriptions.values():
            moved = {o: s for o, s in durable.position.items() if s != durable.written_position.get(o)}
            if moved and durable.state in (State.LIVE, State.BEHIND) and not durable.saving:
                durable.saving = True
                self._write(durable, position=tuple(moved.items()), then=durable.saved)

    def interrupt(self) -> None:
        """The network has changed: nobody is known to be complete any more."""
        for durable in self.subscriptions.values():
            durable.interrupt()

    def _spool(self, durable: Durable, envelopes: list[Envelope]) -> None:
        entries = []
        for envelope in envelopes:
            if not has_expired(envelope, self._desk.now):
                entries.append((durable.next_delivery, 0, envelope))
                durable.next_delivery += 1
        position = {envelope.origin: durable.position[envelope.origin] for envelope in envelopes}

        def stored() -> None:
            durable.spooling -= len(entries)
            for number, attempts, envelope in entries:
                durable.outbox.add(number, attempts, envelope)
            self._pump(durable)

        durable.spooling += len(entries)
        self._write(durable, add=tuple(entries), position=tuple(position.items()), then=stored)
        if len(durable.outbox) + durable.spooling >= self._desk.settings.outbox:
            self._no_room(durable)

    def _write(
        self,
        durable: Durable,
        *,
        add: tuple[tuple[int, int, Envelope], ...] = (),
        remove: tuple[int, ...] = (),
        dead: tuple[tuple[int, int, Envelope], ...] = (),
        position: tuple[tuple[str, int], ...] = (),
        then: Callable[[], None] | None = None,
    ) -> None:
        durable.written_position.update(position)

        def stored() -> None:
            durable.stored_position.update(position)
            if then is not None and durable.state is not State.ENDED:
                then()

        self._desk.effects.append(
            Spool(
                self._desk.token(stored),
                durable.name,
                add=add,
                remove=remove,
                dead=dead,
                position=position,
            )
        )

    def _no_room(self, durable: Durable) -> None:
        """What does not fit stays where it is, and is fetched when there is room; perhaps there is by then."""
        durable.interrupt()
        if 2 * (len(durable.outbox) + durable.spooling) < self._desk.settings.outbox:
            self._wake()

    def _room(self, durable: Durable) -> int:
        """How many deliveries more may be kept for a subscription."""
        asked_for = sum(one.limit for one in durable.catching_up.values())
        return max(0, self._desk.settings.outbox - len(durable.outbox) - durable.spooling - asked_for)

    # Catching up

    def behind(self) -> list[Durable]:
        """Those that are to be brought up to date, and have room for it."""
        room = self._desk.settings.outbox
        return [
            durable
            for durable in self.subscriptions.values()
            if durable.state is State.BEHIND and 2 * (len(durable.outbox) + durable.spooling) < room
        ]

    def begin_asking(self, names: Iterable[str]) -> None:
        """A wave begins: what it will say is true of the filters that are there now."""
        for name in names:
            if name in self._changes:
                self._changes[name].asked = True

    def collect(self, names: Iterable[str]) -> None:
        """Everyone is asked how far the journals are: from now on nothing that comes live may be missed."""
        for name in names:
            durable = self.subscriptions.get(name)
            if durable is not None and durable.state is State.BEHIND:
                durable.collecting = {}

    def complete(self, names: Iterable[str], epoch: int, heads: tuple[Head, ...], *, everyone: bool) -> None:
        """Everyone in reach knows the filters, and how far the journals are is known, in one epoch.

        With `everyone`, these are all brokers that were ever heard of: none of them trims what we need.
        """
        for name in names:
            durable = self.subscriptions.get(name)
            if durable is None or durable.state is not State.BEHIND:
                continue
            if name in self._changes and not self._changes[name].asked:
                durable.collecting = None
                self._wake()  # the filter was changed meanwhile: the answers say nothing about the new one
                continue
            durable.epoch = epoch
            durable.go("complete")
            first = durable.since == FROM_NOW
            collected, durable.collecting = durable.collecting or {}, None
            # Another filter comes into force at a position that all origins have agreed on, or not yet.
            changing = everyone and name in self._changes
            if changing:
                self._changes[name].agreed = epoch
            for head in heads:
                origin = head.origin
                known = durable.position.setdefault(origin, head.head if first else head.trimmed)
                durable.position[origin] = max(known, head.trimmed)
                catching_up = collected.get(origin) or CatchUp(head.head)
                catching_up.reach(head.head)
                if durable.position[origin] < catching_up.target or catching_up.buffer or changing:
                    durable.catching_up[origin] = catching_up
            if first:
                durable.since = 0.0
            if first or not durable.ready_told or durable.position != durable.written_position:
                self._save_beginning(durable, everyone)
            for origin in list(durable.catching_up):
                if origin in durable.catching_up:  # a full outbox may have ended it all
                    self._fetch_next(durable, origin)

    def _save_beginning(self, durable: Durable, everyone: bool) -> None:
        """From where on everything comes is written before anybody relies on it."""
        position = dict(durable.position)
        durable.written_position.update(position)
        change = self._changes.get(durable.name)
        # A new filter that is being written must not be overwritten by the one before it.
        filter = change.filter if change is not None and change.writing else durable.filter

        def stored() -> None:
            durable.stored_position.update(position)
            if everyone and durable.state is State.LIVE and not durable.ready_told:
                durable.ready_told = True
                if durable.taker is not None:
                    self._desk.answer(durable.taker, DurableReady(durable.name))

        self._desk.effects.append(
            Spool(
                self._desk.token(stored),
                durable.name,
                filter,
                durable.identity,
                durable.generation,
                durable.since,
                position=tuple(position.items()),
            )
        )

    def _fetch_next(self, durable: Durable, origin: str) -> None:
        """Ask for the next page, or go on with what comes live if nothing is missing."""
        catching_up = durable.catching_up[origin]
        after = durable.position[origin]
        if after < catching_up.target:
            catching_up.limit = 0
            limit = min(self._desk.settings.page, self._room(durable))
            catching_up.asked_at = self._desk.now
            if not limit:  # what other origins were asked for will take all the room, or the outbox is full
                if not any(other.limit for other in durable.catching_up.values()):
                    self._no_room(durable)
                return
            catching_up.limit = limit
            self._fetch(
                origin, Fetch(durable.name, durable.filter, after, catching_up.target, durable.since, limit)
            )
            return
        change = self._changes.get(durable.name)
        if change is None or change.agreed != durable.epoch:
            del durable.catching_up[origin]
            self._drain(durable, catching_up)
        elif all(durable.position[o] >= one.target for o, one in durable.catching_up.items()):
            self._write_change(durable, change)

    def fetched(self, origin: str, page: Page) -> None:
        """A page came."""
        durable = self.subscriptions.get(page.name)
        if durable is None or durable.state is not State.LIVE:
            return
        catching_up = durable.catching_up.get(origin)
        if catching_up is None or page.after != durable.position[origin] or page.upto <= page.after:
            return
        durable.position[origin] = page.upto
        catching_up.limit = 0
        if page.envelopes:
            self._spool(durable, list(page.envelopes))
        if durable.state is State.LIVE:
            self._fetch_next(durable, origin)

    def fetch_again(self) -> bool:
        """Ask again for pages that did not come. Returns whether any are missing."""
        missing = False
        for durable in self.subscriptions.values():
            for origin, catching_up in list(durable.catching_up.items()):
                missing = True
                asked = catching_up.asked_at
                if asked is not None and asked + self._desk.settings.tick <= self._desk.now:
                    self._fetch_next(durable, origin)
        return missing

    def _drain(self, durable: Durable, catching_up: CatchUp) -> None:
        """Take what waited in the buffer."""
        waiting = [envelope for envelope in catching_up.buffer if durable.filter.matches(envelope.notification)]
        room = self._room(durable)
        taken = [envelope for envelope in waiting[:room] if durable.take(envelope)]
        if taken:
            self._spool(durable, taken)
        if len(waiting) > room:
            self._no_room(durable)

    # Changing the filter

    def change(self, session: str, name: str, filter: Filter) -> None:
        """Let another filter take the place of the present one, at a position that the network agrees on."""
        durable = self.of(session, name)
        filter.require_satisfiable()
        self._end_change(durable)
        change = self._changes[name] = Change(durable, filter)
        change.entry = self._filters.hold(filter, change)
        durable.interrupt()
        self._wake()

    def _write_change(self, durable: Durable, change: Change) -> None:
        """The old filter has everything up to the agreed position: the new one is in force from there on."""
        if change.writing:
            return
        change.writing = True
        position = dict(durable.position)

        def stored() -> None:
            durable.stored_position.update(position)
            if self._changes.get(durable.name) is change:
                self._changed(durable, change)

        self._desk.effects.append(
            Spool(
                self._desk.token(stored),
                durable.name,
                change.filter,
                durable.identity,
                durable.generation,
                durable.since,
                position=tuple(position.items()),
            )
        )

    def _changed(self, durable: Durable, change: Change) -> None:
        former = durable.filter
        if durable.entry is not None:
            self._filters.let_go(durable.entry, durable)
        durable.filter = change.filter
        durable.entry = self._filters.hold(change.filter, durable)
        self._end_change(durable)
        if durable.taker is not None:
            drops, adds = change.filter.counterexample(former), former.counterexample(change.filter)
            self._desk.answer(
                durable.taker,
                Changed(durable.name, drops.to_json() if drops else None, adds.to_json() if adds else None),
            )
        for origin, catching_up in list(durable.catching_up.items()):
            if origin in durable.catching_up and durable.position[origin] >= catching_up.target:
                del durable.catching_up[origin]
                self._drain(durable, catching_up)

    def _end_change(self, durable: Durable) -> None:
        change = self._changes.pop(durable.name, None)
        if change is not None:
            self._filters.let_go(change.entry, change)

    # Time

    def abandon(self) -> None:
        """End what has had no taker for too long."""
        limit = self._desk.now - self._desk.settings.abandon_after
        for durable in list(self.subscriptions.values()):
            if (
                durable.detached_at is not None
                and durable.detached_at < limit
                and durable.state is not State.MOVING
            ):
                self.finish(durable)

    def finish_for(self, session: str, name: str) -> None:
        """The taker ends a subscription for good."""
        self.finish(self.of(session, name), then=lambda: self._desk.answer(session, Ended((name,))))
