"""Event patterns of Amazon EventBridge.

    {"source": ["shop"], "detail": {"state": ["paid", {"prefix": "pa"}], "total": [{"numeric": [">", 100]}]}}

A pattern is an object: every member must match. A member's value is an object again, about what is nested
there, or an array of alternatives: values, which are compared exactly, and *matchers*, objects with one member.
`$or` is an array of patterns of which one must match.

Names of nested members are joined by dots, as notifications have them. A value of an event that is a list
matches if one of its elements does; so does "anything but", where one element is something else. What Palio
does not have is null: null in a pattern, as in an event, is absence. Numbers are compared exactly, not to six
digits.

What is wrong is told with its path and its column in the text.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any

from palio.language.errors import WrongDialectText
from palio.model import jsontext
from palio.model.constraint import IGNORING_CASE, IN_NETWORK, Constraint
from palio.model.errors import FilterTooLarge, InvalidNotification
from palio.model.expression import And, Condition, Expression, Not, conjunction, disjunction
from palio.model.filter import Filter
from palio.model.networks import canonical_network
from palio.model.questions import (
    Like,
    RegexMatches,
    across_segments,
    check_variants,
    like_parts,
    variants_of,
)
from palio.model.texts import TextMistake
from palio.model.values import Kind, check_name, check_scalar, member_path

# Deeper or longer ones are nobody's wish: an attack, or a mistake.
MAX_DEPTH = 32
MAX_ALTERNATIVES = 2_000
# What the format allows numbers to be.
MOST = 5.0e9

OR = "$or"
SIGNS = ("=", "<", "<=", ">", ">=")
_ESCAPED = re.compile(r"\\.", re.DOTALL)
_ANY_TEXT = "(.|\n|\r)*"
_Path = tuple[str | int, ...]


class _Mistake(Exception):
    """What is wrong, and where; becomes `WrongDialectText`."""

    def __init__(self, path: _Path, problem: str) -> None:
        self.path = path
        self.problem = problem


def parse_event_pattern(text: str) -> Filter:
    """The filter that an event pattern means. Raises `WrongDialectText` or `FilterTooLarge`."""
    try:
        document = jsontext.read(text)
    except InvalidNotification as problem:
        raise WrongDialectText(text, _json_column(text), problem.reason) from None
    reader = _PatternDocument()
    try:
        return Filter.from_expression(reader.members(document, (), ""))
    except _Mistake as mistake:
        where = "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in mistake.path)
        said = f"in `${where[:120]}`, {mistake.problem}" if where else mistake.problem
        raise WrongDialectText(text, _column_of(text, mistake.path), said) from None


class _PatternDocument:
    def __init__(self) -> None:
        self._count = 0

    def members(self, document: Any, path: _Path, prefix: str) -> Expression:
        if not isinstance(document, dict) or not document:
            raise _Mistake(path, "expected an object with a member for each name, at least one.")
        if len(path) > MAX_DEPTH:
            raise _Mistake(path, f"objects are nested more than {MAX_DEPTH} deep.")
        return conjunction([self._member(key, value, (*path, key), prefix) for key, value in document.items()])

    def _member(self, key: str, value: Any, path: _Path, prefix: str) -> Expression:
        if key == OR and isinstance(value, list):
            if len(value) < 2:
                raise _Mistake(path, "expected two patterns or more.")
            return disjunction([self.members(one, (*path, number), prefix) for number, one in enumerate(value)])
        name = prefix + key
        if isinstance(value, dict):
            return self.members(value, path, f"{name}.")
        if not isinstance(value, list) or not value:
            raise _Mistake(path, 'expected an array of alternatives, such as ["a", "b"], or an object.')
        try:
            check_name(name, member_path("$", name))
        except InvalidNotification as problem:
            raise _Mistake(path, f"{problem.reason[0].lower()}{problem.reason[1:]}") from None
        return disjunction([self._one(name, one, (*path, number)) for number, one in enumerate(value)])

    def _one(self, name: str, given: Any, path: _Path) -> Expression:
        self._count += 1
        if self._count > MAX_ALTERNATIVES:
            raise FilterTooLarge(limit=MAX_ALTERNATIVES, got=self._count, what="alternatives or more")
        if given is None:
            return Condition(name, Constraint("absent"))
        if isinstance(given, list):
            raise _Mistake(path, "an array has no arrays in it.")
        if not isinstance(given, dict):
            return _some(name, Constraint("=", _scalar(given, path)))
        if len(given) != 1:
            raise _Mistake(path, "expected an object with one member, named after what it does.")
        ((matcher, content),) = given.items()
        inside = (*path, matcher)
        if matcher == "exists":
            if not isinstance(content, bool):
                raise _Mistake(inside, "expected true or false.")
            return Condition(name, Constraint("exists" if content else "absent"))
        if matcher == "anything-but":
            return _anything_but(name, content, inside)
        if matcher == "numeric":
            return _numeric(name, content, inside)
        read = _MATCHERS.get(matcher)
        if read is None:
            known = ", ".join(sorted([*_MATCHERS, "anything-but", "exists", "numeric"]))
            raise _Mistake(path, f"there is no {matcher[:40]!r}; there are {known}.")
        return _some(name, read(content, inside))


def _some(name: str, constraint: Constraint) -> Expression:
    """A value, or an element of a list, satisfies it."""
    return disjunction([Condition(name, constraint), Condition(name, Constraint("has", constraint))])


def _scalar(given: Any, path: _Path) -> Any:
    try:
        value = check_scalar(given, "$")
    except InvalidNotification as problem:
        raise _Mistake(path, f"{problem.reason[0].lower()}{problem.reason[1:]}") from None
    if isinstance(value, (dict, list)):
        raise _Mistake(path, "expected a value.")
    return value


def _text(given: Any, path: _Path) -> str:
    if not isinstance(given, str):
        raise _Mistake(path, "expected a string.")
    found: str = _scalar(given, path)
    return found


# Matchers that are one constraint


def _prefix(content: Any, path: _Path) -> Constraint:
    folded = _folded(content, path)
    if folded is not None:
        return _regex(folded + _ANY_TEXT, path)
    return Constraint("starts with", _text(content, path))


def _suffix(content: Any, path: _Path) -> Constraint:
    folded = _folded(content, path)
    if folded is not None:
        return _regex(_ANY_TEXT + folded, path)
    return Constraint("ends with", _text(content, path))


def _regex(pattern: str, path: _Path) -> Constraint:
    _require(path, lambda atom: atom.table, RegexMatches(pattern))
    return Constraint("regex", pattern)


def _folded(content: Any, path: _Path) -> str | None:
    """The regular expression of `{"equals-ignore-case": …}`; None if it is something else."""
    if not isinstance(content, dict):
        return None
    if list(content) != ["equals-ignore-case"]:
        raise _Mistake(path, 'expected a string, or {"equals-ignore-case": "…"}.')
    text = _text(content["equals-ignore-case"], (*path, "equals-ignore-case"))
    return "".join(_set_of(one) for one in variants_of(text))


def _set_of(characters: str) -> str:
    escaped = "".join(f"\\{one}" if one in "[]\\-^" else one for one in characters)
    return f"[{escaped}]"


def _ignoring_case(content: Any, path: _Path) -> Constraint:
    variants = variants_of(_text(content, path))
    _require(path, check_variants, variants)
    return Constraint(IGNORING_CASE, variants)


def _wildcard(content: Any, path: _Path) -> Constraint:
    text = _text(content, path)
    if "**" in _ESCAPED.sub("x", text):
        raise _Mistake(path, "expected no two wildcards side by side.")
    pattern: str = _require(path, across_segments, text)
    _require(path, lambda atom: atom.table, Like(pattern))
    return Constraint("like", pattern)


def _cidr(content: Any, path: _Path) -> Constraint:
    return Constraint(IN_NETWORK, _require(path, canonical_network, _text(content, path)))


def _require(path: _Path, read: Callable[[Any], Any], given: Any) -> Any:
    try:
        return read(given)
    except TextMistake as mistake:
        raise _Mistake(path, f"{str(mistake)[0].lower()}{str(mistake)[1:]}") from None


_MATCHERS: dict[str, Callable[[Any, _Path], Constraint]] = {
    "prefix": _prefix,
    "suffix": _suffix,
    "equals-ignore-case": _ignoring_case,
    "wildcard": _wildcard,
    "cidr": _cidr,
}


# Matchers that are more


def _numeric(name: str, content: Any, path: _Path) -> Expression:
    if not isinstance(content, list) or len(content) not in (2, 4):
        raise _Mistake(path, 'expected a sign and a number, once or twice, such as [">", 0, "<=", 5].')
    limits: list[tuple[str, int | float]] = []
    for at in range(0, len(content), 2):
        sign, number = content[at], content[at + 1]
        if sign not in SIGNS:
            raise _Mistake((*path, at), "expected one of =, <, <=, > and >=.")
        if isinstance(number, bool) or not isinstance(number, (int, float)) or not abs(number) <= MOST:
            raise _Mistake((*path, at + 1), "expected a number from -5.0e9 to 5.0e9.")
        limits.append((sign, number))
    if len(limits) == 1:
        return _some(name, Constraint(*limits[0]))
    (lower, low), (upper, high) = limits
    if lower not in (">", ">=") or upper not in ("<", "<="):
        raise _Mistake(path, "expected a lower limit and then an upper one.")
    scalar = And((Condition(name, Constraint(lower, low)), Condition(name, Constraint(upper, high))))
    # One element has to satisfy both. So small numbers are floats exactly: nothing lies before the next one.
    least = math.nextafter(low, math.inf) if lower == ">" else low
    most = math.nextafter(high, -math.inf) if upper == "<" else high
    return disjunction([scalar, Condition(name, Constraint("has", Constraint("between", (least, most))))])


def _anything_but(name: str, content: Any, path: _Path) -> Expression:
    excluded = _excluded(content, path)
    is_list = Condition(name, Constraint("exists", None, Kind.LIST))
    scalar = And((Condition(name, Constraint("exists")), Not(is_list), Not(Condition(name, excluded))))
    return disjunction([scalar, Condition(name, Constraint("has", Constraint("not", excluded)))])


def _excluded(content: Any, path: _Path) -> Constraint:
    """What is not to be."""
    if isinstance(content, dict):
        if len(content) != 1 or (matcher := next(iter(content))) not in EXCLUDED:
            raise _Mistake(path, f"expected a value, an array of values, or one of {', '.join(EXCLUDED)}.")
        inside, given = (*path, matcher), content[matcher]
        several = given if isinstance(given, list) else [given]
        places: list[_Path] = (
            [(*inside, n) for n in range(len(several))] if isinstance(given, list) else [inside]
        )
        if not several:
            raise _Mistake(inside, "expected at least one.")
        found = [_MATCHERS[matcher](one, place) for one, place in zip(several, places, strict=True)]
        if len(found) == 1:
            return found[0]
        return _regex("|".join(map(_regular, found)), inside)  # one that has them all
    several = content if isinstance(content, list) else [content]
    if not several:
        raise _Mistake(path, "expected at least one value.")
    values = []
    for number, one in enumerate(several):
        place = (*path, number) if isinstance(content, list) else path
        if isinstance(one, bool) or not isinstance(one, (str, int, float)):
            raise _Mistake(place, "expected a string or a number.")
        values.append(_scalar(one, place))
    if len({isinstance(value, str) for value in values}) > 1:
        raise _Mistake(path, "expected strings only, or numbers only.")
    return Constraint("in", tuple(values)) if len(values) > 1 else Constraint("=", values[0])


EXCLUDED = ("prefix", "suffix", "equals-ignore-case", "wildcard")


def _regular(constraint: Constraint) -> str:
    """A constraint on texts as a regular expression."""
    operator, operand = constraint.operator, constraint.operand
    match operator:
        case "regex":
            return str(operand)
        case "starts with":
            return "".join(map(_set_of, operand)) + _ANY_TEXT
        case "ends with":
            return _ANY_TEXT + "".join(map(_set_of, operand))
        case "= ignoring case":
            return "".join(map(_set_of, operand))
        case _:  # like
            return "".join(_ANY_TEXT if part is None else _set_of(part) for part in like_parts(operand))


# Columns


def _json_column(text: str) -> int:
    try:
        json.loads(text)
    except json.JSONDecodeError as problem:
        return problem.pos + 1
    except RecursionError:
        pass
    return 1


def _column_of(text: str, path: _Path) -> int:
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
