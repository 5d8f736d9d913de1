"""`ClientSession`: the conversation of a client with a network, whichever broker it is with at the moment.

A session is in one of a few states (`states`). It remembers what was asked for that lasts (`session_handles`),
so that a new connection is made to be like the one before: subscriptions, advertisements, watches, and whatever
was published and not confirmed. What was asked for once is said again where that does no harm; otherwise
whoever waits is told that the connection was lost (`waiting`).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from palio.client.address import Place, parse_addresses, told_places
from palio.client.connection import ClientConnection
from palio.client.dialling import dial
from palio.client.errors import BrokerTooOld, ClientClosed, ConnectionLost, RequestTimeout, error_of
from palio.client.naming import default_name
from palio.client.options import Options
from palio.client.publishing import PublishQueue
from palio.client.session_handles import SessionHandle
from palio.client.states import TRANSITIONS, State
from palio.client.waiting import OnLoss, PendingAnswers
from palio.model.errors import PalioError
from palio.protocol.durable.subscriptions import Attached, Changed, DurableReady
from palio.protocol.greeting import PROTOCOL, Greet, Role, Welcome
from palio.protocol.heartbeat import Ping, Pong
from palio.protocol.invocations import Invoke
from palio.protocol.overlay import MOST_TOLD, OtherBrokers
from palio.protocol.requests import Accepted, Ended, PublishDocuments, Published, Ready, Refused
from palio.protocol.subjects import subject_of
from palio.protocol.vocabulary import KNOWN, LATER_REQUESTS

Result = TypeVar("Result")

# A connection that lasted less than this counts as a failed attempt: the next one is made after a pause.
SHORT_LIVED = 1.0
# Brokers that are remembered beside those of the address (a guess: what two brokers tell).
MOST_REMEMBERED = 2 * MOST_TOLD
_OTHERS = OtherBrokers.__name__.lower()


class ClientSession:
    """State, connection and requests of a client. `handlers` is for what comes without being asked for."""

    def __init__(self, address: str, options: Options) -> None:
        self._address = address
        self._addresses = parse_addresses(address)
        self._others: list[Place] = []  # of which brokers have told
        self.options = options
        self.name = options.name or default_name()
        self.state = State.CONNECTING
        self.reason = ""
        self.broker = ""
        self._serves: frozenset[str] = frozenset()  # of requests that not every broker knows
        self.journal = False  # whether a confirmation means that it is on disk
        self.connections = 0
        self.held: dict[str, SessionHandle] = {}
        self.dropped: Counter[str] = Counter()
        self.ended_in_order = False
        self.loop: asyncio.AbstractEventLoop
        self.publishing: PublishQueue
        self._connection: ClientConnection | None = None
        self._made_at = 0.0
        self._failures = 0  # connections that did not last, one after the other
        self._reconnecting: asyncio.Task[None] | None = None
        self._waiting = PendingAnswers()
        self.number = self._waiting.pairing.number  # for a request, the same on every connection
        self._held_by_number: dict[int, SessionHandle] = {}
        self.handlers: dict[type, Callable[[Any], None]] = {
            Published: lambda answer: self.publishing.published(answer),  # noqa: PLW0108 (it is made later)
            Refused: self._refused,
            Accepted: self._taken,
            Attached: self._taken,
            Ready: lambda answer: self._became_ready(answer.handle),
            DurableReady: lambda answer: self._became_ready(answer.name),
            Ended: self.answered,
            Pong: self.answered,
            Changed: self._changed,
            OtherBrokers: self._told_of_others,
        }

    # Connections

    async def open(self) -> None:
        """Connect. Raises `NotConnected`, or what the broker refuses with."""
        if self.is_over:
            raise ClientClosed(self.reason)
        if self.connections:
            return
        self.loop = asyncio.get_running_loop()
        self.publishing = PublishQueue(self.options.unsent_limit, self.options.publisher, self.number)
        try:
            await self._connect(self.options.connect_within)
        except BaseException as problem:
            self._go("closed", f"It could not connect: {problem}")
            raise

    async def _connect(self, within: float) -> None:
        options = self.options
        knows = KNOWN if options.other_brokers else tuple([one for one in KNOWN if one != _OTHERS])
        greet = Greet(PROTOCOL, Role.CLIENT, self.name, options.token, heartbeat=options.heartbeat, knows=knows)
        connection, welcome = await dial(
            [*self._addresses, *self._others],
            lambda: ClientConnection(
                greet, self._waiting.pairing, self.handlers, self._lost, self.publishing.send
            ),
            options.tls,
            timeout=options.connect_timeout,
            within=within,
            backoff=options.backoff,
        )
        if self.is_over:
            connection.end(self.reason)
        else:
            self._welcomed(connection, welcome)

    def _welcomed(self, connection: ClientConnection, welcome: Welcome) -> None:
        self._connection = connection
        self._made_at = self.loop.time()
        self.connections += 1
        self.broker = welcome.broker
        self.journal = welcome.journal
        self._serves = frozenset(welcome.knows)
        self._go("welcomed", f"The broker {welcome.broker} has taken the connection.")
        for held in self.held.values():
            connection.say(held.numbered())
        for message in self._waiting.connected():
            if (problem := self._unserved(message)) is not None:
                self._waiting.refuse(message.number, problem)
            else:
                connection.say(message)
        self.publishing.connected(connection, welcome.max_frame, self._unserved_kind(PublishDocuments))

    def _told_of_others(self, told: OtherBrokers) -> None:
        """Remembers other brokers, the latest first: they are tried after those of the client's own address."""
        new = [one for one in told_places(self._address, told.addresses) if one not in self._addresses]
        self._others = list(dict.fromkeys([*new, *self._others]))[:MOST_REMEMBERED]

    def _lost(self, connection: ClientConnection, reason: str) -> None:
        if connection is not self._connection:
            return
        self._connection = None
        self.publishing.disconnected()
        self._waiting.lost(reason)
        for held in list(self.held.values()):
            held.disconnected()
        if self.is_over:
            return
        self._go("lost", reason)
        if connection.is_final or not self.options.reconnect:
            self.end(reason)
        else:
            lasted = self.loop.time() - self._made_at
            self._failures = self._failures + 1 if lasted < SHORT_LIVED else 0
            self._reconnecting = self.loop.create_task(self._reconnect())

    async def _reconnect(self) -> None:
        limit = self.options.give_up_after
        try:
            if self._failures:
                await asyncio.sleep(self.options.backoff.pause(self._failures))
            await self._connect(float("inf") if limit is None else limit)
        except PalioError as problem:
            self.end(str(problem))

    # States

    def _go(self, event: str, reason: str) -> None:
        """Change the state as the table of transitions says."""
        before, self.state = self.state, TRANSITIONS[self.state][event]
        if self.state is not before:
            self.reason = reason
            if self.options.on_state is not None:
                # Not now: whatever it does, even raise, what happens here comes to its end first.
                asyncio.get_running_loop().call_soon(self.options.on_state, self.state, reason)

    @property
    def is_over(self) -> bool:
        return self.state is State.CLOSED

    def require_open(self) -> None:
        """Raises `ClientClosed` if nothing new may be asked for."""
        if self.state in (State.CLOSED, State.DRAINING) or not self.connections:
            raise ClientClosed(self.reason or "It was not opened; `async with` or `await` does that.")

    def end(self, reason: str) -> None:
        """End the session: nothing goes on from here."""
        self._go("closed", reason)
        problem = ClientClosed(reason)
        self._waiting.close(problem)
        self.publishing.close(problem)
        for held in list(self.held.values()):
            held.closed(problem)
        if self._reconnecting is not None and self._reconnecting is not asyncio.current_task():
            self._reconnecting.cancel()
        if self._connection is not None:
            self._connection.end(reason)

    async def close(self, reason: str) -> None:
        """End in order: what was said before still goes out."""
        if self.is_over:
            return
        connection = self._connection
        if connection is not None:
            self.publishing.flush()
            for held in list(self.held.values()):
                held.flush()
        self.ended_in_order = True
        self.end(reason)
        if connection is not None:
            await asyncio.wait([connection.closed], timeout=self.options.connect_timeout)

    async def drain(self, seconds: float) -> None:
        """Let all that is under way come to its end, and close. Raises `RequestTimeout`."""
        if self.is_over:
            return
        self._go("drained", "It is being drained.")
        try:
            async with asyncio.timeout(seconds):
                await asyncio.gather(*[held.drain() for held in list(self.held.values())])
                await self.publishing.all_confirmed()
                await self.arrived()
        except TimeoutError:
            raise RequestTimeout("drain", seconds) from None
        finally:
            await self.close("It was drained.")

    async def arrived(self, timeout: float | None = None) -> None:
        """Wait until the broker has taken all that was said. Raises `ConnectionLost` or `RequestTimeout`."""
        if self._connection is None:
            raise ConnectionLost("flush", self.reason)
        await self._ask_now(Ping(number=self.number()), "ping", "fail", timeout)

    # Requests and their answers

    def say(self, message: Any) -> bool:
        """Send a message, if there is a connection. Returns whether there is."""
        if self._connection is None:
            return False
        self._connection.say(message)
        return True

    async def ask(self, request: Any, *, on_loss: OnLoss, timeout: float | None = None) -> Any:
        """Send a request and wait for its answer. Raises `RequestTimeout`, or what it is refused with.

        Of several of the same subject, one is made after the other: a broker lets go the wish that another one
        of the same client takes the place of.
        """
        if self._connection is not None and (problem := self._unserved(request)) is not None:
            raise problem
        request = self._waiting.pairing.numbered(request)
        subject = subject_of(request)
        while (before := self._waiting.of(subject)) is not None:
            await asyncio.wait([before])
        return await self._ask_now(request, subject, on_loss, timeout)

    async def invoke(
        self, what: str, argument: dict[str, Any], *, on_loss: OnLoss = "fail", timeout: float | None = None
    ) -> Any:
        """Ask for what an extension of the broker does under this name. Raises what it refuses with."""
        self.require_open()
        answer = await self.ask(Invoke(0, what, argument), on_loss=on_loss, timeout=timeout)
        return answer.result

    def _unserved(self, request: Any) -> BrokerTooOld | None:
        """What is wrong with a request that the broker does not know."""
        return self._unserved_kind(type(request), getattr(request, "what", ""))

    def _unserved_kind(self, kind: type, what: str = "") -> BrokerTooOld | None:
        name = kind.__name__.lower()
        if kind not in LATER_REQUESTS or name in self._serves:
            return None
        return BrokerTooOld(self.broker, what or name)

    async def _ask_now(self, request: Any, subject: str, on_loss: OnLoss, timeout: float | None) -> Any:
        future = self._waiting.add(request, on_loss, said=self.say(request))
        try:
            return await self.wait_for(subject, future, timeout)
        finally:
            self._waiting.pairing.pop(request.number)

    async def wait_for(self, subject: str, awaited: Awaitable[Result], timeout: float | None) -> Result:
        """Wait for something. Raises `RequestTimeout`."""
        seconds = self.options.request_timeout if timeout is None else timeout
        try:
            async with asyncio.timeout(seconds):
                return await awaited
        except TimeoutError as problem:
            if isinstance(problem, PalioError):
                raise
            raise RequestTimeout(subject, seconds) from None

    def answered(self, answer: Any) -> None:
        """Handles an answer, for whoever waits for it."""
        self._waiting.answer(answer.number, answer)

    def resolve(self, number: int, result: Any) -> None:
        """Completes a request whose answer is known, for whoever waits for it."""
        self._waiting.answer(number, result)

    def _refused(self, refused: Refused) -> None:
        number = refused.number
        if self.publishing.refused(refused):
            return
        problem = error_of(refused)
        if self._waiting.refuse(number, problem):
            return
        held = self._held_by_number.get(number)
        if held is not None:
            held.refused(refused, problem)  # it was held before, and could not be asked for again
        else:
            self.dropped[refused.error] += 1

    def _taken(self, answer: Accepted | Attached) -> None:
        held = self._held_by_number.get(answer.number)
        if held is not None:  # and not what has its name meanwhile
            held.answered(answer)
        self.answered(answer)

    def _changed(self, answer: Changed) -> None:
        held = self.held.get(answer.name)
        if held is not None:
            held.changed(answer)
        self.answered(answer)

    def _became_ready(self, name: str) -> None:
        held = self.held.get(name)
        if held is not None:
            held.became_ready()

    # What lasts

    def hold(self, held: SessionHandle) -> None:
        """Hold something that lasts: ask for it on each connection."""
        self.held[held.name] = held
        self._held_by_number[held.number] = held

    def held_by(self, number: int) -> SessionHandle | None:
        """What was asked for by that number, if it lasts."""
        return self._held_by_number.get(number)

    def forget(self, held: SessionHandle) -> None:
        """Forget something that has ended: it is not asked for again."""
        if self.held.get(held.name) is held:
            del self.held[held.name]
            self._held_by_number.pop(held.number, None)
