"""`QuicEnd`: a connection of aioquic as a stream of bytes, with its socket and its timers around it.

Its only stream is the transport of a protocol. aioquic is handed at most `HANDED` bytes that nobody has
acknowledged; all others wait in front of it and are counted, so that the protocol is told to pause as by a
socket. While the protocol does not read, what comes is kept, and the window stays where it is.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections import deque
from collections.abc import Callable
from typing import Any, cast

from aioquic.quic import events
from aioquic.quic.packet import QuicErrorCode

from palio.transport.buffered import BufferedTransport
from palio.transport.quic_bounds import STREAM, BoundedQuic

_logger = logging.getLogger("palio.transport.quic")

# Bytes that are on their way and not acknowledged: with a round trip of 20 ms, 13 MB a second (a guess).
HANDED = 256 * 1024
# Seconds for which what was written last may be on its way, once the protocol has closed (a guess).
_LINGER = 10.0
# A timer that is so late (seconds) tells that this program stood still: what has come meanwhile is read first.
_LATE = 0.5
# A larger datagram is none of a sensible sender: all send those of 1,200 bytes, which pass everywhere.
LARGEST_DATAGRAM = 2_048
# How an application of ours ends a connection that it gives up.
_GIVEN_UP = 1
# Alerts of TLS (RFC 8446, 6.2) about a certificate; and that the other end speaks something else.
_ABOUT_CERTIFICATES = frozenset({42, 43, 44, 45, 46, 48})
_NO_SUCH_PROTOCOL = 120

Address = tuple[Any, ...]


class QuicEnd:
    """One connection. `make` makes the protocol when it is up; `ended` is called once, with any problem."""

    def __init__(
        self,
        connection: BoundedQuic,
        send: Callable[[bytes, Address], object],
        make: Callable[[], asyncio.Protocol],
        ended: Callable[[QuicEnd, OSError | None], None],
    ) -> None:
        self.connection = connection
        self.ids: set[bytes] = set()
        self.protocol: asyncio.Protocol | None = None
        self._loop = asyncio.get_running_loop()
        self._send = send
        self._make = make
        self._ended = ended
        self._transport: BufferedTransport | None = None
        self._to_send: deque[memoryview] = deque()
        self._unsent = 0
        self._handed = 0  # as far as it is not acknowledged, when that was looked at last
        self._unread = bytearray()
        self._timer: asyncio.TimerHandle | None = None
        self._soon: asyncio.Handle | None = None
        self._lingering: asyncio.TimerHandle | None = None
        self._is_over = False

    # Datagrams

    def receive(self, data: bytes, address: Address) -> None:
        """A datagram has come."""
        if len(data) > LARGEST_DATAGRAM or self._is_over:
            return
        try:
            self.connection.receive_datagram(data, address, now=self._loop.time())
        except Exception:
            _logger.exception("A datagram could not be handled.", extra={"address": address[0]})
            self.give_up("a datagram could not be handled")
            return
        if not self.connection.is_begun:
            self._end(ConnectionResetError("the handshake did not begin"))
            return
        if self.connection.is_unreasonable:
            self.give_up("the other end sends too much in disorder")
            return
        self._handle_events()
        self.transmit_soon()

    def transmit_soon(self) -> None:
        """Send what there is to send, at the end of this turn of the loop."""
        if self._soon is None and not self._is_over:
            self._soon = self._loop.call_soon(self._transmit)

    def give_up(self, reason: str) -> None:
        """End it at once; the other end is told."""
        if not self._is_over:
            self.connection.close(error_code=_GIVEN_UP)
            self._end(ConnectionAbortedError(reason))

    def _transmit(self) -> None:
        self._soon = None
        if self._is_over:
            return
        self._hand_over()
        for data, address in self.connection.datagrams_to_send(now=self._loop.time()):
            self._send(data, address)
        self._handle_events()
        if self._is_over:
            return
        self._set_timer()
        if self._lingering is None and self._transport is not None and self._transport.is_closing():
            self._lingering = self._loop.call_later(_LINGER, self.give_up, "what was said last was not taken")

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        due = self.connection.get_timer()
        self._timer = None if due is None else self._loop.call_at(due, self._on_timer, due)

    def _on_timer(self, due: float, *, again: bool = False) -> None:
        now = self._loop.time()
        if not again and now - due > _LATE:
            self._timer = self._loop.call_later(_LATE / 2, self._read_first, due)
            return
        self.connection.handle_timer(now=max(now, due))
        self._handle_events()
        self.transmit_soon()

    def _read_first(self, due: float) -> None:
        self._on_timer(due, again=True)

    # What happens on the connection

    def _handle_events(self) -> None:
        while not self._is_over and (event := self.connection.next_event()) is not None:
            match event:
                case events.StreamDataReceived(data=data, end_stream=is_last):
                    self._unread += data
                    self._pass_on()
                    if is_last and not self._is_over:
                        self.connection.close(error_code=QuicErrorCode.NO_ERROR)
                        self._end(None)
                case events.StreamReset() | events.StopSendingReceived():
                    self.give_up("the other end has given up its stream")
                case events.HandshakeCompleted():
                    self._begin()
                case events.ConnectionIdIssued(connection_id=id):
                    self.ids.add(id)
                    self.on_id(id, True)
                case events.ConnectionIdRetired(connection_id=id):
                    self.ids.discard(id)
                    self.on_id(id, False)
        if not self._is_over and (ended_by := self.connection.ended_by) is not None:
            self._end(_problem(ended_by))

    def on_id(self, id: bytes, valid: bool) -> None:
        """A connection id has become valid, or is no more; a port replaces this."""

    def _begin(self) -> None:
        configuration = self.connection.configuration
        if configuration.is_client and configuration.verify_mode is None and not self.connection.is_of_a_server:
            self.connection.close(error_code=_GIVEN_UP)
            self._end(_untrusted("it is not for servers"))
            return
        self.protocol = self._make()
        address = self.connection.get_peer_address()
        self._transport = BufferedTransport(
            self.protocol,
            self._written,
            self._protocol_ended,
            address[:2] if address else None,
            under_way=HANDED,
            resumed=self._pass_on,
            quic=True,
        )
        self.protocol.connection_made(self._transport)

    def _end(self, problem: OSError | None) -> None:
        """Nothing more comes or goes. Before that, what there is to say about it is sent."""
        if self._is_over:
            return
        self._is_over = True
        if self.connection.is_begun:
            for data, address in self.connection.datagrams_to_send(now=self._loop.time()):
                for _ in range(2):  # nobody is there to say it again if it is lost
                    self._send(data, address)
        for timer in (self._timer, self._soon, self._lingering):
            if timer is not None:
                timer.cancel()
        self._to_send.clear()
        self._unsent = 0
        if self._transport is not None:
            if problem is None and self._unread:
                self._transport.receive(bytes(self._unread))
            if problem is None:
                self._transport.no_more()
            else:
                self._loop.call_soon(self._transport.gone, problem)
        self._unread.clear()
        self._ended(self, problem)
        self.connection.let_go()

    # What is read

    def _pass_on(self) -> None:
        transport = self._transport
        if self._unread and transport is not None and transport.is_reading() and not self._is_over:
            data = bytes(self._unread)
            self._unread.clear()
            self.connection.taken(len(data))
            transport.receive(data)
            self.transmit_soon()

    # What is written

    def _written(self, data: bytes) -> None:
        self._to_send.append(memoryview(data))
        self._unsent += len(data)
        self.transmit_soon()

    def _hand_over(self) -> None:
        connection, transport = self.connection, self._transport
        if transport is None or not connection.may_send:
            return
        waiting = connection.unacknowledged
        if waiting < self._handed:
            acknowledged, self._handed = self._handed - waiting, waiting
            transport.took(acknowledged)
        while self._to_send and self._handed < HANDED and not self._is_over:
            data = self._to_send.popleft()
            piece, rest = data[: HANDED - self._handed], data[HANDED - self._handed :]
            if rest:
                self._to_send.appendleft(rest)
            connection.send_stream_data(STREAM, cast("bytes", piece))  # any buffer will do
            self._handed += len(piece)
            self._unsent -= len(piece)

    def _protocol_ended(self) -> None:
        """The protocol has lost its transport: it has closed it and all is acknowledged, or it was given up."""
        if not self._is_over:
            done = not self._unsent and not self._handed
            self.connection.close(error_code=QuicErrorCode.NO_ERROR if done else _GIVEN_UP)
            self._end(None)


def _problem(event: events.ConnectionTerminated) -> OSError | None:
    """Why a connection ended; None if in order. What the other end says about that is not repeated."""
    code = event.error_code
    if code == QuicErrorCode.NO_ERROR:
        return None
    if event.reason_phrase == "Idle timeout" and code == QuicErrorCode.INTERNAL_ERROR:
        return TimeoutError("the other end was silent for too long")
    if code == _GIVEN_UP and event.frame_type is None:
        return ConnectionResetError("the other end has given it up")
    alert = code - QuicErrorCode.CRYPTO_ERROR
    if alert in _ABOUT_CERTIFICATES:
        return _untrusted(_readable(event.reason_phrase))
    if alert == _NO_SUCH_PROTOCOL:
        return ConnectionRefusedError("it speaks QUIC, and is no broker")
    try:
        name = QuicErrorCode(code).name
    except ValueError:
        name = hex(code)
    return ConnectionResetError(f"QUIC ended it with {name}")


def _untrusted(reason: str) -> ssl.SSLCertVerificationError:
    """A certificate that was shown, and cannot be trusted: as where TLS is spoken over TCP."""
    problem = ssl.SSLCertVerificationError(1, reason)
    problem.verify_message = reason
    return problem


def _readable(text: str) -> str:
    return "".join(filter(str.isprintable, text))[:200].rstrip(".") or "it is not valid"
