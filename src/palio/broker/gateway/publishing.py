"""Publishing over HTTP: a request is published as one message, and answered when the broker has confirmed it.

All requests with the same credentials share one session, whose name is the same after every restart: what is
published again with the same id is recognised by (session, id). Sessions that are not used for a while end.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import msgspec

from palio.broker.extension import Extension, Route
from palio.broker.gateway import description
from palio.broker.gateway.call import IN_THREAD, Call
from palio.broker.gateway.credentials import Credentials
from palio.broker.gateway.parameters import LONGEST_LIFETIME, SHORTEST_LIFETIME, read_key, read_number
from palio.broker.gateway.visitor import Visitor
from palio.model.body import MAX_PRIORITY
from palio.model.errors import WrongParameter
from palio.model.formats import Message, Reading, read_message
from palio.model.notification import Notification
from palio.protocol.requests import Publish, Published

if TYPE_CHECKING:
    from palio.broker.broker import Broker

# Sessions kept for publishers; the least recently used one gives way, unless it is waited for.
MAX_SESSIONS = 256
# Large bodies that are read in threads at a time: more would not be faster.
THREADS = 2
MAX_EVENTS = 50_000  # in one request


class Confirmed(msgspec.Struct, frozen=True):
    """The broker has taken the events; with a journal, they are on disk."""

    origin: str
    sequences: tuple[int, ...]
    journaled: bool


class _Session:
    """A visitor that several requests share."""

    __slots__ = ("using", "visitor")

    def __init__(self, visitor: asyncio.Task[Visitor]) -> None:
        self.visitor = visitor
        self.using = 0


class Publishing:
    """Everybody who publishes by HTTP."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._sessions: OrderedDict[str, _Session] = OrderedDict()
        self._threads = asyncio.Semaphore(THREADS)

    def extension(self) -> Extension:
        """Publishing, as a part of the gateway."""
        routes = (Route("POST", "/events", self._publish, description.PUBLISH),)
        return Extension(name="publishing", routes=routes, stop=self._stop)

    async def _publish(self, call: Call) -> Confirmed:
        """Publish what a request brings. Raises what is wrong with it, or what the broker refuses with."""
        reading = Reading(properties=read_properties(call), by_source=True, most=MAX_EVENTS)
        async with call.body() as body:
            message = Message.of(call.headers.items(), body)
            if len(body) <= IN_THREAD:
                notifications = tuple(read_message(message, reading))
            else:
                async with self._threads:
                    notifications = await asyncio.to_thread(_read_and_encode, message, reading)
            return await self._say(notifications, call.credentials)

    async def _say(self, notifications: tuple[Notification, ...], credentials: Credentials) -> Confirmed:
        session = self._session(credentials)
        session.using += 1
        try:
            visitor = await asyncio.shield(session.visitor)
            if not notifications:
                return Confirmed(self._broker.settings.name, (), visitor.journal)
            answer: Published = await visitor.ask(Publish(notifications))
        finally:
            session.using -= 1
        sequences = answer.sequences or range(answer.sequence, answer.sequence + len(notifications))
        return Confirmed(answer.origin, tuple(sequences), visitor.journal)

    def _session(self, credentials: Credentials) -> _Session:
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
    notifications = tuple(read_message(message, reading))
    for notification in notifications:
        _ = notification.body  # which is then not made in the event loop
    return notifications


def read_properties(call: Call) -> dict[str, Any]:
    """What plain JSON is published with: `Idempotency-Key` or `id`, `priority`, `lifetime`."""
    query = call.query
    unknown = set(query) - {"id", "priority", "lifetime"}
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
