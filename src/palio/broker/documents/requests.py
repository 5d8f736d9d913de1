"""`FamilyRequests`: what clients may ask about families of documents, and who may.

1. Whoever adds, changes or removes a family needs the right `families`.
2. Whoever has paths added (`family.paths.add`) needs the right `paths`, or `families`, and sees the family.
3. A family is seen by who may change or inspect, and by who has a right to publish or to subscribe that a
   document of it could be within. To others it is not there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from palio.broker.access.principal import Principal
from palio.broker.access.rights import Allowance
from palio.broker.documents.descriptions import (
    PAGE,
    FamiliesAsked,
    FamilyChange,
    FamilyNamed,
    FamilyPut,
    FamilyWanted,
    PathsAsked,
    PathsWanted,
    described,
    described_path,
)
from palio.broker.documents.registry import FamilyRegistry
from palio.broker.documents.sampling import DocumentSample
from palio.broker.extension import Extension, ExtensionRequest, Route
from palio.documents.changing import ChangedFamily
from palio.documents.errors import UnknownFamily
from palio.documents.family import Family
from palio.documents.making import WantedPath
from palio.documents.reserved import FAMILY
from palio.model.errors import NotAllowed, PalioError
from palio.model.filter import Filter

Asked = TypeVar("Asked")


class WrongFamilyRequest(PalioError):
    """A request about families that cannot be read."""

    reason: str
    sentence = "This request about families of documents cannot be read: {reason}"


class FamilyRequests:
    """Answers what clients ask about families."""

    def __init__(
        self, registry: FamilyRegistry, sample: Callable[[str], DocumentSample], log: logging.Logger
    ) -> None:
        """`sample` gives documents to hold a change against; it is called in a thread."""
        self._registry = registry
        self._sample = sample
        self._log = log

    def extension(self, *, http: bool) -> Extension:
        """With `http`, they are at `/families`, too."""
        routes: tuple[Route, ...] = ()
        if http:
            from palio.broker.documents.http import family_routes  # noqa: PLC0415 (only where it is wanted)

            routes = family_routes()
        requests = (
            ExtensionRequest("family.add", self._add, Allowance.FAMILIES),
            ExtensionRequest("family.put", self._put, Allowance.FAMILIES),
            ExtensionRequest("family.change", self._change, Allowance.FAMILIES),
            ExtensionRequest("family.remove", self._remove, Allowance.FAMILIES),
            ExtensionRequest("family.paths", self._paths, None, reads=True),
            ExtensionRequest("family.paths.add", self._add_paths, None),
            ExtensionRequest("family.ls", self._list, None, reads=True),
            ExtensionRequest("family.show", self._show, None, reads=True),
        )
        return Extension(name="families", routes=routes, requests=requests)

    async def _add(self, argument: dict[str, Any], principal: Principal, session: str) -> dict[str, Any]:
        wanted = read_request(argument, FamilyWanted)
        made = await self._registry.add(wanted.make, wanted.name, everywhere=wanted.ready == "network")
        return described(made)

    async def _put(self, argument: dict[str, Any], principal: Principal, session: str) -> dict[str, Any]:
        wanted = read_request(argument, FamilyPut)
        everywhere = wanted.ready == "network"
        if not self._registry.has(wanted.name):
            made = await self._registry.add(wanted.wanted.make, wanted.name, everywhere=everywhere)
            return described(made) | {"new": True}
        changed = await self._registry.change(wanted.name, self._making(wanted), everywhere=everywhere)
        self.log_forced(changed, principal)
        return described(changed.shown) | {"new": False, "broken": list(changed.broken)}

    async def _change(self, argument: dict[str, Any], principal: Principal, session: str) -> dict[str, Any]:
        wanted = read_request(argument, FamilyChange)
        made = await self._registry.change(
            wanted.name, self._making(wanted), everywhere=wanted.ready == "network"
        )
        self.log_forced(made, principal)
        return described(made.shown) | {
            "broken": list(made.broken),
            "documents": made.looked_at,
            "whole": made.whole,
        }

    def _making(self, wanted: FamilyChange | FamilyPut) -> Callable[[Family], ChangedFamily]:
        def make(old: Family) -> ChangedFamily:
            sample = self._sample(old.name)
            made = wanted.made(old, sample.documents)
            return msgspec.structs.replace(made, whole=sample.whole)

        return make

    def log_forced(self, made: ChangedFamily, principal: Principal) -> None:
        """Says in the log that something was broken on purpose."""
        if made.new is not None and made.broken:
            extra = {
                "family": made.new.name,
                "revision": made.new.revision,
                "by": principal.name,
                "broken": " ".join(made.broken),
            }
            self._log.warning("A family was changed by force, which breaks what may be in use.", extra=extra)

    async def _remove(self, argument: dict[str, Any], principal: Principal, session: str) -> None:
        wanted = read_request(argument, FamilyNamed)
        await self._registry.remove(wanted.name, everywhere=wanted.ready == "network")

    async def _add_paths(self, argument: dict[str, Any], principal: Principal, session: str) -> dict[str, Any]:
        wanted = read_request(argument, PathsWanted)
        self.require_sees(principal, wanted.name)
        require_may_add_paths(principal, wanted.name)
        paths = [WantedPath.parse(one) if isinstance(one, str) else one for one in wanted.paths]
        everywhere = wanted.ready == "network"
        return described(await self._registry.add_paths(wanted.name, paths, everywhere=everywhere))

    async def _paths(self, argument: dict[str, Any], principal: Principal, session: str) -> dict[str, Any]:
        wanted = read_request(argument, PathsAsked)
        self.require_sees(principal, wanted.name)
        family = await self._registry.family(wanted.name)
        listed = await self._registry.listed_paths(wanted.name) if wanted.all else ()
        others = [
            {"expression": one.expression, "kind": one.type.kind, "many": one.type.many, "name": None}
            for one in listed
            if family.path(one.expression) is None
        ]
        return {"paths": [described_path(one) for one in family.paths], "others": others}

    async def _list(self, argument: dict[str, Any], principal: Principal, session: str) -> dict[str, Any]:
        after = read_request(argument, FamiliesAsked).after
        names = [one for one in self._registry.names() if one > after and may_see(principal, one)]
        found = [described(await self._registry.family(one)) for one in names[:PAGE] if self._registry.has(one)]
        return {"families": found, "onward": names[PAGE - 1] if len(names) > PAGE else None}

    async def _show(self, argument: dict[str, Any], principal: Principal, session: str) -> dict[str, Any]:
        wanted = read_request(argument, FamilyNamed)
        self.require_sees(principal, wanted.name)
        return described(await self._registry.family(wanted.name), whole=True)

    # Who may see what

    def require_sees(self, principal: Principal, name: str) -> None:
        """Raises `UnknownFamily`."""
        require_sees(self._registry, principal, name)


def require_sees(registry: FamilyRegistry, principal: Principal, name: str) -> None:
    """Raises `UnknownFamily` for a family that is not there, or that is not for these eyes."""
    if not may_see(principal, name):
        names = [one for one in registry.names() if may_see(principal, one)]
        raise UnknownFamily(name, tuple(names[:20]))
    registry.known(name)


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


def read_request(argument: Any, kind: type[Asked]) -> Asked:
    """Raises `WrongFamilyRequest`."""
    try:
        return msgspec.convert(argument, kind)
    except msgspec.ValidationError as problem:
        raise WrongFamilyRequest(f"{problem}.") from None
