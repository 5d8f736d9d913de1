"""Endpoints of SOAP: a request is read, carried out by the operation that its body names, and answered.

1. Everything that goes wrong is answered with a fault, in the version of SOAP in which it was asked. Our own
   mistakes are told as such, and noted as those of every extension.
2. Who calls is known before an operation begins, by the envelope or by HTTP; the few that strangers may use, to
   find out what time it is here, say so.
3. A large envelope is read in a thread.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import msgspec
from lxml import etree
from starlette.background import BackgroundTask
from starlette.responses import Response

from palio.broker.extension import Route
from palio.broker.gateway.bodies import BodyTooLarge
from palio.broker.gateway.call import IN_THREAD, MAX_DOCUMENT, Call
from palio.broker.gateway.credentials import HttpCredentials, authenticated
from palio.broker.gateway.visitor import Visitor
from palio.broker.soap.attachments import read_parts
from palio.broker.soap.elements import Element
from palio.broker.soap.envelope import (
    SoapRequest,
    read_envelope,
    version_of,
    write_envelope,
    write_fault,
)
from palio.broker.soap.faults import UnknownOperation
from palio.broker.soap.names import qualified
from palio.broker.soap.username_token import UsernameTokens
from palio.model.errors import PalioError

if TYPE_CHECKING:
    from palio.broker.broker import BrokerServer


class SoapAnswer(msgspec.Struct, frozen=True):
    """An answer, and whom to tell whether it was sent to a client that was still there."""

    content: Element
    sent: Callable[[bool], None] | None = None


class SoapCall:
    """A request as an operation sees it."""

    def __init__(
        self,
        broker: BrokerServer,
        call: Call,
        request: SoapRequest,
        attachments: Mapping[str, bytes],
        credentials: HttpCredentials,
    ) -> None:
        self._broker = broker
        self._call = call
        self.credentials = credentials
        self.asked = request.operation
        self.version = request.version
        self.message_id = request.message_id
        self.attachments = attachments

    @property
    def base(self) -> str:
        """The address by which this broker was called."""
        return self._call.base

    @property
    def family(self) -> str:
        """The first part of the path, below which everything is that speaks alike."""
        return "/" + self._call.route.split("/")[1]

    @property
    def id(self) -> str:
        """What the address says whose endpoint it is."""
        return self._call.path.get("id", "")

    @property
    def principal(self) -> str:
        return authenticated(self._broker, self.credentials).name

    async def enter(self, name: str) -> Visitor:
        """A session of whoever calls, under a name that begins so. Raises what the broker refuses with."""
        return await Visitor.enter(self._broker, f"{name}-{secrets.token_hex(8)}", self.credentials)


Carry: TypeAlias = Callable[[SoapCall], Awaitable["Element | SoapAnswer | None"]]


class SoapOperation(msgspec.Struct, frozen=True):
    """What an endpoint does for one element. `port` is where its answer comes from, by WS-Addressing."""

    namespace: str
    name: str
    port: str
    carry_out: Carry
    open: bool = False  # whether callers need not say who they are
    one_way: bool = False  # whether there is no answer, but that it was taken
    answer: str = ""  # the element of the answer, if it is not the usual one

    @property
    def asked(self) -> str:
        return qualified(self.namespace, self.name)

    @property
    def answered(self) -> str:
        return self.answer or qualified(self.namespace, f"{self.name}Response")

    @property
    def action(self) -> str:
        """What WS-Addressing calls the answer."""
        return f"{self.port}/{self.name}Response"


class SoapEndpoints:
    """Reads, dispatches and answers the requests of all endpoints of a broker."""

    def __init__(self, broker: BrokerServer) -> None:
        self._broker = broker
        self._usernames = UsernameTokens(broker.access, broker.now)

    def route(self, path: str, operations: tuple[SoapOperation, ...]) -> Route:
        """An endpoint that does these. It is open, for who calls may be said in the envelope only."""
        by_name = {one.asked: one for one in operations}
        return Route("POST", path, partial(self._serve, by_name), open=True)

    async def _serve(self, operations: Mapping[str, SoapOperation], call: Call) -> Response:
        version, relates_to = version_of(call.headers.get("content-type", "")), ""
        try:
            request, attachments = await self._read(call)
            version, relates_to = request.version, request.message_id
            operation = operations.get(request.name)
            if operation is None:
                asked = etree.QName(request.operation).localname
                raise UnknownOperation(asked, tuple(sorted([one.name for one in operations.values()])))
            return await self._carry_out(operation, call, request, attachments)
        except PalioError as problem:
            status, content = write_fault(version, problem, relates_to=relates_to)
            headers = {"WWW-Authenticate": 'Bearer realm="palio"'} if status == 401 else None
            return Response(content, status, headers, version.media_type)

    async def _read(self, call: Call) -> tuple[SoapRequest, Mapping[str, bytes]]:
        """The request, and its attachments."""
        kind = call.headers.get("content-type", "")
        async with call.body() as body:
            if len(body) <= IN_THREAD:
                return _read(kind, body)
            return await asyncio.to_thread(_read, kind, body)

    async def _carry_out(
        self, operation: SoapOperation, call: Call, request: SoapRequest, attachments: Mapping[str, bytes]
    ) -> Response:
        credentials = call.credentials
        if not operation.open:
            token = self._usernames.token_of(request.security)
            if token is not None:
                credentials = msgspec.structs.replace(credentials, token=token)
            _ = authenticated(self._broker, credentials)
        answer = await operation.carry_out(SoapCall(self._broker, call, request, attachments, credentials))
        if answer is None:
            return Response(status_code=202)
        answered = answer if isinstance(answer, SoapAnswer) else SoapAnswer(answer)
        content = write_envelope(
            request.version, answered.content, action=operation.action, relates_to=request.message_id
        )
        told = None
        if answered.sent is not None:
            if await call.is_gone():
                answered.sent(False)
            else:
                told = BackgroundTask(answered.sent, True)
        return Response(content, 200, None, request.version.media_type, background=told)


def _read(content_type: str, body: bytes) -> tuple[SoapRequest, Mapping[str, bytes]]:
    parts = read_parts(content_type, body)
    if len(parts.envelope) > MAX_DOCUMENT:
        raise BodyTooLarge(MAX_DOCUMENT)
    return read_envelope(parts.envelope), parts.others
