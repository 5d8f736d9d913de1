"""The front of the gateway: where requests come in, the routes of all extensions, and every answer goes out.

A request meets the guard, then its route. Unless the route is open, whoever calls must be known before the
handler runs. An error of ours is answered with its document, any other one is a mistake of the extension: told
as such, logged and counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as Mounted
from starlette.routing import WebSocketRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from palio.broker.extension import BrokerMistake, Extension, Route, Socket
from palio.broker.gateway.bodies import Bodies
from palio.broker.gateway.call import Call, json_answer
from palio.broker.gateway.credentials import authenticated, read_credentials
from palio.broker.gateway.origin_guard import OriginGuard
from palio.broker.gateway.problems import NotFound, WrongMethod, problem_response
from palio.broker.gateway.visitor import asked
from palio.broker.settings import LOOPBACK, split_address
from palio.model.errors import PalioError

if TYPE_CHECKING:
    from palio.broker.broker import BrokerServer

_SAFE = ("GET", "HEAD", "OPTIONS")
# What is noted with a request on its way, for the operation log: who calls, and what was wrong.
_WHO, _PROBLEM = "palio.who", "palio.problem"


class Front:
    """The application that answers on the HTTP port of a broker; `mount` what it shall know."""

    def __init__(self, broker: BrokerServer) -> None:
        settings = broker.settings.gateway
        self._broker = broker
        self.bodies = Bodies(settings, broker.spool_folder)
        self.requests: Counter[tuple[str, int]] = Counter()  # by route and status
        self._guard = OriginGuard(settings, local=split_address(broker.settings.http)[0] in LOOPBACK)
        self._changing: list[re.Pattern[str]] = []  # paths at which even who only reads changes something
        self._paths: dict[object, str] = {}  # by endpoint
        self.app = Starlette(exception_handlers={PalioError: _refused, HTTPException: _refused})
        if settings.origins:
            self.app.add_middleware(
                CORSMiddleware,
                allow_origins=settings.origins,
                allow_methods=["*"],
                allow_headers=["*"],
                max_age=600,
            )
        self.app.add_middleware(_Door, front=self)

    def mount(self, extension: Extension) -> None:
        """Let the routes of an extension be called."""
        for route in extension.routes:
            mounted = Mounted(route.path, self._endpoint(extension.name, route))
            mounted.methods = {route.method}  # without HEAD, which nobody has declared
            self.app.router.routes.append(mounted)
            self._paths[mounted.endpoint] = route.path
            if route.method in _SAFE and not route.reads:
                self._changing.append(mounted.path_regex)
        for socket in extension.sockets:
            opened = WebSocketRoute(socket.path, self._socket(extension.name, socket))
            self.app.router.routes.append(opened)
            self._paths[opened.endpoint] = socket.path

    def _endpoint(self, name: str, route: Route) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            call = Call(self._broker, self.bodies, request)
            if not route.open:  # a stranger is refused here, before anything else of it is looked at
                request.scope[_WHO] = call.principal.name
            with self._broker.extensions.careful(name, f"{route.method} {route.path}"):
                answer = await route.handle(call)
                return answer if isinstance(answer, Response) else json_answer(answer)

        return endpoint

    def _socket(self, name: str, socket: Socket) -> Callable[[WebSocket], Awaitable[None]]:
        async def endpoint(connection: WebSocket) -> None:
            if not socket.open:
                authenticated(self._broker, read_credentials(connection))
            with self._broker.extensions.careful(name, socket.path), suppress(WebSocketDisconnect):
                await socket.serve(connection)

        return endpoint

    def require_known(self, scope: Scope) -> None:
        """Raises what speaks against a request before it is looked at."""
        path = scope["path"]
        reads = scope.get("method") in _SAFE and not any(one.match(path) for one in self._changing)
        self._guard.require_known(Headers(scope=scope), changes=not reads)

    def answered(self, scope: Scope, status: int, size: int) -> None:
        """Count an answer, to a request of so many bytes; and log it, unless the broker was asked for it."""
        path = self._paths.get(scope.get("endpoint"), "other")
        self.requests[path, 101 if scope["type"] == "websocket" else status] += 1
        if scope["type"] == "websocket" or asked.get():
            return
        subject, problem = f"{scope['method']} {scope['path']}", scope.get(_PROBLEM)
        if problem is None and status >= 400:
            problem = f"The answer was {status}."
        if self._broker.operations.has_looks or scope["method"] not in _SAFE or problem is not None:
            client = ":".join(map(str, scope.get("client") or ()))
            note = self._broker.operations.note_of
            note("http", scope.get(_WHO, ""), client, "http", subject, size=size, problem=problem)

    def failed(self, problem: Exception, path: str) -> None:
        """Note a mistake in what no extension has done."""
        self._broker.log.error("A request could not be handled.", exc_info=problem, extra={"path": path[:200]})


class _Door:
    """The first that a request meets, and the last that its answer does."""

    def __init__(self, app: ASGIApp, front: Front) -> None:
        self._app = app
        self._front = front

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            return
        status = size = 0
        asked.set(False)

        async def measured() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            return message

        async def counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-content-type-options", b"nosniff")]
            await send(message)

        try:
            self._front.require_known(scope)
            await self._app(scope, measured, counted)
        except PalioError as problem:
            scope[_PROBLEM] = problem
            await self._refuse(problem, scope, receive, counted)
        except Exception as problem:  # noqa: BLE001 (a mistake of ours is told, and everybody else goes on)
            self._front.failed(problem, scope["path"])
            if not status:
                await self._refuse(BrokerMistake(), scope, receive, counted)
        finally:
            self._front.answered(scope, status, size)

    async def _refuse(self, problem: PalioError, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": str(problem)[:100]})
        else:
            await problem_response(problem)(scope, receive, send)


async def _refused(request: Request, problem: Exception) -> Response:
    if isinstance(problem, PalioError):
        request.scope[_PROBLEM] = problem
    match problem:
        case PalioError():
            return problem_response(problem)
        case HTTPException(status_code=405):
            return problem_response(WrongMethod(request.method, ", ".join(_methods_of(request))))
        case HTTPException(status_code=404):
            return problem_response(NotFound(request.url.path))
        case _:
            return problem_response(BrokerMistake())


def _methods_of(request: Request) -> list[str]:
    """What may be done with a path: each method has a route of its own, and only the first is asked."""
    found: set[str] = set()
    for route in request.app.routes:
        if isinstance(route, Mounted) and route.path_regex.match(request.scope["path"]):
            found |= route.methods or set()
    return sorted(found)
