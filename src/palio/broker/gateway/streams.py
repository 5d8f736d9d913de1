"""Event streams: subscriptions that `curl -N` and browsers can read (server-sent events).

- A plain stream is a transient subscription. Each event has an id: where the stream is in the journals. Whoever
  comes back with the last one (`Last-Event-ID`, as browsers do by themselves) goes on right there, and `since`
  begins in the past: both are subscriptions that end with the stream, and what was sent counts as done with.
  An id also says in which lives of the brokers the journals were, as far as this broker knows: whoever comes
  back to a journal that came back older gets what follows where both were the same, and `event: gap`.
- A `durable` stream takes the events of a durable subscription. There is no way back in a stream, so what was
  sent is acknowledged by coming back: `Last-Event-ID` says up to which event all of the former stream has been
  received. What it does not name comes again. A stream ends by itself when `WINDOW` events are out, for its
  reader to come back.

Whoever does not read is waited for. Meanwhile the broker's bounds for slow clients apply, and what they cost is
told in the stream (`event: lost`); after `stalled` seconds it is cut off.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from palio.broker.documents.knowledge import LONGEST_WAIT, KnowledgeBase, SelectionQuestion
from palio.broker.extension import Extension, Route
from palio.broker.gateway.call import Call
from palio.broker.gateway.problems import RefusedByBroker, details
from palio.broker.gateway.protocols import ABORT
from palio.broker.gateway.selections import plain_text
from palio.broker.gateway.stream_request import (
    MAX_ORIGINS,
    SHAPES,
    STREAM,
    StreamWanted,
    read_position,
    read_time,
    read_wanted,
    write_event,
    write_position,
)
from palio.broker.gateway.visitor import Visitor
from palio.language import PALIO
from palio.model.errors import PalioError
from palio.model.filter import Filter
from palio.model.formats import to_json
from palio.protocol.deliveries import Events, Handed, Lost
from palio.protocol.durable.journals import JournalRange, JournalsListed, ListJournals
from palio.protocol.durable.lineage import going_on
from palio.protocol.durable.retry import Patience
from palio.protocol.durable.subscriptions import (
    Acknowledged,
    Attach,
    Attached,
    Change,
    Finish,
    GapNoticed,
    Taken,
)
from palio.protocol.envelope import Envelope
from palio.protocol.requests import Subscribe
from palio.routing.documents.beginning import RetroactivePosition

if TYPE_CHECKING:
    from palio.broker.broker import BrokerServer

# Events of a durable stream that are out; then its reader has to come back.
WINDOW = 256
# Durable streams of which is remembered what they have sent.
MAX_REMEMBERED = 1_000
# Events that are written as text in one turn: about a millisecond.
AT_ONCE = 32
_TAKER = Patience(in_flight=WINDOW, acknowledge_within=86_400.0)  # until the reader comes back or goes away
# Seconds for which events wait to have ids that say in which lives of the brokers they were numbered.
_LEARN_WITHIN = 1.0
Key = tuple[str, int, float | None]  # when it was published, unless an id of an earlier version does not say so
_RETRY = 500  # milliseconds until a browser comes back


class Streams:
    """All event streams of a broker."""

    def __init__(self, broker: BrokerServer, filter_named: Callable[[str, str], Filter | None]) -> None:
        self._broker = broker
        self._filter_named = filter_named
        self._sent: OrderedDict[tuple[str, str], list[Key]] = OrderedDict()
        self.open = 0
        self.cut_off = 0

    def extension(self) -> Extension:
        link = "events", "all events, as they come (server-sent events)"
        return Extension(name="streams", routes=(Route("GET", "/events", self._stream, STREAM, link=link),))

    async def _stream(self, call: Call) -> EventStream:
        """Subscribe. Raises what the broker refuses with."""
        said, dialect = call.query.get("filter"), call.query.get("dialect", PALIO)
        wanted = read_wanted(call, None if said is None else await plain_text(said, call.enter, dialect))
        visitor = await call.enter("stream")
        try:
            if wanted.durable is not None:
                owner = visitor.principal
                known, remember = self._filter_named(owner, wanted.durable), partial(self._remember, owner)
                received = self._sent_before(owner, wanted)
                reader: _StreamReader = _Durable(visitor, wanted, known, received, remember)
            elif wanted.retroactive and wanted.after is None:
                reader = _Retroactive(visitor, wanted, self._broker.documents.knowledge)
            elif wanted.since is not None or wanted.after is not None:
                reader = _Reaching(visitor, wanted)
            else:
                reader = _StreamReader(visitor, wanted)
            await reader.begin()
        except BaseException:
            visitor.leave()
            raise
        return EventStream(self, reader, self._broker.settings.gateway)

    def _sent_before(self, owner: str, wanted: StreamWanted) -> frozenset[Key]:
        """What the reader of a durable stream has received, as far as its last id tells."""
        assert wanted.durable is not None
        if not wanted.last:
            return frozenset()
        origin, sequence = next(iter(read_position(wanted.last).items()))
        time = read_time(wanted.last)
        sent = self._sent.get((owner, wanted.durable), [])
        for place, key in enumerate(sent):
            if key == (origin, sequence, key[2] if time is None else time):
                return frozenset(sent[: place + 1])
        return frozenset([(origin, sequence, time)])

    def _remember(self, owner: str, name: str, sent: list[Key]) -> None:
        self._sent[owner, name] = sent
        self._sent.move_to_end((owner, name))
        while len(self._sent) > MAX_REMEMBERED:
            self._sent.popitem(last=False)


class _StreamReader:
    """A transient subscription, and its events as text."""

    def __init__(self, visitor: Visitor, wanted: StreamWanted) -> None:
        self.visitor = visitor
        self._wanted = wanted
        self._filter = wanted.filter or Filter()
        self._since = "now" if wanted.since is None else wanted.since
        self._position = dict(wanted.after or {})
        self._lineages = dict(wanted.lineages or {})  # of the journals
        self._epoch = -1  # in which these were asked for

    async def begin(self) -> None:
        await self.visitor.ask(Subscribe("stream", self._filter))

    async def chunks(self, silence: float) -> AsyncIterator[bytes]:
        """What is to be sent. When one was taken, the next is asked for."""
        yield f": subscribed\nretry: {_RETRY}\n\n".encode()
        left = wait = self._wanted.wait
        try:
            while not self.is_full:
                message = await self.visitor.take(silence if left is None else min(silence, left))
                if left is not None:
                    left = wait if message is not None else left - silence
                    if left is not None and left <= 0 and message is None:
                        return
                match message:
                    case None:
                        yield b": still here\n\n"
                    case Events():
                        await self._learn(message.envelopes[-1].epoch)
                        for at in range(0, len(message.envelopes), AT_ONCE):
                            yield await self.visitor.do(
                                partial(self._texts, message.envelopes[at : at + AT_ONCE])
                            )
                    case Handed():
                        await self._learn(message.deliveries[-1][-1].epoch)
                        text = await self.visitor.do(partial(self._handed, message))
                        if text:
                            yield text
                            self._was_sent(message)
                    case Lost():
                        yield _named("lost", {"count": message.count, "reason": message.reason})
                    case GapNoticed():
                        gap = {"origin": message.origin, "after": message.after, "upto": message.upto}
                        yield _named("gap", gap | {"noticed": message.noticed, "what": message.what})
                    case Taken():
                        problem = RefusedByBroker("", "TakenOver", "Another reader takes these events now.")
                        yield _named("end", details(problem))
                        return
        except PalioError as problem:
            yield _named("end", details(problem))

    async def _learn(self, epoch: int) -> None:
        """Find out in which lives brokers number their journals, when that may have changed."""
        if self.visitor.journal and (self._epoch < 0 or epoch not in (0, self._epoch)):
            self._epoch = epoch
            with suppress(PalioError):  # then ids do not say it
                listed: JournalsListed = await self.visitor.ask(ListJournals(0), _LEARN_WITHIN)
                for one in listed.journals:
                    self._meet(one)

    def _meet(self, journal: JournalRange) -> None:
        """A place in a journal that came back older is where it was the same, until something comes of it."""
        origin, theirs = journal.origin, journal.lineage
        place, mine = self._position.get(origin), self._lineages.get(origin, ())
        if place is not None and theirs:
            self._position[origin] = going_on(place, mine, theirs, journal.head)
        self._lineages[origin] = theirs

    @property
    def is_full(self) -> bool:
        return False

    def end(self) -> None:
        self.visitor.leave("The reader of the stream is gone.")

    def _handed(self, message: Handed) -> bytes:
        return b"".join([self._text(envelope) for _, _, envelope in message.deliveries])

    def _was_sent(self, message: Handed) -> None:
        """What was handed out is on its way to the reader."""

    def _id(self, envelope: Envelope) -> str:
        """Where the stream is after an event; empty if it cannot be resumed there."""
        self._position[envelope.origin] = envelope.sequence
        if not self.visitor.journal or len(self._position) > MAX_ORIGINS:
            return ""
        return write_position(self._position, self._lineages)

    def _texts(self, envelopes: tuple[Envelope, ...]) -> bytes:
        return b"".join([self._text(one) for one in envelopes])

    def _text(self, envelope: Envelope) -> bytes:
        id = self._id(envelope)
        line = f"id: {id}\n".encode() if id else b""
        return b"%sdata: %s\n\n" % (line, SHAPES[self._wanted.shape].write((envelope,))[0].body)


class _Reaching(_StreamReader):
    """A subscription that begins in the past, and ends with the stream."""

    def __init__(self, visitor: Visitor, wanted: StreamWanted) -> None:
        super().__init__(visitor, wanted)
        self._name = f"{visitor.name}-since"

    async def begin(self) -> None:
        attach = Attach(
            self._name,
            self._filter,
            since=self._since,
            anew=True,
            linger=0.0,
            in_flight=WINDOW,
            after=self._wanted.after,
            lineages=self._wanted.lineages,
        )
        await self.visitor.ask(attach)

    def _was_sent(self, message: Handed) -> None:
        numbers = tuple([number for number, _, _ in message.deliveries])
        self.visitor.say(Acknowledged(self._name, numbers))

    def end(self) -> None:
        with suppress(PalioError):
            self.visitor.say(Finish(self._name))
        super().end()


class _Retroactive(_Reaching):
    """A subscription that begins with the current documents.

    These have no ids: who comes back before the first event that has one begins again.
    """

    def __init__(self, visitor: Visitor, wanted: StreamWanted, knowledge: KnowledgeBase) -> None:
        super().__init__(visitor, wanted)
        self._knowledge = knowledge
        self._beginning: RetroactivePosition | None = None

    async def begin(self) -> None:
        await super().begin()
        name = self.visitor.connection.principal.own(self._name)
        self._beginning = await self._knowledge.beginnings.position(name, LONGEST_WAIT)
        self._position |= self._beginning.position

    async def chunks(self, silence: float) -> AsyncIterator[bytes]:
        events = super().chunks(silence)
        yield await anext(events)
        async for chunk in self._documents():
            yield chunk
        async for chunk in events:
            yield chunk

    async def _documents(self) -> AsyncIterator[bytes]:
        assert self._beginning is not None
        principal, after = self.visitor.connection.principal, None
        try:
            while True:
                question = SelectionQuestion(after=after, upto=self._beginning.position)
                page = await self._knowledge.select(question, self._filter, principal)
                for at in range(0, len(page.documents), AT_ONCE):
                    some = tuple([one.envelope for one in page.documents[at : at + AT_ONCE]])
                    yield await self.visitor.do(partial(self._written, some))
                if page.onward is None:
                    return
                after = page.onward
        except PalioError as problem:
            yield _named("end", details(problem))
            raise

    def _written(self, envelopes: tuple[Envelope, ...]) -> bytes:
        write = SHAPES[self._wanted.shape].write
        return b"".join([b"data: %s\n\n" % write((one,))[0].body for one in envelopes])

    def _handed(self, message: Handed) -> bytes:
        assert self._beginning is not None
        several = [one for _, _, one in message.deliveries if not self._beginning.has(one)]
        return b"".join([self._text(envelope) for envelope in several])


class _Durable(_StreamReader):
    """The consumer (taker) of a durable subscription, which reads it as a stream."""

    def __init__(
        self,
        visitor: Visitor,
        wanted: StreamWanted,
        known: Filter | None,
        received: frozenset[Key],
        remember: Callable[[str, list[Key]], None],
    ) -> None:
        super().__init__(visitor, wanted)
        assert wanted.durable is not None
        self._name = wanted.durable
        self._filter = wanted.filter or known or Filter()
        self._received = received
        self._sent: list[Key] = []
        self._remember = remember

    async def begin(self) -> None:
        change = self._wanted.change
        as_is = change or self._wanted.filter is None
        attach = Attach(
            self._name, self._filter, since=self._since, in_flight=WINDOW, patience=_TAKER, as_is=as_is
        )
        attached: Attached = await self.visitor.ask(attach)
        if change and attached.filter != self._filter:
            await self.visitor.ask(Change(self._name, self._filter))
        self._remember(self._name, self._sent)

    @property
    def is_full(self) -> bool:
        return len(self._sent) >= WINDOW

    def _handed(self, message: Handed) -> bytes:
        known, parts = [], []
        for number, _, envelope in message.deliveries:
            key = envelope.origin, envelope.sequence, envelope.time
            if not self._received.isdisjoint((key, (*key[:2], None))):
                known.append(number)
            else:
                self._sent.append(key)
                parts.append(self._text(envelope))
        if known:
            self.visitor.say(Acknowledged(self._name, tuple(known)))
        return b"".join(parts)

    async def _learn(self, epoch: int) -> None:
        """Its ids name events, and no places in journals."""

    def _id(self, envelope: Envelope) -> str:
        return write_event(envelope.origin, envelope.sequence, envelope.time)


class EventStream(Response):
    """The answer that goes on and on."""

    media_type = "text/event-stream"

    def __init__(self, streams: Streams, reader: _StreamReader, settings: Any) -> None:
        super().__init__(
            None, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"}, media_type=self.media_type
        )
        del self.headers["content-length"]
        self._streams = streams
        self._reader = reader
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._streams.open += 1
        sending = asyncio.ensure_future(self._send_all(send))
        leaving = asyncio.ensure_future(_left(receive))
        try:
            await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
            stalled = sending.done() and isinstance(sending.exception(), TimeoutError)
            if stalled:
                self._streams.cut_off += 1
                scope[ABORT]()
        finally:
            for task in (sending, leaving):
                task.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)
            self._streams.open -= 1
            self._reader.end()

    async def _send_all(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        async for chunk in self._reader.chunks(self._settings.keep_alive):
            async with asyncio.timeout(self._settings.stalled):
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _named(event: str, document: dict[str, Any]) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (event.encode(), to_json(document))
