"""Addresses for clients: `palio://host:port`, or `ws://host:port` through HTTP; several after commas.

With TLS they are `palios://` and `wss://`, and over UDP `quic://`, which has TLS in it.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address
from typing import TypeAlias

from palio.client.errors import WrongAddress
from palio.protocol.addresses import QUIC_SCHEME, SCHEME, SECURE_SCHEME, split_address
from palio.transport.websocket import SCHEMES, complete

# A host and a port for TCP, or the URL of a WebSocket or of a broker that is reached by QUIC.
Place: TypeAlias = tuple[str, int] | str


def parse_addresses(text: str) -> list[Place]:
    """The hosts and ports, or URLs, that an address names, in its order. Raises `WrongAddress`.

    >>> parse_addresses("palio://one.example,[::1]:7171")
    [('one.example', 7070), ('::1', 7171)]
    >>> parse_addresses("ws://one.example:7080")
    ['ws://one.example:7080/palio']
    """
    if not text.startswith((SCHEME, SECURE_SCHEME, QUIC_SCHEME, *SCHEMES)):
        reason = f"It does not begin with {SCHEME}, {SECURE_SCHEME}, {QUIC_SCHEME}, ws:// or wss://."
        raise WrongAddress(text, reason)
    if QUIC_SCHEME in text and SCHEME in text:
        reason = f"{QUIC_SCHEME} is protected by TLS, and {SCHEME} is not; write {SECURE_SCHEME}."
        raise WrongAddress(text, reason)
    try:
        return [_place(part.strip(), text.startswith(QUIC_SCHEME)) for part in text.split(",")]
    except ValueError as problem:
        raise WrongAddress(text, str(problem)) from None


def _place(text: str, quic: bool) -> Place:
    if text.startswith(SCHEMES):
        return complete(text)
    host, port = split_address(text)
    if port == 0:
        raise ValueError("There is no port 0.")
    if text.startswith(QUIC_SCHEME) or (quic and "://" not in text):
        return f"{QUIC_SCHEME}[{host}]:{port}" if ":" in host else f"{QUIC_SCHEME}{host}:{port}"
    return host, port


def is_secure(text: str) -> bool:
    """Whether the brokers at an address speak TLS."""
    return text.startswith((SECURE_SCHEME, "wss://")) or QUIC_SCHEME in text


def told_places(own: str, told: Iterable[str]) -> list[Place]:
    """The places that a broker has told of, as far as they can be used by who was given its `own` address.

    They are machines, and not names, which may mean another machine here; and it is spoken to them in the same
    way. Through HTTP it is not, and by QUIC only who has come by QUIC can.

    >>> told_places("palio://one.example", ["palio://10.0.0.2:7070", "palios://10.0.0.3:7070", "palio://two:7070"])
    [('10.0.0.2', 7070)]
    """
    found: list[Place] = []
    for text in told:
        usual = (SCHEME, SECURE_SCHEME, QUIC_SCHEME) if QUIC_SCHEME in own else (SCHEME, SECURE_SCHEME)
        if own.startswith(SCHEMES) or not text.startswith(usual):
            continue
        try:
            host, port = split_address(text)
            machine = ip_address(host)
        except ValueError:
            continue
        usable = port and not (machine.is_unspecified or machine.is_multicast)
        if usable and is_secure(text) == is_secure(own):
            found.append(_place(text, quic=False))
    return found
