"""A family is changed into its next revision, and what that would break is found beforehand.

What subscriptions and filters say of a path holds only as long as it is there, with values of the same kind;
and a document that is current should be one of the family afterwards, with the same key. All of that is listed;
whether it matters is up to who changes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from palio.documents.errors import DocumentRefused, DocumentTooLarge, FamilyIncompatible, UnknownPath
from palio.documents.family import Family, FamilyPath, SchemaFile
from palio.documents.making import WantedPath, make_family
from palio.documents.parsing import DocumentLimits
from palio.documents.reading import DocumentReader
from palio.documents.reserved import KEY
from palio.documents.xpath import XPathSyntaxError, read_path

MAX_TOLD: Final = 100  # of what would break; who reads that asks again when it is mended


def change_family(
    old: Family,
    *,
    schemas: Sequence[SchemaFile] | None = None,
    paths: Iterable[WantedPath | str] = (),
    without: Iterable[str] = (),
    key: Sequence[str] | None = None,
    prefixes: Mapping[str, str] | None = None,
    registered: bool | None = None,
) -> Family:
    """The next revision of a family; what is not said stays as it is.

    `paths` are added, or say something else of one that is there; those `without` go, by their text or their
    short name. Raises `UnknownPath` for one that is not there, and what `make_family` does.
    """
    bound = dict(old.prefixes) | dict(prefixes or {})
    wanted = {one.expression: WantedPath.of(one) for one in old.paths}
    for text in without:
        found = _path_of(old, text)
        if found is None:
            raise UnknownPath(text, old.name)
        del wanted[found.expression]
    for one in paths:
        path = WantedPath.parse(one) if isinstance(one, str) else one
        wanted[read_path(path.expression, bound).text] = path
    return make_family(
        old.name,
        old.schemas if schemas is None else schemas,
        wanted.values(),
        old.key if key is None else key,
        prefixes=bound,
        namespace=old.namespace,
        root=old.root,
        registered=old.registered if registered is None else registered,
        revision=old.revision + 1,
        tried=schemas is None or tuple(schemas) == old.schemas,
    )


class ChangedFamily(msgspec.Struct, frozen=True):
    """A family before and after a change, and what that breaks; `new` is None if nothing is changed."""

    old: Family
    new: Family | None
    shown: Family
    broken: tuple[str, ...]
    looked_at: int  # documents
    whole: bool = True  # whether these were all that there are


def changed(
    old: Family, new: Family, documents: Iterable[bytes], *, force: bool = False, dry: bool = False
) -> ChangedFamily:
    """Whether a family is to be changed so. All paths count as in use: no broker knows all subscriptions of a
    network. Raises `FamilyIncompatible` if that breaks what is in use, unless it is forced.
    """
    if msgspec.structs.replace(new, revision=old.revision) == old:
        return ChangedFamily(old, None, old, (), 0)
    sample = list(documents)
    broken = compatibility(old, new, [one.expression for one in old.paths], sample)
    if broken and not force and not dry:
        raise FamilyIncompatible(old.name, broken)
    return ChangedFamily(old, None if dry else new, new, broken, len(sample))


def compatibility(
    old: Family,
    new: Family,
    used: Iterable[str],
    documents: Iterable[bytes] = (),
    limits: DocumentLimits | None = None,
) -> tuple[str, ...]:
    """What a change would break of the paths in use and of some documents, a sentence each, the first ones."""
    told: list[str] = []
    for sentence in _broken(old, new, used, documents, limits):
        told.append(sentence)
        if len(told) >= MAX_TOLD:
            break
    return tuple(told)


def _broken(
    old: Family, new: Family, used: Iterable[str], documents: Iterable[bytes], limits: DocumentLimits | None
) -> Iterator[str]:
    if old.key != new.key:
        said = f"Its key would be {' and '.join(new.key)}, not {' and '.join(old.key)}: documents that are"
        yield f"{said} versions of each other would not be, or the other way around."
    for expression in used:
        before, after = old.path(expression), new.path(expression)
        if before is None:
            continue
        if after is None:
            yield f"The path {before.expression} would be gone."
        elif (before.kind, before.many) != (after.kind, after.many):
            yield f"The path {before.expression} would be {_held(after)}, and is {_held(before)}."
        elif before.name is not None and before.name != after.name:
            called = f"called {after.name!r}" if after.name else "without a short name"
            yield f"The path {before.expression} would be {called}, and is called {before.name!r}."
    yield from _broken_documents(old, new, documents, limits)


def _broken_documents(
    old: Family, new: Family, documents: Iterable[bytes], limits: DocumentLimits | None
) -> Iterator[str]:
    before: DocumentReader | None = None
    after: DocumentReader | None = None
    for content in documents:
        before = before or DocumentReader(old, limits)
        after = after or DocumentReader(new, limits)
        try:
            key = str(before.read(content).attributes[KEY])
        except (DocumentRefused, DocumentTooLarge):
            continue  # it is none of this family as it is, either
        try:
            found = str(after.read(content).attributes[KEY])
        except (DocumentRefused, DocumentTooLarge) as problem:
            yield f"The document {key!r} would be none of the family: {problem}"
            continue
        if found != key and old.key == new.key:
            yield f"The document {key!r} would have the key {found!r}."


def _path_of(family: Family, text: str) -> FamilyPath | None:
    """The path that is called so, however it is spelt."""
    found = family.path(text)
    if found is not None:
        return found
    try:
        return family.path(read_path(text, family.prefixes).text)
    except XPathSyntaxError:
        return None


def _held(path: FamilyPath) -> str:
    return f"a list of {path.kind}" if path.many else f"one {path.kind}"
