"""Event patterns of Amazon EventBridge.

    {"source": ["shop"], "detail": {"state": ["paid", {"prefix": "pa"}], "total": [{"numeric": [">", 100]}]}}

A pattern is an object: every member must match. A member's value is an object again, about what is nested
there, or an array of alternatives: values, which are compared exactly, and *matchers*, objects with one member
(`eventbridge_matchers`). `$or` is an array of patterns of which one must match.

Names of nested members are joined by dots, as notifications have them. A value of an event that is a list
matches if one of its elements does; so does "anything but", where one element is something else. What Palio
does not have is null: null in a pattern, as in an event, is absence. Numbers are compared exactly, not to six
digits.

All alternatives of a member speak of one attribute, so they are one set of values, and what has no `$or` is one
conjunction: nothing has to be expanded.

What is wrong is told with its path and its column in the text.
"""

from __future__ import annotations

import json
import math
from typing import Any

from palio.language.errors import WrongDialectText
from palio.language.eventbridge_matchers import PatternMistake, among, matched, scalar
from palio.model import jsontext
from palio.model.conjunction import Conjunction
from palio.model.constraint import with_lists
from palio.model.errors import FilterTooLarge, InvalidNotification
from palio.model.filter import Filter
from palio.model.normal import Expander, Sides
from palio.model.values import Scalar, check_name
from palio.model.valueset import ABSENT, ValueSet, union

# Deeper or longer ones are nobody's wish: an attack, or a mistake.
MAX_DEPTH = 32
MAX_ALTERNATIVES = 2_000

OR = "$or"


def parse_event_pattern(text: str) -> Filter:
    """The filter that an event pattern means. Raises `WrongDialectText` or `FilterTooLarge`."""
    try:
        document = jsontext.read(text)
    except InvalidNotification as problem:
        raise WrongDialectText(text, _json_column(text), problem.reason) from None
    try:
        return _PatternDocument(document).filter()
    except PatternMistake as mistake:
        where = "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in mistake.path)
        said = f"in `${where[:120]}`, {mistake.problem}" if where else mistake.problem
        raise WrongDialectText(text, _column_of(text, mistake.path), said) from None


class _PatternDocument:
    """Finds what must hold: the set of values of each attribute, and beside these what has a `$or`."""

    def __init__(self, document: Any) -> None:
        self._document = document
        self._count = 0
        self._expander: Expander | None = None

    def filter(self) -> Filter:
        sides: dict[str, ValueSet] = {}
        parts: list[list[Sides]] = []
        self._read(self._document, "", 0, sides, parts)
        if not parts:
            return Filter((Conjunction.of(sides),))
        normal = self._joined().normal(self._all(sides, parts))
        return Filter(normal.conjunctions, conflicts=normal.conflicts)

    def _joined(self) -> Expander:
        if self._expander is None:
            self._expander = Expander(lambda: _conjunctions(self._document))
        return self._expander

    def _all(self, sides: dict[str, ValueSet], parts: list[list[Sides]]) -> list[Sides]:
        alone: Sides = {}
        alone.update(sides)
        return self._joined().all([[alone], *parts]) if parts else [alone]

    def _read(
        self, document: Any, prefix: str, depth: int, sides: dict[str, ValueSet], parts: list[list[Sides]]
    ) -> None:
        """Adds the members of an object to what must hold."""
        if not isinstance(document, dict) or not document:
            raise PatternMistake("expected an object with a member for each name, at least one.")
        if depth > MAX_DEPTH:
            raise PatternMistake(f"objects are nested more than {MAX_DEPTH} deep.")
        for key, value in document.items():
            try:
                if isinstance(value, dict):
                    self._read(value, f"{prefix}{key}.", depth + 1, sides, parts)
                    continue
                if key == OR and isinstance(value, list):
                    parts.append(self._one_of(value, prefix, depth + 2))
                    continue
                name = prefix + key
                side = self._side(name, value)
            except PatternMistake as mistake:
                raise mistake.within(key) from None
            if side.is_empty():
                self._joined().conflict(f"the conditions on `{name}` exclude each other")
                parts.append([])
            elif name in sides:  # once as it is, and once by what is nested
                parts.append([{name: side}])
            else:
                sides[name] = side

    def _one_of(self, patterns: list[Any], prefix: str, depth: int) -> list[Sides]:
        if len(patterns) < 2:
            raise PatternMistake("expected two patterns or more.")
        found: list[list[Sides]] = []
        for number, one in enumerate(patterns):
            sides: dict[str, ValueSet] = {}
            parts: list[list[Sides]] = []
            try:
                self._read(one, prefix, depth, sides, parts)
            except PatternMistake as mistake:
                raise mistake.within(number) from None
            found.append(self._all(sides, parts))
        return self._joined().any(found)

    def _side(self, name: str, alternatives: Any) -> ValueSet:
        """The values that one of the alternatives matches."""
        if not isinstance(alternatives, list) or not alternatives:
            raise PatternMistake('expected an array of alternatives, such as ["a", "b"], or an object.')
        try:
            check_name(name, "$")
        except InvalidNotification as problem:
            raise PatternMistake.of(problem.reason) from None
        self._count += len(alternatives)
        if self._count > MAX_ALTERNATIVES:
            raise FilterTooLarge(limit=MAX_ALTERNATIVES, got=self._count, what="alternatives")
        exact: list[Scalar] = []
        sets: list[ValueSet] = []
        for number, one in enumerate(alternatives):
            try:
                if isinstance(one, dict):
                    sets.append(matched(one))
                elif one is None:
                    sets.append(ABSENT)
                elif isinstance(one, list):
                    raise PatternMistake("an array has no arrays in it.")
                else:
                    exact.append(scalar(one))
            except PatternMistake as mistake:
                raise mistake.within(number) from None
        if exact:
            sets.append(with_lists(among(exact)))
        return sets[0] if len(sets) == 1 else union(sets)


def _conjunctions(document: dict[str, Any]) -> int:
    """How many there are if nothing is simplified."""
    counts = [1]
    for key, value in document.items():
        if isinstance(value, dict):
            counts.append(_conjunctions(value))
        elif key == OR and isinstance(value, list):
            counts.append(sum(map(_conjunctions, value)))
    return math.prod(counts)


# Columns


def _json_column(text: str) -> int:
    try:
        json.loads(text)
    except json.JSONDecodeError as problem:
        return problem.pos + 1
    except RecursionError:
        pass
    return 1


def _column_of(text: str, path: tuple[str | int, ...]) -> int:
    """Where in a text, which is JSON, what a path names begins; a mistake about a member is at its value."""
    at = _skip(text, 0)
    for one in path:
        at = _inside(text, at, one)
    return at + 1


def _inside(text: str, at: int, wanted: str | int) -> int:
    """The beginning of a member or an element of what begins at `at`."""
    decode = json.JSONDecoder().raw_decode
    is_object = text[at] == "{"
    at = _skip(text, at + 1)
    number = 0
    while True:
        key: str | int = number
        if is_object:
            key, at = decode(text, at)
            at = _skip(text, _skip(text, at) + 1)  # behind the colon
        if key == wanted:
            return at
        _, at = decode(text, at)
        at = _skip(text, _skip(text, at) + 1)  # behind the comma
        number += 1


def _skip(text: str, at: int) -> int:
    while text[at : at + 1] in (" ", "\t", "\n", "\r"):
        at += 1
    return at
