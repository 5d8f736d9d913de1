"""One connection to a broker: greeting, frames, heartbeats, the end. A client has one after the other.

What is said in one turn of the event loop is written at its end, in one go. A broker that has been silent for
too long is taken for gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import msgspec

from palio.client.errors import ConnectionLost, RequestTimeout, error_of
from palio.client.reading import read
from palio.model.errors import PalioError
from palio.protocol.encoding import encode
from palio.protocol.frames import Frames, FrameTooLarge, frame
from palio.protocol.greeting import CONNECTION, Greet, Welcome
from palio.protocol.heartbeat import (
    SILENCES,
    Bye,
    Ping,
    Pong,
)
from palio.protocol.requests import Refused
from palio.protocol.strangers import NotPalio, spoken_instead
from palio.protocol.vocabulary import AnyMessage

# What the transport may hold before whoever publishes has to wait.
HIGH_WATER = 1024 * 1024
_LOOKS = 4  # how many times in a heartbeat the silence is measured


class Connection(asyncio.Protocol):
    """A connection. `handlers` has what to do with each type of message, `lost` is told of the end."""

    def __init__(
        self,
        greet: Greet,
        handlers: dict[type, Callable[[Any], None]],
        lost: Callable[[Connection, str], None],
        resumed: Callable[[], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._greet = greet
        self._handlers: dict[type, Callable[[Any], None]] = {
            Welcome: self._welcomed,
            Refused: self._refused,
            Ping: lambda _: self.say(Pong()),
            Pong: self._ponged,
            Bye: self._said_goodbye,
        }
        self._users = handlers
        self._lost = lost
        self._resumed = resumed
        self._frames = Frames()
        self._transport: asyncio.Transport | None = None
        self._ready: list[bytes] = []
        self._heard = self._said = self._look_at = self._loop.time()
        self._heartbeat = greet.heartbeat
        self._looking: asyncio.TimerHandle | None = None
        self._pings: list[asyncio.Future[None]] = []
        self._reason = ""
        self.refusal: PalioError | None = None
        self.is_final = False  # whether the broker wants no other one of this client
        self.welcome: asyncio.Future[Welcome] = self._loop.create_future()
        self.closed: asyncio.Future[None] = self._loop.create_future()
        self.paused = False

    # Of the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=HIGH_WATER)
        self.say(self._greet)
        self._look()

    def data_received(self, data: bytes) -> None:
        self._heard = self._loop.time()
        try:
            for payload in self._frames.feed(data):
                message = read(payload)
                self._handlers[type(message)](message)
        except (FrameTooLarge, msgspec.DecodeError, ValueError) as problem:
            spoken = spoken_instead(getattr(problem, "head", b"")) if not self.welcome.done() else None
            if spoken is not None:
                self.refusal = NotPalio(spoken)
            self.abort(f"The broker said something that is not of the protocol: {problem}")

    def connection_lost(self, exception: Exception | None) -> None:
        reason = self._reason or (
            f"The connection was lost: {exception}." if exception else "The broker closed the connection."
        )
        if self._looking is not None:
            self._looking.cancel()
        for ping in self._pings:
            if not ping.done():
                ping.cancel()
        if not self.welcome.done():
            self.welcome.set_exception(self.refusal or ConnectionError(reason))
            self.welcome.exception()  # whoever waited for it may have given up
        if not self.closed.done():
            self.closed.set_result(None)
        self._lost(self, reason)

    def pause_writing(self) -> None:
        self.paused = True

    def resume_writing(self) -> None:
        self.paused = False
        self._resumed()

    # Hearing

    def _welcomed(self, welcome: Welcome) -> None:
        self._heartbeat = min(self._heartbeat, max(welcome.heartbeat, 0.1))
        self._handlers = self._users | self._handlers
        if not self.welcome.done():
            self.welcome.set_result(welcome)

    def _refused(self, refused: Refused) -> None:
        if refused.subject == CONNECTION:
            self.refusal = error_of(refused)
            self.is_final = self.welcome.done()
            self.abort(refused.reason)
        else:
            self._users[Refused](refused)

    def _ponged(self, pong: Pong) -> None:
        if self._pings:
            ping = self._pings.pop(0)
            if not ping.done():
                ping.set_result(None)

    def _said_goodbye(self, bye: Bye) -> None:
        self._reason = bye.reason
        self.is_final = bye.final

    # Saying

    def say(self, message: AnyMessage) -> None:
        """Send a message at the end of this turn."""
        self.put(encode(message))

    def put(self, payload: bytes) -> None:
        """Send the bytes of a message at the end of this turn."""
        if not self._ready:
            self._loop.call_soon(self.write)
        self._ready.append(frame(payload))

    def write(self) -> None:
        """Write what was said now."""
        if self._ready and self._transport is not None and not self._transport.is_closing():
            data = self._ready[0] if len(self._ready) == 1 else b"".join(self._ready)
            self._said = self._loop.time()
            self._transport.write(data)
        self._ready.clear()

    async def ping(self, timeout: float) -> None:
        """Wait until the broker has taken all that was said before. Raises `RequestTimeout`,
        ConnectionError.
        """
        pong: asyncio.Future[None] = self._loop.create_future()
        self._pings.append(pong)
        self.say(Ping())
        done, _ = await asyncio.wait([pong], timeout=timeout)
        if not done:
            pong.cancel()
            raise RequestTimeout("ping", timeout)
        if pong.cancelled():
            raise ConnectionLost("ping", self._reason or "It was closed.")

    def _look(self) -> None:
        """From time to time: is the broker there, and does it know that we are?"""
        now = self._loop.time()
        if now > self._look_at + self._heartbeat:
            self._heard = now  # this program was busy: what the broker said is still to be read
        if now - self._heard > SILENCES * self._heartbeat:
            self.abort("The broker was silent for too long.")
            return
        if now - self._said >= self._heartbeat and not self.paused and self.welcome.done():
            self._pings.append(self._loop.create_future())  # so that its answer is not taken for another one
            self.say(Ping())
        self._look_at = now + self._heartbeat / _LOOKS
        self._looking = self._loop.call_at(self._look_at, self._look)

    # The end

    def end(self, reason: str) -> None:
        """End the connection in order: what was said before still goes out."""
        self._reason = reason
        self.say(Bye(reason))
        self.write()
        if self._transport is not None:
            self._transport.close()

    def abort(self, reason: str) -> None:
        """End the connection at once."""
        self._reason = self._reason or reason
        if self._transport is not None:
            self._transport.abort()
