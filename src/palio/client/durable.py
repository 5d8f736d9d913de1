"""`DurableSubscription`: events that are redelivered until they are acknowledged.

The broker hands out a bounded number and waits for acknowledgements, so nothing is ever dropped here. What was
handed out on a connection that is lost comes again on the next one. Acknowledgements that were not confirmed by
then are remembered by what names an event in the whole network, (origin, sequence), and when it was published,
as a journal that came back older gives sequences a second time: if it comes again, it is acknowledged again and
its user does not see it a second time. They cannot simply be said again: the numbers of deliveries belong to a
subscription, and one of the same name may have been begun anew meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from palio.client.attaching import PALIO
from palio.client.decoding import Decoding
from palio.client.errors import TakenOver, UndecodableEvent
from palio.client.event import Content_co, Event, Rejection
from palio.client.selecting import filter_at
from palio.client.subscription import DEFAULT_LIMIT, Subscription
from palio.client.waiting import lose, release
from palio.model.errors import PalioError
from palio.model.filter import Filter
from palio.protocol.durable.lineage import JournalGap
from palio.protocol.durable.subscriptions import (
    Acknowledged,
    Attach,
    Attached,
    Change,
    Changed,
    Detach,
    Done,
    Finish,
    Rejected,
)
from palio.protocol.durable.wishes import HomeUnreachable
from palio.protocol.requests import Refused

if TYPE_CHECKING:
    from palio.client.selecting import filter_at
from palio.client.session import ClientSession

# Acknowledgements that may wait for an event that does not come again; the oldest are forgotten.
MAX_REMEMBERED = 65_536

Key: TypeAlias = tuple[str, int, float]  # origin, sequence, and when it was published there

log = logging.getLogger("palio.client")


def _key_of(event: Event[Any]) -> Key:
    return event.origin, event.sequence, event._taken


class DurableSubscription(Subscription[Content_co]):
    """A subscription that outlives its client: `await event.ack()` when an event is done with.

    A `temporary` one is for reaching back: what is handed out counts as done with, and it ends with its client.
    What cannot be decoded becomes a dead letter, with the reason, and what follows is not held up.
    """

    def __init__(
        self, session: ClientSession, attach: Attach, *, temporary: bool, into: Decoding[Any] | None = None
    ) -> None:
        # What it selects is known when it is attached.
        filter = attach.filter or Filter()
        super().__init__(session, attach.name, filter, DEFAULT_LIMIT, "drop-newest", into=into)
        self._attach = attach
        self.is_temporary = temporary  # whether it ends with its client
        self._open: dict[Key, int] = {}  # handed out on this connection: the number of the delivery
        self._acknowledged: dict[Key, None] = {}  # not confirmed yet
        self._unconfirmed: dict[int, tuple[Key, list[asyncio.Future[None]]]] = {}
        self._to_acknowledge: list[int] = []
        self._to_reject: dict[Rejection, list[int]] = {}
        self._draining = False
        self._lost_connection = 0  # the number of the last one that is gone
        self._attached = False  # on this connection
        self.home: str | None = None
        self.created = False  # by this client, rather than found
        self.paused = False  # as far as this client was told: when it attached, or by what it asked for
        self.gaps: list[JournalGap] = []  # what it may have missed, for disks that lie

    def request(self) -> Any:
        return self._attach

    def answered(self, answer: Attached) -> None:
        self._attached = True
        self.home = answer.home
        self.created = self.created or answer.created
        self.paused = answer.paused
        self._selects(answer.filter or self.filter)
        # Whoever asked to begin anew did so once. From now on it is taken as it is: another client may have
        # changed it while this one was away.
        self._attach = msgspec.structs.replace(self._attach, anew=False, as_is=True)

    def _selects(self, filter: Filter) -> None:
        """Note the filter that it has now, and is created with should it be gone."""
        self.filter = filter
        if self._attach.filter is not None:
            self._attach = msgspec.structs.replace(self._attach, filter=filter)

    def changed(self, answer: Changed) -> None:
        """Handles a change of the filter: another one is in force."""
        if answer.filter is not None:
            self._selects(answer.filter)

    def refused(self, refused: Refused, problem: PalioError) -> None:
        """Retries while its home cannot be reached: it is asked for again, as long as the connection lasts."""
        if refused.error != HomeUnreachable.__name__:
            self.fail(problem)
            return
        connection = self._session.connections

        def again() -> None:
            if not self._over and self._session.connections == connection:
                self._session.say(self.numbered())

        self._session.loop.call_later(self._session.options.backoff.longest, again)

    # What comes

    def hand(self, deliveries: list[tuple[int, int, Event[Any]]]) -> None:
        if self._draining or not self._attached:
            # They come again: to whoever attaches next, or to this one, as what was handed out to whoever took
            # its events on this connection before it.
            return
        fresh = []
        for number, attempt, event in deliveries:
            key = _key_of(event)
            if key in self._acknowledged:
                self._say_acknowledged(key, number)
                self._dropped["acknowledged before"] += 1
            else:
                event.attempt, event._connection = attempt, self._session.connections
                self._open[key] = number
                fresh.append(event)
        self.take(fresh)

    def _make_room(self) -> None:
        """Backpressure: nothing is dropped here, as the broker keeps to its bounds."""

    def lost(self, count: int, reason: str) -> None:
        """Handles news of lost events: nothing of a durable subscription is lost."""

    def _hand_out(self) -> Event[Content_co] | None:
        if self.is_temporary:
            self._acknowledge_now(_key_of(self._queue[0]))
        return super()._hand_out()

    def _undecodable(self, event: Event[Content_co], problem: UndecodableEvent) -> None:
        if self.is_temporary:
            super()._undecodable(event, problem)
        else:
            self._reject(event, Rejection(reason=f"{problem.path}: {problem.reason}", dead_letter=True))

    def disconnected(self) -> None:
        self._attached = False
        self._lost_connection = self._session.connections
        self._queue.clear()  # all of it comes again
        self._open.clear()
        self._to_acknowledge.clear()
        self._to_reject.clear()
        for _, futures in self._unconfirmed.values():
            lose(futures, "acknowledge")  # it is remembered, and acknowledged again if it comes again
        self._unconfirmed.clear()
        self._check_drained()

    def taken(self) -> None:
        """Fencing: another client is the taker now."""
        self._queue.clear()
        self.fail(TakenOver(self.name))

    def gap_noticed(self, gap: JournalGap) -> None:
        """Handles news of what may be missing. It is told on every connection, and noted once."""
        if gap not in self.gaps:
            self.gaps.append(gap)
            why = (
                "A journal came back older than it was" if gap.what == "older" else "A disk has damaged events"
            )
            log.warning("%s: the durable subscription %r may miss what it had, %s.", why, self.name, gap)

    # What becomes of it

    def _acknowledge(self, event: Event[Any], *, confirmed: bool = False) -> asyncio.Future[None] | None:
        key = _key_of(event)
        of_before = event._connection <= self._lost_connection
        if of_before and key in self._open:  # it has come again meanwhile
            self._queue = deque([one for one in self._queue if _key_of(one) != key])
        number = self._acknowledge_now(key)
        if not confirmed or (number not in self._unconfirmed and not of_before):
            return None
        future: asyncio.Future[None] = self._session.loop.create_future()
        if number in self._unconfirmed:
            self._unconfirmed[number][1].append(future)
        else:  # there is nothing to say before it comes again, which it may never do
            lose([future], "acknowledge")
        return future

    def _acknowledge_now(self, key: Key) -> int:
        number = self._open.pop(key, 0)
        if key not in self._acknowledged:
            self._acknowledged[key] = None
            if len(self._acknowledged) > MAX_REMEMBERED:
                del self._acknowledged[next(iter(self._acknowledged))]
        if number:
            self._say_acknowledged(key, number)
        return number

    def _say_acknowledged(self, key: Key, number: int) -> None:
        self._unconfirmed.setdefault(number, (key, []))
        self._schedule()
        self._to_acknowledge.append(number)

    def _reject(self, event: Event[Any], rejection: Rejection = Rejection()) -> None:  # noqa: B008 (immutable)
        number = self._open.pop(_key_of(event), 0)
        if number:
            self._schedule()
            self._to_reject.setdefault(rejection, []).append(number)
            self._check_drained()

    def _schedule(self) -> None:
        if not self._to_acknowledge and not self._to_reject:
            self._session.loop.call_soon(self.flush)

    def flush(self) -> None:
        if self._to_acknowledge:
            self._session.say(Acknowledged(self.name, tuple(self._to_acknowledge)))
            self._to_acknowledge.clear()
        for how, numbers in self._to_reject.items():
            self._session.say(Rejected(self.name, tuple(numbers), how.delay, how.reason, how.dead_letter))
        self._to_reject.clear()

    def done(self, answer: Done) -> None:
        """Handles acknowledgements that are on disk."""
        for number in answer.deliveries:
            confirmed = self._unconfirmed.pop(number, None)
            if confirmed is not None:
                self._acknowledged.pop(confirmed[0], None)
                release(confirmed[1])
        self._check_drained()

    def _check_drained(self) -> None:
        if self._drained and not self._unconfirmed and not self._open:
            release(self._drained)

    # For its user

    async def change(self, filter: str | Filter, *, dialect: str = PALIO) -> Changed:
        """Change the filter in place, at one point of each journal. Returns examples of what it drops and adds.

        Raises `RequestTimeout`, or what the broker refuses with.
        """
        return await self._change(await filter_at(self._session, filter, dialect), None)

    async def _change(self, wanted: Filter, timeout: float | None) -> Changed:
        message = Change(self.name, wanted)
        answer: Changed = await self._session.ask(message, on_loss="again", timeout=timeout)
        self._selects(wanted)
        return answer

    async def change_if_other(self, wanted: Filter | None, timeout: float | None) -> None:
        """Change the filter if it means something else. If that fails, it is detached, as it is."""
        try:
            if wanted is not None and self.filter != wanted:
                await self._change(wanted, timeout)
        except BaseException:
            await self.detach()
            raise

    async def detach(self) -> None:
        """Stop taking its events; it stays, and collects them for whoever attaches next."""
        if self._end():
            self._let_go()
            self._queue.clear()

    async def unsubscribe(self) -> None:
        """End it for good, with all that waits for it."""
        if self._end():
            self.flush()
            await self._session.ask(Finish(self.name), on_loss="again")

    async def release(self) -> None:
        await (self.unsubscribe() if self.is_temporary else self.detach())

    async def drain(self) -> None:
        """Give back what nobody has seen, and wait until the rest is acknowledged or rejected, on disk."""
        self._draining = True
        for event in self._queue:
            self._open.pop(_key_of(event), None)
        self._queue.clear()
        if self._open or self._unconfirmed:
            self._drained.append(drained := self._session.loop.create_future())
            await drained
        await self.release()

    def closed(self, problem: Any) -> None:
        self._queue.clear()
        super().closed(problem)

    def _let_go(self) -> None:
        self.flush()
        self._session.say(Finish(self.name) if self.is_temporary else Detach(self.name))
