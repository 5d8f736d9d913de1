"""`Admission`: authentication, limits and fencing of connections, of which the router hears from here.

Whoever greets must be somebody, with the right to what it greets as, and within the limits on connections. A
client that connects again takes the place of its old connection. Of two links to the same neighbour one stays.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from palio.broker.access import Access
from palio.broker.access.rights import Allowance
from palio.broker.connection import BrokerConnection
from palio.broker.counts import BrokerCounts
from palio.broker.dialling import AlreadyLinked, OwnNeighbour
from palio.broker.limits import ConnectionTally, TooManyConnections
from palio.broker.operations import OperationLog
from palio.broker.registry import Registry
from palio.broker.request_guard import RequestGuard
from palio.broker.settings import Settings
from palio.broker.states import ConnectionState
from palio.model.errors import NotAuthenticated, PalioError
from palio.protocol.conversation import SILENT
from palio.protocol.greeting import Greet, Role
from palio.protocol.violations import ProtocolViolation
from palio.routing.links import COUNTERPART
from palio.routing.occurrences import Close, LinkDown, LinkUp, Open


@dataclass(eq=False, repr=False)
class Admission:
    """Admits and dismisses connections. `handle` lets the router take a message of a source."""

    _settings: Settings
    _access: Access
    _guard: RequestGuard
    _registry: Registry
    _counts: BrokerCounts
    _handle: Callable[[Any, str], None]
    _log: logging.Logger
    _operations: OperationLog
    _is_neighbour: Callable[[str], bool]
    _welcomed: Callable[[BrokerConnection], None]

    def __post_init__(self) -> None:
        limits = self._settings.limits
        self._by_address = ConnectionTally(limits.connections_per_address)
        self._by_principal = ConnectionTally(limits.connections_per_principal)
        self.is_closed = False  # nobody comes in any more

    # Beginnings

    def connected(self, connection: BrokerConnection) -> None:
        """Handles a connection that was accepted or dialled."""
        connections, most = self._registry.connections, self._settings.limits.connections
        connections[connection] = None
        try:
            self._by_address.add(connection.host)
            if len(connections) > most:
                raise TooManyConnections(most)
        except TooManyConnections as problem:
            connection.refuse(problem)

    def admit(self, connection: BrokerConnection, greet: Greet) -> None:
        """Decides whether who greets may come in; raises what speaks against it."""
        if self.is_closed:
            raise ProtocolViolation("The broker is stopping.")
        try:
            principal = connection.acting_for or self._access.authenticate(greet.token, connection.certificate)
        except NotAuthenticated:
            if greet.token is None and connection.is_by_quic:
                raise NotAuthenticated(
                    "By QUIC nobody is asked for a certificate; a token says who connects."
                ) from None
            raise
        connection.principal = principal
        if principal.name:
            self._by_principal.add(principal.name)
        if greet.role is Role.PEER:
            principal.require(Allowance.PEER, "link a broker")
            self.admit_peer(connection, greet.name)

    def admit_peer(self, connection: BrokerConnection, name: str) -> None:
        """Raises `AlreadyLinked` if there is a link that counts more than this new one."""
        if name == self._settings.name:
            raise OwnNeighbour(name)
        known = self._registry.links.get(name)
        if known is None:
            return
        own = self._settings.name
        if not connection.may_replace(known) or (connection.asks and self._is_neighbour(name)):
            raise AlreadyLinked(name, own)
        # If both have dialled, the connection that the broker with the smaller name made is the one to keep.
        keep_dialled = own < name
        if (known.peer is not None) == keep_dialled and (connection.peer is not None) != keep_dialled:
            raise AlreadyLinked(name, own)
        known.end("Another connection takes the place of this one.")

    def greeted(self, connection: BrokerConnection, greet: Greet) -> None:
        """Handles a greeting that was accepted: a client, or a neighbour, has come in."""
        if greet.role is Role.PEER:
            kind = COUNTERPART[greet.kind]
            self.linked(connection, LinkUp(kind, greet.cost, asked=greet.asks, host=connection.host))
            self._operations.note(connection, "greet", f"link {connection.address}")
            return
        name = connection.name
        known = self._registry.sessions.get(name)
        if known is not None:
            known.end("This client has connected again.", event="taken over")
        self._registry.sessions[name] = connection
        connection.read(self._registry.reading)
        self._handle(Open(), name)
        self._welcomed(connection)
        if connection.binding != "http":  # there each request has a row, and sessions are only its means
            self._operations.note(connection, "greet", connection.address)

    def linked(self, connection: BrokerConnection, link_up: LinkUp) -> None:
        connection.was_linked = True
        self._registry.links[connection.name] = connection
        self._log.info("A link is up.", extra={"neighbour": connection.name, "address": connection.address})
        self._handle(link_up, connection.name)

    # Ends

    def ended(self, connection: BrokerConnection) -> None:
        """Handles a live connection that is ending: nothing more comes from it."""
        name, links, sessions = connection.name, self._registry.links, self._registry.sessions
        if connection.role is Role.PEER and links.get(name) is connection:
            del links[name]
            self._log.info("A link is down.", extra={"neighbour": name, "reason": connection.reason})
            orderly = connection.state is not ConnectionState.CLOSED
            self._handle(LinkDown(orderly, silent=connection.reason == SILENT), name)
        elif connection.role is Role.CLIENT and sessions.get(name) is connection:
            del sessions[name]
            self._guard.gone(name)
            self._operations.gone(name)
            self._handle(Close(), name)

    def disconnected(self, connection: BrokerConnection, *, was_live: bool) -> None:
        if self._registry.remove(connection):
            self._by_address.remove(connection.host)
            if connection.principal.name:
                self._by_principal.remove(connection.principal.name)
        self._counts.dropped.update(connection.outgoing.statistics().dropped)
        if was_live:
            self.ended(connection)

    def refused(self, problem: PalioError, address: str, name: str = "") -> None:
        """Counts and logs a connection that ends for what was said on it, or a request for what it shows."""
        self._counts.refused[type(problem).__name__] += 1
        self._log.warning(
            "A connection was refused.", extra={"connection": name, "address": address, "reason": str(problem)}
        )

    def gave_up(self, connection: BrokerConnection) -> None:
        """Logs a connection that ends at once, for a reason that is not the other end's own."""
        self._log.warning(
            "A connection was given up.",
            extra={"connection": connection.name, "address": connection.address, "reason": connection.reason},
        )
