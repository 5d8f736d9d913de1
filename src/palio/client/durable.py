"""`DurableSubscription`: events that come until they are acknowledged.

The broker hands out a bounded number and waits for acknowledgements, so nothing is ever dropped here. What was
handed out on a connection that is lost comes again on the next one. Acknowledgements that were not confirmed by
then are remembered by what names an event in the whole network, (origin, sequence): if it comes again, it is
acknowledged again and its user does not see it a second time.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from palio.client.errors import TakenOver
from palio.client.event import Event
from palio.client.subscription import DEFAULT_LIMIT, Subscription
from palio.client.waiting import release
from palio.model.filter import Filter
from palio.routing.durable.messages import (
    Acknowledged,
    Attach,
    Change,
    Changed,
    Detach,
    Done,
    Finish,
    Rejected,
)

if TYPE_CHECKING:
    from palio.client.client import Client

# Acknowledgements that may wait for an event that does not come again; the oldest are forgotten.
MAX_REMEMBERED = 65_536

Key = tuple[str, int]  # origin and sequence


class DurableSubscription(Subscription):
    """A subscription that outlives its client: `await event.ack()` when an event is done with."""

    def __init__(
        self, client: Client, name: str, filter: Filter, attach: Attach, *, own_acknowledgements: bool
    ) -> None:
        super().__init__(client, name, filter, DEFAULT_LIMIT, "drop-newest")
        self._attach = attach
        self._temporary = own_acknowledgements
        self._open: dict[
            Key, int
        ] = {}  # handed out on this connection, not acknowledged: the delivery's number
        self._acknowledged: dict[Key, None] = {}  # not confirmed yet
        self._unconfirmed: dict[int, tuple[Key, list[asyncio.Future[None]]]] = {}
        self._to_acknowledge: list[int] = []
        self._to_reject: list[int] = []
        self.home: str | None = None

    @property
    def subject(self) -> str:
        return f"attach {self.name}"

    def request(self) -> Any:
        return msgspec.structs.replace(self._attach, filter=self.filter)

    def accepted(self, answer: Any) -> None:
        self.home = answer.home
        # It exists now: whoever asked to begin anew, or from some point on, did so once.
        self._attach = msgspec.structs.replace(self._attach, anew=False)

    # What comes

    def hand(self, deliveries: list[tuple[int, int, Event]]) -> None:
        """Deliveries have come."""
        fresh = []
        for number, attempt, event in deliveries:
            key = event.origin, event.sequence
            event.attempt, event._number = attempt, number
            if key in self._acknowledged:
                self._send_acknowledgement(key, number)
                self._dropped["acknowledged before"] += 1
            else:
                self._open[key] = number
                fresh.append(event)
        self.take(fresh)

    def _make_room(self) -> None:
        """The broker keeps to its bounds."""

    def _hand_out(self) -> Event:
        event = super()._hand_out()
        if self._temporary:
            self._acknowledge_now(event)
        return event

    def disconnected(self) -> None:
        self._queue.clear()  # all of it comes again
        self._open.clear()
        self._to_acknowledge.clear()
        self._to_reject.clear()
        self._fail_confirmations()

    def _fail_confirmations(self) -> None:
        for _, futures in self._unconfirmed.values():
            for future in futures:
                if not future.done():
                    future.set_result(None)  # it is remembered, and acknowledged again if it comes again
        self._unconfirmed.clear()

    def taken(self) -> None:
        """Another client is the taker now."""
        self._queue.clear()
        self.fail(TakenOver(self.name))

    # What becomes of it

    async def _acknowledge(self, event: Event, confirmed: bool) -> None:
        number = self._acknowledge_now(event)
        if confirmed and number in self._unconfirmed:
            future = self._client.loop.create_future()
            self._unconfirmed[number][1].append(future)
            await self._client.wait_for(f"acknowledged {self.name}", future, None)

    def _acknowledge_now(self, event: Event) -> int:
        key = event.origin, event.sequence
        if key in self._acknowledged:
            return event._number
        number = self._open.pop(key, 0)
        self._acknowledged[key] = None
        if len(self._acknowledged) > MAX_REMEMBERED:
            del self._acknowledged[next(iter(self._acknowledged))]
        if number:
            self._send_acknowledgement(key, number)
        return number

    def _send_acknowledgement(self, key: Key, number: int) -> None:
        self._unconfirmed.setdefault(number, (key, []))
        self._schedule()
        self._to_acknowledge.append(number)

    def _reject(self, event: Event) -> None:
        number = self._open.pop((event.origin, event.sequence), 0)
        if number:
            self._schedule()
            self._to_reject.append(number)
            self._check_drained()

    def _schedule(self) -> None:
        if not self._to_acknowledge and not self._to_reject:
            self._client.loop.call_soon(self._send)

    def _send(self) -> None:
        if self._to_acknowledge:
            self._client.say(Acknowledged(self.name, tuple(self._to_acknowledge)))
            self._to_acknowledge.clear()
        if self._to_reject:
            self._client.say(Rejected(self.name, tuple(self._to_reject)))
            self._to_reject.clear()

    def done(self, answer: Done) -> None:
        """Acknowledgements are on disk."""
        for number in answer.deliveries:
            key, futures = self._unconfirmed.pop(number, (None, ()))
            if key is not None:
                self._acknowledged.pop(key, None)
            for future in futures:
                if not future.done():
                    future.set_result(None)
        self._check_drained()

    def _check_drained(self) -> None:
        if self._drained and not self._unconfirmed and not self._open:
            release(self._drained)

    async def drain(self) -> None:
        """Give back what nobody has seen, and wait until the rest is acknowledged or rejected, and that is on
        disk.
        """
        for event in self._queue:
            self._open.pop((event.origin, event.sequence), None)
        self._queue.clear()
        if self._open or self._unconfirmed:
            self._drained.append(drained := self._client.loop.create_future())
            await drained
        self._client.say(Detach(self.name))
        self._end()

    def flush(self) -> None:
        self._send()

    # For its user

    async def change(self, filter: str | Filter) -> Changed:
        """Change the filter in place. Returns examples of what that drops and adds.

        What has not been delivered and the new filter does not select is not delivered.
        """
        wanted = Filter.parse(filter) if isinstance(filter, str) else filter
        answer: Changed = await self._client.ask(
            Change(self.name, wanted), f"change {self.name}", on_loss="again"
        )
        self.filter = wanted
        return answer

    async def detach(self) -> None:
        """Stop taking its events; it stays, and collects them for whoever attaches next."""
        if self._end():
            self._client.say(Detach(self.name))

    async def unsubscribe(self) -> None:
        """End it for good, with all that waits for it."""
        if self._end():
            await self._client.ask(Finish(self.name), f"finish {self.name}", on_loss="again")

    async def __aexit__(self, *problem: object) -> None:
        if not self._client.is_over:
            await (self.unsubscribe() if self._temporary else self.detach())
