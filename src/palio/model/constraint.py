"""A constraint: an operator and what it compares with, as people write it, and the set of values it means.

Every comparison comes down to one question about a kind of values: which is the least one that is at least
(or more than) the constant? For numbers this is where ints and floats meet exactly: a constant such as
9007199254740993 lies between two floats, 2.5 between two ints.
"""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

import msgspec

from palio.model import flips, texts
from palio.model.decision import DecisionNode, Tree
from palio.model.errors import FilterError
from palio.model.flips import EVERYTHING, LEAST, NOTHING, Flips
from palio.model.lists import Has
from palio.model.values import FLOAT_MAX, INT_MAX, INT_MIN, KIND_NAMES, KIND_OF_TYPE, Kind, Scalar
from palio.model.valueset import ABSENT, EMPTY, PRESENT, ValueSet, union

# Plain ints, because the members of an enum are slow to hash, and parsing is to be fast.
_INT, _FLOAT, _STRING, _BYTES = int(Kind.INT), int(Kind.FLOAT), int(Kind.STRING), int(Kind.BYTES)
_NUMBERS = (_INT, _FLOAT)
_TEXT_KINDS = (_STRING, _BYTES)
_KINDS = {kind: _NUMBERS if number in _NUMBERS else (number,) for kind, number in KIND_OF_TYPE.items()}

# For each comparison the lower and the upper end: None is open, otherwise "strictly above the constant?".
_ENDS: dict[str, tuple[bool | None, bool | None]] = {
    "=": (False, True),
    ">=": (False, None),
    ">": (True, None),
    "<": (None, False),
    "<=": (None, True),
}
TEXT_OPERATORS = ("starts with", "ends with", "contains", "matches")


class WrongOperand(FilterError):
    """An operator that makes no sense with its operand."""


class Constraint(msgspec.Struct, frozen=True, gc=False):
    """An operator with its operand, and the kind that it demands of the value, if any.

    The operand is a scalar; a pair for `between`; a tuple for `in`; a constraint on the elements for `has`;
    None for `exists` and `absent`.
    """

    operator: str
    operand: Any = None
    demanded: Kind | None = None

    def check(self) -> None:
        """Raises `WrongOperand` if the operator makes no sense with its operand."""
        operand = self.operand
        match self.operator:
            case "exists" | "absent":
                return
            case "has":
                operand.check()
            case "in":
                for one in operand:
                    self._checked_kinds(one)
            case "between":
                if self._checked_kinds(operand[0]) != self._checked_kinds(operand[1]):
                    raise WrongOperand("Both ends of `between` must be of one kind.")
            case _:
                kinds = self._checked_kinds(operand)
                if self.operator in TEXT_OPERATORS and kinds[0] not in _TEXT_KINDS:
                    raise WrongOperand(
                        f"`{self.operator}` compares with a string, not with {describe_kind(operand)}."
                    )

    def values(self) -> ValueSet:
        """The set of values that satisfy the constraint, which has been checked."""
        found = self._values()
        if self.demanded is None or self.operator in ("exists", "has"):
            return found
        return found.only(self.demanded)

    def _values(self) -> ValueSet:
        operator, operand = self.operator, self.operand
        ends = _ENDS.get(operator)
        if ends is not None:
            return self._between(operand, ends[0], operand, ends[1])
        match operator:
            case "between":
                return self._between(operand[0], False, operand[1], True)
            case "!=":
                return PRESENT - self._between(operand, False, operand, True)
            case "in":
                return self._among(operand)
            case "exists":
                return PRESENT if self.demanded is None else PRESENT.only(self.demanded)
            case "absent":
                return ABSENT
            case "has":
                return having(operand)
            case _:
                return self._text()

    def _between(self, low: Scalar, after_low: bool | None, high: Scalar, after_high: bool | None) -> ValueSet:
        parts: list[Tree] = [NOTHING] * len(EVERYTHING)
        for kind in self._checked_kinds(low):
            start = LEAST[kind] if after_low is None else _least_from(kind, low, after_low)
            stop = None if after_high is None else _least_from(kind, high, after_high)
            if start is None or (stop is not None and start >= stop):
                continue
            parts[kind] = (start,) if stop is None else (start, stop)
        return ValueSet(False, tuple(parts))

    def _among(self, operand: tuple[Scalar, ...]) -> ValueSet:
        texts_only = [value for value in operand if isinstance(value, str)]
        others = {(type(value), value): value for value in operand if not isinstance(value, str)}
        sets = [self._between(value, False, value, True) for value in others.values()]
        if texts_only:
            self._checked_kinds(texts_only[0])
            sets.append(ValueSet.of({_STRING: flips.points(_STRING, texts_only)}))
        return union(sets)

    def _text(self) -> ValueSet:
        operand: str | bytes = self.operand
        (kind,) = self._checked_kinds(operand)
        text = operand if isinstance(operand, str) else operand.decode("latin-1")
        return ValueSet.of({kind: _text_part(kind, self.operator, text)})

    def _checked_kinds(self, operand: Scalar) -> tuple[int, ...]:
        kinds = _KINDS[type(operand)]
        demanded = self.demanded
        if demanded is None:
            return kinds
        if demanded not in kinds:
            raise WrongOperand(
                f"A value of type {KIND_NAMES[demanded]} is never compared with {describe_kind(operand)}."
            )
        return (int(demanded),)


def describe_kind(value: Any) -> str:
    """What a value is, for messages: `the number 5`, `the string "a"`."""
    match value:
        case bool():
            return f"the bool {str(value).lower()}"
        case int() | float():
            return f"the number {value}"
        case str():
            return f'the string "{value[:40]}"'
        case datetime():
            return f"the time {value.isoformat()}"
        case bytes():
            return "bytes"
        case _:
            return "a list"


def _least_from(kind: int, constant: Any, strictly: bool) -> Any | None:
    """The least value of the kind that is at least the constant, or more than it; None if there is none."""
    if kind == _INT:
        if isinstance(constant, float):
            constant = math.floor(constant) if strictly else math.ceil(constant)
        number = constant + 1 if strictly else constant
        return None if number > INT_MAX else max(number, INT_MIN)
    if kind == _FLOAT:
        real = float(constant)
        if real < constant or (strictly and real == constant):
            real = math.nextafter(real, math.inf)
        return None if real > FLOAT_MAX else real + 0.0
    if kind == _BYTES:
        constant = constant.decode("latin-1")
    return flips.successor(kind, constant) if strictly else constant


def _text_part(kind: int, operator: str, text: str) -> Tree:
    everything = EVERYTHING[kind]
    match operator:
        case "starts with":
            return prefix(kind, text)
        case "ends with":
            return DecisionNode(texts.EndsWith(text), everything, NOTHING) if text else everything
        case "contains":
            return DecisionNode(texts.Contains(text), everything, NOTHING) if text else everything
        case "matches":
            if kind != _STRING:
                raise WrongOperand("`matches` compares with a string, not with bytes.")
            return _glob(text, everything)
        case _:
            raise WrongOperand(f"There is no operator `{operator}`.")


def _glob(pattern: str, everything: Flips) -> Tree:
    try:
        literal = texts.literal_glob(pattern)
    except texts.GlobMistake as mistake:
        raise WrongOperand(str(mistake)) from None
    if literal is not None:
        return flips.point(Kind.STRING, literal)
    return everything if pattern == "**" else DecisionNode(texts.GlobMatches(pattern), everything, NOTHING)


def prefix(kind: int, text: str) -> Flips:
    """The texts that begin with a text: from it up to the first one that no longer does."""
    last = "\U0010ffff" if kind == Kind.STRING else "\xff"
    stem = text.rstrip(last)
    if not stem:
        return (text,)
    following = ord(stem[-1]) + 1
    if following == 0xD800:  # surrogates are no characters
        following = 0xE000
    return (text, stem[:-1] + chr(following))


def having(element: Constraint) -> ValueSet:
    """The lists that have an element which satisfies a constraint."""
    values = element.values()
    elements = ValueSet(False, (*values.parts[: Kind.LIST], NOTHING))
    if elements.is_empty():
        return EMPTY
    atom = Has(element_text(element), element, elements)
    return ValueSet.of({Kind.LIST: DecisionNode(atom, EVERYTHING[Kind.LIST], NOTHING)})


def element_text(element: Constraint) -> str:
    """A text that tells constraints on elements apart."""
    operand = element.operand
    if element.operator == "in":
        operand = tuple(sorted(operand, key=repr))
    return f"{element.demanded} {element.operator} {operand!r}"
