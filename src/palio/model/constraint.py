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

from palio.model import flips, networks, questions, regexp, texts
from palio.model.decision import DecisionNode, Tree
from palio.model.errors import FilterError
from palio.model.flips import EVERYTHING, LEAST, NOTHING, Flips
from palio.model.lists import Has
from palio.model.values import FLOAT_MAX, INT_MAX, INT_MIN, KIND_NAMES, KIND_OF_TYPE, Kind, Scalar
from palio.model.valueset import ABSENT, EMPTY, PRESENT, ValueSet, union

# Plain ints, because the members of an enum are slow to hash, and parsing is to be fast.
_INT, _FLOAT, _STRING, _BYTES = int(Kind.INT), int(Kind.FLOAT), int(Kind.STRING), int(Kind.BYTES)
_LIST = int(Kind.LIST)
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
TEXT_OPERATORS = ("starts with", "ends with", "contains", "matches", "like", "regex")
# Its operand is, for each character, all that are the same if case is ignored, the one that was written first.
IGNORING_CASE = "= ignoring case"
IN_NETWORK = "in network"
_STRINGS_ONLY = ("matches", "like", "regex", IN_NETWORK)


class WrongOperand(FilterError):
    """An operator that makes no sense with its operand."""


class Constraint(msgspec.Struct, frozen=True, gc=False):
    """An operator with its operand, and the kind that it demands of the value, if any.

    The operand is a scalar; a pair for `between`; a tuple for `in`; for `has` a constraint on the elements,
    which may be a `not` with the constraint that a value is not to satisfy, which demands the same; None for
    `exists` and `absent`; for `like` a pattern in the notation of `questions.like_of`; for texts that ignore
    case what `questions.variants_of` gives.
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
            case "has" | "not":
                operand.check()
            case "in":
                for one in operand:
                    self._checked_kinds(one)
            case "between":
                if self._checked_kinds(operand[0]) != self._checked_kinds(operand[1]):
                    raise WrongOperand("Both ends of `between` must be of one kind.")
            case "= ignoring case":
                self._checked_kinds("")
                self._text()
            case _:
                kinds = self._checked_kinds(operand)
                is_text = self.operator in TEXT_OPERATORS or self.operator == IN_NETWORK
                if is_text and kinds[0] not in _TEXT_KINDS:
                    raise WrongOperand(
                        f"`{self.operator}` compares with a string, not with {describe_kind(operand)}."
                    )
                if self.operator in _STRINGS_ONLY:
                    self._text()

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
            case "not":
                excluded: ValueSet = operand.values()
                return PRESENT - excluded
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
        if self.operator == IGNORING_CASE:
            return ValueSet.of({_STRING: _ignoring_case(self.operand)})
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
        case "matches" | "like" | "regex" | "in network" if kind != _STRING:
            raise WrongOperand(f"`{operator}` compares with a string, not with bytes.")
        case "matches" | "like" | "regex" | "in network":
            try:
                return _PATTERNS[operator](text)
            except texts.TextMistake as mistake:
                raise WrongOperand(str(mistake)) from None
        case _:
            raise WrongOperand(f"There is no operator `{operator}`.")


def _asked(atom: Any) -> Tree:
    return DecisionNode(atom, EVERYTHING[_STRING], NOTHING)


def _glob(pattern: str) -> Tree:
    literal = texts.literal_glob(pattern)
    if literal is not None:
        return flips.point(Kind.STRING, literal)
    above = texts.below_of(pattern)
    if above is not None:
        return flips.combine(flips.point(_STRING, above), prefix(_STRING, above + "/"), 1)
    return EVERYTHING[_STRING] if pattern == "**" else _asked(texts.GlobMatches(pattern))


def _like(pattern: str) -> Tree:
    """A pattern whose only wildcards are `%` at its ends is kept as a prefix, a suffix or a part."""
    literal = questions.like_literal(pattern)
    if literal is None:
        return _questioned(questions.Like(pattern))
    begins, text, ends = literal
    if begins:
        return _text_part(_STRING, "contains" if ends else "ends with", text)
    return prefix(_STRING, text) if ends else flips.point(Kind.STRING, text)


def _regex(pattern: str) -> Tree:
    literal = regexp.literal_of(regexp.shape_of(pattern))
    if literal is not None:
        return flips.point(Kind.STRING, literal)
    return _questioned(questions.RegexMatches(pattern))


def _network(network: str) -> Tree:
    return _questioned(questions.InNetwork(networks.canonical_network(network)))


def _questioned(atom: questions.TableQuestion) -> Tree:
    """The tree of a question once its table is known to be small enough, and says neither all nor nothing."""
    table = atom.table
    if len(table.table) > 1:
        return _asked(atom)
    return EVERYTHING[_STRING] if table.accepting[0] else NOTHING


def _ignoring_case(variants: tuple[str, ...]) -> Tree:
    try:
        questions.check_variants(variants)
    except texts.TextMistake as mistake:
        raise WrongOperand(str(mistake)) from None
    if all(len(one) == 1 for one in variants):
        return flips.point(Kind.STRING, "".join(variants))
    return _asked(questions.IgnoringCase(sorted_variants(variants)))


def sorted_variants(variants: tuple[str, ...]) -> tuple[str, ...]:
    """The same for all ways to write the text."""
    return tuple(["".join(sorted(one)) for one in variants])


_PATTERNS = {"matches": _glob, "like": _like, "regex": _regex, IN_NETWORK: _network}


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
    return ValueSet(False, (*EMPTY.parts[:_LIST], _having(element, element.values())))


def with_lists(constraint: Constraint, values: ValueSet | None = None) -> ValueSet:
    """The values that satisfy a constraint, and the lists that have an element which does.

    `values` are those of the constraint, where they have been found already.
    """
    if values is None:
        values = constraint.values()
    found = ValueSet(False, (*values.parts[:_LIST], _having(constraint, values)))
    found.is_simple = not values.asks  # the one question about lists is needed
    return found


def _having(element: Constraint, values: ValueSet) -> Tree:
    elements = values
    if values.parts[_LIST] != NOTHING:
        elements = ValueSet(False, (*values.parts[:_LIST], NOTHING))
    if elements.is_empty():
        return NOTHING
    element = _canonical(element)
    return DecisionNode(Has(element_text(element), element, elements), EVERYTHING[_LIST], NOTHING)


def _canonical(element: Constraint) -> Constraint:
    """The same for all ways to write a text that ignores case."""
    match element:
        case Constraint("= ignoring case", operand, demanded):
            return Constraint(IGNORING_CASE, sorted_variants(operand), demanded)
        case Constraint("not", inner, demanded):
            return Constraint("not", _canonical(inner), demanded)
    return element


def element_text(element: Constraint) -> str:
    """A text that tells constraints on elements apart."""
    operand = element.operand
    if element.operator == "in":
        operand = tuple(sorted(operand, key=repr))
    elif element.operator == "not":
        operand = element_text(operand)
    return f"{element.demanded} {element.operator} {operand!r}"
