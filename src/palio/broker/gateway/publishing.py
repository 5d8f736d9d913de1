"""Publishing over HTTP: a request is published as one message, and answered when the broker has confirmed it.

All requests with the same credentials share one session, whose name is the same after every restart: what is
published again with the same id is recognised by (session, id). Sessions that are not used for a while end.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta

from palio.broker.documents.readers import brings_xml
from palio.broker.extension import Extension, Route
from palio.broker.gateway.call import IN_THREAD, Call
from palio.broker.gateway.credentials import HttpCredentials
from palio.broker.gateway.openapi import COMMON, Operation, Parameter, good
from palio.broker.gateway.parameters import KEY, Key, read_key, read_number
from palio.broker.gateway.visitor import Visitor
from palio.documents.errors import DocumentTooLarge
from palio.documents.event_format import XML_BATCH, XML_EVENT, XML_FORMATS
from palio.documents.reserved import FAMILY, WITHDRAWN
from palio.documents.reserved import KEY as XML_KEY
from palio.model.body import MAX_PRIORITY
from palio.model.errors import WrongParameter
from palio.model.formats import (
    BATCH,
    BINARY,
    JSON,
    STRUCTURED,
    Message,
    Reading,
    WrongMediaType,
    is_xml,
    media_type_of,
    read_message,
)
from palio.model.notification import Notification
from palio.protocol.requests import Publish, PublishDocuments, Published

if TYPE_CHECKING:
    from palio.broker.broker import BrokerServer

# Sessions kept for publishers; the least recently used one gives way, unless it is waited for.
MAX_SESSIONS = 256
# Large bodies that are read in threads at a time: more would not be faster.
THREADS = 2
MAX_EVENTS = 50_000  # in one request
SHORTEST_LIFETIME, LONGEST_LIFETIME = 0.001, 1e9


XML = "application/xml"


class Confirmed(msgspec.Struct, frozen=True):
    """The broker has taken the events; with a journal, they are on disk."""

    origin: Annotated[str, Meta(description="The broker that took the events.")]
    sequences: Annotated[tuple[int, ...], Meta(description="Their numbers there.")]
    journaled: Annotated[bool, Meta(description="Whether they are on disk.")]


_Priority = Annotated[int, Meta(ge=0, le=MAX_PRIORITY)]
_Lifetime = Annotated[float, Meta(ge=SHORTEST_LIFETIME, le=LONGEST_LIFETIME)]
_QUERY = (
    Parameter("id", Key, "As Idempotency-Key."),
    Parameter("priority", _Priority, "Of plain JSON; 9 first."),
    Parameter("lifetime", _Lifetime, "Of plain JSON, in seconds."),
)
_Object = Annotated[dict[str, Any], Meta(examples=[{"symbol": "ACME", "price": 101.5}])]
_Filled = Annotated[str, Meta(min_length=1)]


class EventDocument(msgspec.Struct):
    """A CloudEvent in structured JSON; it may have further context attributes."""

    specversion: Literal["1.0"]
    id: _Filled
    source: _Filled
    type: _Filled
    time: Annotated[str, Meta(extra_json_schema={"format": "date-time"})] | None = None
    data: Any = None


PUBLISH = Operation(
    summary="Publish events",
    description=(
        "One event or several: plain JSON (an object, or an array of objects), JSON lines, or CloudEvents in "
        "binary (ce-… headers), structured or batch mode, in JSON or XML. All are published, in their order, "
        "or none. The answer is the confirmation. A CloudEvent is known by source and id, other events by "
        "Idempotency-Key or id: what was published before is answered with its first sequence."
    ),
    parameters=(KEY, *_QUERY),
    body={
        JSON: _Object | list[dict[str, Any]],
        STRUCTURED.media_types[0]: EventDocument,
        BATCH.media_types[0]: list[EventDocument],
        XML_EVENT.media_types[0]: str,
        XML_BATCH.media_types[0]: str,
    },
    answers=good("The broker has taken them; with a journal, they are on disk.", Confirmed),
    problems=(400, 408, 413, 415, *COMMON),
)


PUBLISH_DOCUMENT = Operation(
    summary="Publish an XML document",
    description=(
        "The body is a document, of a family that the broker knows by its root element. It is read and checked "
        "once: what the paths of its family find become its attributes, and the document, byte for byte, the "
        "payload. The answer is the confirmation; whatever is wrong is said with its line. Idempotency-Key or "
        "id is as for events. XML may be sent to /events, too, and CloudEvents may have it as their data."
    ),
    parameters=(KEY, *_QUERY),
    body={XML: str},
    answers=good("The broker has taken it; with a journal, it is on disk.", Confirmed),
    problems=(400, 408, 413, 415, 501, *COMMON),
)


_Part = Annotated[str, Meta(min_length=1)]
WITHDRAW_DOCUMENT = Operation(
    summary="Withdraw an XML document",
    description=(
        "There is no current version any more. That is a version, too: who has subscribed to what the document "
        "was gets it, with xml.withdrawn = true. The answer is the confirmation."
    ),
    parameters=(
        Parameter("family", _Part, "Of which family.", "path"),
        Parameter("key", _Part, "Its key: the values of the key paths, joined by slashes.", "path"),
        KEY,
        _QUERY[0],
    ),
    answers=good("It is withdrawn, and that is on disk.", Confirmed),
    problems=(400, 404, 410, 501, *COMMON),
)


class _Session(msgspec.Struct, eq=False):
    """A visitor that several requests share."""

    visitor: asyncio.Task[Visitor]
    using: int = 0


class HttpPublishing:
    """Everybody who publishes by HTTP."""

    def __init__(self, broker: BrokerServer) -> None:
        self._broker = broker
        self._sessions: OrderedDict[str, _Session] = OrderedDict()
        self._threads = asyncio.Semaphore(THREADS)

    def extension(self) -> Extension:
        routes = (
            Route("POST", "/events", self._publish, PUBLISH),
            Route("POST", "/documents", self._publish_document, PUBLISH_DOCUMENT),
            Route("DELETE", "/documents/{family}/{key:path}", self._withdraw, WITHDRAW_DOCUMENT),
        )
        return Extension(name="publishing", routes=routes, stop=self._stop)

    async def _publish(self, call: Call) -> Confirmed:
        """Publish what a request brings. Raises what is wrong with it, or what the broker refuses with."""
        if is_document(call.headers.items()):
            return await self._publish_document(call)
        reading = Reading(properties=read_properties(call), by_source=True, most=MAX_EVENTS)
        async with call.body() as body:
            message = Message.of(call.headers.items(), body)
            if len(body) <= IN_THREAD:
                notifications = tuple(read_message(message, reading, XML_FORMATS))
            else:
                async with self._threads:
                    notifications = await asyncio.to_thread(_read_and_encode, message, reading)
            kind = PublishDocuments if any(map(brings_xml, notifications)) else Publish
            return await self.say(kind(notifications), call.credentials)

    async def _publish_document(self, call: Call) -> Confirmed:
        """Publish a document. Raises what is wrong with it, or what the broker refuses with."""
        media_type = media_type_of(call.headers.get("content-type", ""))
        if not is_xml(media_type):
            raise WrongMediaType(media_type, XML)
        properties = read_properties(call)
        size = self._broker.settings.documents.size
        async with call.body() as body:
            if len(body) > size:
                raise DocumentTooLarge("size", size)
            document = Notification({}, payload=body, **properties)
            return await self.say(PublishDocuments((document,)), call.credentials)

    async def _withdraw(self, call: Call) -> Confirmed:
        """Say that there is no such document any more. Raises what the broker refuses with."""
        if set(call.query) - {"id"}:
            raise WrongParameter(min(set(call.query) - {"id"})[:80], "There is no such parameter; there is id.")
        named = {FAMILY: call.path["family"], XML_KEY: call.path["key"], WITHDRAWN: True}
        document = Notification(named, id=read_key(call.headers, call.query))
        return await self.say(PublishDocuments((document,)), call.credentials)

    async def say(self, message: Publish | PublishDocuments, credentials: HttpCredentials) -> Confirmed:
        """Publish for whoever shows these credentials. Raises what the broker refuses with."""
        session = self._session(credentials)
        session.using += 1
        try:
            visitor = await asyncio.shield(session.visitor)
            if not message.notifications:
                return Confirmed(self._broker.settings.name, (), visitor.journal)
            answer: Published = await visitor.ask(message)
        finally:
            session.using -= 1
        count = len(message.notifications)
        sequences = answer.sequences or range(answer.sequence, answer.sequence + count)
        return Confirmed(answer.origin, tuple(sequences), visitor.journal)

    def _session(self, credentials: HttpCredentials) -> _Session:
        session = self._sessions.pop(credentials.key, None)
        if session is None or _is_over(session):
            name = f"http-{credentials.key}" if credentials.key else "http"
            entering = Visitor.enter(self._broker, name, credentials)
            session = _Session(asyncio.get_running_loop().create_task(entering))
        self._sessions[credentials.key] = session
        while len(self._sessions) > MAX_SESSIONS:
            idle = next((key for key, one in self._sessions.items() if not one.using), None)
            if idle is None:
                break
            _end(self._sessions.pop(idle))
        return session

    async def _stop(self) -> None:
        while self._sessions:
            _end(self._sessions.popitem()[1])


def is_document(headers: Iterable[tuple[str, str]]) -> bool:
    """Whether a request says that its body is XML, and no CloudEvent."""
    message = Message.of(headers, b"")
    named = message.media_type
    if not is_xml(named) or any(named in one.media_types for one in XML_FORMATS):
        return False
    return not BINARY.describes(message)


def _is_over(session: _Session) -> bool:
    entering = session.visitor
    if not entering.done():
        return False
    return entering.cancelled() or entering.exception() is not None or entering.result().is_over


def _end(session: _Session) -> None:
    if not session.visitor.done():
        session.visitor.cancel()
    elif not _is_over(session):
        session.visitor.result().leave("It was not used any more.")


def _read_and_encode(message: Message, reading: Reading) -> tuple[Notification, ...]:
    notifications = tuple(read_message(message, reading, XML_FORMATS))
    for notification in notifications:
        _ = notification.body  # which is then not made in the event loop
    return notifications


def read_properties(call: Call) -> dict[str, Any]:
    """What plain JSON is published with: `Idempotency-Key` or `id`, `priority`, `lifetime`."""
    query = call.query
    unknown = set(query) - {one.name for one in _QUERY}
    if unknown:
        raise WrongParameter(
            min(unknown)[:80], "There is no such parameter; there are id, lifetime and priority."
        )
    properties: dict[str, Any] = {}
    id = read_key(call.headers, query)
    if id is not None:
        properties["id"] = id
    if "priority" in query:
        priority = read_number("priority", query["priority"], 0, MAX_PRIORITY)
        if priority != int(priority):
            raise WrongParameter("priority", "It is a whole number.")
        properties["priority"] = int(priority)
    if "lifetime" in query:
        properties["lifetime"] = read_number("lifetime", query["lifetime"], SHORTEST_LIFETIME, LONGEST_LIFETIME)
    return properties
