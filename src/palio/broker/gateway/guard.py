"""Who may call at all, before anybody looks at what is wanted.

A browser lets any page send requests to any address, one of this machine too. So a request that says which page
it comes from (`Origin`) must come from this broker's own pages or from one that the settings name; and a broker
that is for this machine only must be called by a name of this machine, not by one that somebody has
made to point here.

On the connection itself: a request head must come in time, and may not be too long.
"""

from __future__ import annotations

import asyncio
import ipaddress
from typing import Any

import h11
from starlette.datastructures import Headers
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from palio.broker.gateway.settings import GatewaySettings
from palio.model.errors import PalioError

# Of a request line with all headers; tokens and filters have their place in it.
MAX_HEAD = 64 * 1024
# Where a request's scope has the verified certificate of its connection, if one was shown.
PEER_CERTIFICATE = "palio.certificate"


class StrangeOrigin(PalioError):
    """A web page of another place."""

    origin: str

    def __init__(self, origin: str) -> None:
        super().__init__(
            f"Pages from {origin[:200]!r} may not call this broker; add it to the setting `gateway.origins` if "
            "they shall.",
            origin=origin[:200],
        )


class StrangeHost(PalioError):
    """A name that is not one of this machine, at a broker that is for this machine only."""

    host: str

    def __init__(self, host: str) -> None:
        super().__init__(
            f"This broker is for this machine only, and {host[:200]!r} is no name of it; add it to the setting "
            "`gateway.hosts` if it is.",
            host=host[:200],
        )


class Guard:
    """Looks at origins and hosts."""

    def __init__(self, settings: GatewaySettings, *, local: bool) -> None:
        self._origins = frozenset(origin.rstrip("/").lower() for origin in settings.origins)
        self._hosts = frozenset(host.lower() for host in settings.hosts)
        self._local = local

    def require_known(self, headers: Headers) -> None:
        """Raises `StrangeHost` or `StrangeOrigin`."""
        host = headers.get("host", "").lower()
        if self._local and not self._is_local(host):
            raise StrangeHost(host)
        origin = headers.get("origin")
        if origin is None:
            return
        known = origin.rstrip("/").lower()
        if known in self._origins or known.partition("://")[2] == host:
            return
        raise StrangeOrigin(origin)

    def _is_local(self, host: str) -> bool:
        name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
        name = name.strip("[]")
        if name in ("", "localhost") or name.endswith(".localhost") or name in self._hosts:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True  # an address cannot be made to point elsewhere


class PatientProtocol(H11Protocol):
    """HTTP on one connection, on which a request head does not take for ever."""

    head_within = 30.0

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._deadline: asyncio.TimerHandle | None = None
        inner = self.app

        async def app(scope: Any, receive: Any, send: Any) -> None:
            scope["palio.abort"] = self._abort
            scope[PEER_CERTIFICATE] = self.transport.get_extra_info("peercert")
            await inner(scope, receive, send)

        self.app = app

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        # Either the next head is to come, or what is left of a body that was refused.
        if self.conn.their_state is h11.IDLE or self.conn.our_state is h11.DONE:
            self._wait()
        else:
            self._go_on()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        self._go_on()
        super().handle_websocket_upgrade(event)

    def connection_lost(self, exc: Exception | None) -> None:
        self._go_on()
        super().connection_lost(exc)

    def _go_on(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _wait(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(self.head_within, self._abort)

    def _abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()


class KnowingSocket(WebSocketsSansIOProtocol):
    """A WebSocket on one connection, which tells whose certificate was shown on it."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        inner = self.app

        async def app(scope: Any, receive: Any, send: Any) -> None:
            scope[PEER_CERTIFICATE] = self.transport.get_extra_info("peercert")
            await inner(scope, receive, send)

        self.app = app
