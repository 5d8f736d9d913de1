"""Extensions: how a room above the broker, or the gateway itself, adds to what a broker does.

An `Extension` is what is added: HTTP routes (a page is a route that answers with HTML), questions that clients
may ask (`Inspect`), requests that they may make (`Invoke`), periodic work, and state that begins and ends with
the broker. An `Installer` makes it for a broker; whoever starts one (`palio up`, `palio network up`,
`palio.testing`) hands it the installers.

    def clock(broker):
        async def now(call):
            return {"now": broker.now()}

        return [Extension(name="clock", routes=(Route("GET", "/clock", now, reads=True),))]

1. *Closed by default.* Who calls a route is looked at by the gateway's guard as if something were changed, and
   must be known, before the handler sees anything; a body can only be read within the limits. A question needs
   the right to inspect, and a request the one that it names. What is more open says so.
2. *An extension never takes the broker down.* What its handlers, answers, periodic work and end raise is logged
   and counted, and everything else goes on. Only what is wrong when it begins, and is told in a sentence (a
   `PalioError`), keeps the broker from starting: it must not run without what the extension keeps. With any
   other error there, the extension stays off.
3. *No two things have the same name*: an extension, a route, a question, a request. That is found out when it
   is added.
4. Extensions begin in the order in which they were added, end in the reverse one, and work in between.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from palio.broker.access.principal import Principal
from palio.broker.access.rights import Allowance
from palio.model.errors import PalioError, cut

if TYPE_CHECKING:
    from starlette.websockets import WebSocket

    from palio.broker.broker import BrokerServer
    from palio.broker.gateway.call import Call
    from palio.broker.gateway.openapi import Operation

# Seconds that an extension has for its end.
ENDED_WITHIN = 5.0

Handler: TypeAlias = "Callable[[Call], Awaitable[Any]]"
# From an argument, who asks, and the name of its session, to plain data; at once, or to be waited for.
RequestHandler: TypeAlias = Callable[[dict[str, Any], Principal, str], "Awaitable[Any] | Any"]
Answer: TypeAlias = Callable[[dict[str, Any], Principal], Iterator[Any]]
Installer: TypeAlias = "Callable[[BrokerServer], Sequence[Extension]]"


class BrokerMistake(PalioError):
    """Something that should not have happened, and is not the caller's fault."""

    def __init__(self) -> None:
        super().__init__("The broker could not handle this request; this is its mistake.")


class ExtensionConflict(PalioError):
    """Two extensions that add the same thing."""

    extension: str
    what: str
    sentence = "The extension {extension!r} cannot be added: {what} is there already."


class UnknownRequest(PalioError):
    """A request that no extension of this broker answers."""

    what: str = cut(100)
    known: str

    def sentence(self) -> str:
        told = f"there are {self.known}" if self.known else "it has no extension that answers anything"
        return f"This broker cannot be asked for {self.what!r}; {told}."


class Route(msgspec.Struct, frozen=True):
    """What one method of a path does. A handler returns a response, or what is answered as JSON."""

    method: str
    path: str
    handle: Handler
    description: Operation | None = None  # for OpenAPI; without one the route is not described
    open: bool = False  # whether callers need not say who they are
    reads: bool = False  # whether it changes nothing, so that pages elsewhere may lead to it
    link: tuple[str, str] | None = None  # its name on the first page, and what it is there for


class Socket(msgspec.Struct, frozen=True):
    """A WebSocket at a path."""

    path: str
    serve: Callable[[WebSocket], Awaitable[None]]
    open: bool = False  # whether callers need not say who they are until it is theirs


class Question(msgspec.Struct, frozen=True):
    """A question that clients may ask (`Inspect`): from an argument and who asks to rows of plain data."""

    name: str
    answer: Answer
    needs: Allowance | None = Allowance.INSPECT


class ExtensionRequest(msgspec.Struct, frozen=True):
    """A request that clients may make (`Invoke`). See `invoking` for what handlers may be and do.

    `needs` is the right that it takes; with None the handler itself looks at the rights of who asks.
    """

    name: str
    handle: RequestHandler
    needs: Allowance | None
    reads: bool = False  # whether it changes nothing


class Job(msgspec.Struct, frozen=True):
    """Periodic work, with so many seconds between two times."""

    name: str
    every: float
    run: Callable[[], Awaitable[None]]


class Extension(msgspec.Struct, frozen=True, kw_only=True):
    """What is added to a broker. `start` takes up its state, `stop` leaves it in order."""

    name: str
    routes: tuple[Route, ...] = ()
    sockets: tuple[Socket, ...] = ()
    questions: tuple[Question, ...] = ()
    requests: tuple[ExtensionRequest, ...] = ()
    jobs: tuple[Job, ...] = ()
    start: Callable[[], Awaitable[None]] | None = None
    stop: Callable[[], Awaitable[None]] | None = None

    def parts(self) -> Iterator[str]:
        """What must be there once only."""
        yield f"an extension {self.name!r}"
        yield from [f"{route.method} {route.path}" for route in self.routes]
        yield from [f"a socket at {socket.path}" for socket in self.sockets]
        yield from [f"a question {question.name!r}" for question in self.questions]
        yield from [f"a request {request.name!r}" for request in self.requests]


class Extensions:
    """All extensions of a broker: `add` them, then `start` and `stop` them together."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._added: list[Extension] = []
        self._parts: set[str] = set()
        self._started: list[Extension] = []
        self._off: set[str] = set()
        self._jobs: list[asyncio.Task[None]] = []
        self.questions: dict[str, Answer] = {}
        self._requests: dict[str, tuple[str, ExtensionRequest]] = {}  # with the names of their extensions
        self.failures: Counter[tuple[str, str]] = Counter()  # by extension, and what of it has failed

    def add(self, extension: Extension) -> None:
        """Adds an extension. Raises `ExtensionConflict`."""
        for part in extension.parts():
            if part in self._parts:
                raise ExtensionConflict(extension.name, part)
            self._parts.add(part)
        self._added.append(extension)
        for question in extension.questions:
            self.questions[question.name] = self._guarded(extension.name, question)
        for request in extension.requests:
            self._requests[request.name] = extension.name, request

    def __iter__(self) -> Iterator[Extension]:
        return iter(self._added)

    async def start(self) -> None:
        """Starts all extensions. Raises what an extension says that it cannot begin for."""
        for extension in self._added:
            try:
                if extension.start is not None:
                    await extension.start()
            except PalioError:
                raise
            except Exception as problem:  # noqa: BLE001 (the others go on)
                self._off.add(extension.name)
                self._failed(extension.name, "start", problem)
                continue
            self._started.append(extension)
        jobs = [(extension.name, job) for extension in self._started for job in extension.jobs]
        self._jobs = [asyncio.get_running_loop().create_task(self._repeat(*one)) for one in jobs]

    async def stop(self) -> None:
        for task in self._jobs:
            task.cancel()
        await asyncio.gather(*self._jobs, return_exceptions=True)
        while self._started:
            extension = self._started.pop()
            try:
                if extension.stop is not None:
                    async with asyncio.timeout(ENDED_WITHIN):
                        await extension.stop()
            except Exception as problem:  # noqa: BLE001 (the others end in order)
                self._failed(extension.name, "stop", problem)

    def only_looks(self, what: str) -> bool:
        """Whether a request changes nothing."""
        return what in self._requests and self._requests[what][1].reads

    def request(self, what: str, principal: Principal) -> tuple[str, ExtensionRequest]:
        """A request that somebody may make, with the name of its extension.

        Raises `UnknownRequest` and `NotAllowed`.
        """
        found = self._requests.get(what)
        if found is None:
            raise UnknownRequest(what, ", ".join(sorted(self._requests)))
        if (needs := found[1].needs) is not None:
            principal.require(needs, f"ask for {what!r}")
        return found

    @contextmanager
    def careful(self, name: str, what: str) -> Iterator[None]:
        """Runs code of an extension. Raises `BrokerMistake` for its mistakes, and if it could not begin."""
        if name in self._off:
            raise BrokerMistake
        try:
            yield
        except PalioError:
            raise
        except Exception as problem:  # noqa: BLE001 (everybody else goes on)
            self._failed(name, what, problem)
            raise BrokerMistake from None

    def _failed(self, name: str, what: str, problem: Exception) -> None:
        self.failures[name, what] += 1
        self._log.error("An extension has failed.", exc_info=problem, extra={"extension": name, "what": what})

    async def _repeat(self, name: str, job: Job) -> None:
        while True:
            await asyncio.sleep(job.every)
            try:
                await job.run()
            except Exception as problem:  # noqa: BLE001 (it is tried again)
                self._failed(name, job.name, problem)

    def _guarded(self, name: str, question: Question) -> Answer:
        def answer(argument: dict[str, Any], principal: Principal) -> Iterator[Any]:
            if question.needs is not None:
                principal.require(question.needs, f"ask for {question.name!r}")
            with self.careful(name, question.name):
                yield from question.answer(argument, principal)

        return answer
