"""Credentials of a request: a token, or the certificate of its connection.

A certificate is shown by a browser whichever page wants something, so what a page of another place asks for by
it is refused; a token is shown by nobody who does not mean to.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection

from palio.broker.access.access import CERTIFICATE, common_name
from palio.broker.access.principal import Principal
from palio.broker.gateway.origin_guard import StrangeOrigin
from palio.broker.gateway.problems import RefusedByBroker
from palio.broker.gateway.protocols import PEER_CERTIFICATE
from palio.model.errors import PalioError
from palio.protocol.greeting import CONNECTION

if TYPE_CHECKING:
    from palio.broker.broker import BrokerServer

_ELSEWHERE = ("cross-site", "same-site")


class HttpCredentials(msgspec.Struct, frozen=True):
    """A token, if there is one, the verified certificate, if there is one, and where they come from."""

    token: str | None = None
    certificate: Mapping[str, Any] | None = None
    address: tuple[str, int] | None = None

    @property
    def key(self) -> str:
        """The same for the same credentials, after every restart too, and no secret."""
        if self.token is not None:
            return hashlib.sha256(self.token.encode()).hexdigest()[:32]
        name = common_name(self.certificate)
        return "" if name is None else f"{CERTIFICATE}-{name}"


NOTHING_SHOWN = HttpCredentials()


def read_credentials(connection: HTTPConnection) -> HttpCredentials:
    """What a request shows. Raises what an unknown way to authenticate is refused with, and `StrangeOrigin`."""
    token, headers = bearer(connection.headers), connection.headers
    certificate = connection.scope.get(PEER_CERTIFICATE)
    elsewhere = "origin" not in headers and headers.get("sec-fetch-site") in _ELSEWHERE
    if certificate and token is None and elsewhere:
        raise StrangeOrigin(headers.get("referer", "elsewhere"))
    client = connection.client
    return HttpCredentials(token, certificate, (client.host, client.port) if client is not None else None)


def authenticated(broker: BrokerServer, credentials: HttpCredentials) -> Principal:
    """Whose they are. Raises `NotAuthenticated` or `TokenExpired`, and has the broker note that."""
    try:
        return broker.access.authenticate(credentials.token, credentials.certificate)
    except PalioError as problem:
        host, port = credentials.address or ("?", 0)
        broker.admission.refused(problem, f"{host}:{port}")
        raise


def bearer(headers: Headers) -> str | None:
    """The token of a request. Raises what an unknown way to authenticate is refused with."""
    given = headers.get("authorization")
    if given is None:
        return None
    scheme, _, token = given.strip().partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        reason = "A token is sent as `Authorization: Bearer TOKEN`."
        raise RefusedByBroker(CONNECTION, "NotAuthenticated", reason)
    return token.strip()
