"""A family of documents: what they are called, which schema they keep to, and which paths become attributes.

A family is a value, told to every broker as it is. `making` makes one that is right; whoever has one may rely
on it: its schemas compile, its paths are in their canonical text and can select something, its key paths are
single, and it is within the limits.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

MAX_PATHS: Final = 256  # of a family, so that a document and the names of its paths fit in one notification
MAX_KEYS: Final = 8  # more parts than that are no name that anybody would write
MAX_PREFIXES: Final = 64  # invoices of UBL use about ten
MAX_SCHEMAS: Final = 256  # files; UBL's invoice with all that it imports has about twenty
MAX_SCHEMA_BYTES: Final = (
    4 * 1_048_576
)  # of all files together; a record that brokers tell each other has no more

PathKind = Literal["int", "float", "bool", "time", "string"]
KINDS: Final[tuple[PathKind, ...]] = ("int", "float", "bool", "time", "string")


class SchemaFile(msgspec.Struct, frozen=True):
    """One file of an XML Schema, by the name under which others of its family refer to it."""

    name: str
    content: bytes


class FamilyPath(msgspec.Struct, frozen=True, omit_defaults=True):
    """An XPath whose result is an attribute: its canonical text, what its values are held as, and whether it
    is always a list. `name` is the short one, if it has any. `said` tells that the kind is what somebody has
    said, and not what the schema says: another schema does not change it.
    """

    expression: str
    kind: PathKind = "string"
    many: bool = False
    name: str | None = None
    said: bool = False


class Family(msgspec.Struct, frozen=True, omit_defaults=True):
    """Documents with the same root element, of which those with the same `key` are versions of each other.

    `prefixes` are the namespaces as paths write them. The first of `schemas` is the one that the others belong
    to; without any, every document with that root is one of the family. `registered` says that only publishers
    who have registered themselves may publish.
    """

    name: str
    namespace: str
    root: str
    prefixes: dict[str, str] = {}
    schemas: tuple[SchemaFile, ...] = ()
    key: tuple[str, ...] = ()
    paths: tuple[FamilyPath, ...] = ()
    revision: int = 1
    registered: bool = False

    def path(self, written: str) -> FamilyPath | None:
        """The path with this canonical text or short name."""
        return next((path for path in self.paths if written in (path.expression, path.name)), None)
