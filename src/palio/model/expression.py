"""A filter as people write it: conditions joined by `and`, `or` and `not`; and its text.

The text is what `parser` reads back to the same expression, with no more parentheses than needed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, TypeAlias

import msgspec

from palio.model.constraint import IGNORING_CASE, Constraint
from palio.model.formulas.formula import Call, Constant, Formula, Variable, variables
from palio.model.formulas.residual import Residual
from palio.model.formulas.writing import formula_text
from palio.model.moments import format_time
from palio.model.questions import like_text
from palio.model.values import KIND_NAMES, Kind

KEYWORDS = frozenset(
    "and or not in between starts ends with contains matches exists absent has true false".split()  # noqa: SIM905
)
_PLAIN_NAME = re.compile(r"[^\W\d]\w*(?:\.\w+)*")


# Trees without cycles: the garbage collector need not look at them.
class Condition(msgspec.Struct, frozen=True, gc=False):
    """A constraint on one attribute."""

    attribute: str
    constraint: Constraint


class Not(msgspec.Struct, frozen=True, gc=False):
    operand: Expression


class And(msgspec.Struct, frozen=True, gc=False):
    operands: tuple[Expression, ...]


class Or(msgspec.Struct, frozen=True, gc=False):
    operands: tuple[Expression, ...]


class Always(msgspec.Struct, frozen=True, gc=False):
    """`true` or `false`."""

    truth: bool


Expression: TypeAlias = "Condition | Residual | Not | And | Or | Always"

TRUE, FALSE = Always(True), Always(False)


def conjunction(operands: Iterable[Expression]) -> Expression:
    """The operands joined by `and`; one of them alone stays as it is."""
    parts = tuple(operands)
    return parts[0] if len(parts) == 1 else And(parts) if parts else TRUE


def disjunction(operands: Iterable[Expression]) -> Expression:
    """The operands joined by `or`; one of them alone stays as it is."""
    parts = tuple(operands)
    return parts[0] if len(parts) == 1 else Or(parts) if parts else FALSE


_COMPARISONS = {"less": ("<", ">"), "less_or_equal": ("<=", ">="), "equal": ("=", "="), "unequal": ("!=", "!=")}


def truth_of(formula: Formula) -> Expression:
    """What says that a formula comes to true: a plain condition where that is one, or else a residual."""
    match formula:
        case Constant(value):
            return Always(value is True)
        case Variable(name):
            return Condition(name, Constraint("=", True))
        case Call(function, (Variable(name), Constant(value))) if function in _COMPARISONS:
            return Condition(name, Constraint(_COMPARISONS[function][0], value))
        case Call(function, (Constant(value), Variable(name))) if function in _COMPARISONS:
            return Condition(name, Constraint(_COMPARISONS[function][1], value))
        case _:
            # Of constants alone it would have been computed, if it came to a value.
            return Residual(formula) if variables(formula) else FALSE


def check(expression: Expression) -> None:
    """Raises `WrongOperand` if an operator in it makes no sense with its operand."""
    match expression:
        case Condition(_, constraint):
            constraint.check()
        case Not(operand):
            check(operand)
        case And(operands) | Or(operands):
            for operand in operands:
                check(operand)


def conditions(expression: Expression) -> Iterator[tuple[str, Constraint]]:
    """All that an expression compares, whatever it is joined with, attribute by attribute."""
    waiting = [expression]
    while waiting:
        one = waiting.pop()
        match one:
            case Condition():
                yield one.attribute, one.constraint
            case Not():
                waiting.append(one.operand)
            case And() | Or():
                waiting.extend(reversed(one.operands))


def text_of(expression: Expression) -> str:
    """The text of an expression."""
    match expression:
        case Condition(attribute, constraint):
            return condition_text(attribute, constraint)
        case Residual(formula, wanted):
            text = formula_text(formula, literal, name_text)
            return text if wanted else f"not {text}"
        case Not(operand):
            return f"not {_inside(operand, And, Or)}"
        case And(operands):
            return " and ".join(_inside(operand, Or) for operand in operands)
        case Or(operands):
            return " or ".join(text_of(operand) for operand in operands)
        case Always(truth):
            return "true" if truth else "false"
        case _:  # what only patterns have, in the guard of a step
            return repr(expression)


def _inside(operand: Expression, *weaker: type) -> str:
    text = text_of(operand)
    return f"({text})" if isinstance(operand, weaker) else text


def condition_text(attribute: str, constraint: Constraint) -> str:
    name = name_text(attribute)
    if constraint.operator in ("exists", "absent"):
        return f"{constraint.operator}({_demand(constraint.demanded)}{name})"
    if constraint.operator == "has":
        element: Constraint = constraint.operand
        return f"{_demand(element.demanded)}{name} has {_element_text(element)}"
    sign = "=" if constraint.operator == IGNORING_CASE else constraint.operator
    return f"{_demand(constraint.demanded)}{name} {sign} {_operand_text(constraint)}"


def _element_text(element: Constraint) -> str:
    if element.operator == "not":
        return f"not {_element_text(element.operand)}"
    bare = "" if element.operator in ("=", IGNORING_CASE) else f"{element.operator} "
    return f"{bare}{_operand_text(element)}"


def _demand(kind: Kind | None) -> str:
    return "" if kind is None else f"{KIND_NAMES[kind]} "


def _operand_text(constraint: Constraint) -> str:
    operand = constraint.operand
    match constraint.operator:
        case "between":
            return f"{literal(operand[0])} and {literal(operand[1])}"
        case "in":
            return f"({', '.join(map(literal, operand))})"
        case "= ignoring case":
            return f"{literal(written(operand))} ignoring case"
        case "like":
            pattern, escape = like_text(operand)
            return literal(pattern) if escape is None else f"{literal(pattern)} escape {literal(escape)}"
        case _:
            return literal(operand)


def written(variants: tuple[str, ...]) -> str:
    """A text that is compared ignoring case, as it was written."""
    return "".join([one[0] for one in variants])


def name_text(attribute: str) -> str:
    """An attribute's name, in backticks where it is not a plain word."""
    if _PLAIN_NAME.fullmatch(attribute) and attribute.lower() not in KEYWORDS:
        return attribute
    return "`" + attribute.replace("\\", "\\\\").replace("`", "\\`") + "`"


def literal(value: Any) -> str:
    """A constant as it is written in a filter."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case datetime():
            return format_time(value)
        case bytes():
            return f'x"{value.hex()}"'
        case _:
            return repr(value)
