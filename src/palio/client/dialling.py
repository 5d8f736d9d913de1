"""Connecting to a broker: its addresses in turn, again and again, with pauses that grow (backoff)."""

from __future__ import annotations

import asyncio
import os
import random
import ssl
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

import msgspec

from palio.client.address import Place, is_secure
from palio.client.connection import ClientConnection
from palio.client.errors import NotConnected, UntrustedCertificate, WrongPort
from palio.model.errors import NotAuthenticated, PalioError
from palio.protocol.addresses import DEFAULT_PORT, QUIC_SCHEME, split_address
from palio.protocol.greeting import PROTOCOL, Welcome
from palio.protocol.strangers import NotPalio
from palio.transport.interface import Dialler
from palio.transport.quic import Quic
from palio.transport.tcp import Tcp
from palio.transport.tls import client_context, is_without_tls, speaks_tls
from palio.transport.websocket import WebSocketDialler

# Seconds that it may take to find out whether TLS is spoken where a connection ended without a word.
_LOOK_WITHIN = 2.0


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
    make: Callable[[], ClientConnection],
    tls: ssl.SSLContext | None,
    *,
    timeout: float,
    within: float,
    backoff: Backoff,
) -> tuple[ClientConnection, Welcome]:
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
                    return await _greet(place, make, tls)
            except TimeoutError:
                problems[name] = f"it did not answer within {timeout:g} seconds"
            except NotAuthenticated:
                raise  # it will not be another answer the next time
            except (NotPalio, OSError) as problem:
                found = await _other_end(place, problem, tls, timeout)
                problems[name] = _why(problem) if found is None else str(found)
                refusal = found or refusal
            except PalioError as problem:
                problems[name] = str(problem)
                refusal = problem
        pause = backoff.pause(attempt)
        if loop.time() + pause > until:
            raise refusal or NotConnected(problems)
        await asyncio.sleep(pause)
        attempt += 1


async def _other_end(
    place: Place, problem: NotPalio | OSError, tls: ssl.SSLContext | None, timeout: float
) -> NotConnected | None:
    """Who is at the other end, if it is somebody else than the address says; None if nobody knows."""
    web = isinstance(place, str)
    host, port = _host_and_port(place)
    there = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    secure = place.startswith("wss://") if isinstance(place, str) else tls is not None
    plain_scheme, secure_scheme = ("ws", "wss") if web else ("palio", "palios")
    spoken = problem.spoken if isinstance(problem, NotPalio) else None
    match problem:
        case ssl.SSLCertVerificationError():
            return UntrustedCertificate(there, problem.verify_message)
        case ssl.SSLError() if is_without_tls(problem):
            advice = f"Write {plain_scheme}://{there}, or give that broker a certificate."
            return WrongPort(there, "does not speak TLS", advice)
        case ConnectionRefusedError() | TimeoutError():
            return None
        case _ if isinstance(place, str) and place.startswith(QUIC_SCHEME):
            return None
        case ConnectionError() if not secure and await speaks_tls(host, port, min(timeout, _LOOK_WITHIN)):
            spoken = "TLS"
    match spoken:
        case "TLS":
            advice = (
                f"Write {secure_scheme}://{there}; if an authority of your own signs its certificate, name it."
            )
            return WrongPort(there, "speaks TLS, and the address does not", advice)
        case "HTTP":
            advice = (
                f"A broker has another port for clients, {DEFAULT_PORT} by default; through the one for HTTP "
                f"they come with ws{'s' if secure else ''}://{there}."
            )
            return WrongPort(there, "speaks HTTP", advice)
        case _ if spoken == PROTOCOL:
            advice = f"Write palio{'s' if secure else ''}://{there}, or name the port for HTTP."
            return WrongPort(there, "is a broker's port for clients, not the one for HTTP", advice)
    return None


def _host_and_port(place: Place) -> tuple[str, int]:
    if not isinstance(place, str):
        return place
    parts = urlsplit(place)
    return parts.hostname or "", parts.port or (443 if parts.scheme == "wss" else 80)


def _why(problem: NotPalio | OSError) -> str:
    """What the system calls it: asyncio has words of its own for a call that failed."""
    if isinstance(problem, NotPalio):
        return str(problem)
    if isinstance(problem, ConnectionError) and problem.errno:
        return os.strerror(problem.errno)
    return problem.strerror or str(problem).rstrip(".") or "no connection"


def _dialler(place: Place, tls: ssl.SSLContext | None) -> Dialler:
    if not isinstance(place, str):
        return Tcp(*place, tls)
    if place.startswith(QUIC_SCHEME):
        return Quic(*split_address(place), tls)
    return WebSocketDialler(place, tls)


async def _greet(
    place: Place, make: Callable[[], ClientConnection], tls: ssl.SSLContext | None
) -> tuple[ClientConnection, Welcome]:
    connection = await _dialler(place, tls).dial(make)
    try:
        return connection, await asyncio.shield(connection.welcome)
    except BaseException:
        connection.abort("It was given up.")
        raise
