"""Requests, traces, watches, replays and operations: what a client asks of a network and its broker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from datetime import datetime
from typing import Any, Literal, Unpack

from palio.client.attaching import PALIO, Since, as_filter, as_seconds
from palio.client.content import Content, Properties, make_body
from palio.client.dispatch import Dispatch
from palio.client.durable import DurableSubscription
from palio.client.errors import RequestRefused
from palio.client.event import Event
from palio.client.families import Families
from palio.client.knowledge import current_document, current_documents
from palio.client.options import LINK_WITHIN
from palio.client.publishing import Confirmation
from palio.client.replay import Replay, Survey, survey_of
from palio.client.replies import Replies, Watch
from palio.client.selecting import filter_at
from palio.client.session import ClientSession
from palio.model.advertisement import Advertisement
from palio.model.filter import Filter
from palio.model.notification import Notification
from palio.protocol.durable.control import Pause, Resume, Seek, Sought
from palio.protocol.durable.journals import (
    Forget,
    Held,
    Hold,
    JournalRange,
    JournalsListed,
    JournalTrimmed,
    ListJournals,
    TrimJournal,
)
from palio.protocol.durable.journals import Replay as ReplayRequest
from palio.protocol.durable.journals import Survey as SurveyRequest
from palio.protocol.durable.lineage import Lineage
from palio.protocol.durable.subscriptions import Attach, Discard, Discarded, Finish, Requeue, Requeued
from palio.protocol.inquiries import Hop, Inspect, Request, Trace, Traced
from palio.protocol.subjects import subject_of


class QueryMethods:
    """The methods of a client that ask: request and reply, traces, watches, replays, and operations."""

    def __init__(self, session: ClientSession) -> None:
        self._session = session
        self._dispatch = Dispatch(session)
        self._number = session.number
        self.families = Families(session)

    async def _ask(self, message: Any, timeout: float | None) -> Any:
        self._session.require_open()
        return await self._session.ask(message, on_loss="again", timeout=timeout)

    def request(
        self,
        content: Content,
        *,
        timeout: float = 5.0,
        expect: int | None = None,
        again: bool = False,
        **properties: Unpack[Properties],
    ) -> Replies:
        """Ask everybody who takes this notification: `await` it for all replies, or iterate over it.

        It ends when all have replied, when `expect` replies have come, or after `timeout` seconds. `await` and
        iterating raise `ReplierFailed` if nobody has replied and somebody could not, `ConnectionLost` if the
        connection is lost meanwhile, and what the broker refuses with.

        With `again`, a request that has met a change of the network is tried once more within its time: if it
        is known early that replies are missing, or the connection is lost. Whoever takes it may then take it
        twice.
        """
        notification = Notification.of_body(make_body(content, **properties))

        def ask(seconds: float) -> None:
            self._session.require_open()
            self._dispatch.expect(Request(self._number(), notification, seconds), replies)

        replies = Replies(asyncio.get_running_loop(), expect, timeout, ask if again else None)
        ask(timeout)
        return replies

    async def watch(self, advertisement: str | Advertisement, *, timeout: float | None = None) -> Watch:
        """Learn whether anybody wants what an advertisement describes, now and whenever that changes."""
        self._session.require_open()
        watch = Watch(self._session, f"w{self._number()}", as_advertisement(advertisement))
        await watch.ask(timeout, ready=False)
        return watch

    async def trace(self, content: Content | Event, *, timeout: float | None = None) -> Hop:
        """Who would get this notification, over the whole network and hop by hop. Nothing is delivered."""
        if isinstance(content, Event):
            content = content.notification
        message = Trace(self._number(), Notification.of_body(make_body(content)))
        traced: Traced = await self._ask(message, timeout)
        return traced.route

    async def inspect(self, what: str, *, timeout: float | None = None, **argument: Any) -> Any:
        """Ask the broker about itself: "stats", "peers", "clients", "subs", "dlq"; plain data."""
        self._session.require_open()
        number = self._number()
        message = Inspect(number, what, argument)
        try:
            result = await self._session.ask(message, on_loss="fail", timeout=timeout)
        finally:
            self._dispatch.forget_parts(number)
        if isinstance(result, dict) and set(result) == {"error"}:
            raise RequestRefused(subject_of(message), "UnknownQuestion", result["error"])
        return result

    async def operations(self, *, timeout: float | None = None, **wanted: Any) -> dict[str, Any]:
        """Rows of the broker's operation log (`operations`), and where to go on (`onward`); plain data.

        Those that are wanted: of a `principal`, of `kinds`, `results` and `bindings`, `since` and `until`
        seconds since 1970. The last ones, or those `after` or `before` a number, at most `limit`; with `wait`,
        who asks for those after a number waits up to so many seconds for the next.
        """
        found: dict[str, Any] = await self._session.invoke("operations.read", wanted, timeout=timeout)
        return found

    async def document(
        self, family: str, key: str, *, at_least: Confirmation | None = None, timeout: float | None = None
    ) -> Event:
        """The current version of a document, as an event: its payload is the document, byte for byte.

        The broker has what was published there, and of others what it was told to keep. With the confirmation
        of a publish as `at_least`, the answer is not older than that. Raises `NoSuchDocument`,
        `DocumentWithdrawn` and `NotHeardYet` as `RequestRefused`.
        """
        return await current_document(self._session, family, key, at_least, timeout)

    def documents(
        self,
        filter: str | Filter = "true",
        *,
        at_least: Confirmation | None = None,
        dialect: str = PALIO,
        timeout: float | None = None,
    ) -> AsyncIterator[Event]:
        """The current documents that the filter selects, to iterate over, by families and keys.

        It is what the broker has at the moment of each page; `timeout` is for each. `at_least` is as for
        `document`, and `dialect` is what the text of the filter is written in.
        """
        return current_documents(self._session, filter, dialect, at_least, timeout)

    async def survey(
        self,
        filter: str | Filter,
        *,
        since: datetime | float | None = None,
        until: datetime | float | None = None,
        buckets: int = 24,
        samples: int = 5,
        dialect: str = PALIO,
        timeout: float | None = None,
    ) -> Survey:
        """How many events of the past the filter selects, when, and the newest of them.

        They are counted in the journals of all brokers in reach. `since` and `until` are datetimes or seconds
        since 1970; `dialect` is what the text of the filter is written in.
        """
        span = as_seconds(since, 0.0), as_seconds(until, None)
        wanted = await filter_at(self._session, filter, dialect, timeout, add=False)
        message = SurveyRequest(self._number(), wanted, *span, buckets, samples)
        return survey_of(await self._ask(message, timeout))

    def replay(
        self,
        filter: str | Filter,
        *,
        since: datetime | float | None = None,
        until: datetime | float | None = None,
        page: int = 100,
        ranges: Iterable[tuple[str, int, int]] = (),
        dialect: str = PALIO,
        timeout: float | None = None,
    ) -> Replay:
        """The events of the past that the filter selects, to iterate over: broker by broker, each in its order.

        Iterating raises `RequestTimeout` if a page does not come, and `ConnectionLost` if the connection is
        lost. `subscribe(…, since=…)` goes on with the present, and is not troubled by that.

        With `ranges`, only what these journals have after one sequence up to another. `dialect` is what the
        text of the filter is written in; one about XML documents is read by `families.read` before.
        """
        self._session.require_open()
        seconds = self._session.options.request_timeout if timeout is None else timeout
        number = self._number()
        replay = Replay(number, self._session.say, seconds)
        span = as_seconds(since, 0.0), as_seconds(until, None)
        self._dispatch.expect(
            ReplayRequest(number, as_filter(filter, dialect), *span, page, tuple(ranges)), replay
        )
        return replay

    async def journals(self, *, timeout: float | None = None) -> JournalsListed:
        """How far the journals in reach are; in `missing`, brokers that did not answer."""
        listed: JournalsListed = await self._ask(ListJournals(self._number()), timeout)
        return listed

    async def hold(
        self, reader: str, sequence: int, *, lineage: Lineage = (), timeout: float | None = None
    ) -> JournalRange:
        """Have this broker's journal kept for a reader that has everything up to a sequence; -1 ends that.

        With the `lineage` of the journal that was read, as `journals` tells it, a journal that came back older
        is kept from where it was the same. Returns when it is on disk, and what the journal has.
        """
        held: Held = await self._ask(Hold(self._number(), reader, sequence, lineage), timeout)
        return held.journal

    # For operators

    async def trim_journal(
        self, upto: int | None = None, *, dry: bool = False, timeout: float | None = None
    ) -> JournalTrimmed:
        """Have this broker let go all of its journal that nobody needs, or of that what is not after `upto`.

        With `dry` nothing goes: the answer says how much would (`gone`).
        """
        trimmed: JournalTrimmed = await self._ask(TrimJournal(self._number(), upto, dry), timeout)
        return trimmed

    async def remove(self, durable: str, *, timeout: float | None = None) -> None:
        """End a durable subscription for good, wherever it is, with all that waits for it.

        Whoever takes its events is told `TakenOver`. Raises `NoSuchSubscription`, and `HomeUnreachable` as
        `RequestRefused` if it may be at a broker that is away.
        """
        session = self._session
        session.require_open()
        held = session.held.get(durable)
        if isinstance(held, DurableSubscription):
            await held.unsubscribe()
            return
        attach = Attach(durable, None, in_flight=1)
        await session.ask(attach, on_loss="fail", timeout=timeout)
        await session.ask(Finish(durable), on_loss="fail", timeout=timeout)

    async def pause(self, durable: str, *, timeout: float | None = None) -> None:
        """Let a durable subscription keep what comes and deliver nothing, until it is resumed; on disk.

        Whoever takes its events stays its taker, and may acknowledge what is out. The broker must be the
        subscription's home, here and in `resume` and `seek`.
        """
        await self._ask(Pause(durable), timeout)

    async def resume(self, durable: str, *, timeout: float | None = None) -> None:
        """Let a durable subscription deliver again."""
        await self._ask(Resume(durable), timeout)

    async def seek(
        self, durable: str, since: Since, *, dry: bool = False, timeout: float | None = None
    ) -> Sought:
        """Move a durable subscription: a datetime, seconds since 1970, "all", "now", or an event's `position`.

        What follows comes (again), as far back as journals and lakes have it; what is before and was not
        acknowledged is dropped. Returns how much that was, or with `dry` how much it would be.
        """
        after = dict(since) if isinstance(since, Mapping) else None
        moment = None if isinstance(since, Mapping) else since
        if isinstance(moment, datetime):
            moment = as_seconds(moment, 0.0)
        sought: Sought = await self._ask(Seek(durable, moment, after, dry), timeout)
        return sought

    async def requeue(
        self, durable: str, deliveries: Iterable[int], *, timeout: float | None = None
    ) -> tuple[int, ...]:
        """Let dead letters of a durable subscription be delivered after all. Returns which of them were there.

        Their numbers are those that `inspect("dlq")` tells; the broker must be the subscription's home.
        """
        requeued: Requeued = await self._ask(Requeue(durable, tuple(deliveries)), timeout)
        return requeued.deliveries

    async def discard(
        self, durable: str, deliveries: Iterable[int], *, timeout: float | None = None
    ) -> tuple[int, ...]:
        """Throw dead letters of a durable subscription away. Returns which of them were there."""
        discarded: Discarded = await self._ask(Discard(durable, tuple(deliveries)), timeout)
        return discarded.deliveries

    async def leave(
        self,
        do: Literal["leave", "look", "try", "stay"] = "leave",
        *,
        to: str = "",
        parting: bool = False,
        timeout: float | None = None,
    ) -> dict[str, Any]:
        """Let this broker leave its network for good, and tell how far it is; plain data.

        Ask again, in the same way, until its `stage` is "left": then it stops. Its durable subscriptions go
        `to` that neighbour. "look" only tells, "try" also raises what would speak against it, "stay" lets it
        stay after all. Raises `CannotLeave` as `RequestRefused`.
        """
        wish = {"do": do, "to": to, "parting": parting}
        told: dict[str, Any] = await self._session.invoke("network.leave", wish, timeout=timeout)
        return told

    async def add_link(
        self,
        address: str,
        *,
        kind: Literal["peer", "master", "below", "graph"] = "peer",
        cost: float = 1.0,
        if_allowed: bool = False,
        timeout: float = LINK_WITHIN,
    ) -> dict[str, Any]:
        """Let this broker connect to the one at an address, and keep the link until it restarts; plain data.

        What is told is the name of the `neighbour`, and whether anything has `changed`. Raises as
        `RequestRefused`: `NotRunning`, `WrongLinkAddress`, `AlreadyLinked` (with the `broker`),
        `CannotConnect`, and `LinkImpossible` with `why`, such as "cycle". With `if_allowed`, a link that is
        there, or that how the network is forbids, is left as it is: the `reason` says so.
        """
        wish = {"do": "add", "broker": address, "kind": kind, "cost": cost, "if_allowed": if_allowed}
        told: dict[str, Any] = await self._session.invoke("network.link", wish, timeout=timeout)
        return told

    async def remove_link(self, broker: str, *, timeout: float | None = None) -> dict[str, Any]:
        """Let this broker end the link to a neighbour, which is named, or whose address is; plain data.

        It is not made again before this broker restarts, at neither end, unless somebody adds it. If there is
        no such neighbour, nothing is done (`changed`).
        """
        wish = {"do": "remove", "broker": broker}
        told: dict[str, Any] = await self._session.invoke("network.link", wish, timeout=timeout)
        return told

    async def overlay_changes(
        self, after: int | None = None, *, wait: float = 0.0, timeout: float | None = None
    ) -> dict[str, Any]:
        """What has happened to the links of this broker (`changes`), and where to go on (`onward`); plain data.

        Those after a number, as far as the broker remembers them; with `wait`, up to so many seconds (10 at the
        most) for the next one.
        """
        wanted = {"after": after, "wait": wait}
        told: dict[str, Any] = await self._session.invoke("overlay.changes", wanted, timeout=timeout)
        return told

    async def forget_broker(self, broker: str, *, timeout: float | None = None) -> None:
        """Say that a broker is gone for good, so that nobody waits for it any more."""
        await self._ask(Forget(broker), timeout)


def as_advertisement(text: str | Advertisement) -> Advertisement:
    """An advertisement, of which the text may be given. Raises `FilterSyntaxError`."""
    return Advertisement.parse(text) if isinstance(text, str) else text
