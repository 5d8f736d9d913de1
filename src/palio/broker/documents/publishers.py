"""`PublisherRequests`: what clients may ask about publishers of documents: to be registered, and not to be any
more.

Whoever registers is registered themselves, and must have a right to publish some document of the family.
Whether that is needed to publish is for the family to say (`registered`)."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from palio.broker.access.principal import Principal
from palio.broker.access.rights import Allowance
from palio.broker.documents.registrations import MAX_ADDRESS, PublisherRegistrations
from palio.broker.documents.requests import read_request
from palio.broker.extension import Extension, ExtensionRequest
from palio.documents.reserved import FAMILY
from palio.model.errors import NotAllowed
from palio.model.filter import Filter


class PublisherNamed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whoever asks, as a publisher of documents of a family, from an address if they have several."""

    name: str
    address: Annotated[str, msgspec.Meta(max_length=MAX_ADDRESS)] = ""


class PublishersAsked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The family whose publishers are to be listed."""

    name: str


class PublisherRequests:
    """Answers what clients ask about publishers."""

    def __init__(self, registrations: PublisherRegistrations) -> None:
        self.registrations = registrations

    def extension(self) -> Extension:
        requests = (
            ExtensionRequest("family.register", self._register, None),
            ExtensionRequest("family.withdraw", self._withdraw, None),
            ExtensionRequest("family.publishers", self._list, Allowance.INSPECT, reads=True),
        )
        return Extension(name="publishers", requests=requests)

    async def register(self, principal: Principal, family: str, address: str) -> str:
        """The handle of a registration. Raises `NotAllowed`, `UnknownFamily` and `TooManyRegistrations`."""
        require_publishes(principal, family)
        return await self.registrations.register(family, principal.name, address)

    async def withdraw(self, principal: Principal, family: str, address: str) -> None:
        """Ends a registration, if there is one. Raises `NotAllowed` and `UnknownFamily`."""
        require_publishes(principal, family)
        await self.registrations.withdraw(family, principal.name, address)

    async def _register(self, argument: dict[str, Any], principal: Principal, session: str) -> dict[str, Any]:
        wanted = read_request(argument, PublisherNamed)
        return {"handle": await self.register(principal, wanted.name, wanted.address)}

    async def _withdraw(self, argument: dict[str, Any], principal: Principal, session: str) -> None:
        wanted = read_request(argument, PublisherNamed)
        await self.withdraw(principal, wanted.name, wanted.address)

    async def _list(self, argument: dict[str, Any], principal: Principal, session: str) -> list[dict[str, Any]]:
        return self.registrations.listed(read_request(argument, PublishersAsked).name)


def require_publishes(principal: Principal, family: str) -> None:
    """Raises `NotAllowed` for who may publish no document of a family, registered or not."""
    documents, own = Filter.template({FAMILY: family}), principal.rights.publish
    if own is None or not own.overlaps(documents):
        missing = f"its rights to publish have nothing in common with {documents}."
        raise NotAllowed(principal.name, f"publish documents of the family {family!r}", missing)
