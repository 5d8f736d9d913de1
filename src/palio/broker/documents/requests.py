"""`FamilyRequests`: what clients may ask about families of documents, and who may.

1. Whoever adds, changes or removes a family needs the right `families`.
2. Whoever has paths added (`family.paths.add`) needs the right `paths`, or `families`, and sees the family.
3. A family is seen by who may change or inspect, and by who has a right to publish or to subscribe that a
   document of it could be within. To others it is not there.
"""

from __future__ import annotations

from typing import Any, Literal, TypeVar

import msgspec

from palio.broker.access.principal import Principal
from palio.broker.access.rights import Allowance
from palio.broker.documents.registry import FamilyRegistry, described
from palio.broker.extension import Extension, ExtensionRequest
from palio.documents.errors import UnknownFamily
from palio.documents.family import Family, SchemaFile
from palio.documents.making import WantedPath, make_family
from palio.documents.reserved import FAMILY
from palio.model.errors import NotAllowed, PalioError
from palio.model.filter import Filter

Asked = TypeVar("Asked")


class WrongFamilyRequest(PalioError):
    """A request about families that cannot be read."""

    reason: str
    sentence = "This request about families of documents cannot be read: {reason}"


class FamilyWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A family as somebody describes it; what is not said is taken from the schema."""

    name: str
    schemas: tuple[SchemaFile, ...] = ()
    paths: tuple[WantedPath | str, ...] = ()
    key: tuple[str, ...] = ()
    prefixes: dict[str, str] = {}
    namespace: str | None = None
    root: str | None = None
    registered: bool = False
    ready: Literal["broker", "network"] = "network"

    def make(self) -> Family:
        """Raises what `make_family` does."""
        return make_family(
            self.name,
            self.schemas,
            self.paths,
            self.key,
            prefixes=self.prefixes,
            namespace=self.namespace,
            root=self.root,
            registered=self.registered,
        )


class FamilyNamed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A family by its name."""

    name: str
    ready: Literal["broker", "network"] = "network"


class PathsWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Paths that a family is to have."""

    name: str
    paths: tuple[WantedPath | str, ...]
    ready: Literal["broker", "network"] = "network"


class FamilyRequests:
    """Answers what clients ask about families."""

    def __init__(self, registry: FamilyRegistry) -> None:
        self._registry = registry

    def extension(self) -> Extension:
        requests = (
            ExtensionRequest("family.add", self._add, Allowance.FAMILIES),
            ExtensionRequest("family.remove", self._remove, Allowance.FAMILIES),
            ExtensionRequest("family.paths.add", self._add_paths, None),
            ExtensionRequest("family.ls", self._list, None, reads=True),
            ExtensionRequest("family.show", self._show, None, reads=True),
        )
        return Extension(name="families", requests=requests)

    async def _add(self, argument: dict[str, Any], principal: Principal, session: str) -> dict[str, Any]:
        wanted = _read(argument, FamilyWanted)
        made = await self._registry.add(wanted.make, wanted.name, everywhere=wanted.ready == "network")
        return described(made)

    async def _remove(self, argument: dict[str, Any], principal: Principal, session: str) -> None:
        wanted = _read(argument, FamilyNamed)
        await self._registry.remove(wanted.name, everywhere=wanted.ready == "network")

    async def _add_paths(self, argument: dict[str, Any], principal: Principal, session: str) -> dict[str, Any]:
        wanted = _read(argument, PathsWanted)
        self.require_sees(principal, wanted.name)
        require_may_add_paths(principal, wanted.name)
        paths = [WantedPath.parse(one) if isinstance(one, str) else one for one in wanted.paths]
        everywhere = wanted.ready == "network"
        return described(await self._registry.add_paths(wanted.name, paths, everywhere=everywhere))

    async def _list(self, argument: dict[str, Any], principal: Principal, session: str) -> list[dict[str, Any]]:
        return [described(one) for one in await self.seen(principal)]

    async def _show(self, argument: dict[str, Any], principal: Principal, session: str) -> dict[str, Any]:
        wanted = _read(argument, FamilyNamed)
        self.require_sees(principal, wanted.name)
        return described(await self._registry.family(wanted.name), whole=True)

    # Who may see what

    async def seen(self, principal: Principal) -> list[Family]:
        """All families that somebody may see, by name."""
        return [one for one in await self._registry.families() if may_see(principal, one.name)]

    def require_sees(self, principal: Principal, name: str) -> None:
        """Raises `UnknownFamily` for one that is not there, or that is not for these eyes."""
        if not may_see(principal, name):
            names = [one for one in self._registry.names() if may_see(principal, one)]
            raise UnknownFamily(name, tuple(names[:20]))
        self._registry.known(name)


def may_see(principal: Principal, name: str) -> bool:
    """Whether somebody may know of a family: who changes or inspects, and who may have to do with it."""
    rights = principal.rights
    if rights.allow & {Allowance.FAMILIES, Allowance.INSPECT}:
        return True
    documents = Filter.template({FAMILY: name})
    return any(one is not None and one.overlaps(documents) for one in (rights.publish, rights.subscribe))


def require_may_add_paths(principal: Principal, name: str) -> None:
    """Raises `NotAllowed` for who may not have paths added to a family."""
    if not principal.rights.allow & {Allowance.PATHS, Allowance.FAMILIES}:
        what = f"have paths added to the family {name!r}"
        raise NotAllowed(principal.name, what, f"that needs the right {Allowance.PATHS.value!r}.")


def _read(argument: Any, kind: type[Asked]) -> Asked:
    """Raises `WrongFamilyRequest`."""
    try:
        return msgspec.convert(argument, kind)
    except msgspec.ValidationError as problem:
        raise WrongFamilyRequest(f"{problem}.") from None
