"""How commands talk to a broker: which one, in what event loop, and what is said when none is there."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import InitVar
from typing import Annotated, Any, TypeVar

import typer

from palio.cli.program.dressing import option
from palio.cli.program.saved_contexts import Context, chosen
from palio.cli.program.terminal import ExitCode, say
from palio.client import Client, NotConnected, connect
from palio.client.states import State
from palio.model.errors import PalioError

Result = TypeVar("Result")

Server = Annotated[
    str | None,
    option("ADDRESS", "The broker, as host:port, or a saved connection; also PALIO_SERVER.", "--server", "-s"),
]

Timeout = Annotated[str | None, option("SPAN", "End after this time: 10s, 1h.", "--timeout", "-t")]


class NoBroker(PalioError):
    """There is no broker at an address, or it does not answer."""

    server: str
    why: InitVar[str] = ""

    def sentence(self, why: str) -> str:
        return (
            f"No broker answers at {self.server}{f' ({why})' if why else ''}; "
            "start one with `palio up`, or name another one with --server."
        )


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """Do asynchronous work. Ctrl-C and SIGTERM end it in order, and then the program."""
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(_terminable(work))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The quicker one, where it is installed."""
    try:
        import uvloop  # noqa: PLC0415
    except ModuleNotFoundError:
        return None
    return uvloop.new_event_loop


async def _terminable(work: Coroutine[Any, Any, Result]) -> Result:
    task = asyncio.current_task()
    assert task is not None
    terminated = []

    def terminate() -> None:
        terminated.append(True)
        task.cancel()

    with suppress(ValueError, RuntimeError):  # tests may run this in a thread, which has no signals
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, terminate)
    try:
        return await work
    except asyncio.CancelledError:
        if terminated:
            raise typer.Exit(ExitCode.TERMINATED) from None
        raise


@asynccontextmanager
async def connected(server: str | None, *, tell: bool = False, **options: Any) -> AsyncIterator[Client]:
    """A client of the chosen broker. With `tell`, a lost connection is told on standard error.

    Raises `NoBroker` if there is none, and what the broker refuses with.
    """
    context = chosen(server)
    teller = _teller(context) if tell else None
    client = connect(context.address, token=context.token, tls=context.tls, on_state=teller, **options)
    try:
        await client
    except NotConnected as problem:
        if type(problem) is not NotConnected:
            raise  # somebody is there, and what to do is said
        reasons = set(problem.problems.values()) - {"Connection refused"}
        raise NoBroker(context.shown, "; ".join(sorted(reasons)).rstrip(".")) from None
    try:
        yield client
    finally:
        await client.close()


def _teller(context: Context) -> Callable[[State, str], None]:
    lost = False

    def tell(state: State, reason: str) -> None:
        nonlocal lost
        if state is State.SUSPENDED:
            lost = True
            say(f"The connection to {context.shown} is lost ({reason.rstrip('.')}); trying again.", "yellow")
        elif state is State.LIVE and lost:
            lost = False
            say(f"Connected to {context.shown} again.", "green")

    return tell


@asynccontextmanager
async def for_at_most(seconds: float | None) -> AsyncIterator[None]:
    """Do something until it is done, or the time is over; None is any time."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            yield


def with_client(server: str | None, do: Callable[[Client], Awaitable[Result]]) -> Result:
    """What a client of the chosen broker is answered. Raises `NoBroker`."""

    async def work() -> Result:
        async with connected(server) as client:
            return await do(client)

    return run(work())


async def ask(server: str | None, *questions: str, timeout: float | None = None) -> list[list[dict[str, Any]]]:
    """Answers about the broker itself, each as rows."""
    seconds = 5.0 if timeout is None else timeout
    async with connected(server, connect_timeout=seconds, reconnect=False) as client:
        return [await client.inspect(question, timeout=seconds) for question in questions]
