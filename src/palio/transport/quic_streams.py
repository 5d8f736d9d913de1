"""What `quic` does with aioquic: streams of bytes over UDP, and the port that takes them.

`QuicEnd` is one connection, whose only stream is the transport of a protocol. It hands aioquic at most `HANDED`
bytes that are not acknowledged; all others wait in front of it and are counted, so that the protocol is told
to pause as by a socket. While the protocol does not read, what comes is kept, and the window stays where it is.

`QuicPort` is one UDP socket with all its ends, found by the connection ids in datagrams and not by where they
come from: whose address changes stays connected. Whoever begins is asked first to come again with a token
(Retry), which costs no memory here and shows that the address is its own.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import ssl
import sys
from collections import Counter, deque
from collections.abc import Callable
from typing import Any, cast

from aioquic._buffer import Buffer
from aioquic.quic import events
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.packet import (
    QuicErrorCode,
    QuicPacketType,
    encode_quic_retry,
    encode_quic_version_negotiation,
    pull_quic_header,
)
from aioquic.quic.retry import QuicRetryTokenHandler

from palio.transport.buffered import BufferedTransport
from palio.transport.quic_bounds import STREAM, BoundedQuic

_logger = logging.getLogger("palio.transport.quic")

# Bytes that are on their way and not acknowledged: with a round trip of 20 ms, 13 MB a second (a guess).
HANDED = 256 * 1024
# Seconds for which what was written last may be on its way, once the protocol has closed (a guess).
_LINGER = 10.0
# A timer that is so late (seconds) tells that this program stood still: what has come meanwhile is read first.
_LATE = 0.5
# Handshakes under way: beyond, the oldest gives way, or of one host the newest is dropped (guesses).
_HANDSHAKES = 256
_HANDSHAKES_OF_HOST = 64
# A larger datagram is none of a sensible sender: all send those of 1,200 bytes, which pass everywhere.
_LARGEST_DATAGRAM = 2_048
_SMALLEST_FIRST_DATAGRAM = 1_200
# What a socket may hold: a burst from many. The system may allow less.
_SOCKET_BUFFER = 4 * 1024 * 1024
# Datagrams that are read at once, before others have their turn (a guess).
_AT_ONCE = 32
# Of Linux: errors of the network are told on a socket that is not connected, too (ip(7), ipv6(7)).
_TELL_ERRORS: dict[int, tuple[int, int]] = {
    socket.AF_INET: (socket.IPPROTO_IP, 11),
    socket.AF_INET6: (socket.IPPROTO_IPV6, 25),
}
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
        if len(data) > _LARGEST_DATAGRAM or self._is_over:
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
        if (ended_by := self.connection.ended_by) is not None:
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


class UdpSocket:
    """A UDP socket, bound to an address. `receive` gets what comes, `failed` what goes wrong.

    It is not connected to anybody: when this machine gets another address, the system chooses that one.
    """

    def __init__(
        self,
        family: int,
        address: Address,
        receive: Callable[[bytes, Address], None],
        failed: Callable[[OSError], None],
    ) -> None:
        """Raises OSError."""
        self._receive = receive
        self._failed = failed
        self._loop = asyncio.get_running_loop()
        self._is_closed = False
        self._socket = made = socket.socket(family, socket.SOCK_DGRAM)
        try:
            made.setblocking(False)
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SOCKET_BUFFER)
            if family == socket.AF_INET6:
                made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            made.bind(address)
        except OSError:
            made.close()
            raise
        self._loop.add_reader(made, self._read)

    @property
    def port(self) -> int:
        """The port that it is bound to."""
        return int(self._socket.getsockname()[1])

    def tell_errors(self, wanted: bool) -> None:
        """Tell what the network says of datagrams that did not arrive, such as that nobody is there."""
        if sys.platform == "linux":
            self._socket.setsockopt(*_TELL_ERRORS[self._socket.family], int(wanted))

    def send(self, data: bytes, address: Address) -> None:
        """Send a datagram at once, or lose it, as happens in any network; so nothing waits."""
        try:
            self._socket.sendto(data, address)
        except BlockingIOError:
            return
        except OSError as problem:
            self._failed(problem)

    def close(self) -> None:
        """Hear nothing more."""
        if not self._is_closed:
            self._is_closed = True
            self._loop.remove_reader(self._socket)
            self._socket.close()

    def _read(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                data, address = self._socket.recvfrom(_LARGEST_DATAGRAM + 1)
            except BlockingIOError:
                return
            except OSError as problem:
                self._failed(problem)
                return
            self._receive(data, address)
            if self._is_closed:
                return


class QuicPort:
    """One UDP socket that takes connections. `make` makes a protocol for each that is up."""

    def __init__(
        self,
        configuration: QuicConfiguration,
        family: int,
        address: Address,
        make: Callable[[], asyncio.Protocol],
        within: float,
    ) -> None:
        """Raises OSError."""
        self.configuration = configuration
        self._socket = UdpSocket(family, address, self._received, lambda problem: None)
        self._make = make
        self._within = within
        self._loop = asyncio.get_running_loop()
        self._retry = QuicRetryTokenHandler()
        self._ends: dict[bytes, QuicEnd] = {}  # by all their ids
        self._handshakes: dict[QuicEnd, tuple[str, asyncio.TimerHandle]] = {}  # the oldest first
        self._of_host: Counter[str] = Counter()
        self._is_closed = False

    @property
    def port(self) -> int:
        """The number of the port."""
        return self._socket.port

    def statistics(self) -> tuple[int, int]:
        """How many connections there are, and how many of them are still in their handshakes."""
        return len(set(self._ends.values())), len(self._handshakes)

    def close(self) -> None:
        """Take no more connections; the socket is closed with the last one that is there."""
        self._is_closed = True
        for end in list(self._handshakes):
            end.give_up("the broker is stopping")
        self._close_if_done()

    def abort(self) -> None:
        """End all that is there, at once."""
        self._is_closed = True
        for end in set(self._ends.values()):
            end.give_up("the broker is stopping")
        self._close_if_done()

    def _close_if_done(self) -> None:
        if self._is_closed and not self._ends:
            self._socket.close()

    # Datagrams

    def _received(self, data: bytes, address: Address) -> None:
        try:
            header = pull_quic_header(
                Buffer(data=data), host_cid_length=self.configuration.connection_id_length
            )
        except ValueError:
            return
        end = self._ends.get(header.destination_cid)
        if end is None and len(data) >= _SMALLEST_FIRST_DATAGRAM and not self._is_closed:
            if header.version not in self.configuration.supported_versions:
                if header.packet_type != QuicPacketType.VERSION_NEGOTIATION and header.version is not None:
                    self._socket.send(
                        encode_quic_version_negotiation(
                            source_cid=header.destination_cid,
                            destination_cid=header.source_cid,
                            supported_versions=self.configuration.supported_versions,
                        ),
                        address,
                    )
            elif header.packet_type == QuicPacketType.INITIAL:
                end = self._greeted(header, address)
        if end is not None:
            end.receive(data, address)

    def _greeted(self, header: Any, address: Address) -> QuicEnd | None:
        """A first datagram: of somebody who has to come again, or has."""
        now = self._loop.time()
        if not header.token:
            source = os.urandom(self.configuration.connection_id_length)
            token = self._retry.create_token(
                address=address,
                original_destination_connection_id=header.destination_cid,
                retry_source_connection_id=source,
                now=now,
            )
            self._socket.send(
                encode_quic_retry(
                    version=header.version,
                    source_cid=source,
                    destination_cid=header.source_cid,
                    original_destination_cid=header.destination_cid,
                    retry_token=token,
                ),
                address,
            )
            return None
        try:
            original = self._retry.validate_token(
                address=address, destination_cid=header.destination_cid, token=header.token, now=now
            )
        except ValueError:
            return None
        host = str(address[0])
        if self._of_host[host] >= _HANDSHAKES_OF_HOST:
            return None  # it comes again by itself
        if len(self._handshakes) >= _HANDSHAKES:
            next(iter(self._handshakes)).give_up("others began a handshake later")
        connection = BoundedQuic(
            self.configuration,
            original_destination_connection_id=original,
            retry_source_connection_id=header.destination_cid,
        )
        end = QuicEnd(connection, self._socket.send, lambda: self._made(end), self._ended)
        end.on_id = lambda id, valid: self._on_id(end, id, valid)  # type: ignore[method-assign]
        for id in (header.destination_cid, connection.host_cid):
            end.ids.add(id)
            self._ends[id] = end
        timer = self._loop.call_later(self._within, end.give_up, "its handshake took too long")
        self._handshakes[end] = host, timer
        self._of_host[host] += 1
        return end

    # Ends

    def _made(self, end: QuicEnd) -> asyncio.Protocol:
        self._shaken(end)
        return self._make()

    def _shaken(self, end: QuicEnd) -> None:
        known = self._handshakes.pop(end, None)
        if known is not None:
            host, timer = known
            timer.cancel()
            self._of_host[host] -= 1
            if not self._of_host[host]:
                del self._of_host[host]

    def _on_id(self, end: QuicEnd, id: bytes, valid: bool) -> None:
        if valid:
            self._ends[id] = end
        else:
            self._ends.pop(id, None)

    def _ended(self, end: QuicEnd, problem: OSError | None) -> None:
        self._shaken(end)
        for id in end.ids:
            self._ends.pop(id, None)
        self._close_if_done()
