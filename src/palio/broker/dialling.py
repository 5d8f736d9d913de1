"""Connecting to the neighbours that a broker is told of, again and again, with growing pauses (backoff)."""

from __future__ import annotations

import asyncio
import random
import ssl
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from palio.broker.connection import BrokerConnection
from palio.broker.settings import Peer, split_address
from palio.model.errors import PalioError
from palio.protocol.addresses import SCHEME, SECURE_SCHEME
from palio.routing.occurrences import NotReached
from palio.routing.overlay.effects import Dial
from palio.transport.tcp import Tcp
from palio.transport.tls import WrongCertificate, client_context, is_without_tls, speaks_tls
from palio.transport.tokens import NoToken, read_token

if TYPE_CHECKING:
    from palio.broker.broker import BrokerServer

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 5.0
# A link that has been up for so long counts as one that works: the next pause is the first one again.
STEADY = 2.0
_CONNECT_WITHIN = 5.0


class AlreadyLinked(PalioError):
    """There is a link between the two brokers."""

    broker: str
    sentence = "There is a link to {broker} already."


class Dialling:
    """One task for each neighbour that this broker connects to."""

    def __init__(self, broker: BrokerServer) -> None:
        self._broker = broker
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._asking: set[asyncio.Task[None]] = set()
        self.problems: dict[str, str] = {}  # by address: why there is no link now

    def start(self, peers: Iterable[Peer]) -> None:
        """Keep a link to each of these neighbours from now on; one that is named twice has one link."""
        for peer in peers:
            if peer.address not in self._tasks:
                self._tasks[peer.address] = asyncio.get_running_loop().create_task(self._keep(peer))

    def once(self, effect: Dial) -> None:
        """Connect once, for the overlay, which is told if nothing comes of it."""
        task = asyncio.get_running_loop().create_task(self._ask(Peer(effect.address)))
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    def stop(self) -> None:
        for task in (*self._tasks.values(), *self._asking):
            task.cancel()
        self._tasks.clear()

    async def _ask(self, peer: Peer) -> None:
        reason, was_linked = await self._connect(peer, asks=True)
        if not was_linked:  # otherwise the router has heard of the link, and of its end
            self._broker.handle(NotReached(peer.address, reason), "")

    async def _keep(self, peer: Peer) -> None:
        loop = asyncio.get_running_loop()
        pause = FIRST_PAUSE
        while True:
            began = loop.time()
            reason, _ = await self._connect(peer)
            if self.problems.get(peer.address) != reason:
                self.problems[peer.address] = reason
                self._broker.log.info("No link.", extra={"address": peer.address, "reason": reason})
            pause = FIRST_PAUSE if loop.time() - began > STEADY else min(2 * pause, LONGEST_PAUSE)
            # Jitter: brokers that lost each other at the same moment shall not meet again and again.
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))

    async def _connect(self, peer: Peer, *, asks: bool = False) -> tuple[str, bool]:
        """Connect, and wait for the end. Returns the reason for it, and whether there was a link."""
        host, port = split_address(peer.address)
        connection: BrokerConnection | None = None
        try:
            async with asyncio.timeout(_CONNECT_WITHIN):
                token, tls = self._credentials(peer)
                connection = await Tcp(host, port, tls).dial(
                    partial(BrokerConnection, self._broker, peer, token, asks=asks)
                )
            self.problems.pop(peer.address, None)
            reason = await asyncio.shield(connection.closed)
            silent = not connection.statistics().received_bytes
            if silent and tls is None and await speaks_tls(host, port, _CONNECT_WITHIN):
                reason = f"{peer.address} speaks TLS; write {SECURE_SCHEME}{host}:{port}."
        except TimeoutError:
            reason = f"{peer.address} did not answer."
        except ssl.SSLCertVerificationError as problem:
            reason = f"{peer.address} shows a certificate that cannot be trusted: {problem.verify_message}."
        except ssl.SSLError as problem:
            reason = f"{peer.address} cannot be reached by TLS: {problem.reason or problem}."
            if is_without_tls(problem):
                reason = f"{peer.address} does not speak TLS; write {SCHEME}{host}:{port}."
        except (WrongCertificate, NoToken) as problem:
            reason = str(problem)
        except OSError as problem:
            reason = f"{peer.address} cannot be reached: {problem.strerror or problem}."
        return reason, connection is not None and connection.was_linked

    def _credentials(self, peer: Peer) -> tuple[str | None, ssl.SSLContext | None]:
        """By what this broker shows who it is, read anew each time. Raises `WrongCertificate` or `NoToken`."""
        own = self._broker.settings.security
        token_file = peer.token_file or own.token_file
        token = read_token(token_file) if token_file else None
        if not peer.address.startswith(SECURE_SCHEME):
            return token, None
        return token, client_context(peer.authority or own.authority, own.certificate, own.key)
