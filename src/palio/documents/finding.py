"""`PathFinding`: the values that paths have in a document, each of the kind that it is held as.

    plain paths ──> one walk by compiled code (`quick`) ──> values, or: go the long way
    all others  ──> `extraction` ──> texts ──> values

1. The long way says what is right: `extraction` finds nodes, and `path_value` makes values of them. The short
   way gives the same values or none; what is wrong with a document is only ever said by the long way.
2. Plain paths are those that a walk finds and that have no predicates: of most families, all.
3. Where `quick` is not built, as without a compiler or lxml's headers, everything goes the long way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

from palio.documents.conversion import computed_value, refused, value_of
from palio.documents.errors import DocumentRefused, DocumentTooLarge
from palio.documents.extraction import MAX_VALUES, Extraction, FoundValues
from palio.documents.family import FamilyPath
from palio.documents.walk import DocumentWalk
from palio.documents.xpath import XPath
from palio.documents.xpath.walkable import walk_paths
from palio.model.moments import parse_time
from palio.model.values import MAX_LIST_ELEMENTS, MAX_STRING_BYTES, Scalar, Value

ShortWay: TypeAlias = "Callable[[Any], list[Value | None] | None]"


class PathFinding:
    """Paths whose values are found together. One may be used by several threads at a time."""

    def __init__(self, paths: Sequence[tuple[XPath, FamilyPath]], *, short: bool = True) -> None:
        """Each expression with what its values are held as. Without the short way it is slower, no more."""
        self._paths = [path for _, path in paths]
        expressions = [expression for expression, _ in paths]
        self._all = Extraction(expressions)
        self._plain: list[int] = []
        self._quick: ShortWay | None = None
        if short:
            self._plain = [number for number, one in enumerate(expressions) if _is_plain(one)]
            self._quick = _short_way([paths[number] for number in self._plain])
        self._others = sorted(set(range(len(paths))) - set(self._plain))
        self._rest = Extraction([expressions[number] for number in self._others])

    @property
    def alone(self) -> tuple[str, ...]:
        """Expressions that libxml2 evaluates one by one."""
        return self._all.alone

    def values(self, tree: Any) -> list[Value | None]:
        """The value of each path, None where it finds nothing.

        Raises `DocumentRefused` and `DocumentTooLarge`.
        """
        if self._quick is not None:
            some = self._quick(tree.getroot())
            if some is not None and not self._others:
                return some
            if some is not None:
                with suppress(DocumentRefused, DocumentTooLarge):
                    return self._joined(some, tree)
        return _values(self._paths, self._all.found(tree))

    def _joined(self, some: list[Value | None], tree: Any) -> list[Value | None]:
        values: list[Value | None] = [None] * len(self._paths)
        for number, value in zip(self._plain, some, strict=True):
            values[number] = value
        rest = _values([self._paths[number] for number in self._others], self._rest.found(tree))
        for number, value in zip(self._others, rest, strict=True):
            values[number] = value
        return values


def _is_plain(expression: XPath) -> bool:
    several = walk_paths(expression.tree)
    return several is not None and not any(step.predicates for path in several for step in path.steps)


def _short_way(paths: Sequence[tuple[XPath, FamilyPath]]) -> ShortWay | None:
    """What finds plain paths, or None if there are none, or nothing that does."""
    try:
        from palio.documents.quick import QuickWalk  # noqa: PLC0415  (it loads lxml)
    except (ImportError, ValueError):  # the latter if it was built for an lxml that laid things out otherwise
        return None
    together = [(number, one) for number, (path, _) in enumerate(paths) for one in walk_paths(path.tree) or ()]
    if not together:
        return None
    quick = QuickWalk(
        DocumentWalk(together),
        [(path.kind, path.many) for _, path in paths],
        parse_time,
        most_elements=MAX_LIST_ELEMENTS,
        most_string=MAX_STRING_BYTES,
        most_values=MAX_VALUES // 2,  # half, as what others find counts, too
    )
    return quick.values


def _values(paths: Sequence[FamilyPath], found: FoundValues) -> list[Value | None]:
    return [path_value(path, result, found) for path, result in zip(paths, found.results, strict=True)]


def path_value(path: FamilyPath, result: Any, found: FoundValues) -> Value | None:
    """The value of an attribute; None if there is none."""
    if not isinstance(result, list):
        value = computed_value(result, path.kind, path.expression)
        return (value,) if path.many and value is not None else value
    if len(result) > 1 and not path.many:
        said = f"finds {len(result):,} nodes, and its family says that there is one; add it with `many`"
        raise refused(result[1], path.expression, said)
    values: list[Scalar] = []
    for node in result:
        text = found.string_of(node)
        found.count(text)
        value = value_of(text, path.kind, node, path.expression)
        if value is not None:
            values.append(value)
    if not values:
        return None
    return tuple(values) if path.many else values[0]
