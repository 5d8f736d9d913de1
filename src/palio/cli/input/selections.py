"""Filters on the command line, also those about XML documents: their families are files, or known to a broker.

A broker is asked only for a filter that needs it, and only for families that the filter names.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from palio.cli.input.lines import UnreadableInput
from palio.cli.program.connecting import NoBroker, with_client
from palio.cli.program.dressing import option
from palio.language import PALIO, is_selection, read_filter
from palio.language.selections import needs_families
from palio.model.errors import PalioError
from palio.model.filter import Filter

if TYPE_CHECKING:
    from palio.documents import FamilyPaths
    from palio.model.notification import Notification

FamilyFiles = Annotated[
    list[Path] | None,
    option(
        "FILE",
        "A family of XML documents, as palio family show prints it, and beside it its schema; repeat it.",
        "--family",
        exists=True,
        dir_okay=False,
    ),
]


class WrongFamilyFile(PalioError):
    """A file that describes no family of documents."""

    file: str
    reason: str
    sentence = (
        "The file {file!r} describes no family: {reason} Have one written by "
        "`palio family show NAME --schema-to FOLDER > FOLDER/NAME.json`."
    )


class StrangeDocument(PalioError):
    """A document that belongs to none of the families that are known."""

    file: str
    root: str
    known: tuple[str, ...]

    def sentence(self) -> str:
        there = f"there are {', '.join(self.known)}" if self.known else "there is none"
        return f"The document {self.file!r} begins with <{self.root}>, as those of no family do; {there}."


class FilterReader:
    """Reads filters that a command is given."""

    def __init__(self, files: list[Path] | None, server: str | None) -> None:
        """With files, the families that there are; else those of the broker."""
        self._files, self._server = files, server
        self._families: Mapping[str, FamilyPaths] | None = None
        self._selected: dict[str, Any] = {}  # by family, its paths that a filter names

    def read(self, text: str, dialect: str = PALIO) -> Filter:
        """Raises what `read_filter` and `read_selection` do, and `NoBroker`."""
        if dialect != PALIO or not is_selection(text):
            return read_filter(text, dialect)
        from palio.documents import read_selection  # noqa: PLC0415 (most filters are about other events)

        try:
            selection = read_selection(text, self._known())
        except NoBroker:
            if needs_families(text):
                raise
            return read_filter(text)
        self._selected |= selection.new_paths
        return selection.filter

    def document(self, file: str) -> Notification:
        """What an XML document is once it is published, if its family is one that was asked about, or a file.

        Raises `UnreadableInput`, `DocumentRefused` and `DocumentTooLarge`.
        """
        from palio.documents import (  # noqa: PLC0415
            DocumentLimits,
            DocumentReader,
            parse_document,
            root_name,
            with_paths,
        )
        from palio.model.notification import Notification  # noqa: PLC0415

        try:
            with open(file, "rb") as opened:
                content = opened.read(DocumentLimits().size + 1)
        except OSError as problem:
            raise UnreadableInput(file, problem.strerror or str(problem)) from None
        tree = parse_document(content)
        known = self._known()
        families = [known[name].family for name in known]
        for family in families:
            if (family.namespace, family.root) == root_name(tree):
                complete = with_paths(family, self._selected.get(family.name, ()))
                read = DocumentReader(complete).read_tree(tree, content)
                return Notification(read.attributes, payload=content)
        raise StrangeDocument(file, root_name(tree)[1], tuple(one.name for one in families))

    def _known(self) -> Mapping[str, FamilyPaths]:
        if self._families is None:
            self._families = _of_files(self._files) if self._files else _BrokersFamilies(self._server)
        return self._families


class _BrokersFamilies(Mapping[str, "FamilyPaths"]):
    """Families as a broker tells them, one after the other when they are asked for."""

    def __init__(self, server: str | None) -> None:
        self._server = server
        self._names: list[str] | None = None
        self._shown: dict[str, FamilyPaths] = {}

    def __getitem__(self, name: str) -> FamilyPaths:
        if name not in self._shown:
            if name not in self._listed():
                raise KeyError(name)
            told = with_client(self._server, lambda client: client.families.show(name))
            self._shown[name] = _paths_of(told)
        return self._shown[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._listed())

    def __len__(self) -> int:
        return len(self._listed())

    def _listed(self) -> list[str]:
        if self._names is None:
            rows = with_client(self._server, lambda client: client.families.ls())
            self._names = [row["name"] for row in rows]
        return self._names


def _paths_of(told: dict[str, Any]) -> FamilyPaths:
    import msgspec  # noqa: PLC0415

    from palio.documents import Family, FamilyPaths  # noqa: PLC0415

    return FamilyPaths(msgspec.convert(told, Family))


def _of_files(files: list[Path]) -> dict[str, FamilyPaths]:
    """Families that files describe. Raises `WrongFamilyFile`, and what `make_family` does."""
    from palio.documents import FamilyPaths  # noqa: PLC0415

    return {made.name: FamilyPaths(made) for made in map(_made, files)}


def _made(file: Path) -> Any:
    import msgspec  # noqa: PLC0415

    from palio.documents.family import SchemaFile  # noqa: PLC0415
    from palio.documents.making import WantedPath, make_family  # noqa: PLC0415

    try:
        told = json.loads(file.read_bytes())
        schemas = [SchemaFile(name, (file.parent / Path(name).name).read_bytes()) for name in told["schemas"]]
        return make_family(
            told["name"],
            schemas,
            [msgspec.convert(one, WantedPath) for one in told["paths"]],
            told["key"],
            revision=told["revision"],
            prefixes=told["prefixes"],
            namespace=told["namespace"],
            root=told["root"],
        )
    except OSError as problem:
        reason = f"{problem.filename} cannot be read: {problem.strerror}."
        raise WrongFamilyFile(str(file), reason) from None
    except (ValueError, TypeError, KeyError, msgspec.ValidationError) as problem:
        raise WrongFamilyFile(str(file), f"{problem}.") from None
