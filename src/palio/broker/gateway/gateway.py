"""`Gateway`: the routes, what is counted about them, and the way of an error to its answer."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import msgspec
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from palio.broker.gateway import description, pages, websocket
from palio.broker.gateway.binding import JSON, WrongMediaType, is_json
from palio.broker.gateway.bodies import Bodies
from palio.broker.gateway.counts import GatewayStatistics
from palio.broker.gateway.credentials import Credentials, read_credentials
from palio.broker.gateway.guard import Guard
from palio.broker.gateway.parameters import read_key
from palio.broker.gateway.problems import BrokerMistake, NotFound, WrongMethod, WrongParameter, problem_response
from palio.broker.gateway.publishing import IN_THREAD, Publishing
from palio.broker.gateway.sinks import Sinks
from palio.broker.gateway.streams import Streams, read_wanted
from palio.broker.gateway.subscriptions import Enter, Subscriptions
from palio.broker.gateway.visitor import Visitor
from palio.broker.settings import split_address
from palio.model import jsontext
from palio.model.errors import PalioError
from palio.protocol.greeting import PROTOCOL

if TYPE_CHECKING:
    from palio.broker.broker import Broker

LOCAL = frozenset({"127.0.0.1", "localhost", "::1"})
# Bytes of a subscription: as many as the longest filter has, and some.
MAX_DOCUMENT = 512 * 1024


class Gateway:
    """Everything that a broker does over HTTP beside health and metrics."""

    def __init__(self, broker: Broker, app: FastAPI) -> None:
        self._broker = broker
        settings = broker.settings.gateway
        self.requests: Counter[tuple[str, int]] = Counter()
        self._bodies = Bodies(settings)
        self._publishing = Publishing(broker, self._bodies)
        self._sinks = Sinks(settings, broker.settings.name)
        self._subscriptions = Subscriptions(broker, broker.keeper(), self._sinks)
        self._streams = Streams(broker, self._subscriptions.filter_named)
        self._guard = Guard(settings, local=split_address(broker.settings.http)[0] in LOCAL)
        self._app = app
        self._add_routes(app)

    async def start(self) -> None:
        """Go on with what was kept. Raises `UnreadableDefinitions`."""
        self._sinks.open()
        await self._subscriptions.start()

    async def stop(self) -> None:
        """The broker is about to stop."""
        self._publishing.close()
        await self._subscriptions.stop()
        await self._sinks.close()

    def statistics(self) -> GatewayStatistics:
        return GatewayStatistics(
            requests=dict(self.requests),
            pushes=self._subscriptions.pushes(),
            streams=self._streams.open,
            streams_cut_off=self._streams.cut_off,
            subscriptions=len(self._subscriptions),
            held_bytes=self._bodies.held,
        )

    def _add_routes(self, app: FastAPI) -> None:
        app.add_api_route("/events", self._publish, methods=["POST"], **description.PUBLISH)
        app.add_api_route("/events", self._stream, methods=["GET"], **description.STREAM)
        path, single = "/subscriptions", "/subscriptions/{id}"
        app.add_api_route(path, self._create, methods=["POST"], **description.CREATE)
        app.add_api_route(path, self._list, methods=["GET"], **description.LIST)
        app.add_api_route(single, self._get, methods=["GET"], **description.GET)
        app.add_api_route(single, self._update, methods=["PUT"], **description.UPDATE)
        app.add_api_route(single, self._delete, methods=["DELETE"], **description.DELETE)
        app.add_api_route("/", self._home, methods=["GET"], **description.HOME)
        app.add_api_route(f"{single}/pause", self._pause, methods=["POST"], **description.PAUSE)
        app.add_api_route(f"{single}/resume", self._resume, methods=["POST"], **description.RESUME)
        app.add_api_route(f"{single}/seek", self._seek, methods=["POST"], **description.SEEK)
        app.add_api_route("/docs", self._docs, methods=["GET"], **description.DOCS)
        app.add_api_websocket_route(websocket.PATH, self._websocket)
        app.add_exception_handler(PalioError, _refused)
        app.add_exception_handler(HTTPException, _refused)
        app.add_exception_handler(RequestValidationError, _refused)
        origins = self._broker.settings.gateway.origins
        if origins:
            app.add_middleware(
                CORSMiddleware, allow_origins=origins, allow_methods=["*"], allow_headers=["*"], max_age=600
            )
        app.add_middleware(_Front, gateway=self)
        made = app.openapi
        app.openapi = lambda: description.complete(made())  # type: ignore[method-assign]

    # Routes

    async def _publish(self, request: Request) -> Response:
        return _json(await self._publishing.publish(request, self._known(request)))

    async def _stream(self, request: Request) -> Response:
        credentials = self._known(request)
        return await self._streams.begin(read_wanted(request), credentials)

    async def _create(self, request: Request) -> Response:
        enter, key = self._enter(request), read_key(request.headers, {})
        shown, new = await self._subscriptions.create(await self._read_json(request), key, enter)
        return _json(shown, 201 if new else 200, {"Location": f"/subscriptions/{shown['id']}"})

    async def _list(self, request: Request) -> Response:
        return _json(await self._subscriptions.all(self._enter(request)))

    async def _get(self, request: Request) -> Response:
        return _json(await self._subscriptions.get(request.path_params["id"], self._enter(request)))

    async def _update(self, request: Request) -> Response:
        enter, id = self._enter(request), request.path_params["id"]
        return _json(await self._subscriptions.update(id, await self._read_json(request), enter))

    async def _delete(self, request: Request) -> Response:
        await self._subscriptions.delete(request.path_params["id"], self._enter(request))
        return Response(status_code=204)

    async def _pause(self, request: Request) -> Response:
        return _json(await self._subscriptions.pause(request.path_params["id"], self._enter(request)))

    async def _resume(self, request: Request) -> Response:
        return _json(await self._subscriptions.resume(request.path_params["id"], self._enter(request)))

    async def _seek(self, request: Request) -> Response:
        enter, id = self._enter(request), request.path_params["id"]
        return _json(await self._subscriptions.seek(id, await self._read_json(request), enter))

    def _enter(self, request: Request) -> Enter:
        """How whoever sent a request comes in. Raises what speaks against it."""
        credentials = self._known(request)

        async def enter(name: str) -> Visitor:
            return await Visitor.enter(self._broker, f"{name}-{secrets.token_hex(8)}", credentials)

        return enter

    def _known(self, request: Request) -> Credentials:
        """What a request shows. A stranger is refused here, before anything else of it is looked at."""
        credentials = read_credentials(request)
        try:
            credentials.authenticate(self._broker.access)
        except PalioError as problem:
            host, port = credentials.address or ("?", 0)
            self._broker.refused(problem, f"{host}:{port}")
            raise
        return credentials

    async def _read_json(self, request: Request) -> Any:
        media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if not is_json(media_type):
            raise WrongMediaType(media_type, JSON)
        async with self._bodies.read(request, MAX_DOCUMENT) as body:
            return (
                await asyncio.to_thread(jsontext.read, body) if len(body) > IN_THREAD else jsontext.read(body)
            )

    async def _home(self, request: Request) -> Response:
        known = self._broker.access.is_on
        home: dict[str, Any] = {
            "broker": self._broker.settings.name,
            "protocol": PROTOCOL,
            "links": pages.LINKS,
        }
        if not known:  # who has not said who they are need not know whom to attack with what
            home["version"] = version("palio")
        if "text/html" in request.headers.get("accept", "").lower():
            return pages.home(home, _base(request), known=known)
        return _json(home, headers={"Vary": "Accept"})

    async def _docs(self, request: Request) -> Response:
        return pages.page(self._app.openapi(), _base(request), known=self._broker.access.is_on)

    async def _websocket(self, socket: WebSocket) -> None:
        await websocket.serve(self._broker, socket)

    # For the middleware

    def require_known(self, scope: Scope) -> None:
        """Raises what speaks against a request before it is looked at."""
        reads = scope.get("method") in ("GET", "HEAD", "OPTIONS") and scope["path"] != "/events"
        self._guard.require_known(Headers(scope=scope), changes=not reads)

    def failed(self, problem: Exception, path: str) -> None:
        self._broker.log.error("A request could not be handled.", exc_info=problem, extra={"path": path[:200]})


class _Front:
    """The first that a request meets, and the last that its answer does."""

    def __init__(self, app: ASGIApp, gateway: Gateway) -> None:
        self._app = app
        self._gateway = gateway

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            return
        status = 0

        async def counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-content-type-options", b"nosniff")]
            await send(message)

        try:
            self._gateway.require_known(scope)
            await self._app(scope, receive, counted)
        except PalioError as problem:
            await self._refuse(problem, scope, receive, counted)
        except Exception as problem:  # noqa: BLE001 (a mistake of ours is told, and everybody else goes on)
            self._gateway.failed(problem, scope["path"])
            if not status:
                await self._refuse(BrokerMistake(), scope, receive, counted)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            self._gateway.requests[route, 101 if scope["type"] == "websocket" else status] += 1

    async def _refuse(self, problem: PalioError, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": str(problem)[:100]})
        else:
            await problem_response(problem)(scope, receive, send)


async def _refused(request: Request, problem: Exception) -> Response:
    match problem:
        case PalioError():
            return problem_response(problem)
        case HTTPException(status_code=405):
            return problem_response(WrongMethod(request.method, ", ".join(_methods_of(request))))
        case HTTPException(status_code=404):
            return problem_response(NotFound(request.url.path))
        case RequestValidationError():
            first: Any = problem.errors()[0]
            return problem_response(WrongParameter(".".join(map(str, first["loc"])), f"{first['msg']}."))
        case _:
            return problem_response(BrokerMistake())


def _base(request: Request) -> str:
    return str(request.base_url).rstrip("/")


def _methods_of(request: Request) -> list[str]:
    """What may be done with a path: each method has a route of its own, and only the first is asked."""
    found: set[str] = set()
    for route in request.app.routes:
        if isinstance(route, Route) and route.path_regex.match(request.scope["path"]):
            found |= route.methods or set()
    return sorted(found)


def _json(document: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(document) + b"\n", status, headers, "application/json")
