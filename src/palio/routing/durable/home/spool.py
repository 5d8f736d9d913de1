"""Spooling: what comes live for the durable subscriptions here is put on disk, and from there it goes out.

Nothing goes out that is not on disk, and a position is only written together with what it stands for. What does
not fit into an outbox is not taken: it stays in the journal of its origin, and is fetched when there is room.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import TypeAlias

from palio.model.filter import Filter
from palio.protocol.durable.attempts import FailuresOf
from palio.protocol.durable.letters import Fetch
from palio.protocol.durable.wishes import NotTaker
from palio.protocol.envelope import Envelope
from palio.routing.durable.desk import Desk
from palio.routing.durable.effects import Hand, Spool
from palio.routing.durable.home.subscription import Durable, State
from palio.routing.durable.outbox import has_expired
from palio.routing.effects import SetTimer
from palio.routing.scopes import owner_of
from palio.routing.table import Entry
from palio.routing.tables import Side

Going: TypeAlias = tuple[int, int, Envelope]  # delivery, attempt, what


class Change:
    """A change of a filter that is under way: the new one is known to the network beside the old one."""

    __slots__ = (
        "agreed",
        "asked",
        "asker",
        "entry",
        "filter",
        "handles",
        "number",
        "owner",
        "session",
        "writing",
    )

    entry: Entry[Filter] | None

    def __init__(self, owner: Durable, filter: Filter, asker: str, number: int) -> None:
        self.owner = owner
        self.filter = filter
        self.asker = asker  # the session that asked for it, and the number of its request
        self.number = number
        self.asked = False  # whether a wave has begun since, and the network is being asked
        self.agreed = 0  # the epoch in which everyone has answered
        self.writing = False
        self.session = ""
        self.handles: dict[str, None] = {}


class Spooling:
    """The durable subscriptions here, as far as taking, writing and sending out goes.

    `wake` asks for them to be brought up to date, `fetch` sends a letter to an origin, `ended` hears of one
    that has come to its end, `tick` sees to it that what is not answered is asked again.
    """

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
        # Makes a subscription a reader of this broker's own journal; returns how far that is.
        self.register_here: Callable[[str], int] = lambda name: 0
        self.subscriptions: dict[str, Durable] = {}
        self.handed = 0  # deliveries that went out, also those that came again
        self.ended: dict[str, int] = {}  # by identity: the generation up to which it is not to be taken back
        self._abandon_at = inf  # when those without a taker are looked at
        self._handed_over: dict[str, str] = {}  # by identity: the home that it was handed over to
        self._changes: dict[str, Change] = {}
        self._fetching: dict[str, str] = {}  # by identity: the names of those that have asked for pages
        self._taken: dict[Durable, list[Envelope]] = {}

    def of(self, session: str, name: str) -> Durable:
        """The subscription whose taker the session is. Raises `NotTaker`."""
        durable = self.subscriptions.get(name)
        if durable is None or durable.taker != session or durable.state is State.MOVING:
            raise NotTaker(name)
        return durable

    # What comes live

    def take(self, holder: Durable | Change, envelope: Envelope) -> None:
        """A filter here selects what came in the present epoch."""
        durable = holder.owner if isinstance(holder, Change) else holder
        if durable.name in self._changes and not durable.buffers(envelope.origin):
            if not durable.filter.matches(envelope.notification):
                return  # only the filter that is to come selects it
        taken = self._taken.get(durable)
        if (
            durable.state is State.LIVE
            and not self._has_room(durable, len(taken) if taken is not None else 0)
            and not durable.buffers(envelope.origin)
        ):
            self._no_room(durable)
        elif durable.take(envelope):
            if taken is None:
                taken = self._taken[durable] = []
            taken.append(envelope)

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

    def _spool(self, durable: Durable, envelopes: list[Envelope], *origins_read: str) -> None:
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
            self._pump(durable)

        durable.spooling += len(entries)
        durable.spooling_bytes += size
        self._write(durable, add=tuple(entries), position=tuple(position.items()), then=stored)
        if self._is_full(durable):
            self._no_room(durable)

    def _write(
        self,
        durable: Durable,
        *,
        add: tuple[tuple[int, int, Envelope], ...] = (),
        remove: tuple[int, ...] = (),
        dead: tuple[tuple[int, int, Envelope], ...] = (),
        position: tuple[tuple[str, int], ...] = (),
        failures: FailuresOf = (),
        then: Callable[[], None] | None = None,
    ) -> None:
        durable.written_position.update(position)

        def stored() -> None:
            durable.stored_position.update(position)
            if then is not None and durable.state is not State.ENDED:
                then()

        if not (add or remove or dead or position):
            # There is nothing to write, an acknowledgement that comes twice for instance: what was written
            # before has to be on disk, and that is all.
            self._desk.after(durable.latest_write, stored)
            return
        durable.latest_write = self._desk.token(stored)
        self._desk.effects.append(
            Spool(
                durable.latest_write,
                durable.name,
                add=add,
                remove=remove,
                dead=dead,
                position=position,
                failures=failures,
            )
        )

    def _no_room(self, durable: Durable) -> None:
        """What does not fit stays where it is, and is fetched when there is room; perhaps there is by then."""
        durable.interrupt()
        if self._is_half_empty(durable):
            self._wake()

    def _has_room(self, durable: Durable, taken: int) -> bool:
        """Whether there is room for one more than those that were taken; asked for each event."""
        if durable.catching_up:
            return self._room(durable) > taken
        return not self._is_full(durable, taken)

    def _is_full(self, durable: Durable, taken: int = 0) -> bool:
        settings, outbox = self._desk.settings, durable.outbox
        return (
            len(outbox.deliveries) + durable.spooling + taken >= settings.outbox
            or outbox.bytes + durable.spooling_bytes >= settings.outbox_bytes
        )

    def _room(self, durable: Durable) -> int:
        """How many deliveries more may be kept for a subscription."""
        if self._is_full(durable):
            return 0
        asked_for = sum([one.limit for one in durable.catching_up.values()])
        return max(0, self._desk.settings.outbox - len(durable.outbox) - durable.spooling - asked_for)

    # What of a filter its owner may see

    def _hold(self, holder: Durable | Change, filter: Filter, name: str) -> None:
        """Let the network know of a filter, in the place of what the holder had there."""
        former: Entry[Filter] | None = getattr(holder, "entry", None)
        narrow = self._desk.scopes.narrow(name, filter)
        if former is not None and former.item == narrow:
            return
        holder.entry = self._filters.hold(narrow, holder) if narrow.conjunctions else None
        if former is not None:
            self._filters.let_go(former, holder)

    def scope_changed(self, owner: str) -> bool:
        """An owner may see something else: what comes after the present positions is looked at anew.

        Returns whether there is anything of that owner.
        """
        found = False
        for name, durable in self.subscriptions.items():
            if owner_of(name) == owner and durable.state in (State.BEHIND, State.LIVE):
                self._hold(durable, durable.filter, name)
                if name in self._changes:
                    self._hold(self._changes[name], self._changes[name].filter, name)
                durable.interrupt()
                self._pump(durable)
                found = True
        return found

    def _withhold(self, durable: Durable, going: list[Going]) -> list[Going]:
        """What its owner may not see any more is not delivered, and gone."""
        visible = self._desk.scopes.visible(durable.name, [envelope for *_, envelope in going], "spool")
        if visible is None:
            return going
        hidden = tuple([one[0] for one, seen in zip(going, visible, strict=True) if not seen])
        for number in hidden:
            durable.outbox.remove(number)
        self._write(durable, remove=hidden)
        return [one for one, seen in zip(going, visible, strict=True) if seen]

    def _is_half_empty(self, durable: Durable) -> bool:
        """Whether it is worth while to fetch what did not fit."""
        settings, outbox = self._desk.settings, durable.outbox
        return (
            2 * (len(outbox) + durable.spooling) < settings.outbox
            and 2 * (outbox.bytes + durable.spooling_bytes) < settings.outbox_bytes
        )

    def _pump(self, durable: Durable) -> None:
        """Let deliveries go out as long as the taker may have more."""
        desk, outbox = self._desk, durable.outbox
        if durable.taker is None or durable.paused or durable.state in (State.STORING, State.MOVING):
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
            self._write(durable, remove=lapsed)
        wake = outbox.wake_at()
        # A timer that comes due too early finds nothing to do, and is set again.
        if wake is not None and (durable.timer is None or wake < durable.timer):
            durable.timer = max(wake, desk.now)
            desk.effects.append(SetTimer(f"deliver {durable.name}", durable.timer))
        if durable.state is State.BEHIND and self._is_half_empty(durable):
            self._wake()
