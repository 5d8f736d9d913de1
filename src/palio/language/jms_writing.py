"""A filter as a message selector of JMS, where it is one.

Conjunctions are joined by OR, and what all of them say stands once before them. A selector can say of an
attribute that it is not there, or that it is; of values only numbers, strings and booleans, each kind by
conditions of its own. A computed condition says something of its attributes, too, as it is read there: what
conjunctions say of an attribute beyond that is said beside it.

What is found is read back, and is the answer only if it means the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from palio.language.errors import UnwritableCondition
from palio.language.jms import KEYWORDS, parse_selector
from palio.language.joining import Wording, both, either
from palio.model.conjunction import Conjunction, in_order
from palio.model.constraint import Constraint
from palio.model.describe import describe
from palio.model.errors import FilterError
from palio.model.expression import And, Condition, Expression, Not, Or, name_text, text_of
from palio.model.filter import Filter
from palio.model.formulas.evaluation import implied
from palio.model.formulas.formula import Call, Constant, Formula, Variable, variables
from palio.model.formulas.function import BOOLS, NUMBERS, STRINGS
from palio.model.formulas.residual import Residual
from palio.model.formulas.writing import COMPARISONS, PRODUCTS, SUMS
from palio.model.questions import like_text
from palio.model.values import Kind
from palio.model.valueset import EMPTY, PRESENT, ValueSet

DIALECT = "jms"
_PLAIN_NAME = re.compile(r"(?:[^\W\d]|\$)[\w$]*(?:\.[\w$]+)*")
_SIGNS = {function: (sign, 1) for sign, function in SUMS.items()} | {
    function: (sign, 2) for sign, function in PRODUCTS.items()
}
_LIKE = ("like", "starts with", "ends with", "contains")
_SPECIAL = re.compile("[!%_]")
_REASON = (
    "a selector compares numbers of both kinds, strings and booleans, and selects no value of another type, as "
    '`!=` and `not` of ours do: `string x != "a"` and `(n < 5 or n > 5)` can be said, and of strings also '
    "`in`, what they begin and end with or contain, `like`, and their order."
)
_COMPUTED = (
    "a selector computes with `+`, `-`, `*`, `/` and `%` only, and compares what comes of it by order and `=`."
)
_ORDER = "there, booleans have no order. With `and not exists(bool {name})` beside it, it can be said."
_ORDERS = ("less", "less_or_equal")
_TURNED = {"<": ">", "<=": ">=", "=": "=", "<>": "<>"}


class _Unsaid(Exception):
    """A part of an expression that has no words."""


def write_selector(filter: Filter) -> str:
    """The text that `parse_selector` reads to this filter. Raises `UnwritableCondition`."""
    text = _of_boxes(list(_of_all(list(filter.conjunctions))))
    with suppress(FilterError):
        if parse_selector(text) == filter:
            return text
    raise UnwritableCondition(DIALECT, text_of(filter.expression), _REASON)


def _of_boxes(boxes: list[list[Wording]]) -> str:
    """What all conjunctions say, and then what each of them says beside it."""
    if not boxes:
        return "FALSE"
    common = [one for one in boxes[0] if all(one in box for box in boxes)]
    others = [[one for one in box if one not in common] for box in boxes]
    if all(others):
        common.append(either(map(both, others)))
    return both(common).text if common else "TRUE"


def _of_all(waiting: list[Conjunction]) -> Iterator[list[Wording]]:
    """Each conjunction; two of which one says `a < b` and the other one `b < a` as one that says `a <> b`."""
    while waiting:
        box = waiting.pop(0)
        for one in box.residuals:
            turned = _other_order(one)
            if turned is None or any(_is_ordered(name, box) for name in variables(one.formula)):
                continue
            others = [turned if other == one else other for other in box.residuals]
            partner = Conjunction(dict(box.sides), in_order(others))
            if partner == box or partner in waiting:
                waiting = [other for other in waiting if other != partner]
                yield _of_box(box, unequal=one)
                break
        else:
            yield _of_box(box)


def _other_order(residual: Residual) -> Residual | None:
    match residual:
        case Residual(Call("less", (left, right)), True):
            return Residual(Call("less", (right, left)))
    return None


def _of_box(box: Conjunction, unequal: Residual | None = None) -> list[Wording]:
    computed = [_of_residual(one, box, unequal=one == unequal) for one in box.residuals]
    read: dict[str, ValueSet] = {}
    if computed:
        for one in parse_selector(both(computed).text).conjunctions[:1]:
            read.update(one.sides)
    sides = []
    for name, values in box.sides.items():
        if values == read.get(name):
            continue
        try:
            sides.append(either(_alternatives(name, values)))
        except _Unsaid:
            for residual in box.residuals:  # what is only implied is not what people have written
                if (implied(residual.formula) or {}).get(name) == values:
                    raise UnwritableCondition(
                        DIALECT, text_of(residual), _ORDER.format(name=name_text(name))
                    ) from None
            raise UnwritableCondition(DIALECT, text_of(describe(name, values)), _REASON) from None
    return [*sides, *computed]


# One attribute


def _alternatives(name: str, values: ValueSet) -> Iterator[Wording]:
    """Of which one must hold. Raises `_Unsaid`."""
    written = _name(name)
    if values.absent:
        yield Wording(f"{written} IS NULL")
    there = values & PRESENT
    if there == PRESENT:
        yield Wording(f"{written} IS NOT NULL")
        return
    numbers, strings, truths = (there & kinds for kinds in (NUMBERS, STRINGS, BOOLS))
    if there != numbers | strings | truths:
        raise _Unsaid
    if numbers == NUMBERS:
        yield from (Wording(f"{written} < 0"), Wording(f"{written} >= 0"))
    elif numbers != EMPTY:
        yield _of_values(describe(name, numbers))
    if strings != EMPTY:
        yield _of_values(describe(name, strings))
    for truth in (True, False):
        if truth in truths:
            yield Wording(f"{written} = {_literal(truth)}")


def _of_values(expression: Expression) -> Wording:
    """What describes numbers alone, or strings alone. Raises `_Unsaid`."""
    match expression:
        case And(operands):
            parts = [one for one in operands if not _says_string(one)]
            return both(map(_of_values, parts or operands))
        case Or(operands):
            return either(map(_of_values, operands))
        case Not(Condition(name, Constraint(operator) as constraint)) if operator in _LIKE:
            return Wording(_of_constraint(_name(name), constraint, "NOT LIKE"))
        case Not(operand):
            return Wording(f"NOT ({_of_values(operand).text})")
        case Condition(name, constraint):
            return Wording(_of_constraint(_name(name), constraint))
        case _:
            raise _Unsaid


def _says_string(expression: Expression) -> bool:
    """Whether it says that there is a string, which all conditions of strings do here."""
    return isinstance(expression, Condition) and expression.constraint == Constraint(
        "exists", None, Kind.STRING
    )


def _of_constraint(name: str, constraint: Constraint, like: str = "LIKE") -> str:
    operator, operand = constraint.operator, constraint.operand
    if constraint.demanded in (Kind.INT, Kind.FLOAT):
        raise _Unsaid
    match operator:
        case "exists":
            return f"{name} LIKE '%'"
        case "=" | "<" | "<=" | ">" | ">=":
            return f"{name} {operator} {_literal(operand)}"
        case "!=":
            return f"{name} <> {_literal(operand)}"
        case "between":
            return f"{name} BETWEEN {_literal(operand[0])} AND {_literal(operand[1])}"
        case "in":
            return f"{name} IN ({', '.join(map(_literal, operand))})"
        case "like":
            pattern, escape = like_text(operand)
            return f"{name} {like} {_literal(pattern)}" + (f" ESCAPE {_literal(escape)}" if escape else "")
        case _ if operator in _LIKE:
            before = "" if operator == "starts with" else "%"
            behind = "" if operator == "ends with" else "%"
            inner, escape = operand, ""
            if "%" in operand or "_" in operand:
                inner, escape = _SPECIAL.sub(r"!\g<0>", operand), " ESCAPE '!'"
            return f"{name} {like} {_literal(before + inner + behind)}{escape}"
        case _:
            raise _Unsaid


# What is computed


def _of_residual(residual: Residual, box: Conjunction, *, unequal: bool) -> Wording:
    """Raises `UnwritableCondition`."""
    match residual:
        case Residual(Call(function, (left, right)), True) if function in COMPARISONS and function != "unequal":
            sign = "<>" if unequal else COMPARISONS[function]
            # No boolean is selected of what stands on the left; and people have the constant on the right.
            if isinstance(left, Constant) or (function in _ORDERS and _stands_left(right, left, box)):
                left, right, sign = right, left, _TURNED[sign]
            with suppress(_Unsaid):
                return Wording(f"{_computed(left, 0)} {sign} {_computed(right, 0)}")
    raise UnwritableCondition(DIALECT, text_of(residual), _COMPUTED)


def _stands_left(one: Formula, other: Formula, box: Conjunction) -> bool:
    """Whether one operand has to, rather than the other one: that it is no boolean can be said only so."""
    ordered = [formula for formula in (one, other) if _is_ordered(formula, box)]
    return one in ordered and (len(ordered) == 1 or not _can_be_said(one, box))


def _can_be_said(formula: Formula, box: Conjunction) -> bool:
    assert isinstance(formula, Variable)
    with suppress(_Unsaid):
        return bool(list(_alternatives(formula.name, box.side(formula.name))))
    return False


def _is_ordered(formula: Formula | str, box: Conjunction) -> bool:
    """Whether it is an attribute that is no boolean."""
    name = formula.name if isinstance(formula, Variable) else formula
    return isinstance(name, str) and not box.side(name).overlaps(BOOLS)


def _computed(formula: Formula, strength: int) -> str:
    """A value, in parentheses if it binds less than what stands around it. Raises `_Unsaid`."""
    match formula:
        case Variable(name):
            return _name(name)
        case Constant(value):
            return _literal(value)
        case Call("negate", (operand,)):
            return f"-({_computed(operand, 0)})"
        case Call(function, (left, right)) if function in _SIGNS:
            sign, binds = _SIGNS[function]
            # Of what binds alike, the left is done first.
            text = f"{_computed(left, binds)} {sign} {_computed(right, binds + 1)}"
            return f"({text})" if binds < strength else text
        case _:
            raise _Unsaid


def _name(name: str) -> str:
    if _PLAIN_NAME.fullmatch(name) and name.upper() not in KEYWORDS:
        return name
    return f"[{name.replace('[', '[[').replace(']', ']]')}]"


def _literal(value: Any) -> str:
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case int() | float():
            return repr(value)
        case _:
            raise _Unsaid
