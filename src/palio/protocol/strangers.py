"""Those who speak something else where this protocol is spoken: HTTP, or TLS."""

from __future__ import annotations

from dataclasses import InitVar

from palio.model.errors import PalioError
from palio.protocol.greeting import PROTOCOL

# The status of HTTP with which this port answers who speaks that.
MISDIRECTED = 421


class NotPalio(PalioError):
    """Somebody who speaks HTTP, or TLS, where this protocol is spoken."""

    spoken: str
    advice: InitVar[str] = ""
    sentence = PROTOCOL + " is spoken here, and this is {spoken}.{advice}"


# How requests and answers of HTTP begin, and records of TLS. Taken for the length of a frame, all of them are
# more than anybody may send first.
_HTTP = (b"GET ", b"HEAD ", b"POST ", b"PUT ", b"DELETE ", b"OPTIONS ", b"PATCH ", b"TRACE ", b"CONNECT ")
_TLS = (b"\x14\x03", b"\x15\x03", b"\x16\x03", b"\x17\x03")


def spoken_instead(head: bytes) -> str | None:
    """What somebody speaks who begins like that, if it is known: HTTP or TLS."""
    if head.startswith((*_HTTP, b"HTTP/", b"PRI * H")):
        return "HTTP"
    return "TLS" if head.startswith(_TLS) else None
