"""Who speaks HTTP at the port for `palio/2` is answered in HTTP, with the way to the other port."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from palio.broker.settings import split_address
from palio.protocol.strangers import MISDIRECTED

if TYPE_CHECKING:
    from palio.broker.broker import BrokerServer


def where_http_is(broker: BrokerServer, reached: tuple[Any, ...] | None) -> str:
    """A sentence; `reached` is the address of this machine at which somebody has come."""
    if not broker.http_port:
        return "This broker has no port for HTTP; the setting `http` gives it one."
    host = split_address(broker.settings.http)[0]
    if host in ("0.0.0.0", "::") and reached:
        host = str(reached[0])
    scheme = "http" if broker.tls is None else "https"
    return f"HTTP is at {scheme}://{f'[{host}]' if ':' in host else host}:{broker.http_port}/."


def http_answer(text: str) -> bytes:
    """What somebody with a browser, or curl, can read."""
    body = f"{text}\n".encode()
    head = (
        f"HTTP/1.1 {MISDIRECTED} Misdirected Request\r\nContent-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body
