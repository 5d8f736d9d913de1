"""Addresses of brokers: `palio://host:port`, several after commas."""

from __future__ import annotations

from palio.client.errors import WrongAddress
from palio.routing.protocol import DEFAULT_PORT

SCHEME = "palio://"


def parse_addresses(text: str) -> list[tuple[str, int]]:
    """The hosts and ports that an address names, in its order. Raises `WrongAddress`.

    >>> parse_addresses("palio://one.example,[::1]:7171")
    [('one.example', 7070), ('::1', 7171)]
    """
    if not text.startswith(SCHEME):
        raise WrongAddress(text, f"It does not begin with {SCHEME}.")
    return [_parse(text, part) for part in text.removeprefix(SCHEME).rstrip("/").split(",")]


def _parse(text: str, part: str) -> tuple[str, int]:
    host, colon, port = part.strip().removeprefix(SCHEME).rpartition(":")
    if not colon or port.endswith("]"):
        host, port = part.strip().removeprefix(SCHEME), str(DEFAULT_PORT)
    host = host.removeprefix("[").removesuffix("]")
    if not host:
        raise WrongAddress(text, "A host is missing.")
    if not port.isascii() or not port.isdigit() or not 0 < int(port) < 65_536:
        raise WrongAddress(text, f"{port!r} is no port.")
    return host, int(port)
