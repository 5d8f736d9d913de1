"""`Call`: a request as its handler sees it. Whoever calls is known, and a body is read within limits only."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.datastructures import Headers, QueryParams
from starlette.requests import Request
from starlette.responses import Response

from palio.broker.access.principal import Principal
from palio.broker.gateway.bodies import Bodies
from palio.broker.gateway.credentials import HttpCredentials, authenticated, read_credentials
from palio.broker.gateway.visitor import Visitor
from palio.model import jsontext
from palio.model.formats import JSON, WrongMediaType, is_json, media_type_of

if TYPE_CHECKING:
    from palio.broker.broker import BrokerServer

# A body of more bytes is read in a thread, so that everybody else need not wait for it.
IN_THREAD = 32 * 1024
# Bytes of a JSON document that is no event: as many as the longest filter has, and some.
MAX_DOCUMENT = 512 * 1024


class Call:
    """A request, and what can be done with it."""

    def __init__(self, broker: BrokerServer, bodies: Bodies, request: Request) -> None:
        self._broker = broker
        self._bodies = bodies
        self._request = request

    @property
    def headers(self) -> Headers:
        return self._request.headers

    @property
    def query(self) -> QueryParams:
        return self._request.query_params

    @property
    def path(self) -> Mapping[str, str]:
        """The parts of the path that have names."""
        return self._request.path_params

    @property
    def route(self) -> str:
        """The path as it was called."""
        return self._request.url.path

    @property
    def base(self) -> str:
        """The address by which this broker was called."""
        return str(self._request.base_url).rstrip("/")

    @cached_property
    def principal(self) -> Principal:
        """Who calls. Raises `NotAuthenticated` or `TokenExpired`."""
        return authenticated(self._broker, self.credentials)

    @cached_property
    def credentials(self) -> HttpCredentials:
        """What the request shows. Raises what an unknown way to do so is refused with, and `StrangeOrigin`."""
        return read_credentials(self._request)

    async def is_gone(self) -> bool:
        """Whether whoever calls has closed the connection."""
        return await self._request.is_disconnected()

    async def enter(self, name: str) -> Visitor:
        """A session of whoever calls, under a name that begins so. Raises what the broker refuses with."""
        return await Visitor.enter(self._broker, f"{name}-{secrets.token_hex(8)}", self.credentials)

    def body(self, limit: int | None = None) -> AbstractAsyncContextManager[bytes]:
        """The body, which counts as held until the end. Raises what `bodies` does."""
        return self._bodies.read(self._request, limit)

    async def document(self) -> Any:
        """The body as JSON. Raises `WrongMediaType`, `InvalidNotification` and what `body` does."""
        media_type = media_type_of(self.headers.get("content-type", ""))
        if not is_json(media_type):
            raise WrongMediaType(media_type, JSON)
        async with self.body(MAX_DOCUMENT) as body:
            return (
                await asyncio.to_thread(jsontext.read, body) if len(body) > IN_THREAD else jsontext.read(body)
            )


def json_answer(document: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(document) + b"\n", status, headers, JSON)
