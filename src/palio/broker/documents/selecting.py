"""`SelectionReading`: filters with XPaths in them, read for whoever wants to subscribe (`documents.selection`).

A client that is given such a text asks for what it means (`filters.read`), and subscribes with the plain filter
that it is told. So nothing behind this knows of paths.

1. Whoever is told a filter may rely on it: all brokers in reach extract its paths, also those that somebody
   else has just added. What this broker has seen to once it need not see to again.
2. Paths that a family does not have are added, if whoever asks has the right to, before the answer.
3. A family that somebody may not see is not there.
4. What is known already is answered at once. Only a path that is new waits for the schema to be read, in the
   thread in which families are made.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, TypeVar

import msgspec

from palio.broker.access.principal import Principal
from palio.broker.documents.registry import FamilyConflict, FamilyRegistry
from palio.broker.documents.requests import may_see, require_may_add_paths
from palio.broker.extension import Extension, ExtensionRequest
from palio.documents.family import Family, FamilyPath
from palio.documents.family_paths import FamilyPaths
from palio.documents.making import WantedPath
from palio.documents.records import KnownFamily
from palio.documents.selection import Selection, read_selection
from palio.documents.typing import PathTyping
from palio.model.effort import Meter, metered
from palio.model.errors import PalioError

Result = TypeVar("Result")

_TRIES = 5


class WrongFilterRequest(PalioError):
    """A request about a filter that cannot be read."""

    reason: str
    sentence = "This request about a filter cannot be read: {reason}"


class SelectionWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A filter that somebody wants to be read; with `add` its paths are to be extracted from now on."""

    filter: str
    add: bool = False


class _SchemaNeeded(Exception):
    """What is asked cannot be said without reading a schema."""


class SelectionReading:
    """Reads filters about documents, at one broker; what a reading may take is counted in `steps`."""

    def __init__(self, registry: FamilyRegistry, steps: int) -> None:
        self._registry = registry
        self._steps = steps
        self._paths: dict[str, tuple[KnownFamily, FamilyPaths]] = {}
        # By family, for its revision and schema: paths that all brokers in reach are known to extract.
        self._everywhere: dict[str, tuple[str, int, bytes, set[str]]] = {}

    def extension(self) -> Extension:
        return Extension(name="filters", requests=(ExtensionRequest("filters.read", self._answer, None),))

    def _answer(
        self, argument: dict[str, Any], principal: Principal, session: str
    ) -> dict[str, Any] | Awaitable[dict[str, Any]]:
        try:
            wanted = msgspec.convert(argument, SelectionWanted)
        except msgspec.ValidationError as problem:
            raise WrongFilterRequest(f"{problem}.") from None
        found = self._at_once(wanted.filter, principal)
        if found is not None and (not wanted.add or not self._missing(found)):
            return _told(found)
        return self._later(wanted, principal)

    async def _later(self, wanted: SelectionWanted, principal: Principal) -> dict[str, Any]:
        if wanted.add:
            return _told(await self.read(wanted.filter, principal))
        return _told(await self.look(wanted.filter, principal))

    async def look(self, text: str, principal: Principal) -> Selection:
        """What a filter means. Raises what `read_selection` does."""
        return await self.asked(principal, partial(read_selection, text))

    async def asked(self, principal: Principal, ask: Callable[[Mapping[str, FamilyPaths]], Result]) -> Result:
        """What comes of asking the families that somebody may see. It may be asked again, in a thread."""
        try:
            with metered(Meter(self._steps)):
                return ask(_SeenFamilies(self._registry, principal, self._known_paths))
        except _SchemaNeeded:
            return await self._registry.reading(lambda typing: self._in_thread(ask, principal, typing))

    async def read(self, text: str, principal: Principal) -> Selection:
        """What a filter means, once all brokers in reach extract its paths.

        Raises what `read_selection` does, `NotAllowed`, and `FamilyConflict`.
        """
        for _ in range(_TRIES):
            found = await self.look(text, principal)
            missing = self._missing(found)
            for name in found.new_paths:
                require_may_add_paths(principal, name)
            if all([await self._extracted(name, paths) for name, paths in missing.items()]):
                return found
        raise FamilyConflict(next(iter(found.paths)))

    def _at_once(self, text: str, principal: Principal) -> Selection | None:
        """What a filter means, unless that takes a schema."""
        try:
            return read_selection(text, _SeenFamilies(self._registry, principal, self._known_paths))
        except _SchemaNeeded:
            return None

    def _in_thread(
        self,
        ask: Callable[[Mapping[str, FamilyPaths]], Result],
        principal: Principal,
        typing: Callable[[Family], PathTyping],
    ) -> Result:
        def paths_of(known: KnownFamily) -> FamilyPaths:
            return FamilyPaths(known.complete(), lambda: typing(known.declared))

        with metered(Meter(self._steps)):
            return ask(_SeenFamilies(self._registry, principal, paths_of))

    def _known_paths(self, known: KnownFamily) -> FamilyPaths:
        kept = self._paths.get(known.name)
        if kept is not None and kept[0] is known:
            return kept[1]
        if not known.is_complete:
            raise _SchemaNeeded
        made = FamilyPaths(known.complete(), _schema_needed)
        self._paths[known.name] = known, made
        return made

    # Paths that have to be extracted everywhere

    def _missing(self, found: Selection) -> dict[str, list[FamilyPath]]:
        """By family, the paths that not all brokers are known to extract."""
        missing = {}
        for name, paths in found.paths.items():
            there = self._extracted_everywhere(name)
            if some := [one for one in paths if one.expression not in there]:
                missing[name] = some
        return missing

    def _extracted_everywhere(self, name: str) -> set[str]:
        known = self._registry.known(name)
        kept = self._everywhere.get(name)
        state = known.mark, known.declared.revision, known.basis
        if kept is None or kept[:3] != state:
            kept = self._everywhere[name] = *state, set()
        return kept[3]

    async def _extracted(self, name: str, paths: Iterable[FamilyPath]) -> bool:
        """Waits until all brokers extract paths. Returns whether these are as they were thought to be."""
        family = await self._registry.add_paths(name, [_wanted(one) for one in paths])
        if any(_as_it_is(family, one) != one for one in paths):
            return False
        self._extracted_everywhere(name).update(one.expression for one in paths)
        return True


class _SeenFamilies(Mapping[str, FamilyPaths]):
    """The families that somebody may see, by name, as they are asked for."""

    def __init__(
        self, registry: FamilyRegistry, principal: Principal, paths_of: Callable[[KnownFamily], FamilyPaths]
    ) -> None:
        self._registry, self._principal, self._paths_of = registry, principal, paths_of
        self._found: dict[str, FamilyPaths | None] = {}

    def __getitem__(self, name: str) -> FamilyPaths:
        if name not in self._found:
            there = self._registry.has(name) and may_see(self._principal, name)
            self._found[name] = self._paths_of(self._registry.known(name)) if there else None
        found = self._found[name]
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._registry.names() if may_see(self._principal, name))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _schema_needed() -> PathTyping:
    raise _SchemaNeeded


def _wanted(path: FamilyPath) -> WantedPath:
    return WantedPath(path.expression, path.kind if path.said else None, path.many if path.said else None)


def _as_it_is(family: Family, path: FamilyPath) -> FamilyPath | None:
    """The path of a family as a filter sees it."""
    found = family.path(path.expression)
    return None if found is None else msgspec.structs.replace(found, name=path.name, said=path.said)


def _told(found: Selection) -> dict[str, Any]:
    return {
        "filter": found.filter.source,
        "new_paths": {name: [one.expression for one in paths] for name, paths in found.new_paths.items()},
    }
