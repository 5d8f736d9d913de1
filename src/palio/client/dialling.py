"""How a client finds a broker: its addresses in turn, again and again, with pauses that grow."""

from __future__ import annotations

import asyncio
import os
import random
import ssl
from collections.abc import Callable, Sequence

import msgspec

from palio.broker.tls import client_context
from palio.client import websocket
from palio.client.address import Place, is_secure
from palio.client.connection import Connection
from palio.client.errors import NotConnected
from palio.model.errors import NotAuthenticated, PalioError
from palio.routing.protocol import Welcome


class Backoff(msgspec.Struct, frozen=True, kw_only=True):
    """Pauses between attempts, in seconds: each is `factor` times the one before, and shortened by chance.

    The chance keeps many clients that lost the same broker from coming back at the same moment.
    """

    first: float = 0.05
    factor: float = 2.0
    longest: float = 5.0

    def pause(self, attempt: int) -> float:
        """How long to wait after this attempt, which counts from 0."""
        whole = min(self.longest, self.first * self.factor ** min(attempt, 64))
        return whole * random.uniform(0.5, 1.0)


def tls_for(address: str, tls: ssl.SSLContext | str | None) -> ssl.SSLContext | None:
    """The context that an address needs; `tls` may be the file of an authority. Raises `WrongCertificate`."""
    if isinstance(tls, str):
        return client_context(tls)
    return client_context() if tls is None and is_secure(address) else tls


async def dial(
    addresses: Sequence[Place],
    make: Callable[[], Connection],
    tls: ssl.SSLContext | None,
    *,
    timeout: float,
    within: float,
    backoff: Backoff,
) -> tuple[Connection, Welcome]:
    """A connection to the first broker that takes it. All addresses are tried at least once.

    If none does within that time, raises what one has refused with, or else `NotConnected`.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + within
    attempt = 0
    while True:
        problems: dict[str, str] = {}
        refusal: PalioError | None = None
        for place in addresses:
            name = place if isinstance(place, str) else f"{place[0]}:{place[1]}"
            try:
                async with asyncio.timeout(timeout):
                    return await _greet(loop, place, make, tls)
            except TimeoutError:
                problems[name] = f"it did not answer within {timeout:g} seconds"
            except NotAuthenticated:
                raise  # it will not be another answer the next time
            except PalioError as problem:
                problems[name] = str(problem)
                refusal = problem
            except ssl.SSLCertVerificationError as problem:
                problems[name] = f"its certificate cannot be trusted: {problem.verify_message}"
            except OSError as problem:
                problems[name] = _why(problem)
        pause = backoff.pause(attempt)
        if loop.time() + pause > until:
            raise refusal or NotConnected(problems)
        await asyncio.sleep(pause)
        attempt += 1


def _why(problem: OSError) -> str:
    """What the system calls it: asyncio has words of its own for a call that failed."""
    if isinstance(problem, ConnectionError) and problem.errno:
        return os.strerror(problem.errno)
    return problem.strerror or str(problem).rstrip(".") or "no connection"


async def _greet(
    loop: asyncio.AbstractEventLoop,
    place: Place,
    make: Callable[[], Connection],
    tls: ssl.SSLContext | None,
) -> tuple[Connection, Welcome]:
    if isinstance(place, str):
        connection = await websocket.connect(place, make, tls)
    else:
        _, connection = await loop.create_connection(make, *place, ssl=tls)
    try:
        return connection, await asyncio.shield(connection.welcome)
    except BaseException:
        connection.abort("It was given up.")
        raise
