"""`Visitor`: speaks `palio/2` for somebody who came by HTTP, with a `BrokerConnection`, in memory.

It is a shell around a `Conversation`, and hears answers, events and deliveries. Answers go to whoever asked.
Events and deliveries wait to be taken, as bytes: until then they count as not read, so that the connection
treats a slow visitor as it treats every slow client.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Self, TypeVar

from palio.broker.connection import BrokerConnection
from palio.broker.gateway.credentials import NOTHING_SHOWN, HttpCredentials
from palio.broker.gateway.problems import RefusedByBroker
from palio.model.errors import HistoryUnavailable, PalioError
from palio.protocol.conversation import Conversation
from palio.protocol.deliveries import Events, Handed, Lost
from palio.protocol.durable.subscriptions import GapNoticed, Taken
from palio.protocol.encoding import decode, unread
from palio.protocol.frames import FrameTooLarge, frame
from palio.protocol.greeting import CONNECTION, PROTOCOL, Greet, Role, Welcome
from palio.protocol.heartbeat import Bye, Heartbeat
from palio.protocol.requests import Refused
from palio.protocol.subjects import subject_of
from palio.protocol.vocabulary import ANSWERS, KNOWN, TO_CLIENTS, AnyMessage
from palio.transport.buffered import BufferedTransport

if TYPE_CHECKING:
    from palio.broker.access.principal import Principal
    from palio.broker.broker import BrokerServer

_TO_BE_TAKEN = frozenset([kind.__name__.lower() for kind in (Events, Handed, Taken, GapNoticed, Lost)])
_GREETED_WITHIN = 30.0  # seconds

# Whether the core was asked for what a request by HTTP wants: then the operation log has it from there.
asked: ContextVar[bool] = ContextVar("palio asked", default=False)

Result = TypeVar("Result")


class VisitEnded(PalioError):
    """The broker ended a conversation."""

    reason: str
    sentence = "The broker ended this conversation: {reason}"


class NoAnswer(PalioError):
    """A request that was not answered in time. Whether it was carried out is not known."""

    request: str
    seconds: float
    sentence = (
        "There was no answer to {request!r} within {seconds:g} seconds; whether it was carried out is not "
        "known. Try it again: what has an id is published once."
    )


class Visitor:
    """A session of the broker. `enter` begins it, `leave` ends it."""

    def __init__(self, broker: BrokerServer, name: str, credentials: HttpCredentials) -> None:
        self.name = name
        self.journal = False
        self._max_frame = 0
        self._loop = asyncio.get_running_loop()
        self._welcome: asyncio.Future[Welcome] = self._loop.create_future()
        self._inbox: deque[bytes] = deque()
        self._arrived = asyncio.Event()
        self._ended_for: PalioError | None = None
        self._beating: asyncio.TimerHandle | None = None
        self.connection = BrokerConnection(broker)
        self.connection.binding = "http"
        self._transport = BufferedTransport(
            self.connection, self._hear, self._lost, credentials.address, peercert=credentials.certificate
        )
        heartbeat = broker.settings.heartbeat
        greet = Greet(PROTOCOL, Role.CLIENT, name, credentials.token, heartbeat=heartbeat, knows=KNOWN)
        self._conversation: Conversation[asyncio.Future[Any]] = Conversation(
            Heartbeat(heartbeat, self._loop.time()), decode, self._put, greet=greet, hears=TO_CLIENTS
        )

    @classmethod
    async def enter(
        cls,
        broker: BrokerServer,
        name: str,
        credentials: HttpCredentials = NOTHING_SHOWN,
        *,
        acting_for: str | None = None,
        acting_as: Principal | None = None,
    ) -> Self:
        """Greet with what is shown; or, for what somebody has left to be done, act for that principal. What the
        broker does by itself it does as one of its own.

        Raises `RefusedByBroker` with what speaks against it.
        """
        visitor = cls(broker, name, credentials)
        if acting_for is not None:
            acting_as = broker.access.principal(acting_for)
        visitor.connection.acting_for = acting_as
        visitor.connection.connection_made(visitor._transport)
        welcome = await visitor._answer("greet", visitor._welcome, _GREETED_WITHIN)
        visitor.journal = welcome.journal
        visitor._max_frame = welcome.max_frame
        visitor._beat()
        return visitor

    @property
    def principal(self) -> str:
        """Who it speaks for; empty where nobody has to say so."""
        return self.connection.principal.name

    @property
    def is_over(self) -> bool:
        return self._ended_for is not None

    # Saying

    def say(self, message: AnyMessage) -> None:
        """Send a message. Raises `FrameTooLarge`, and `VisitEnded` or what the broker refused with."""
        if self._ended_for is not None:
            raise self._ended_for
        self._conversation.say(message)

    def _put(self, payload: bytes) -> None:
        if self._max_frame and len(payload) > self._max_frame:
            raise FrameTooLarge(limit=self._max_frame, got=len(payload))
        self._transport.receive(frame(payload))

    async def ask(self, message: Any, timeout: float = 30.0) -> Any:
        """Send a request and wait for its answer. Raises `NoAnswer`, and what `say` and the broker raise."""
        pairing = self._conversation.pairing
        request = pairing.numbered(message)
        subject = subject_of(request)
        future: asyncio.Future[Any] = self._loop.create_future()
        asked.set(True)

        async def say() -> Any:
            await self._transport.room()  # while too much waits for the disk, this has to wait, too
            if self._ended_for is not None:
                raise self._ended_for
            if pairing.of(subject) is not None:
                raise RefusedByBroker(subject, "NotNow", "The same is being done already; try again.")
            self._conversation.ask(request, future)
            return await future

        try:
            return await self._answer(subject, say(), timeout)
        finally:
            pairing.pop(request.number)

    async def _answer(self, subject: str, awaited: Awaitable[Any], timeout: float) -> Any:
        try:
            async with asyncio.timeout(timeout):
                return await awaited
        except TimeoutError:
            raise NoAnswer(subject, timeout) from None

    async def do(self, work: Callable[[], Result]) -> Result:
        """Do something for this visitor, when it is the turn of its principal."""
        return await self.connection.broker.scheduler.do(self.connection.owner, work)

    # Taking what comes

    async def take(self, timeout: float | None = None) -> Events | Handed | Taken | GapNoticed | Lost | None:
        """The next that has come, or None if nothing has in time. Raises `VisitEnded` at the end."""
        if not self._inbox:
            self._arrived.clear()
            if self._ended_for is not None:
                raise self._ended_for
            try:
                async with asyncio.timeout(timeout):
                    await self._arrived.wait()
            except TimeoutError:
                return None
            if not self._inbox:
                assert self._ended_for is not None
                raise self._ended_for
        payload = self._inbox.popleft()
        self._transport.took(len(payload) + 4)
        return self._conversation.hear(payload)  # type: ignore[no-any-return]

    def leave(self, reason: str = "The request has ended.") -> None:
        """End the session; what it holds that does not last goes with it."""
        if self._ended_for is None:
            self.say(Bye(reason))
            self._end(VisitEnded(reason))
            self._transport.took(sum([len(payload) + 4 for payload in self._inbox]))
            self._inbox.clear()

    def _beat(self) -> None:
        """Heartbeat, without listening: the broker is in this program, however slow the visitor is."""
        self._conversation.beat(self._loop.time(), listening=False)
        self._beating = self._loop.call_later(self._conversation.heartbeat.pause, self._beat)

    # Hearing

    def _hear(self, data: bytes) -> None:
        self._loop.call_soon(self._heard, data)

    def _heard(self, data: bytes) -> None:
        for payload in self._conversation.feed(data, self._loop.time()):
            about = unread(payload)
            if about is not None and about.kind in _TO_BE_TAKEN and self._ended_for is None:
                self._inbox.append(payload)
                self._arrived.set()
            else:
                self._transport.took(len(payload) + 4)
                self._answered(self._conversation.hear(payload))

    def _answered(self, message: Any) -> None:
        match message:
            case Welcome() if not self._welcome.done():  # who waited for it may have given up
                self._welcome.set_result(message)
            case Refused():
                self._refused(message)
            case Bye():
                self._end(VisitEnded(message.reason))
            case _ if type(message) in ANSWERS:
                asked = self._conversation.pairing.get(message.number)
                if asked is not None and not asked.kept.done():
                    asked.kept.set_result(message)

    def _refused(self, refused: Refused) -> None:
        problem = RefusedByBroker(refused.subject, refused.error, refused.reason, refused.fields)
        asked = self._conversation.pairing.get(refused.number)
        if asked is not None and not asked.kept.done():
            asked.kept.set_exception(problem)
        elif refused.subject == CONNECTION:
            self._end(problem)
        elif refused.error == HistoryUnavailable.__name__:  # what was attached before goes no further for now
            self.say(Bye(refused.reason))
            self._end(problem)

    def _lost(self) -> None:
        self._end(VisitEnded(self.connection.reason))

    def _end(self, problem: PalioError) -> None:
        if self._ended_for is None:
            self._ended_for = problem
            if self._beating is not None:
                self._beating.cancel()
            for future in (self._welcome, *[asked.kept for asked in self._conversation.pairing.all()]):
                if not future.done():
                    future.set_exception(problem)
                    future.exception()  # nobody need wait for it
            self._arrived.set()
