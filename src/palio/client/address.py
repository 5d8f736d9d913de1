"""Addresses for clients: `palio://host:port`, or `ws://host:port` through HTTP; several after commas.

With TLS they are `palios://` and `wss://`.
"""

from __future__ import annotations

from typing import TypeAlias

from palio.client.errors import WrongAddress
from palio.protocol.addresses import SCHEME, SECURE_SCHEME, split_address
from palio.transport.websocket import SCHEMES, complete

# A host and a port, or the URL of a WebSocket.
Place: TypeAlias = tuple[str, int] | str


def parse_addresses(text: str) -> list[Place]:
    """The hosts and ports, or URLs, that an address names, in its order. Raises `WrongAddress`.

    >>> parse_addresses("palio://one.example,[::1]:7171")
    [('one.example', 7070), ('::1', 7171)]
    >>> parse_addresses("ws://one.example:7080")
    ['ws://one.example:7080/palio']
    """
    if not text.startswith((SCHEME, SECURE_SCHEME, *SCHEMES)):
        raise WrongAddress(text, f"It does not begin with {SCHEME}, {SECURE_SCHEME}, ws:// or wss://.")
    try:
        return [_place(part.strip()) for part in text.split(",")]
    except ValueError as problem:
        raise WrongAddress(text, str(problem)) from None


def _place(text: str) -> Place:
    if text.startswith(SCHEMES):
        return complete(text)
    host, port = split_address(text)
    if port == 0:
        raise ValueError("There is no port 0.")
    return host, port


def is_secure(text: str) -> bool:
    """Whether the brokers at an address speak TLS."""
    return text.startswith((SECURE_SCHEME, "wss://"))
