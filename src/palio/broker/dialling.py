"""Connecting to the neighbours that a broker is told of, again and again, with growing pauses (backoff).

It is told of them by its settings, and by operators while it runs; until an operator, here or at the other end,
removes the link. What the overlay wants to be dialled is dialled once.
"""

from __future__ import annotations

import asyncio
import random
import ssl
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from palio.broker.connection import BrokerConnection
from palio.broker.settings import Peer, split_address
from palio.model.errors import MissingDependency, PalioError
from palio.protocol.addresses import QUIC_SCHEME, SCHEME, SECURE_SCHEME, is_protected, scheme_of
from palio.protocol.requests import Refused
from palio.routing.occurrences import NotReached, Resolved
from palio.routing.overlay.effects import Dial, Resolve
from palio.routing.overlay.names import read_name
from palio.routing.overlay.settings import normal
from palio.transport.quic import Quic
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
# Seconds for which an operator waits: to connect, and for the answer.
_ADD_WITHIN = 2 * _CONNECT_WITHIN


class AlreadyLinked(PalioError):
    """There is a link between the two brokers, as the one `at` which it is says."""

    broker: str
    at: str = ""
    sentence = "There is a link to {broker} already."


class OwnNeighbour(PalioError):
    """A broker that has connected to itself."""

    broker: str
    sentence = "The broker {broker} cannot be its own neighbour."


class NotRunning(PalioError):
    """A broker that has not begun yet, or is stopping: it makes no links."""

    broker: str
    sentence = "The broker {broker} is not running: it is just starting, or stopping. Ask again when it is up."


class CannotConnect(PalioError):
    """A link that an operator wants, to a broker that cannot be reached, or does not let this one in."""

    address: str
    reason: str
    sentence = "There is no link to {address}: {reason}"


class LinkImpossible(PalioError):
    """A link that must not be: `why` says in a word what speaks against it, such as `cycle`."""

    address: str
    why: str
    reason: str
    sentence = "There can be no link to {address}: {reason}"


class Attempt(NamedTuple):
    """What came of an attempt to connect: why there is no connection any more, and what was said about that."""

    reason: str
    was_linked: bool = False
    refusal: Refused | None = None
    why: str = ""


class Dialling:
    """One task for each neighbour that this broker connects to."""

    def __init__(self, broker: BrokerServer, resolve: Callable[[str], Awaitable[list[str]]]) -> None:
        """`resolve` gives all machines that a name leads to; it raises OSError."""
        self._broker = broker
        self._machines = resolve
        self._is_running = False
        self._peers: dict[str, Peer] = {}  # by their addresses, as all that follows
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._found: dict[str, str] = {}  # who is there
        self._adding: set[str] = set()  # at which an operator waits for a link
        self._asking: set[asyncio.Task[None]] = set()
        self.problems: dict[str, str] = {}  # by address: why there is no link now

    def start(self, peers: Iterable[Peer]) -> None:
        """Keep a link to each of these neighbours from now on; one that is named twice has one link."""
        self._is_running = True
        for peer in peers:
            if normal(peer.address) not in self._tasks:
                self._begin(peer)

    def _begin(self, peer: Peer, added: asyncio.Future[str] | None = None) -> None:
        address = normal(peer.address)
        self._peers[address] = peer
        self._tasks[address] = asyncio.get_running_loop().create_task(self._keep(peer, added))

    # By hand

    async def add(self, peer: Peer) -> str:
        """Connect to one more neighbour, and keep the link from now on. Returns its name.

        Raises `NotRunning`, `AlreadyLinked`, `CannotConnect` or `LinkImpossible`; then everything is as before.
        """
        if not self._is_running:
            raise NotRunning(self._broker.settings.name)
        address = normal(peer.address)
        known = self._peers.get(address)  # one of the settings: it is tried at once
        if (name := self.neighbour_at(address)) is not None:
            raise AlreadyLinked(name)
        if address in self._adding:
            raise CannotConnect(address, "It is being tried at this moment.")
        self._adding.add(address)
        self.forget(address)
        added: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._begin(known or peer, added)
        try:
            async with asyncio.timeout(_ADD_WITHIN):
                return await added
        except TimeoutError:
            raise CannotConnect(address, "It did not answer.") from None
        finally:
            self._adding.discard(address)
            if added.cancelled() or added.exception() is not None:
                self.forget(address)
                if known is not None:
                    self._begin(known)

    def neighbour_at(self, address: str) -> str | None:
        """The neighbour that is known to be at an address; None if there is none."""
        for name, connection in self._broker.links.items():
            if connection.peer is not None and normal(connection.peer.address) == address:
                return name
        for contact in self._broker.router.overlay().neighbours:
            if contact.address == address:
                return contact.broker
        return None

    def made(self, connection: BrokerConnection) -> None:
        """Handles that the link of a connection is in use."""
        if connection.peer is not None:
            self._found[normal(connection.peer.address)] = connection.name
        if connection.added is not None and not connection.added.done():
            connection.added.set_result(connection.name)

    def forget(self, address: str) -> bool:
        """Connect to an address no more; a connection that is there stays. Returns whether it was dialled."""
        task = self._tasks.pop(address, None)
        peer = self._peers.pop(address, None)
        self._found.pop(address, None)
        if task is None or peer is None:
            return False
        task.cancel()
        self.problems.pop(peer.address, None)
        return True

    def forget_broker(self, name: str) -> None:
        """Connect to a broker no more, at whichever address it was found."""
        for address in [address for address, found in self._found.items() if found == name]:
            self.forget(address)

    # Once

    def once(self, effect: Dial) -> None:
        """Connect once, for the overlay, which is told if nothing comes of it. Who stops has no use for it."""
        if not self._is_running:
            return
        task = asyncio.get_running_loop().create_task(self._ask(Peer(effect.address, kind=effect.kind)))
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    def resolve(self, effect: Resolve) -> None:
        """Look up all addresses of a name, for the overlay."""
        if not self._is_running:
            return
        task = asyncio.get_running_loop().create_task(self._look_up(effect.name))
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def _look_up(self, name: str) -> None:
        wanted = read_name(name)
        try:
            async with asyncio.timeout(_CONNECT_WITHIN):
                machines = await self._machines(wanted.host)
            found = Resolved(name, tuple(map(wanted.address, machines)))
        except TimeoutError:
            found = Resolved(name, reason="Nobody said in time where it leads to.")
        except (OSError, UnicodeError) as problem:
            told = problem.strerror if isinstance(problem, OSError) else problem
            found = Resolved(name, reason=f"It leads nowhere: {told or problem}.")
        self._broker.handle(found, "")

    def stop(self) -> None:
        self._is_running = False
        for task in (*self._tasks.values(), *self._asking):
            task.cancel()
        self._tasks.clear()

    async def _ask(self, peer: Peer) -> None:
        attempt = await self._connect(peer, asks=True)
        if not attempt.was_linked:  # otherwise the router has heard of the link, and of its end
            is_own = attempt.refusal is not None and attempt.refusal.error == OwnNeighbour.__name__
            self._broker.handle(NotReached(peer.address, attempt.reason, is_own), "")

    # Again and again

    async def _keep(self, peer: Peer, added: asyncio.Future[str] | None) -> None:
        loop = asyncio.get_running_loop()
        pause = FIRST_PAUSE
        while True:
            began = loop.time()
            # An operator's first attempt asks: a link that is there shall not give way to it.
            attempt = await self._connect(peer, asks=added is not None, added=added)
            reason = attempt.reason
            self._note_who_is_there(peer, attempt)
            if added is not None:
                if not added.done():
                    added.set_exception(self._problem(peer, attempt))
                if added.cancelled() or added.exception() is not None:
                    return
                added = None
            if self.problems.get(peer.address) != reason:
                self.problems[peer.address] = reason
                self._broker.log.info("No link.", extra={"address": peer.address, "reason": reason})
            pause = FIRST_PAUSE if loop.time() - began > STEADY else min(2 * pause, LONGEST_PAUSE)
            # Jitter: brokers that lost each other at the same moment shall not meet again and again.
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))

    def _note_who_is_there(self, peer: Peer, attempt: Attempt) -> None:
        if (name := self._linked_already(attempt)) is not None:
            self._found[normal(peer.address)] = name

    def _linked_already(self, attempt: Attempt) -> str | None:
        """To whom there was a link, if that is why there is no other one."""
        refusal = attempt.refusal
        if refusal is None or refusal.error != AlreadyLinked.__name__:
            return None
        own = self._broker.settings.name
        named = [refusal.fields.get("broker"), refusal.fields.get("at")]
        return next((name for name in named if isinstance(name, str) and name not in ("", own)), None)

    def _problem(self, peer: Peer, attempt: Attempt) -> PalioError:
        """Why an operator does not get a link."""
        if (name := self._linked_already(attempt)) is not None:
            return AlreadyLinked(name)
        if attempt.why:
            return LinkImpossible(peer.address, attempt.why, attempt.reason)
        return CannotConnect(peer.address, attempt.reason)

    async def _connect(
        self, peer: Peer, *, asks: bool = False, added: asyncio.Future[str] | None = None
    ) -> Attempt:
        """Connect, and wait for the end."""
        host, port = split_address(peer.address)
        connection: BrokerConnection | None = None
        try:
            async with asyncio.timeout(_CONNECT_WITHIN):
                token, tls = self._credentials(peer)
                transport = Quic if scheme_of(peer.address) == QUIC_SCHEME else Tcp
                connection = await transport(host, port, tls).dial(
                    lambda: BrokerConnection(self._broker, peer, token, asks=asks, added=added)
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
        except (WrongCertificate, NoToken, MissingDependency) as problem:
            reason = str(problem)
        except OSError as problem:
            reason = f"{peer.address} cannot be reached: {problem.strerror or problem}."
        if connection is None:
            return Attempt(reason)
        return Attempt(reason, connection.was_linked, connection.refusal, connection.why)

    def _credentials(self, peer: Peer) -> tuple[str | None, ssl.SSLContext | None]:
        """By what this broker shows who it is, read anew each time. Raises `WrongCertificate` or `NoToken`."""
        own = self._broker.settings.security
        token_file = peer.token_file or own.token_file
        token = read_token(token_file) if token_file else None
        if not is_protected(peer.address):
            return token, None
        return token, client_context(peer.authority or own.authority, own.certificate, own.key)
