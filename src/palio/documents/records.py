"""Families as records that all brokers of a network share, and back: whoever has the same records has the same
families.

    family       name                 what was declared, with a mark that no other family of that name has
    family.path  name and digest      a path that was added to the family with a mark

1. A path that was added is a record of its own. So two brokers that add paths at the same time both do.
2. Of what two brokers declare at the same time, one counts, the same everywhere (`routing.shared`).
3. A path says for which schema its kind was found. If another one has come meanwhile, whoever reads the records
   finds the kind anew: it follows from the records alone, so all come to the same (`KnownFamily.complete`).
4. Paths that were added to a family that is gone mean nothing to another one of that name, and do not take the
   place of its own: their records have other keys.
5. At most `MOST_PATHS` paths are read, those declared first; brokers that were apart may together have added
   more than one broker does."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from hashlib import blake2b
from typing import Final

import msgspec

from palio.documents.errors import FamilyRefused, SchemaRefused, UnknownPath
from palio.documents.family import MAX_PATHS, MAX_SCHEMA_BYTES, Family, FamilyPath
from palio.documents.making import WantedPath, bounded, typed_path, typing_of
from palio.model.errors import FilterError, MissingDependency, PalioError

FAMILIES: Final = "family"
PATHS: Final = "family.path"
MOST_PATHS: Final = 3 * MAX_PATHS  # a notification may have 1,024 attributes, and publishers add their own

# A kind of record, its key, and its value; None removes it.
RecordChange = tuple[str, str, bytes | None]

_MOST_BYTES: Final = MAX_SCHEMA_BYTES + 1_048_576  # of a record, unpacked
_encode = msgspec.msgpack.Encoder().encode


class FamilyRecord(msgspec.Struct, frozen=True):
    """A family as it was declared, of which the mark tells it from others of its name."""

    mark: str
    family: Family


class PathRecord(msgspec.Struct, frozen=True):
    """A path that was added to a family, and the basis on which its kind was found."""

    family: str
    mark: str
    basis: bytes
    path: FamilyPath


class UnreadableRecord(PalioError):
    """A record that no family or path can be read from."""

    key: str
    sentence = "The record {key!r} is no family of documents; a newer version of Palio may have written it."


def basis_of(family: Family) -> bytes:
    """What the kinds of a family's paths follow from: two families with the same have the same kinds."""
    parts = (family.namespace, family.root, sorted(family.prefixes.items()), family.schemas)
    return blake2b(_encode(parts), digest_size=16).digest()


def family_change(record: FamilyRecord) -> RecordChange:
    """The record of a declared family."""
    return FAMILIES, record.family.name, zlib.compress(_encode(record))


def path_key(family: str, mark: str, expression: str) -> str:
    """The key of the record of a path, whose text may be too long for one."""
    return f"{family} {blake2b(f'{mark} {expression}'.encode(), digest_size=16).hexdigest()}"


def path_change(record: PathRecord) -> RecordChange:
    """The record of a path that is added."""
    return PATHS, path_key(record.family, record.mark, record.path.expression), _encode(record)


def read_family_record(key: str, value: bytes) -> FamilyRecord:
    """Raises `UnreadableRecord`."""
    try:
        unpacking = zlib.decompressobj()
        content = unpacking.decompress(value, _MOST_BYTES)
        record = msgspec.msgpack.decode(content, type=FamilyRecord)
    except (zlib.error, msgspec.DecodeError, ValueError):
        raise UnreadableRecord(key) from None
    if record.family.name != key:
        raise UnreadableRecord(key)
    return record


def read_path_record(key: str, value: bytes) -> PathRecord:
    """Raises `UnreadableRecord`."""
    try:
        record = msgspec.msgpack.decode(value, type=PathRecord)
    except (msgspec.DecodeError, ValueError):
        raise UnreadableRecord(key) from None
    if path_key(record.family, record.mark, record.path.expression) != key:
        raise UnreadableRecord(key)
    return record


class KnownFamily:
    """A family as the records say: what was declared, and the paths that were added."""

    def __init__(self, record: FamilyRecord, added: Iterable[PathRecord] = ()) -> None:
        self.mark = record.mark
        self.declared = record.family
        self.basis = basis_of(record.family)
        self.added = tuple(sorted(added, key=lambda one: one.path.expression))
        self._complete: Family | None = None
        self._lock = threading.Lock()
        declared = {one.expression for one in record.family.paths}
        if all(one.basis == self.basis or one.path.expression in declared for one in self.added):
            self._complete = self._with([one.path for one in self.added])

    @property
    def name(self) -> str:
        return self.declared.name

    @property
    def is_complete(self) -> bool:
        """Whether `complete` answers at once."""
        return self._complete is not None

    def complete(self) -> Family:
        """The family with all its paths. Where the schema is another one than a path was added for, it is read,
        which may take a while; a path that means nothing there any more is left out, and so is one that cannot
        be looked for, where there is no lxml.
        """
        with self._lock:
            if self._complete is None:
                found = [one.path for one in self.added if one.basis == self.basis]
                try:
                    typing = typing_of(self.declared)
                except MissingDependency:
                    return self._with(found)
                # One bound for all: what is beyond it is left out, at all brokers alike.
                with suppress(FamilyRefused), bounded(self.name):
                    for one in self.added:
                        if one.basis != self.basis:
                            with suppress(UnknownPath, FamilyRefused, SchemaRefused, FilterError):
                                wanted = WantedPath.of(one.path)
                                found.append(typed_path(self.name, wanted, self.declared.prefixes, typing))
                self._complete = self._with(found)
            return self._complete

    def _with(self, added: Iterable[FamilyPath]) -> Family:
        paths = {one.expression: one for one in self.declared.paths}
        names = {one.name for one in paths.values()}
        for one in added:
            if one.expression in paths or len(paths) >= MOST_PATHS:
                continue
            paths[one.expression] = msgspec.structs.replace(one, name=None) if one.name in names else one
            names.add(one.name)
        return msgspec.structs.replace(self.declared, paths=tuple(paths.values()))


def known_families(families: Mapping[str, bytes], paths: Mapping[str, bytes]) -> dict[str, KnownFamily]:
    """All families that the records of both kinds say, by name. What cannot be read is left out."""
    added: dict[tuple[str, str], list[PathRecord]] = {}
    for key, value in paths.items():
        with suppress(UnreadableRecord):
            record = read_path_record(key, value)
            added.setdefault((record.family, record.mark), []).append(record)
    found: dict[str, KnownFamily] = {}
    for key, value in sorted(families.items()):
        with suppress(UnreadableRecord):
            declared = read_family_record(key, value)
            found[key] = KnownFamily(declared, added.get((key, declared.mark), ()))
    return found
