"""Limits on connections of the HTTP port itself, before and beside the requests on them.

So many in all, and from one address. A request head must come in time and may not be too long, and what is
answered must be taken: a connection that stands still is ended. What is no request that could be handed to a
route is answered here, with a problem as everywhere else. A WebSocket may not have a broker collect what
it never takes (answers to pings) or never ends (a message of many parts). What comes is read a little at a
time, in the turns of the address that it comes from.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.http11 import Response

from palio.broker.gateway.problems import problem_response
from palio.broker.limits import ConnectionTally, TooManyConnections
from palio.broker.scheduling import Pieces, Scheduler
from palio.broker.settings import Limits
from palio.model.errors import PalioError, cut
from palio.transport.tunnel import MAX_MESSAGE

# Of a request line with all headers; tokens and filters have their place in it.
MAX_HEAD = 64 * 1024
# Parts of one message of a WebSocket: even in small ones, the largest message has fewer.
MAX_PARTS = 4_096
# Where a request's scope has the verified certificate of its connection, if one was shown,
PEER_CERTIFICATE = "palio.certificate"
# and how to end the connection at once.
ABORT = "palio.abort"


class RequestLineTooLong(PalioError):
    """The first line of a request, with its address, does not end within what is read of a head."""

    limit: int = MAX_HEAD
    sentence = (
        "The address of this request is too long: method, address and headers have at most {limit:,} bytes. "
        "Shorten it, or send what is long in the body of a POST."
    )


class HeadersTooLarge(PalioError):
    """The headers of a request do not end within what is read of a head."""

    limit: int = MAX_HEAD
    sentence = (
        "The headers of this request are too large: method, address and headers have at most {limit:,} bytes. "
        "Send fewer or shorter ones."
    )


class BadUpgrade(PalioError):
    """A request for a WebSocket that none can be opened for; `reason` says what was met."""

    reason: str = cut(300)
    sentence = (
        "No WebSocket can be opened for this request ({reason}). Send a GET of HTTP/1.1 with "
        "`Upgrade: websocket`, `Connection: Upgrade`, `Sec-WebSocket-Version: 13` and a `Sec-WebSocket-Key`, "
        "as client libraries do."
    )


class UpgradeRequired(BadUpgrade):
    """One that does not say rightly what the connection is to become."""


class MalformedRequest(PalioError):
    """What cannot be read as HTTP/1.1; `reason` says what was met."""

    reason: str
    sentence = (
        "This cannot be read as a request of HTTP/1.1 ({reason}). Send a line such as `GET /health HTTP/1.1`, "
        "headers, an empty line, and a body as long as they say."
    )


class Callers:
    """The connections by HTTP, counted in all and by address."""

    def __init__(self, limits: Limits, refused: Callable[[PalioError, str], None]) -> None:
        self._all = ConnectionTally(limits.connections)
        self._by_address = ConnectionTally(limits.connections_per_address)
        self.refused = refused  # told of a problem, and of the address that caused it

    def enter(self, host: str) -> None:
        """Counts a connection. Raises `TooManyConnections`; it counts all the same, until it leaves."""
        try:
            try:
                self._all.add("")
            finally:
                self._by_address.add(host)
        except TooManyConnections as problem:
            self.refused(problem, host)
            raise

    def leave(self, host: str) -> None:
        self._all.remove("")
        self._by_address.remove(host)


class _Deadline:
    """Calls something unless it is stopped in time."""

    def __init__(self, late: Callable[[], None]) -> None:
        self._late = late
        self._timer: asyncio.TimerHandle | None = None

    def start(self, seconds: float) -> None:
        """Begin to wait, if that has not begun."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._late)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _told_of_connection(protocol: H11Protocol | WebSocketsSansIOProtocol) -> Any:
    """The application of a protocol, with what it has to know of the connection in each scope."""
    inner = protocol.app

    async def app(scope: Any, receive: Any, send: Any) -> None:
        scope[ABORT] = protocol.transport.abort
        scope[PEER_CERTIFICATE] = protocol.transport.get_extra_info("peercert")
        await inner(scope, receive, send)

    return app


# By the status of what the library says.
_BAD_UPGRADES: dict[int, type[BadUpgrade]] = {
    HTTPStatus.BAD_REQUEST: BadUpgrade,
    HTTPStatus.UPGRADE_REQUIRED: UpgradeRequired,
}


def _last_answer(problem: PalioError) -> bytes:
    """A problem as the answer after which a connection ends."""
    answer = problem_response(problem, {"Connection": "close", "X-Content-Type-Options": "nosniff"})
    status = HTTPStatus(answer.status_code)
    lines = [b"%s: %s\r\n" % one for one in answer.raw_headers]
    return (
        f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() + b"".join(lines) + b"\r\n" + bytes(answer.body)
    )


def _with_problem(answer: Response) -> Response:
    """What a request for a WebSocket is answered: a refusal with a problem, as everywhere else."""
    if answer.status_code not in _BAD_UPGRADES:
        return answer
    reason = bytes(answer.body or b"").decode(errors="replace").partition("\n")[0]
    reason = reason.partition(": ")[2].rstrip(".")
    problem = problem_response(_BAD_UPGRADES[answer.status_code](reason))
    for name, value in problem.headers.items():
        del answer.headers[name]
        answer.headers[name] = value
    answer.body = bytes(problem.body)
    return answer


class PatientProtocol(H11Protocol):
    """HTTP on one connection, on which neither a head nor the taking of an answer lasts for ever."""

    scheduler: Scheduler
    callers: Callers
    head_within: float
    taken_within: float

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._head = _Deadline(self._abort)
        self._taking = _Deadline(self._abort)
        self._host = ""
        self._turned_away = False
        self.app = _told_of_connection(self)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._head.start(self.head_within)
        self._host = self.client[0] if self.client else "?"
        self._pieces = Pieces(
            self.scheduler,
            ("address", self._host),
            transport,
            self._read_piece,
            lambda: not self.flow.read_paused,
        )
        try:
            self.callers.enter(self._host)
        except TooManyConnections as problem:
            self._turned_away = True
            transport.write(_last_answer(problem))
            transport.close()

    def data_received(self, data: bytes) -> None:
        self._pieces.add(data)

    def _read_piece(self, data: bytes) -> None:
        if self._turned_away:
            return
        super().data_received(data)
        # Either the next head is to come, or what is left of a body that was refused, or of what is no request.
        if self._turned_away or self.conn.their_state is h11.IDLE or self.conn.our_state is h11.DONE:
            self._head.start(self.head_within)
        else:
            self._head.stop()

    def send_400_response(self, msg: str) -> None:
        """Refuse what has come. uvicorn calls this while it handles the error of h11 that says what it is."""
        self._turned_away = True
        if self.cycle is not None and not self.cycle.response_complete:  # it was in the body, which has no end
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):  # something was answered already
            self.transport.close()
            return
        problem = self._problem(sys.exc_info()[1])
        self.callers.refused(problem, self._host)
        self.transport.write(_last_answer(problem))
        if self.transport.can_write_eof():
            # To close with something unread would lose the answer. The other side has the time of a head.
            self.transport.write_eof()
            self.flow.resume_reading()
        else:
            self.transport.close()

    def _problem(self, error: BaseException | None) -> PalioError:
        if getattr(error, "error_status_hint", 400) != HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE:
            return MalformedRequest(str(error).partition(": b")[0])  # without what it quotes, be it a token
        return HeadersTooLarge() if b"\n" in self.conn.trailing_data[0] else RequestLineTooLong()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self._turned_away and self.transport.is_closing():
            self._head.start(self.head_within)  # for who does not take the end of it

    def pause_writing(self) -> None:
        super().pause_writing()
        self._taking.start(self.taken_within)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._taking.stop()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._head.start(self.head_within)

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        rest = self._leave()  # a WebSocket is counted as the connection of the broker that it is
        super().handle_websocket_upgrade(event)
        if rest:
            self.transport.get_protocol().data_received(rest)  # type: ignore[attr-defined]

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave()
        super().connection_lost(exc)

    def _leave(self) -> bytes:
        """Leaves, and returns what has come and was not read."""
        self._head.stop()
        self._taking.stop()
        self.callers.leave(self._host)
        return self._pieces.rest()

    def _abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()


class BoundedSocket(WebSocketsSansIOProtocol):
    """A WebSocket on one connection, of which no more is held than of any other."""

    scheduler: Scheduler

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.app = _told_of_connection(self)
        accept = self.conn.accept
        self.conn.accept = lambda request: _with_problem(accept(request))  # type: ignore[method-assign]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._pieces = Pieces(
            self.scheduler,
            ("address", self.client[0] if self.client else "?"),
            self.transport,
            self._read_piece,
            lambda: not self.read_paused,
        )

    def connection_lost(self, exc: Exception | None) -> None:
        self._pieces.rest()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._pieces.add(data)

    def _read_piece(self, data: bytes) -> None:
        super().data_received(data)
        # What the broker says waits while it is not taken, so more than that are answers to pings.
        if len(self.frames) > MAX_PARTS or self.transport.get_write_buffer_size() > MAX_MESSAGE:
            self.transport.abort()

    def shutdown(self) -> None:
        # The other side may have ended it already, of which uvicorn hears only when the transport is closed.
        if not self.transport.is_closing():
            super().shutdown()
