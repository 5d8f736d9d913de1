"""Links by hand, while a broker runs, as an operator asks for them: `palio link`, and `client.add_link`.

A link that was added is kept as one of the settings is, until the broker restarts; one that was removed is not
made again before that, at neither end, unless an operator adds it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from palio.broker.access.principal import Principal
from palio.broker.access.rights import Allowance
from palio.broker.dialling import AlreadyLinked, Dialling, LinkImpossible
from palio.broker.extension import Extension, ExtensionRequest
from palio.broker.settings import Peer
from palio.model.amounts import LARGEST
from palio.model.errors import PalioError
from palio.protocol.addresses import split_address
from palio.protocol.peers import LinkKind
from palio.routing.overlay.manager import CONSTRAINTS, FULL
from palio.routing.overlay.settings import normal

if TYPE_CHECKING:
    from palio.broker.broker import BrokerServer

# Characters of an address: no name of a host has more, and its port.
_LONGEST = 300


class WrongLinkAddress(PalioError):
    """An address at which no broker can be."""

    address: str
    reason: str
    sentence = "This is no address of a broker: {reason}"


class WrongLinkWish(PalioError):
    """A request to change the links of a broker that is none."""

    reason: str
    sentence = "The links of a broker cannot be changed like that: {reason}"


class LinkWish(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an operator wants: a link to the broker at an address, or none to a broker of that name or address.

    One that is wanted `if_allowed` is not missed where there is such a link, or must not be one.
    """

    do: Literal["add", "remove"]
    broker: str  # its address; or to remove the link, its name
    kind: LinkKind = LinkKind.PEER
    cost: Annotated[float, msgspec.Meta(gt=0, le=LARGEST)] = 1.0
    if_allowed: bool = False


class LinkRequests:
    """Adds and removes the links of one broker."""

    def __init__(self, broker: BrokerServer, dialling: Dialling) -> None:
        self._broker = broker
        self._dialling = dialling

    def extension(self) -> Extension:
        """What answers who asks."""
        request = ExtensionRequest("network.link", self._answer, Allowance.LINKS)
        return Extension(name="links", requests=(request,))

    def _answer(self, argument: dict[str, Any], principal: Principal, session: str) -> Any:
        """Raises `WrongLinkWish`, `WrongLinkAddress`, and what `Dialling.add` does."""
        try:
            wish = msgspec.convert(argument, LinkWish)
        except msgspec.ValidationError as problem:
            raise WrongLinkWish(f"{problem}.") from None
        return self._add(wish) if wish.do == "add" else self._remove(wish.broker)

    async def _add(self, wish: LinkWish) -> dict[str, Any]:
        address = require_address(wish.broker)
        kind = LinkKind.GRAPH if wish.kind is LinkKind.PEER and self._keeps_mesh else wish.kind
        try:
            if wish.if_allowed:
                self._require_room(address)
            name = await self._dialling.add(Peer(address, kind, wish.cost))
        except (AlreadyLinked, LinkImpossible) as problem:
            if not wish.if_allowed or (isinstance(problem, LinkImpossible) and problem.why not in CONSTRAINTS):
                raise
            return self._told(getattr(problem, "broker", ""), changed=False, reason=str(problem))
        return self._told(name, changed=True)

    def _require_room(self, address: str) -> None:
        """Raises `LinkImpossible` for who has as many neighbours as it should."""
        own, router = self._broker.settings, self._broker.router
        most = own.overlay.most
        if most is not None and (count := len(router.neighbours())) >= most:
            reason = f"{own.name} has {count} neighbours, as many as it should have."
            raise LinkImpossible(address, FULL, reason)

    @property
    def _keeps_mesh(self) -> bool:
        return self._broker.settings.overlay.kind == "mesh"

    def _remove(self, wanted: str) -> dict[str, Any]:
        name, was_dialled = wanted, False
        if name not in self._broker.links:
            try:
                address = normal(wanted)
            except ValueError:
                return self._told("", changed=False)
            name = self._dialling.neighbour_at(address) or ""
            was_dialled = self._dialling.forget(address)
        self._broker.carry_out(self._broker.router.remove_link(name, self._broker.now()))
        return self._told(name, changed=bool(name) or was_dialled)

    def _told(self, neighbour: str, *, changed: bool, reason: str = "") -> dict[str, Any]:
        name = self._broker.settings.name
        return {"broker": name, "neighbour": neighbour, "changed": changed, "reason": reason}


def require_address(text: str) -> str:
    """The address itself. Raises `WrongLinkAddress`."""
    text = text[:_LONGEST]
    try:
        host, port = split_address(text)
        if port == 0:
            raise ValueError(f"There is no port 0, as in {text!r}; write host:port.")
        if len(text) == _LONGEST or "/" in host or not host.isprintable() or " " in host:
            raise ValueError(f"{text!r} names no host; write host:port, or palios://host:port for TLS.")
    except ValueError as problem:
        raise WrongLinkAddress(text, str(problem)) from None
    return normal(text)
