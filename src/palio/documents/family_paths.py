"""`FamilyPaths`: a family, asked for its paths: those that it has, and those that its schema would allow.

A schema is only read when a path is asked for that the family does not have, which may take a second.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from difflib import get_close_matches

import msgspec

from palio.documents.errors import UnknownPath
from palio.documents.family import Family, FamilyPath
from palio.documents.making import typing_of
from palio.documents.typing import PathTyping
from palio.documents.xpath import NODES, XPath, read_path, read_xpath


class FamilyPaths:
    """Answers for one family. One may be used by several threads at a time."""

    def __init__(self, family: Family, typing: Callable[[], PathTyping] | None = None) -> None:
        """`typing` gives what the schema says, which is read here otherwise."""
        self.family = family
        self._read_typing = typing or (lambda: typing_of(family))
        self._by_expression = {path.expression: path for path in family.paths}
        self._by_name = {path.name: path for path in family.paths if path.name is not None}
        self._typing: PathTyping | None = None
        self._lock = threading.Lock()

    def has(self, expression: str) -> bool:
        """Whether documents are read for this path, by its canonical text."""
        return expression in self._by_expression

    def find(self, text: str) -> FamilyPath:
        """The path that an XPath is; a new one if the family does not have it.

        Raises `XPathSyntaxError` (an `UnknownPrefix` is one), `XPathTooLong`, `XPathTooCostly`, and
        `UnknownPath` for one that can select nothing.
        """
        path = read_xpath(text, self.family.prefixes)
        return self._by_expression.get(path.text) or self._new(read_path(text, self.family.prefixes))

    def named(self, name: str) -> FamilyPath:
        """The path with a short name. Raises `UnknownPath`."""
        if name not in self._by_name:
            near = get_close_matches(name, self._by_name, 1)
            nearest = f"{self.family.name}.{near[0]}" if near else None
            raise UnknownPath(f"{self.family.name}.{name}", self.family.name, nearest)
        return self._by_name[name]

    def _new(self, path: XPath) -> FamilyPath:
        type = self._types().type(path)
        # Without a schema anything may occur again, and a path of one would refuse such documents.
        many = type.many or (path.type == NODES and not self.family.schemas)
        return FamilyPath(path.text, type.kind, many, said=many != type.many)

    def _types(self) -> PathTyping:
        with self._lock:
            if self._typing is None:
                self._typing = self._read_typing()
            return self._typing


def with_paths(family: Family, paths: tuple[FamilyPath, ...]) -> Family:
    """A family with further paths."""
    return msgspec.structs.replace(family, paths=(*family.paths, *paths))
