"""A filter as an expression of CESQL, where it is one.

What CESQL says of an attribute depends on how its values are cast, and whatever fails selects nothing. So words
are suggested for each conjunction, and the reader says what they mean: of an attribute those are taken that
together stand for its values; a residual is an expression already, and what it says of numbers comes with it.

Joined by AND, expressions select what all of them do. Joined by OR, the first ones have to come to something
where a later one selects: what asks for an attribute that may be missing has EXISTS before it, and a comparison
of numbers, which texts may fail, is no help. In the end, what is found is read back, and is the answer only if
it means the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress

from palio.language.cesql.compiling import parse_cesql
from palio.language.cesql.reader import BINARY, BUILT_IN
from palio.language.errors import UnwritableCondition
from palio.language.joining import Wording, both, either
from palio.model.conjunction import Conjunction
from palio.model.constraint import Constraint
from palio.model.describe import describe
from palio.model.errors import FilterError
from palio.model.expression import conditions, text_of
from palio.model.filter import Filter
from palio.model.formulas.formula import Call, Constant, Formula, Variable, variables
from palio.model.formulas.residual import Residual
from palio.model.questions import like_parts
from palio.model.texts import TextMistake
from palio.model.valueset import ANYTHING, EMPTY, ValueSet, union

DIALECT = "cesql"
_SPECIAL, _ESCAPED = re.compile("[!%_]"), r"!\g<0>"
_NAME = re.compile("[a-z0-9]*[a-z][a-z0-9]*")
# So many words are tried to do without; with more it would take its square.
_SPARED = 100
_REASON = (
    "there, what is compared is cast: a number is compared with strings that read so, too, and with no floats; "
    "a text with everything that has that text. So texts that are no numbers can be said by `=`, `!=`, `in`, "
    "`like` and what they begin and end with or contain; and of every attribute whether it is there."
)
_NAMES = "an attribute has small letters and digits in its name, and is not called `data`."
_JOINED = "what stands before an `or` has to come to something there, or nothing is selected."
_OWN_WORDS = "it has functions and operators of its own, whose mistakes select nothing."
_SIGNS = {function: (sign, strength) for sign, (strength, function) in reversed(BINARY.items())}
_CALLS = {function: name for name, function in BUILT_IN.items()}
_DEFINED = "cesql.defined"
_TESTED, _UNARY, _ALONE = 4, 5, 6


def write_expression(filter: Filter) -> str:
    """The text that `parse_cesql` reads to this filter. Raises `UnwritableCondition`."""
    writer = _Writer(filter)
    for text in writer.texts():
        if _read(text) == filter:
            return text
    refused = writer.refused
    raise refused[0] if refused else UnwritableCondition(DIALECT, text_of(filter.expression), _JOINED)


class _Writer:
    """Tries to say a filter; `refused` are conjunctions that have no words of their own."""

    def __init__(self, filter: Filter) -> None:
        self.filter = filter
        self.refused: list[UnwritableCondition] = []

    def texts(self) -> Iterator[str]:
        """What may mean the filter, the plainest first."""
        boxes = self.filter.conjunctions
        if not boxes:
            yield "FALSE"
        elif self.filter.attributes and not self.filter.has_residuals:
            yield from sorted(self.filter.attributes)[:1]  # an attribute alone has to be true
        said = self._words(boxes)
        meanings = [_read(one.text) for one in said]
        for words, wide in zip(said, meanings, strict=True):
            if wide is not None and all(one is not None and wide.covers(one) for one in meanings):
                yield words.text
        if len(boxes) < 2:
            return
        said = self._words(boxes, in_row=True)
        if said:
            yield either(said).text
            yield either(both([*_guards(one), one]) for one in said).text
        loose = [_without_definedness(box) for box in boxes]
        later = [one for one in self._words(loose, in_row=True, later=True) if one not in said]
        if said and later:
            yield either([*said, *later]).text

    def _words(
        self, boxes: Sequence[Conjunction], *, in_row: bool = False, later: bool = False
    ) -> list[Wording]:
        """Words for those that have some; `in_row` says that others may stand behind them, `later` before."""
        found: dict[Wording, None] = {}
        for box in boxes:
            try:
                found[self._of_box(box, in_row, later)] = None
            except UnwritableCondition as mistake:
                self.refused.append(mistake)
        return list(found)

    def _of_box(self, box: Conjunction, in_row: bool, later: bool) -> Wording:
        """Words for a conjunction, which may select more of the filter; `later`, more than that.

        Raises `UnwritableCondition`.
        """
        computed = [_of_residual(one) for one in box.residuals]
        asked = {name for one in box.residuals for name in variables(one.formula)}
        words = [_of_side(name, side, in_row) for name, side in box.sides.items() if name not in asked]
        if not box.sides and not computed:
            return Wording("TRUE")
        found = both([*words, *computed])
        meaning = _read(found.text) if asked and not later else None
        if not asked or later or (meaning is not None and self.filter.covers(meaning)):
            return found
        return both([*(_of_side(name, side, in_row) for name, side in box.sides.items()), *computed])


def _without_definedness(box: Conjunction) -> Conjunction:
    """What has to hold beside that something comes to a value, as it must before an OR."""
    defined = [
        one for one in box.residuals if isinstance(one.formula, Call) and one.formula.function == _DEFINED
    ]
    names = {name for one in defined for name in variables(one.formula)}
    sides = {name: side for name, side in box.sides.items() if name not in names}
    return Conjunction(sides, tuple(one for one in box.residuals if one not in defined))


def _guards(words: Wording) -> list[Wording]:
    """That the attributes are there which must be for it."""
    meaning = _read(words.text)
    if meaning is None:
        return []
    boxes = meaning.conjunctions
    names = [name for name in sorted(meaning.attributes) if not any(box.side(name).absent for box in boxes)]
    return [Wording(f"EXISTS {name}") for name in names]


def _read(text: str) -> Filter | None:
    with suppress(FilterError):
        return parse_cesql(text)
    return None


# One attribute


def _of_side(name: str, side: ValueSet, in_row: bool) -> Wording:
    """Raises `UnwritableCondition`."""
    if _NAME.fullmatch(name) is None or name == "data":
        raise UnwritableCondition(DIALECT, text_of(describe(name, side)), _NAMES)
    suggested: dict[str, ValueSet] = {}
    for text in _suggested(name, side, in_row):
        suggested[text] = values = _meaning(name, text)
        if values == side:
            return Wording(text)
    wider = {text: values for text, values in suggested.items() if values.includes(side)}
    if wider and _common(wider.values()) == side:
        return both(map(Wording, _needed(wider, side, _common)))
    narrower = {text: values for text, values in suggested.items() if values != EMPTY and side.includes(values)}
    if union(narrower.values()) == side:
        return either(map(Wording, _needed(narrower, side, union)))
    raise UnwritableCondition(DIALECT, text_of(describe(name, side)), _REASON)


def _common(sets: Iterable[ValueSet]) -> ValueSet:
    found = ANYTHING
    for one in sets:
        found &= one
    return found


def _needed(
    words: dict[str, ValueSet], wanted: ValueSet, joined: Callable[[Iterable[ValueSet]], ValueSet]
) -> list[str]:
    """Words that are together what is wanted, without those that can be spared: the long ones first."""
    if len(words) <= _SPARED:
        for text in sorted(words, key=len, reverse=True):
            others = {other: values for other, values in words.items() if other != text}
            if others and joined(others.values()) == wanted:
                words = others
    return list(words)


def _meaning(name: str, text: str) -> ValueSet:
    """The values of an attribute that a condition on it selects; nothing if there is more to it."""
    found = _read(text)
    if found is None or len(found.conjunctions) != 1:
        return EMPTY
    (box,) = found.conjunctions
    return box.side(name) if box.sides.keys() == {name} and not box.residuals else EMPTY


def _suggested(name: str, side: ValueSet, in_row: bool) -> Iterator[str]:
    """Conditions that a set may be made of; they need not be any."""
    yield from (f"NOT EXISTS {name}", f"EXISTS {name}", f"{name} = TRUE", f"{name} = FALSE", f"NOT {name}")
    several: dict[str, None] = {}
    for part in (side, ~side):
        for _, constraint in conditions(describe(name, part)):
            match constraint:
                case Constraint("=" | "!=", str(text)):
                    several[text] = None
                case Constraint("in", texts):
                    several.update(dict.fromkeys(text for text in texts if isinstance(text, str)))
                case _:
                    pattern = _pattern(constraint)
                    if pattern is not None:
                        yield from (f"{name} LIKE {pattern}", f"{name} NOT LIKE {pattern}")
    texts = list(map(_literal, several))
    if len(texts) == 1:
        yield from (f"{name} = {texts[0]}", f"{name} != {texts[0]}")
    if texts and not in_row:  # what is no text is a mistake there
        yield from (f"{name} {word} ({', '.join(texts)})" for word in ("IN", "NOT IN"))
    if len(texts) > 1:
        yield from (f"{name} {sign} {text}" for text in texts for sign in ("=", "!="))


def _pattern(constraint: Constraint) -> str | None:
    operand = constraint.operand
    match constraint.operator:
        case "like":
            return _like(operand)
        case "starts with" | "ends with" | "contains" if isinstance(operand, str):
            before = "" if constraint.operator == "starts with" else "%"
            behind = "" if constraint.operator == "ends with" else "%"
            with suppress(TextMistake):
                return _like(f"{before}{_SPECIAL.sub(_ESCAPED, operand)}{behind}")
    return None


def _like(pattern: str) -> str:
    """A pattern in the notation of `like_of` as the language has it. Raises `TextMistake`."""
    signs = {None: "%", "": "_", "%": "\\%", "_": "\\_"}
    return _literal("".join(signs.get(part, str(part)) for part in like_parts(pattern)))


# Residuals


def _of_residual(residual: Residual) -> Wording:
    """Raises `UnwritableCondition`."""
    if residual.wanted:
        with suppress(KeyError, TextMistake):
            text, strength = _formula(residual.formula)
            return Wording(text, "" if strength else "a joint of its own")
    raise UnwritableCondition(DIALECT, text_of(residual), _OWN_WORDS)


def _formula(formula: Formula) -> tuple[str, int]:
    """Its text, and how strongly that binds. Raises `KeyError` for what the language does not have."""
    if isinstance(formula, Variable):
        if _NAME.fullmatch(formula.name) is None:
            raise KeyError(formula.name)
        return formula.name, _ALONE
    if isinstance(formula, Constant):
        if not isinstance(formula.value, (bool, int, str)):
            raise KeyError(formula.value)
        return _literal(formula.value), _ALONE
    function, operands = formula.function, formula.operands
    if function in ("cesql.and", "cesql.or", "cesql.xor"):
        return f" {_SIGNS[function][0]} ".join(_within(one, 1) for one in operands), 0
    if function in _SIGNS:
        sign, strength = _SIGNS[function]
        left, right = operands
        return f"{_within(left, strength)} {sign} {_within(right, strength + 1)}", strength
    match function:
        case "cesql.not":
            return f"NOT {_within(operands[0], _UNARY)}", _UNARY
        case "cesql.negate":
            return f"-({_formula(operands[0])[0]})", _UNARY
        case "cesql.exists":
            return f"EXISTS {_formula(operands[0])[0]}", _ALONE
        case "cesql.like":
            pattern = operands[1]
            assert isinstance(pattern, Constant)
            return f"{_within(operands[0], _UNARY)} LIKE {_like(str(pattern.value))}", _TESTED
        case "cesql.in":
            listed = ", ".join(_formula(one)[0] for one in operands[1:])
            return f"{_within(operands[0], _UNARY)} IN ({listed})", _TESTED
        case _:
            return f"{_CALLS[function]}({', '.join(_formula(one)[0] for one in operands)})", _ALONE


def _within(formula: Formula, strength: int) -> str:
    text, binds = _formula(formula)
    return text if binds >= strength else f"({text})"


def _literal(value: bool | int | str) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return str(value)
    quote = '"' if "'" in value and '"' not in value else "'"
    return quote + value.replace(quote, f"\\{quote}") + quote
