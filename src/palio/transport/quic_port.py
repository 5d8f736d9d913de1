"""`QuicPort`: a UDP socket that takes connections; and `UdpSocket`, on which whoever dials hears answers.

A port finds its ends by the connection ids in datagrams, and not by where these come from: whose address
changes stays connected. Whoever begins is asked first to come again with a token (Retry), which costs no memory
here and shows that the address is its own. Handshakes are bounded, in number and in time.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

from aioquic._buffer import Buffer
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.packet import (
    QuicPacketType,
    encode_quic_retry,
    encode_quic_version_negotiation,
    pull_quic_header,
)
from aioquic.quic.retry import QuicRetryTokenHandler

from palio.transport.quic_bounds import BoundedQuic
from palio.transport.quic_streams import LARGEST_DATAGRAM, Address, QuicEnd

# Handshakes under way: beyond, the oldest gives way, or of one host the newest is dropped (guesses).
_HANDSHAKES = 256
_HANDSHAKES_OF_HOST = 64
# Of a first datagram: whoever sends a smaller one could make others be answered with more.
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
                data, address = self._socket.recvfrom(LARGEST_DATAGRAM + 1)
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
