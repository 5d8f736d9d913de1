"""Families as somebody asks for them, and as they are told: plain data, in requests and over HTTP alike."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from palio.documents.changing import ChangedFamily, change_family, changed
from palio.documents.errors import FamilyRefused
from palio.documents.family import (
    MAX_KEYS,
    MAX_PATHS,
    MAX_PREFIXES,
    MAX_SCHEMAS,
    Family,
    FamilyPath,
    SchemaFile,
)
from palio.documents.making import MAX_NAME, WantedPath, make_family

# Families of an answer: with all paths that there may be, these still fit into a frame.
PAGE: Final = 50

Ready = Literal["broker", "network"]
Name = Annotated[str, Meta(max_length=MAX_NAME)]
Schemas = Annotated[tuple[SchemaFile, ...], Meta(max_length=MAX_SCHEMAS)]
Paths = Annotated[tuple[WantedPath | str, ...], Meta(max_length=MAX_PATHS)]
Keys = Annotated[tuple[str, ...], Meta(max_length=MAX_KEYS)]
Prefixes = Annotated[dict[str, str], Meta(max_length=MAX_PREFIXES)]
Without = Annotated[tuple[str, ...], Meta(max_length=MAX_PATHS)]


class FamilyWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A family as somebody describes it; what is not said is taken from the schema."""

    name: Name
    schemas: Schemas = ()
    paths: Paths = ()
    key: Keys = ()
    prefixes: Prefixes = {}
    namespace: str | None = None
    root: str | None = None
    registered: bool = False
    ready: Ready = "network"

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


class FamilyChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is to be another one of a family; the rest stays."""

    name: Name
    schemas: Schemas | None = None
    paths: Paths = ()
    without: Without = ()
    key: Keys | None = None
    prefixes: Prefixes = {}
    registered: bool | None = None
    force: bool = False
    dry: bool = False
    ready: Ready = "network"

    def made(self, old: Family, documents: Iterable[bytes]) -> ChangedFamily:
        """What comes of it. Raises what `change_family` does, and `FamilyIncompatible`."""
        new = change_family(
            old,
            schemas=self.schemas,
            paths=self.paths,
            without=self.without,
            key=self.key,
            prefixes=self.prefixes,
            registered=self.registered,
        )
        return changed(old, new, documents, force=self.force, dry=self.dry)


class FamilyPut(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A family that shall be there, and be like this. Paths that it has and that are not named stay."""

    name: Name
    key: Keys
    schemas: Schemas = ()
    paths: Paths = ()
    prefixes: Prefixes = {}
    namespace: str | None = None
    root: str | None = None
    registered: bool = False
    without: Without = ()
    force: bool = False
    ready: Ready = "network"

    @property
    def wanted(self) -> FamilyWanted:
        """If there is none yet."""
        said = {name: getattr(self, name) for name in FamilyWanted.__struct_fields__}
        return FamilyWanted(**said)

    def made(self, old: Family, documents: Iterable[bytes]) -> ChangedFamily:
        """What comes of one that is there. Raises what `change_family` does, and `FamilyIncompatible`."""
        for said, has in ((self.root, old.root), (self.namespace, old.namespace)):
            if said is not None and said != has:
                raise FamilyRefused(
                    old.name, f"Its root stays {old.root!r} in the namespace {old.namespace!r}."
                )
        same = {name: getattr(self, name) for name in FamilyChange.__struct_fields__ if hasattr(self, name)}
        return FamilyChange(**same).made(old, documents)


class FamiliesAsked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Some families, in the order of their names: those after one of them."""

    after: str = ""


class FamilyNamed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A family by its name."""

    name: Name
    ready: Ready = "network"


class PathsAsked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The paths of a family, or all that its schema has."""

    name: Name
    all: bool = False


class PathsWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Paths that a family is to have."""

    name: Name
    paths: Paths
    ready: Ready = "network"


def described(family: Family, *, whole: bool = False) -> dict[str, Any]:
    """A family as people and programs are told of it; with its schemas if it is to be `whole`."""
    told: dict[str, Any] = {
        "name": family.name,
        "namespace": family.namespace,
        "root": family.root,
        "revision": family.revision,
        "registered": family.registered,
        "key": list(family.key),
        "prefixes": dict(family.prefixes),
        "paths": [described_path(one) for one in family.paths],
        "schemas": [one.name for one in family.schemas],
    }
    if whole:
        told["schemas"] = [{"name": one.name, "content": one.content} for one in family.schemas]
    return told


def described_path(path: FamilyPath) -> dict[str, Any]:
    """A path as people and programs are told of it."""
    return {"expression": path.expression, "kind": path.kind, "many": path.many, "name": path.name}
