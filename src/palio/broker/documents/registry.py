"""`FamilyRegistry`: the families that a broker knows, which are those that all brokers of its network know.

They are shared records (`routing.shared`, `documents.records`): what is put here is everywhere, survives
crashes, and comes to brokers that join later. Whoever reads documents is told at once, in the same turn in
which the record came: so when the network has confirmed a path, every broker extracts it.

1. What is put was made here (`documents.making`): nobody shares a family that is not right.
2. Making takes a while, in a thread, one at a time. If the family has changed meanwhile, it is made again of
   what it is now; so nobody overrules what was to be seen.
3. Of two brokers that change a family at the same time one is told `FamilyConflict`: its change is not there.
4. A broker adds no more than `MAX_FAMILIES`, and to each no more than `MAX_PATHS` paths."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import islice
from typing import Final, TypeVar

from palio.broker.sharing import BrokerSharing
from palio.documents.changing import ChangedFamily
from palio.documents.errors import FamilyRefused, UnknownFamily
from palio.documents.family import MAX_PATHS, Family, FamilyPath
from palio.documents.listing import ListedPath
from palio.documents.making import WantedPath, bounded, typed_path, typing_of
from palio.documents.records import (
    FAMILIES,
    PATHS,
    FamilyRecord,
    KnownFamily,
    PathRecord,
    RecordChange,
    UnreadableRecord,
    family_change,
    known_families,
    path_change,
    path_key,
    read_family_record,
    read_path_record,
)
from palio.documents.typing import PathTyping
from palio.documents.xpath import read_path
from palio.model.errors import PalioError
from palio.protocol.sharing import SharedRecord

MAX_FAMILIES: Final = 1_000
_SHOWN: Final = 20  # names of families that are told to whoever asks for another one
_TYPINGS: Final = 4  # schemas that are kept read for paths to come, of which one may take 60 MB
MAX_SHOWN: Final = 5_000  # paths of a schema that are listed at a time
_TRIES: Final = 5
_FEW: Final = 16  # paths that are read in the event loop; each takes up to two milliseconds

Result = TypeVar("Result")


class FamilyExists(PalioError):
    """A family of that name is there already."""

    name: str
    sentence = (
        "There is a family {name!r} already; change it with `palio family change`, or choose another name."
    )


class FamilyConflict(PalioError):
    """A family was changed at the same time elsewhere, and that is what counts."""

    name: str
    sentence = (
        "The family {name!r} was changed by somebody else at the same time, and that is what counts; look at "
        "it with `palio family show`, and ask again if you still want to."
    )


class FamilyRegistry:
    """All families, at one broker."""

    def __init__(self, sharing: BrokerSharing, tell: Callable[[Sequence[KnownFamily]], None]) -> None:
        """`tell` hears of all families whenever one has changed."""
        self._sharing = sharing
        self._tell = tell
        self._known: dict[str, KnownFamily] = {}
        self._added: dict[tuple[str, str], dict[str, PathRecord]] = {}  # by family and mark, then by key
        self._typings: dict[int, tuple[Family, PathTyping]] = {}
        self._maker = ThreadPoolExecutor(1, "palio-families")

    def begin(self) -> None:
        """Reads what is known already, and hears of changes from now on."""
        for key, value in self._sharing.of(PATHS).items():
            with suppress(UnreadableRecord):
                self._add(key, read_path_record(key, value))
        self._known = known_families(self._sharing.of(FAMILIES), self._sharing.of(PATHS))
        self._sharing.listen(FAMILIES, self._family_changed)
        self._sharing.listen(PATHS, self._path_changed)
        self._changed()

    def stop(self) -> None:
        """Nothing more is made."""
        self._maker.shutdown(wait=False, cancel_futures=True)

    # What is known

    def names(self) -> list[str]:
        return sorted(self._known)

    def has(self, name: str) -> bool:
        """Whether there is a family of that name."""
        return name in self._known

    def known(self, name: str) -> KnownFamily:
        """Raises `UnknownFamily`."""
        found = self._known.get(name)
        if found is None:
            raise UnknownFamily(name, tuple(self.names()[:_SHOWN]))
        return found

    async def family(self, name: str) -> Family:
        """A family with all its paths. Raises `UnknownFamily`."""
        known = self.known(name)
        return known.complete() if known.is_complete else await self._in_thread(known.complete)

    async def families(self) -> list[Family]:
        """All of them, by name."""
        return [await self.family(name) for name in self.names() if name in self._known]

    async def listed_paths(self, name: str) -> tuple[ListedPath, ...]:
        """The paths that the schema of a family has, short ones first. Raises `UnknownFamily`."""
        declared = self.known(name).declared

        def listed() -> tuple[ListedPath, ...]:
            with bounded(name):
                return tuple(islice(self._typing(declared).paths(), MAX_SHOWN))

        return await self._in_thread(listed)

    async def reading(self, work: Callable[[Callable[[Family], PathTyping]], Result]) -> Result:
        """What comes of some work in the thread in which families are made, where their schemas are read."""
        return await self._in_thread(lambda: work(self._typing))

    # Changes

    async def add(self, make: Callable[[], Family], name: str, *, everywhere: bool = True) -> Family:
        """Add a family, which is made in a thread. Raises what `make` does, `FamilyExists` and others."""
        self._require_new(name)
        family = await self._in_thread(make)
        self._require_new(name)
        self._require_root(family)
        record = FamilyRecord(secrets.token_hex(8), family)
        await self._put(name, record, [family_change(record)], everywhere)
        await self._clean(name, record.mark)
        return family

    async def _clean(self, name: str, mark: str) -> None:
        """Remove what is left of families that had this name before, now that there is another one."""
        others = [keys for (of, its), keys in self._added.items() if of == name and its != mark]
        await self._sharing.put(*[(PATHS, key, None) for keys in others for key in keys])

    async def change(
        self, name: str, change: Callable[[Family], ChangedFamily], *, everywhere: bool = True
    ) -> ChangedFamily:
        """Change a family to what `change` makes of it as it is now, in a thread.

        If there is no `new` one in what it makes, nothing is changed. Raises what `change` does,
        `UnknownFamily` and `FamilyConflict`.
        """
        for _ in range(_TRIES):
            known = self.known(name)
            made = await self._in_thread(lambda: change(known.complete()))  # noqa: B023
            if self._known.get(name) is not known:
                continue
            new = made.new
            if new is not None:
                paths = {one.expression for one in new.paths}
                gone = [one.path.expression for one in known.added if one.path.expression not in paths]
                record = FamilyRecord(known.mark, new)
                removed = [(PATHS, path_key(name, known.mark, one), None) for one in gone]
                await self._put(name, record, [family_change(record), *removed], everywhere)
            return made
        raise FamilyConflict(name)

    async def remove(self, name: str, *, everywhere: bool = True) -> None:
        """Remove a family. The records of its paths mean nothing then, and go when another one of its name is
        added: if somebody changes the family at the same time, and that counts, they are wanted. Raises
        `UnknownFamily` and `FamilyConflict`.
        """
        known = self.known(name)
        await self._sharing.put((FAMILIES, name, None), everywhere=everywhere)
        if (now := self._known.get(name)) is not None and now.mark == known.mark:
            raise FamilyConflict(name)

    async def add_paths(self, name: str, wanted: Sequence[WantedPath], *, everywhere: bool = True) -> Family:
        """Have paths extracted from documents of a family; those that it has are only waited for.

        Returns the family, with them. When this returns, all brokers in reach extract them (`everywhere`), or
        this one does. Raises `UnknownFamily`, `FamilyRefused`, `UnknownPath` and what reading an XPath does.
        """
        for _ in range(_TRIES):
            known = self.known(name)
            family = await self.family(name)
            few = len(wanted) <= _FEW
            if few and not any(_present(family, one) is None for one in wanted):
                made: list[FamilyPath] = []
            else:
                made = await self._in_thread(lambda: self._made_of(known.declared, family, wanted))  # noqa: B023
            now = self.known(name)
            if (now.mark, now.basis) != (known.mark, known.basis):
                continue
            records = [PathRecord(name, now.mark, now.basis, one) for one in _additional(now, made)]
            await self._sharing.put(*map(path_change, records), everywhere=everywhere)
            return await self.family(name)
        raise FamilyConflict(name)

    async def _put(
        self, name: str, record: FamilyRecord, changes: Sequence[RecordChange], everywhere: bool
    ) -> None:
        await self._sharing.put(*changes, everywhere=everywhere)
        now, made = self._known.get(name), record.family
        if now is None or now.mark != record.mark or now.declared.revision < made.revision:
            raise FamilyConflict(name)
        if now.declared.revision == made.revision and now.declared != made:
            raise FamilyConflict(name)

    def _made_of(self, declared: Family, family: Family, wanted: Sequence[WantedPath]) -> list[FamilyPath]:
        """In the maker's thread: what paths that a family has not are by its schema."""
        missing = [one for one in wanted if _present(family, one) is None]
        if not missing:
            return []
        typing = self._typing(declared)
        with bounded(family.name):
            return [typed_path(family.name, one, family.prefixes, typing) for one in missing]

    def _typing(self, family: Family) -> PathTyping:
        """In the maker's thread: what the schema of a family says; the last ones are kept."""
        found = self._typings.get(id(family))
        if found is None:
            while len(self._typings) >= _TYPINGS:
                del self._typings[next(iter(self._typings))]
            found = self._typings[id(family)] = family, typing_of(family)
        return found[1]

    def _require_new(self, name: str) -> None:
        if name in self._known:
            raise FamilyExists(name)
        if len(self._known) >= MAX_FAMILIES:
            raise FamilyRefused(name, f"There are {MAX_FAMILIES:,} families, as many as may be; remove some.")

    def _require_root(self, family: Family) -> None:
        for other in self._known.values():
            one = other.declared
            same = (one.namespace, one.root) == (family.namespace, family.root)
            if same and one.name != family.name:
                said = (
                    f"Documents that begin with <{one.root}> in {one.namespace!r} are of {one.name!r} already."
                )
                raise FamilyRefused(family.name, said)

    async def _in_thread(self, work: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._maker, work)

    # Records

    def _family_changed(self, record: SharedRecord) -> None:
        self._known.pop(record.key, None)
        if record.value is not None:
            with suppress(UnreadableRecord):
                self._know(read_family_record(record.key, record.value))
        self._changed()

    def _path_changed(self, record: SharedRecord) -> None:
        touched: set[tuple[str, str]] = set()
        for family, keys in list(self._added.items()):
            if keys.pop(record.key, None) is not None:
                touched.add(family)
                if not keys:
                    del self._added[family]
        if record.value is not None:
            with suppress(UnreadableRecord):
                touched.add(self._add(record.key, read_path_record(record.key, record.value)))
        for name, mark in touched:
            known = self._known.get(name)
            if known is not None and known.mark == mark:
                self._know(FamilyRecord(mark, known.declared))
                self._changed()

    def _add(self, key: str, record: PathRecord) -> tuple[str, str]:
        name = record.family, record.mark
        self._added.setdefault(name, {})[key] = record
        return name

    def _know(self, record: FamilyRecord) -> None:
        added = self._added.get((record.family.name, record.mark), {})
        self._known[record.family.name] = KnownFamily(record, added.values())

    def _changed(self) -> None:
        """Of two families with the same root, which brokers apart have added, the first by name is read."""
        self._tell([self._known[name] for name in reversed(self.names())])


def _additional(known: KnownFamily, made: Sequence[FamilyPath]) -> list[FamilyPath]:
    """Those that a family has not; others may have been added since they were looked for. Raises
    `FamilyRefused`.
    """
    there = [*known.declared.paths, *[one.path for one in known.added]]
    expressions, names = {one.expression for one in there}, {one.name for one in there if one.name is not None}
    added = {one.expression: one for one in made if one.expression not in expressions}
    if len(there) + len(added) > MAX_PATHS:
        said = f"It has {len(there)} paths and there may be {MAX_PATHS}; use those that it has."
        raise FamilyRefused(known.name, said)
    for one in added.values():
        if one.name is not None and one.name in names:
            raise FamilyRefused(known.name, f"Another one of its paths is called {one.name!r}.")
        names.add(one.name or "")
    return list(added.values())


def _present(family: Family, wanted: WantedPath) -> FamilyPath | None:
    """The path that is asked for, if it is there. Raises what reading it does, and `FamilyRefused`."""
    found = family.path(read_path(wanted.expression, family.prefixes).text)
    if found is None:
        return None
    for asked, has in ((wanted.kind, found.kind), (wanted.many, found.many)):
        if asked is not None and asked != has:
            there = f"{'several values' if found.many else 'a value'} of the kind {found.kind}"
            raise FamilyRefused(family.name, f"Its path {found.expression} is there already, as {there}.")
    return found
