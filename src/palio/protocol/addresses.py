"""Addresses of brokers, as people write them."""

from __future__ import annotations

from ipaddress import ip_address

DEFAULT_PORT = 7070
SCHEME = "palio://"
SECURE_SCHEME = "palios://"  # the same over TLS
QUIC_SCHEME = "quic://"  # the same over QUIC, which has TLS in it
_SCHEMES = (SCHEME, SECURE_SCHEME, QUIC_SCHEME)


def scheme_of(text: str) -> str:
    """How an address is reached: with a scheme before it, or else without TLS over TCP."""
    return next((scheme for scheme in _SCHEMES if text.startswith(scheme)), SCHEME)


def is_protected(text: str) -> bool:
    """Whether TLS is spoken at an address."""
    return scheme_of(text) != SCHEME


def split_address(text: str) -> tuple[str, int]:
    """Host and port of `host:port`, `palio://host:port` or `host`. Raises `ValueError` with a sentence."""
    rest = text.removeprefix(scheme_of(text)).rstrip("/")
    host, colon, port = rest.rpartition(":")
    if not colon or rest.endswith("]"):
        host, port = rest, str(DEFAULT_PORT)
    if not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise ValueError(f"{text!r} has no port that can be used; write host:port, with a port up to 65535.")
    if not host:
        raise ValueError(f"{text!r} names no host; write host:port.")
    return host.strip("[]"), int(port)


def is_loopback(address: str) -> bool:
    """Whether an address is one that means this machine, wherever it is used. A name is none."""
    try:
        return ip_address(split_address(address)[0]).is_loopback
    except ValueError:
        return False
