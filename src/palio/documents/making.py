"""Families are made here, and only here: what everybody else relies on is seen to before there is one.

    make_family("card", (SchemaFile("card.xsd", schema),), ("price=/card/price",), ("/card/code",))

1. Its schemas compile, in a process of its own first, and declare its root.
2. Each path has its canonical text, costs little enough, and can select something. Its kind is what the schema
   says, unless the path says another one.
3. Each part of the key is one value in every valid document.
4. Names are unique: of paths by their text, and of short names.
5. What is not said is taken from the schema: the prefixes that its first file binds, its target namespace, and
   the root, which is where the key begins.

Making waits for another process and may take seconds, so it is not for event loops."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, cast

import msgspec

from palio.documents.compiling import try_schemas
from palio.documents.errors import FamilyRefused
from palio.documents.family import (
    KINDS,
    MAX_KEYS,
    MAX_PATHS,
    MAX_PREFIXES,
    Family,
    FamilyPath,
    PathKind,
    SchemaFile,
)
from palio.documents.libxml import etree_module
from palio.documents.schemas import XSD, SchemaSource, read_sources
from palio.documents.typing import PathTyping
from palio.documents.xpath import BOOLEAN, NODES, NUMBER, LocationPath, NameTest, XPath, read_path
from palio.documents.xpath.path import naming_of
from palio.documents.xpath.reader import XML_NAMESPACE
from palio.model.effort import Meter, metered
from palio.model.errors import TooHard

# Of following paths through a schema, for one request: some ten seconds.
MOST_STEPS: Final = 50_000_000
MAX_NAME: Final = 64  # characters of the name of a family, of a path, of a prefix

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")  # no dash or dot: filters say `card.price - 1`
_PREFIX: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_.-]{0,63})?")
_WRITTEN: Final = re.compile(r"\s*(?:([A-Za-z_]\w*)?(?::([a-z,]+))?\s*=)?(.*)", re.DOTALL | re.ASCII)
_RESERVED: Final = frozenset(("xml",))  # `xml.key` is no short name of a path
_NOT_OF_DOCUMENTS: Final = frozenset((XSD[1:-1], XML_NAMESPACE, "http://www.w3.org/2001/XMLSchema-instance"))
_KINDS_OF: Final[Mapping[str, tuple[PathKind, ...]]] = {
    NODES: KINDS,
    BOOLEAN: ("bool", "string"),
    NUMBER: ("float", "int", "string"),
}


class WantedPath(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A path as somebody asks for it; what is None is up to the schema."""

    expression: str
    kind: PathKind | None = None
    many: bool | None = None
    name: str | None = None

    @classmethod
    def parse(cls, text: str) -> WantedPath:
        """Reads `/card/price`, `price=/card/price`, `price:float=/card/price` or `:string,many=/card/brand`.

        Raises `FamilyRefused`.
        """
        found = _WRITTEN.fullmatch(text)
        assert found is not None  # it takes any text
        name, words, expression = found.groups()
        kind: PathKind | None = None
        many: bool | None = None
        for word in (words or "").split(",") if words else ():
            if word in KINDS:
                kind = cast(PathKind, word)
            elif word in ("many", "single"):
                many = word == "many"
            else:
                there = ", ".join((*KINDS, "many", "single"))
                raise FamilyRefused("", f"The path {text[:300]!r} says {word!r}; there are {there}.")
        return cls(expression.strip(), kind, many, name)

    @classmethod
    def of(cls, path: FamilyPath) -> WantedPath:
        """What was asked for when this path was made."""
        kind, many = (path.kind, path.many) if path.said else (None, None)
        return cls(path.expression, kind, many, path.name)


def make_family(
    name: str,
    schemas: Sequence[SchemaFile] = (),
    paths: Iterable[WantedPath | str] = (),
    key: Sequence[str] = (),
    *,
    prefixes: Mapping[str, str] | None = None,
    namespace: str | None = None,
    root: str | None = None,
    registered: bool = False,
    revision: int = 1,
    tried: bool = False,
) -> Family:
    """A family that is right in all that this module's head says. With `tried`, its schemas were tried before.

    Raises `FamilyRefused`, `SchemaRefused`, `UnknownPath`, `XPathSyntaxError`, `XPathTooLong`, `XPathTooCostly`
    and `MissingDependency`.
    """
    if not _NAME.fullmatch(name) or name in _RESERVED:
        said = (
            f"Its name must be up to {MAX_NAME} letters, digits and _, beginning with a letter, and not `xml`."
        )
        raise FamilyRefused(name, said)
    etree_module()  # without it, nobody could read a document of it
    if schemas and not tried:
        try_schemas(tuple(schemas))
    sources = read_sources(tuple(schemas)) if schemas else ()
    bound = _prefixes(name, sources, prefixes or {}, namespace)
    if not 1 <= len(key) <= MAX_KEYS:
        said = f"A key has 1 to {MAX_KEYS} paths, and this one has {len(key)}; it tells documents apart."
        raise FamilyRefused(name, said)
    keys = [read_path(one, bound) for one in key]
    if namespace is None or root is None:
        namespace, root = _root(name, sources, keys, namespace, root)
    if len({one.text for one in keys}) < len(keys):
        raise FamilyRefused(name, "Two parts of its key are the same path.")
    typing = PathTyping(name, sources, namespace, root, naming_of(bound))
    wanted = [WantedPath.parse(one) if isinstance(one, str) else one for one in paths]
    with bounded(name):
        for one in keys:
            if typing.type(one).many and one.type == NODES:
                raise FamilyRefused(name, f"Its key {one.text} may find several nodes; a key finds one.")
        made = _paths(name, wanted, bound, typing)
    return Family(
        name,
        namespace,
        root,
        bound,
        tuple(schemas),
        tuple(one.text for one in keys),
        made,
        revision,
        registered,
    )


def _paths(
    name: str, wanted: Sequence[WantedPath], prefixes: Mapping[str, str], typing: PathTyping
) -> tuple[FamilyPath, ...]:
    if len(wanted) > MAX_PATHS:
        raise FamilyRefused(name, f"It has {len(wanted)} paths; the limit is {MAX_PATHS}.")
    made: dict[str, FamilyPath] = {}
    names: set[str] = set()
    for one in wanted:
        path = typed_path(name, one, prefixes, typing)
        if path.expression in made:
            raise FamilyRefused(name, f"The path {path.expression} is there twice.")
        if path.name is not None and path.name in names:
            raise FamilyRefused(name, f"Two of its paths are called {path.name!r}.")
        names.add(path.name or "")
        made[path.expression] = path
    return tuple(made.values())


@contextmanager
def bounded(name: str) -> Iterator[None]:
    """What paths of the family of this name are is found within, in so many steps. Raises `FamilyRefused`."""
    try:
        with metered(Meter(MOST_STEPS)):
            yield
    except TooHard:
        said = "It takes too long to follow its paths through its schema. Name elements instead of `*`."
        raise FamilyRefused(name, said) from None


def typed_path(name: str, wanted: WantedPath, prefixes: Mapping[str, str], typing: PathTyping) -> FamilyPath:
    """A path of the family of this name. Raises what `make_family` does for a path."""
    if wanted.name is not None and not _NAME.fullmatch(wanted.name):
        said = f"A path cannot be called {wanted.name[:80]!r}: up to {MAX_NAME} letters, digits and _."
        raise FamilyRefused(name, said)
    path = read_path(wanted.expression, prefixes)
    found = typing.type(path)
    kind = wanted.kind or found.kind
    many = found.many if wanted.many is None else wanted.many
    if (possible := _KINDS_OF.get(path.type)) is not None and kind not in possible:
        said = f"The path {path.text} comes to a {path.type}, which is held as {' or '.join(possible)}."
        raise FamilyRefused(name, said)
    if many and path.type != NODES:
        raise FamilyRefused(name, f"The path {path.text} comes to a {path.type}, of which there is one only.")
    said_so = wanted.kind is not None or wanted.many is not None
    return FamilyPath(path.text, kind, many, wanted.name, said_so)


def typing_of(family: Family) -> PathTyping:
    """What the schema of a family says of paths. It reads the schema, which takes a while."""
    sources = read_sources(family.schemas) if family.schemas else ()
    return PathTyping(family.name, sources, family.namespace, family.root, naming_of(family.prefixes))


def _prefixes(
    name: str, sources: tuple[SchemaSource, ...], said: Mapping[str, str], namespace: str | None
) -> dict[str, str]:
    """What is said, and else what the first file binds. Names without a prefix are in its target namespace if
    those of its elements are.
    """
    bound: dict[str, str] = {}
    if sources:
        first: Any = sources[0].root
        for prefix, one in (first.nsmap or {}).items():
            if prefix and one not in _NOT_OF_DOCUMENTS and _PREFIX.fullmatch(prefix):
                bound[prefix] = one
        target = sources[0].namespace
        if target is not None and first.get("elementFormDefault") == "qualified":
            bound[""] = target
        elif target is not None and target not in bound.values():
            bound[name] = target
    elif namespace:
        bound[""] = namespace
    bound |= said
    for prefix, one in bound.items():
        if not _PREFIX.fullmatch(prefix) or prefix == "xml":
            raise FamilyRefused(name, f"{prefix[:80]!r} cannot be a prefix; take a short word.")
        if not one or len(one) > 1_000:
            raise FamilyRefused(name, f"The prefix {prefix!r} stands for a namespace of 1 to 1,000 characters.")
    if len(bound) > MAX_PREFIXES:
        raise FamilyRefused(name, f"It has {len(bound)} prefixes; the limit is {MAX_PREFIXES}.")
    return dict(sorted(bound.items()))


def _root(
    name: str,
    sources: tuple[SchemaSource, ...],
    keys: Sequence[XPath],
    namespace: str | None,
    root: str | None,
) -> tuple[str, str]:
    """The namespace and the name of the root: where the key begins, unless that is said."""
    if root is not None:
        if namespace is None:
            namespace = (sources[0].namespace or "") if sources else ""
        return namespace, root
    for one in keys:
        if isinstance(one.tree, LocationPath) and one.tree.steps:
            test = one.tree.steps[0].test
            if one.tree.steps[0].axis == "child" and isinstance(test, NameTest) and test.local is not None:
                return (test.namespace or "") if namespace is None else namespace, test.local
    raise FamilyRefused(name, "Name its root element: its key does not begin with it.")
