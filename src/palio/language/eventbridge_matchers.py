"""The matchers of event patterns: what each says of a value, and of the elements of a list, as a set of values.

    {"prefix": "a"}  {"numeric": [">", 0, "<=", 5]}  {"anything-but": {"suffix": ["x", "y"]}}

Most are one constraint of ours. A value satisfies it, or a list has an element that does: `with_lists`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from palio.model.constraint import IGNORING_CASE, IN_NETWORK, Constraint, with_lists
from palio.model.errors import InvalidNotification
from palio.model.networks import canonical_network
from palio.model.questions import (
    Like,
    RegexMatches,
    across_segments,
    check_variants,
    like_literal,
    like_parts,
    variants_of,
)
from palio.model.texts import TextMistake
from palio.model.values import Scalar, check_scalar
from palio.model.valueset import ABSENT, PRESENT, ValueSet, union

# What the format allows numbers to be.
MOST = 5.0e9
SIGNS = ("=", "<", "<=", ">", ">=")
# Characters of a regular expression without wildcards whose table is small for sure: some forty characters of
# texts, with as many states and a few more, for eight classes of characters each.
MAX_SURE = 128
_ESCAPED = re.compile(r"\\.", re.DOTALL)
_ANY_TEXT = "(.|\n|\r)*"


class PatternMistake(Exception):
    """What is wrong, and where; `parse_event_pattern` tells it with its column."""

    def __init__(self, problem: str, *path: str | int) -> None:
        super().__init__(problem)
        self.problem = problem
        self.path: tuple[str | int, ...] = path

    @classmethod
    def of(cls, sentence: str) -> PatternMistake:
        """From a sentence that begins with a capital."""
        return cls(f"{sentence[0].lower()}{sentence[1:]}")

    def within(self, *outer: str | int) -> PatternMistake:
        self.path = (*outer, *self.path)
        return self


def matched(matcher: dict[str, Any]) -> ValueSet:
    """The values that an object of a pattern's alternatives matches."""
    if len(matcher) != 1:
        raise PatternMistake("expected an object with one member, named after what it does.")
    ((name, content),) = matcher.items()
    constraint, values = _CONSTRAINTS.get(name), _SETS.get(name)
    try:
        if constraint is not None:
            return with_lists(constraint(content))
        if values is not None:
            return values(content)
    except PatternMistake as mistake:
        raise mistake.within(name) from None
    known = ", ".join(sorted([*_CONSTRAINTS, *_SETS]))
    raise PatternMistake(f"there is no {name[:40]!r}; there are {known}.")


def scalar(given: Any) -> Scalar:
    """A value that is compared exactly."""
    try:
        return check_scalar(given, "$")
    except InvalidNotification as problem:
        raise PatternMistake.of(problem.reason) from None


def among(values: list[Scalar]) -> Constraint:
    """One of these values."""
    if len(values) == 1:
        return Constraint("=", values[0])
    return Constraint("in", tuple({(type(one) is bool, one): one for one in values}.values()))


def _text(given: Any) -> str:
    if not isinstance(given, str):
        raise PatternMistake("expected a string.")
    return str(scalar(given))


# Matchers that are one constraint


def _prefix(content: Any) -> Constraint:
    if isinstance(content, dict):
        return _regex(_folded(content) + _ANY_TEXT)
    return Constraint("starts with", _text(content))


def _suffix(content: Any) -> Constraint:
    if isinstance(content, dict):
        return _regex(_ANY_TEXT + _folded(content))
    return Constraint("ends with", _text(content))


def _regex(pattern: str) -> Constraint:
    _require(lambda atom: atom.table, RegexMatches(pattern))
    return Constraint("regex", pattern)


def _folded(content: dict[str, Any]) -> str:
    """The regular expression of `{"equals-ignore-case": …}`."""
    if list(content) != ["equals-ignore-case"]:
        raise PatternMistake('expected a string, or {"equals-ignore-case": "…"}.')
    try:
        text = _text(content["equals-ignore-case"])
    except PatternMistake as mistake:
        raise mistake.within("equals-ignore-case") from None
    return "".join(_set_of(one) for one in variants_of(text))


def _set_of(characters: str) -> str:
    escaped = "".join(f"\\{one}" if one in "[]\\-^" else one for one in characters)
    return f"[{escaped}]"


def _ignoring_case(content: Any) -> Constraint:
    variants = variants_of(_text(content))
    _require(check_variants, variants)
    return Constraint(IGNORING_CASE, variants)


def _wildcard(content: Any) -> Constraint:
    text = _text(content)
    if "**" in _ESCAPED.sub("x", text):
        raise PatternMistake("expected no two wildcards side by side.")
    pattern: str = _require(across_segments, text)
    if _require(like_literal, pattern) is None:  # what is a prefix, a suffix or a part takes no table
        _require(lambda atom: atom.table, Like(pattern))
    return Constraint("like", pattern)


def _cidr(content: Any) -> Constraint:
    return Constraint(IN_NETWORK, _require(canonical_network, _text(content)))


def _require(read: Callable[[Any], Any], given: Any) -> Any:
    try:
        return read(given)
    except TextMistake as mistake:
        raise PatternMistake.of(str(mistake)) from None


_CONSTRAINTS: dict[str, Callable[[Any], Constraint]] = {
    "prefix": _prefix,
    "suffix": _suffix,
    "equals-ignore-case": _ignoring_case,
    "wildcard": _wildcard,
    "cidr": _cidr,
}


# Matchers that are more


def _presence(content: Any) -> ValueSet:
    if not isinstance(content, bool):
        raise PatternMistake("expected true or false.")
    return PRESENT if content else ABSENT


def _numeric(content: Any) -> ValueSet:
    if not isinstance(content, list) or len(content) not in (2, 4):
        raise PatternMistake('expected a sign and a number, once or twice, such as [">", 0, "<=", 5].')
    for at in range(0, len(content), 2):
        number = content[at + 1]
        if content[at] not in SIGNS:
            raise PatternMistake("expected one of =, <, <=, > and >=.", at)
        if isinstance(number, bool) or not isinstance(number, (int, float)) or not abs(number) <= MOST:
            raise PatternMistake("expected a number from -5.0e9 to 5.0e9.", at + 1)
    if len(content) == 2:
        return with_lists(Constraint(*content))
    lower, low, upper, high = content
    if lower not in (">", ">=") or upper not in ("<", "<="):
        raise PatternMistake("expected a lower limit and then an upper one.")
    # One element has to satisfy both. So small numbers are floats exactly: nothing lies before the next one.
    least = math.nextafter(low, math.inf) if lower == ">" else low
    most = math.nextafter(high, -math.inf) if upper == "<" else high
    return with_lists(Constraint("between", (least, most)))


def _anything_but(content: Any) -> ValueSet:
    if isinstance(content, dict):
        texts = _excluded_texts(content)
        return _none_of(texts) if len(texts) > 1 else with_lists(Constraint("not", texts[0]))
    if not isinstance(content, list):
        return with_lists(Constraint("not", Constraint("=", _excluded_value(content))))
    if not content:
        raise PatternMistake("expected at least one value.")
    values = _each(_excluded_value, content)
    if len({isinstance(value, str) for value in values}) > 1:
        raise PatternMistake("expected strings only, or numbers only.")
    return with_lists(Constraint("not", among(values)))


def _excluded_value(given: Any) -> Scalar:
    if isinstance(given, bool) or not isinstance(given, (str, int, float)):
        raise PatternMistake("expected a string or a number.")
    return scalar(given)


def _excluded_texts(content: dict[str, Any]) -> list[Constraint]:
    if len(content) != 1 or (matcher := next(iter(content))) not in EXCLUDED:
        raise PatternMistake(f"expected a value, an array of values, or one of {', '.join(EXCLUDED)}.")
    read, given = _CONSTRAINTS[matcher], content[matcher]
    try:
        if not isinstance(given, list):
            return [read(given)]
        if not given:
            raise PatternMistake("expected at least one.")
        return _each(read, given)
    except PatternMistake as mistake:
        raise mistake.within(matcher) from None


def _none_of(excluded: list[Constraint]) -> ValueSet:
    """An element of a list is none of them: one expression has them all."""
    pattern = "|".join(map(_regular, excluded))
    if len(pattern) > MAX_SURE or any(one.operator == "like" for one in excluded):
        return with_lists(Constraint("not", _regex(pattern)))
    outside = PRESENT - union([one.values() for one in excluded])
    return with_lists(Constraint("not", Constraint("regex", pattern)), outside)


def _each(read: Callable[[Any], Any], several: list[Any]) -> list[Any]:
    found: list[Any] = []
    for number, one in enumerate(several):
        try:
            found.append(read(one))
        except PatternMistake as mistake:
            raise mistake.within(number) from None
    return found


EXCLUDED = ("prefix", "suffix", "equals-ignore-case", "wildcard")
_SETS: dict[str, Callable[[Any], ValueSet]] = {
    "anything-but": _anything_but,
    "exists": _presence,
    "numeric": _numeric,
}


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
