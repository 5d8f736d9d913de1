"""`BoundedQuic`: a connection of aioquic that holds no more than was agreed, whoever is at the other end.

aioquic alone doubles the window of a stream as data arrives, whether or not anybody takes it, and lets the
other end open ever more streams. Here

1. there is one stream, which the end that dials opens, and no datagram;
2. its window slides with what was *taken*: who does not read holds `WINDOW` bytes and no more;
3. what comes in disorder may have so many gaps and no more, as each costs time to look at;
4. nothing is sent or taken before the handshake is over (no 0-RTT, which others could replay).

This is the only file that touches what is private in aioquic. Each name that it relies on is looked for when it
is imported, and what they do is shown by `tests/transport/test_quic.py`, so that another version is noticed.
"""

from __future__ import annotations

import logging
from typing import Any

from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import (
    MAX_STREAM_DATA_FRAME_CAPACITY,
    QuicConnection,
    QuicConnectionAdapter,
)
from aioquic.quic.events import ConnectionTerminated
from aioquic.quic.packet import QuicFrameType
from aioquic.quic.packet_builder import QuicPacketBuilder
from aioquic.quic.recovery import QuicPacketSpace
from aioquic.quic.stream import QuicStream
from cryptography.x509 import ExtendedKeyUsage, ExtensionNotFound
from cryptography.x509.oid import ExtendedKeyUsageOID

# The stream that the end which dials opens first.
STREAM = 0
# Bytes that the other end may send before somebody takes them (a guess: about what TCP begins with).
WINDOW = 256 * 1024
# Bytes of a handshake that may come in disorder: a chain of certificates has some thousands.
_MOST_HANDSHAKE = 64 * 1024
# Gaps in what has come: a whole window of small datagrams, of which each second one is lost, has as many.
_MOST_GAPS = 256
# For the connection as a whole there is no other window than that of its stream.
_NO_OTHER_WINDOW = (1 << 62) - 1

# What aioquic logs of others' mistakes is told by how a connection ends; strangers shall not fill logs.
_QUIET = QuicConnectionAdapter(logging.Logger("quic", logging.CRITICAL + 1), {"id": ""})

_RELIED_ON = (
    "_write_stream_limits",
    "_on_max_stream_data_delivery",
    "_stream_can_receive",
    "_get_or_create_stream_for_send",
)
_MISSING = [name for name in _RELIED_ON if not hasattr(QuicConnection, name)]
if _MISSING:
    raise ImportError(f"This version of aioquic has no {', '.join(_MISSING)}.")


def bounded_configuration(**given: Any) -> QuicConfiguration:
    """The configuration of a `BoundedQuic`."""
    return QuicConfiguration(max_data=_NO_OTHER_WINDOW, max_stream_data=WINDOW, **given)


class BoundedQuic(QuicConnection):
    """One connection. Bytes that came on its stream count as held until they are `taken`."""

    def __init__(self, configuration: QuicConfiguration, **given: Any) -> None:
        super().__init__(configuration=configuration, **given)
        self._taken = 0
        self._logger = _QUIET
        for limit, streams in (
            (self._local_max_streams_bidi, 0 if configuration.is_client else 1),
            (self._local_max_streams_uni, 0),
        ):
            limit.value = limit.sent = streams

    @property
    def is_begun(self) -> bool:
        """Whether there is anybody to send anything to."""
        return bool(self._network_paths)

    @property
    def ended_by(self) -> ConnectionTerminated | None:
        """Why it is over, as soon as that is known: aioquic itself tells it some round trips later."""
        return self._close_event

    @property
    def may_send(self) -> bool:
        """Whether the stream is there: who was dialled may use it once the other end has."""
        return self._is_client or STREAM in self._streams

    @property
    def unacknowledged(self) -> int:
        """Bytes that were handed over to be sent, and that the other end does not have for sure."""
        stream = self._streams.get(STREAM)
        return 0 if stream is None else len(stream.sender._buffer)

    @property
    def is_unreasonable(self) -> bool:
        """Whether the other end makes this one keep, or look at, what no sensible sender would."""
        streams = [stream.receiver for stream in self._streams.values()]
        handshake = [stream.receiver for stream in self._crypto_streams.values()]
        return any(len(one._ranges) > _MOST_GAPS for one in streams + handshake) or any(
            len(one._buffer) > _MOST_HANDSHAKE for one in handshake
        )

    @property
    def is_of_a_server(self) -> bool:
        """Whether the certificate that was shown may be that of a server; some are for clients alone."""
        shown = self.tls._peer_certificate
        if shown is None:
            return False
        try:
            use = shown.extensions.get_extension_for_class(ExtendedKeyUsage).value
        except ExtensionNotFound:
            return True
        return ExtendedKeyUsageOID.SERVER_AUTH in use or ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE in use

    def taken(self, size: int) -> None:
        """So many more bytes of the stream are held no more: the other end may send as many."""
        self._taken += size

    def let_go(self) -> None:
        """Handles that it is over, and nobody asks for anything any more.

        What refers to each other would stay in memory until somebody looks for garbage: 130 KB of each.
        """
        self.__dict__.clear()

    def _write_stream_limits(
        self, builder: QuicPacketBuilder, space: QuicPacketSpace, stream: QuicStream
    ) -> None:
        """Instead of that of aioquic, which doubles the window by what has come."""
        allowed = self._taken + WINDOW
        if allowed - stream.max_stream_data_local >= WINDOW // 2:  # not for each few bytes
            stream.max_stream_data_local = allowed
        if stream.max_stream_data_local_sent != stream.max_stream_data_local:
            frame = builder.start_frame(
                QuicFrameType.MAX_STREAM_DATA,
                capacity=MAX_STREAM_DATA_FRAME_CAPACITY,
                handler=self._on_max_stream_data_delivery,
                handler_args=(stream,),
            )
            frame.push_uint_var(STREAM)
            frame.push_uint_var(stream.max_stream_data_local)
            stream.max_stream_data_local_sent = stream.max_stream_data_local
