"""One connection to a broker, of which a client has one after the other: a shell around a `Conversation`.

What is said in one turn of the event loop is written at its end, in one go. A broker that has been silent for
too long is taken for gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import msgspec

from palio.client.errors import error_of
from palio.client.reading import HEARD, read
from palio.model.errors import PalioError
from palio.protocol.addresses import is_loopback
from palio.protocol.conversation import Conversation
from palio.protocol.frames import FrameTooLarge, frame
from palio.protocol.greeting import CONNECTION, Greet, Welcome
from palio.protocol.heartbeat import Bye, Heartbeat
from palio.protocol.overlay import OtherBrokers
from palio.protocol.pairing import Pairing
from palio.protocol.requests import Refused
from palio.protocol.strangers import NotPalio
from palio.protocol.violations import ProtocolViolation
from palio.protocol.vocabulary import AnyMessage

# What the transport may hold before whoever publishes has to wait.
HIGH_WATER = 1024 * 1024


class ClientConnection(asyncio.Protocol):
    """A connection. `handlers` has what to do with each type of message, `lost` is told of the end."""

    def __init__(
        self,
        greet: Greet,
        pairing: Pairing[Any],
        handlers: dict[type, Callable[[Any], None]],
        lost: Callable[[ClientConnection, str], None],
        resumed: Callable[[], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._greet = greet
        self._pairing = pairing
        self._handlers: dict[type, Callable[[Any], None]] = {
            **handlers,
            Welcome: self._welcomed,
            Refused: self._refused,
            Bye: self._said_goodbye,
            OtherBrokers: self._told_of_others,
        }
        self._others_told = handlers[OtherBrokers]
        self._request_refused = handlers[Refused]
        self._lost = lost
        self._resumed = resumed
        self._conversation: Conversation[Any]
        self._transport: asyncio.Transport | None = None
        self._ready: list[bytes] = []
        self._look_at = 0.0
        self._looking: asyncio.TimerHandle | None = None
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
        self._look_at = self._loop.time()
        beat = Heartbeat(self._greet.heartbeat, self._look_at)
        self._conversation = Conversation(
            beat, read, self.put, greet=self._greet, hears=HEARD, pairing=self._pairing
        )
        self._look()

    def data_received(self, data: bytes) -> None:
        conversation, handlers = self._conversation, self._handlers
        try:
            for payload in conversation.feed(data, self._loop.time()):
                message = conversation.hear(payload)
                if message is not None:
                    handlers[type(message)](message)
        except (FrameTooLarge, NotPalio, ProtocolViolation, msgspec.DecodeError, ValueError) as problem:
            if isinstance(problem, NotPalio | ProtocolViolation) and not self.welcome.done():
                self.refusal = problem
            reason = f"The broker said something that is not of the protocol: {problem}"
            if isinstance(problem, ProtocolViolation):
                conversation.refuse(problem)
                self._close(reason)
            else:
                self.abort(reason)

    def connection_lost(self, exception: Exception | None) -> None:
        reason = self._reason or (
            f"The connection was lost: {exception}." if exception else "The broker closed the connection."
        )
        if self._looking is not None:
            self._looking.cancel()
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
        if not self.welcome.done():
            self.welcome.set_result(welcome)

    def _refused(self, refused: Refused) -> None:
        if refused.subject == CONNECTION:
            self.refusal = error_of(refused)
            self.is_final = self.welcome.done()
            self.abort(refused.reason)
        else:
            self._request_refused(refused)

    def _said_goodbye(self, bye: Bye) -> None:
        self._reason = bye.reason
        self.is_final = bye.final

    def _told_of_others(self, told: OtherBrokers) -> None:
        """What means this machine is of use only if the broker is on it."""
        assert self._transport is not None
        host = str((self._transport.get_extra_info("peername") or ("",))[0])
        addresses = told.addresses
        if not is_loopback(f"[{host}]"):
            addresses = tuple([one for one in addresses if not is_loopback(one)])
        self._others_told(OtherBrokers(addresses))

    # Saying

    def say(self, message: AnyMessage) -> None:
        """Send a message at the end of this turn."""
        self._conversation.say(message)

    def put(self, payload: bytes) -> None:
        """Send the bytes of a message at the end of this turn."""
        if not self._ready:
            self._loop.call_soon(self.write)
        self._ready.append(frame(payload))

    def write(self) -> None:
        """Write what was said now."""
        if self._ready and self._transport is not None and not self._transport.is_closing():
            data = self._ready[0] if len(self._ready) == 1 else b"".join(self._ready)
            self._conversation.heartbeat.said = self._loop.time()
            self._transport.write(data)
        self._ready.clear()

    def _look(self) -> None:
        """Heartbeat: from time to time, is the broker there, and does it know that we are?

        If this program was busy, what the broker said is still to be read.
        """
        now = self._loop.time()
        if self._conversation.beat(now, now - self._look_at, speaking=not self.paused):
            self.abort("The broker was silent for too long.")
            return
        self._look_at = now + self._conversation.heartbeat.pause
        self._looking = self._loop.call_at(self._look_at, self._look)

    # The end

    def end(self, reason: str) -> None:
        """End the connection in order: what was said before still goes out."""
        self.say(Bye(reason))
        self._close(reason)

    def _close(self, reason: str) -> None:
        self._reason = reason
        self.write()
        if self._transport is not None:
            self._transport.close()

    def abort(self, reason: str) -> None:
        """End the connection at once."""
        self._reason = self._reason or reason
        if self._transport is not None:
            self._transport.abort()
