"""Addresses for clients: `palio://host:port`, or `ws://host:port` through HTTP; several after commas.

With TLS they are `palios://` and `wss://`.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address
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


def told_places(own: str, told: Iterable[str]) -> list[Place]:
    """The places that a broker has told of, as far as they can be used by who was given its `own` address.

    They are machines, and not names, which may mean another machine here; and it is spoken to them in the same
    way. Through HTTP it is not.

    >>> told_places("palio://one.example", ["palio://10.0.0.2:7070", "palios://10.0.0.3:7070", "palio://two:7070"])
    [('10.0.0.2', 7070)]
    """
    found: list[Place] = []
    for text in told:
        if own.startswith(SCHEMES) or not text.startswith((SCHEME, SECURE_SCHEME)):
            continue
        try:
            host, port = split_address(text)
            machine = ip_address(host)
        except ValueError:
            continue
        usable = port and not (machine.is_unspecified or machine.is_multicast)
        if usable and is_secure(text) == is_secure(own):
            found.append((host, port))
    return found
