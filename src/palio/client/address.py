"""Addresses for clients: `palio://host:port`, several after commas; `palios://` if they speak TLS."""

from __future__ import annotations

from palio.client.errors import WrongAddress
from palio.routing.addresses import SCHEME, SECURE_SCHEME, split_address


def parse_addresses(text: str) -> list[tuple[str, int]]:
    """The hosts and ports that an address names, in its order. Raises `WrongAddress`.

    >>> parse_addresses("palio://one.example,[::1]:7171")
    [('one.example', 7070), ('::1', 7171)]
    """
    if not text.startswith((SCHEME, SECURE_SCHEME)):
        raise WrongAddress(text, f"It does not begin with {SCHEME} or {SECURE_SCHEME}.")
    try:
        addresses = [split_address(part.strip()) for part in text.partition("://")[2].split(",")]
    except ValueError as problem:
        raise WrongAddress(text, str(problem)) from None
    if any(port == 0 for _, port in addresses):
        raise WrongAddress(text, "There is no port 0.")
    return addresses


def is_secure(text: str) -> bool:
    """Whether the brokers at an address speak TLS."""
    return text.startswith(SECURE_SCHEME)
