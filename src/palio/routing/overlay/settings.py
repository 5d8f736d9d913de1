"""How a broker chooses its links. Beside each default stands where it comes from."""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from typing import Annotated, Literal, TypeAlias

import msgspec

from palio.model.amounts import Seconds
from palio.protocol.addresses import scheme_of, split_address

# The networks of which nobody outside an organisation has addresses: this machine, and RFC 1918 and 4193.
PRIVATE = ("127.0.0.0/8", "::1/128", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")

# A broker of a mesh takes so many times as many neighbours as it looks for (a guess: half are others' choice).
SPARE = 2

OverlayKind: TypeAlias = Literal["auto", "fixed", "tree", "mesh"]


class OverlaySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`auto` is a tree where there is somebody to `join`, and otherwise links that are fixed by `peers`."""

    kind: OverlayKind = "auto"
    name: Annotated[str, msgspec.Meta(max_length=255)] = ""  # of the network: those of others are no neighbours
    join: tuple[str, ...] = ()  # addresses of brokers, of which one is enough
    # Neighbours: more, if nobody else takes a broker (a guess).
    degree: Annotated[int, msgspec.Meta(ge=2, le=1_000)] = 8
    # Neighbours that a broker of a mesh looks for; it takes twice as many (a guess: two near ones, one far).
    links: Annotated[int, msgspec.Meta(ge=2, le=100)] = 3
    look_every: Seconds = 30.0  # between two looks for other parts of the network, at the most (a guess)
    ask_within: Seconds = 5.0  # that a broker has to answer (as for links that are fixed)
    networks: tuple[str, ...] = PRIVATE  # addresses that are told by others are dialled in these alone
    address: str = ""  # where others reach this broker; by default where it listens
    # Whether changes are published as events: `auto` does so where brokers find links by themselves.
    events: Literal["auto", "on", "off"] = "auto"

    @property
    def is_tree(self) -> bool:
        """Whether this broker and others become a tree by themselves."""
        return self.kind == "tree" or (self.kind == "auto" and bool(self.join))

    @property
    def most(self) -> int | None:
        """Neighbours that a broker should have at the most; None if nobody counts them."""
        if self.kind == "mesh":
            return SPARE * self.links
        return self.degree if self.is_tree else None

    @property
    def publishes(self) -> bool:
        """Whether changes are events that can be subscribed to."""
        return self.events == "on" or (self.events == "auto" and self.most is not None)


class Passable:
    """Which addresses may be dialled that somebody else has told: those of machines in certain networks."""

    def __init__(self, networks: tuple[str, ...]) -> None:
        self._networks = [ip_network(text, strict=False) for text in networks]

    def __call__(self, address: str) -> bool:
        try:
            host, port = split_address(address)
            found = ip_address(host)
        except ValueError:
            return False
        return port > 0 and any(found in network for network in self._networks)


def normal(address: str) -> str:
    """The one way to write an address, so that nobody is known twice. Raises `ValueError`."""
    host, port = split_address(address)
    scheme = scheme_of(address)
    return f"{scheme}[{host}]:{port}" if ":" in host else f"{scheme}{host}:{port}"


def completed(address: str, host: str) -> str:
    """An address as told by a broker that is heard from a host: one that has no host, or any, gets that one.

    Empty if it cannot be used.
    """
    scheme, slashes, rest = address.rpartition("://")
    told, _, port = rest.rpartition(":")
    if told in ("", "0.0.0.0", "[::]"):
        told = f"[{host}]" if ":" in host else host
    return f"{scheme}{slashes}{told}:{port}" if told and port.isdigit() else ""
