"""`Scheduler`: lets clients have their turns in an event loop, and everything else happen in between.

Whoever has work has it done piece by piece: a connection whose messages have come, a session that has left and
whose subscriptions are taken down, an event stream whose events are written, the completions of the store. Who
is next is for `turns` to say; a turn is measured, and its owner charged with it. After some turns, and as soon
as something was said, the loop writes it and looks at its sockets again: who comes with little is heard, and
served next, and nobody's answer waits for what others have done meanwhile. That has its price; so it is done
while several want to be served at the same time (it is *crowded*), and one who is alone goes on for longer.

Part of the work for somebody is done elsewhere: the store's thread writes what was published. It needs the one
interpreter, too, and whoever takes its turn here keeps it waiting. So where it is crowded, and the thread works
for somebody who has cost less than all who could have the next turn, these wait for a moment (`PAUSE`).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Hashable
from time import perf_counter
from typing import Generic, Protocol, TypeVar

from palio.broker.turns import Turns

# Seconds for which one may go on in its turn, as far as its work can be cut; and after which the loop looks at
# its sockets again: where it is crowded, and where one is alone. Each hop of a message through the broker may
# have to wait for as long: shorter ones cost more turns of the loop, longer ones more latency
# (`palio bench neighbours`, `palio bench broker`).
TURN = 0.0005
TURN_ALONE = 0.005
# Seconds for which it counts as crowded after somebody had to wait for somebody else.
CROWDED = 1.0
# Seconds for which those wait who have cost more than somebody for whom the disk works: the event loop knows no
# less.
PAUSE = 0.001
# Who works for everybody, and crowds out nobody: the store.
EVERYBODY = ("store",)

# Bytes of HTTP that are read at a time: thirty pings, or a request with its head.
PIECE = 4 * 1024
# Bytes that wait to be read so.
MAX_PIECES = 256 * 1024

Result = TypeVar("Result")


class Working(Hashable, Protocol):
    """Who has work to be done."""

    @property
    def owner(self) -> Hashable:
        """For whom it is done: all who work for one owner share its turns."""

    @property
    def weight(self) -> float:
        """How many times as much as others the owner may have done."""

    def take_turn(self, until: float) -> bool:
        """Do some of it, until about that moment of `perf_counter`. Returns whether there is more."""


class _Errand(Generic[Result]):
    """Something that is done in one turn, for who waits for it."""

    weight = 1.0

    def __init__(self, owner: Hashable, work: Callable[[], Result], future: asyncio.Future[Result]) -> None:
        self.owner = owner
        self._work = work
        self.future = future

    def take_turn(self, until: float) -> bool:
        if not self.future.done():  # otherwise nobody waits for it any more
            try:
                self.future.set_result(self._work())
            except Exception as problem:  # noqa: BLE001 (it is raised where it is waited for)
                self.future.set_exception(problem)
        return False


class Pieces:
    """Bytes that have come for a protocol, which takes them a little at a time when it is its owner's turn.

    While much waits, the transport is not read from, unless others let it be.
    """

    weight = 1.0

    def __init__(
        self,
        scheduler: Scheduler,
        owner: Hashable,
        transport: asyncio.Transport,
        take: Callable[[bytes], None],
        reads: Callable[[], bool],
    ) -> None:
        """`take` is the protocol's, and `reads` says whether it wants to read."""
        self.owner = owner
        self._scheduler = scheduler
        self._transport = transport
        self._take = take
        self._reads = reads
        self._size = 0
        self._paused = False
        self._pieces: deque[bytes] = deque()

    def add(self, data: bytes) -> None:
        """Bytes have come: each piece takes about a turn to be read."""
        self._size += len(data)
        self._pieces.extend([data[at : at + PIECE] for at in range(0, len(data), PIECE)])
        self._scheduler.ready(self)
        if self._size > MAX_PIECES and not self._transport.is_closing():
            self._paused = True
            self._transport.pause_reading()

    def rest(self) -> bytes:
        """What nobody has taken, and nobody takes any more."""
        rest = b"".join(self._pieces)
        self._pieces.clear()
        self._scheduler.leave(self)
        return rest

    def take_turn(self, until: float) -> bool:
        while self._pieces and not self._transport.is_closing():
            piece = self._pieces.popleft()
            self._size -= len(piece)
            self._take(piece)
            if perf_counter() >= until:
                break
        if self._paused and self._size <= MAX_PIECES // 2 and not self._transport.is_closing():
            self._paused = False
            if self._reads():
                self._transport.resume_reading()
        return bool(self._pieces) and not self._transport.is_closing()


class Scheduler:
    """The turns of all who work at one broker."""

    def __init__(self) -> None:
        self._turns: Turns[Working] = Turns()
        self._owners = self._turns.owners  # who has something to be done now
        self._running = False
        self._due = False
        # Writes what was said meanwhile, before others go on; returns whether there was anything.
        self.speak: Callable[[], bool] = lambda: False
        # Told when it becomes crowded, so that other threads have to be let in more often, and when it is over.
        self.crowding: Callable[[bool], None] = lambda crowded: None
        self.is_crowded = False
        self._crowded_until = 0.0
        self.elsewhere: Callable[[], Collection[Hashable]] = lambda: ()  # owners for whom other threads work
        self._pausing: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._owners)

    def ready(self, working: Working) -> None:
        """Somebody has work. It is done now, if nobody else waits for a turn."""
        held = self._turns.held
        is_held = held and not held.isdisjoint((working, working.owner))
        if self._running or self._due or self._owners or is_held:
            if self._pausing is not None and working.owner not in self._owners:  # that was no pause for it
                self._pausing.cancel()
                self._pausing, self._due = None, False
            self._turns.ready(working, working.owner)
            if len(self._owners) - (EVERYBODY in self._owners) > 1:
                self.crowd()
            if not self._running:
                self._go_on_soon()
        else:
            self._let_alone(working)

    def crowd(self) -> None:
        """Two owners want to be served at the same time, here or by the disk."""
        self._crowded_until = perf_counter() + CROWDED
        if not self.is_crowded:
            self.is_crowded = True
            self.crowding(True)

    def _look_around(self, now: float) -> None:
        if self.is_crowded and now >= self._crowded_until:
            self.is_crowded = False
            self.crowding(False)

    def _let_alone(self, working: Working) -> None:
        """A turn of one who is alone, and so is charged only if somebody waits when it is over."""
        self._running = True
        owner, weight, began = working.owner, working.weight, perf_counter()
        if self.is_crowded:
            self._look_around(began)
        try:
            more = working.take_turn(began + (TURN if self.is_crowded else TURN_ALONE))
        finally:
            self._running = False
            if self._owners:
                self._go_on_soon()
        if more or self._owners:
            self._end_turn(working, owner, weight, perf_counter() - began, more=more)
            self._go_on_soon()

    def _end_turn(self, working: Working, owner: Hashable, weight: float, cost: float, *, more: bool) -> None:
        turns = self._turns
        if more:
            turns.ready(working, working.owner)
        turns.charge(working, owner, cost, weight)
        if working.owner != owner:  # it has said meanwhile who it is
            turns.leave(working, owner)

    async def do(self, owner: Hashable, work: Callable[[], Result]) -> Result:
        """Do something for an owner when it is its turn. Raises what it does."""
        errand = _Errand(owner, work, asyncio.get_running_loop().create_future())
        self.ready(errand)
        try:
            result: Result = await errand.future
            return result
        finally:
            self.leave(errand)

    def hold(self, whom: Hashable) -> None:
        """Nothing more is done for an owner, or by one who works, until it is released."""
        self._turns.hold(whom)

    def release(self, whom: Hashable) -> None:
        self._turns.release(whom)
        self._go_on_soon()

    def owe(self, whom: Hashable, seconds: float) -> None:
        """Charge an owner, or one who works, with what was done because of it in somebody else's turn."""
        self._turns.owe(whom, seconds)

    def leave(self, working: Working) -> None:
        """Somebody is gone, and has no work any more."""
        self._turns.leave(working, working.owner)

    def _go_on_soon(self) -> None:
        if self._owners and not self._due and not self._running:
            self._due = True
            loop = asyncio.get_running_loop()
            if self.is_crowded and self._is_elsewhere():
                self._pausing = loop.call_later(PAUSE, self._run)
            else:
                loop.call_soon(self._run)

    def _is_elsewhere(self) -> bool:
        """Whether what is done for the one who has cost least is with another thread, and has not come back."""
        return EVERYBODY not in self._owners and any(map(self._turns.would_be_first, self.elsewhere()))

    def _run(self) -> None:
        self._due, self._running, self._pausing = False, True, None
        turns = self._turns
        began = now = perf_counter()
        self._look_around(began)
        try:
            while (found := turns.next()) is not None:
                working, owner = found
                weight = working.weight
                more = working.take_turn(now + (TURN if self.is_crowded else TURN_ALONE))
                ended = perf_counter()
                self._end_turn(working, owner, weight, ended - now, more=more)
                now = ended
                if self.is_crowded:
                    if self._owners and (self.speak() or now - began >= TURN):
                        break
                elif now - began >= TURN_ALONE:
                    break
        finally:
            self._running = False
            self._go_on_soon()
