"""Why, or why not: an expression with the truth of each part for one notification."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime
from typing import Any

import msgspec

from palio.model.constraint import IGNORING_CASE, Constraint
from palio.model.expression import (
    Always,
    And,
    Condition,
    Expression,
    Not,
    Or,
    literal,
    name_text,
    text_of,
    written,
)
from palio.model.formulas.evaluation import evaluate
from palio.model.formulas.formula import UNKNOWN, Call, Failed, Formula, variables
from palio.model.formulas.residual import Residual
from palio.model.formulas.writing import formula_text
from palio.model.notification import Notification
from palio.model.values import KIND_NAMES, KIND_OF_TYPE, Kind

_MAX_SHOWN = 60


class Explanation(msgspec.Struct, frozen=True):
    """A part of a filter, whether it holds, and what decided it.

    `join` is "condition", "not", "and", "or" or "constant"; `parts` are the parts that it joins. For a
    condition, `value` is the attribute's value, None if it is absent, and `note` says what decided.
    """

    text: str
    holds: bool
    join: str
    attribute: str | None = None
    value: Any = None
    note: str | None = None
    parts: tuple[Explanation, ...] = ()

    def walk(self, depth: int = 0) -> Iterator[tuple[int, Explanation]]:
        """Each part with its depth, from the whole inwards."""
        yield depth, self
        for part in self.parts:
            yield from part.walk(depth + 1)

    @property
    def headline(self) -> str:
        """What to print for this part: a condition's text, or how its parts are joined."""
        return {"and": "all of", "or": "any of", "not": "not"}.get(self.join, self.text)

    @property
    def line(self) -> str:
        """This part on one line."""
        note = f"  ({self.note})" if self.note else ""
        return f"{'✓' if self.holds else '✗'} {self.headline}{note}"

    def __str__(self) -> str:
        return "\n".join("  " * depth + part.line for depth, part in self.walk())

    def __bool__(self) -> bool:
        return self.holds


def explain(expression: Expression, notification: Notification) -> Explanation:
    text = text_of(expression)
    match expression:
        case Condition(attribute, constraint):
            value = notification.attributes.get(attribute)
            holds = value in constraint.values()
            note = _note(attribute, constraint, value, holds, notification.unindexed)
            return Explanation(text, holds, "condition", attribute, value, note)
        case Residual(formula, _):
            holds = expression.holds(notification.attributes.get)
            return Explanation(text, holds, "condition", note=_values_note(formula, notification))
        case Not(operand):
            part = explain(operand, notification)
            return Explanation(text, not part.holds, "not", parts=(part,))
        case And(operands):
            parts = tuple(explain(operand, notification) for operand in operands)
            return Explanation(text, all(part.holds for part in parts), "and", parts=parts)
        case Or(operands):
            parts = tuple(explain(operand, notification) for operand in operands)
            return Explanation(text, any(part.holds for part in parts), "or", parts=parts)
        case Always(truth):
            return Explanation(text, truth, "constant")


def _values_note(formula: Formula, notification: Notification) -> str:
    """The values that a formula is computed from, and what its sides come to where it compares two."""
    value_of, unindexed = notification.attributes.get, notification.unindexed
    notes = []
    for name in sorted(variables(formula)):
        value = value_of(name)
        part = unindexed_part(name, unindexed) if value is None else None
        is_there = "is absent" if value is None else f"is {_shown(value)}"
        notes.append(f"{name_text(name)} {is_there}" if part is None else unfilterable(part))
    if isinstance(formula, Call):
        for operand in formula.operands:
            if isinstance(operand, Call):
                notes.append(
                    f"{formula_text(operand, literal, name_text)} {_comes_to(evaluate(operand, value_of))}"
                )
    return ", ".join(notes)


def _comes_to(value: Any) -> str:
    if value is UNKNOWN:
        return "is unknown"
    return f"cannot be computed: {value.kind}" if isinstance(value, Failed) else f"is {_shown(value)}"


def unindexed_part(attribute: str, unindexed: Collection[str]) -> str | None:
    """The content that this attribute would be a part of, if that is there but cannot be filtered."""
    return next((part for part in unindexed if f"{attribute}.".startswith(f"{part}.")), None)


def unfilterable(part: str) -> str:
    """What to say of such content."""
    return f"{name_text(part)} is a list of objects or of mixed values, which no filter can look into"


def _note(attribute: str, constraint: Constraint, value: Any, holds: bool, unindexed: Collection[str]) -> str:
    name = name_text(attribute)
    if value is None:
        part = unindexed_part(attribute, unindexed)
        return f"{name} is absent" if part is None else unfilterable(part)
    reason = "" if holds else _mismatch(constraint, value, KIND_NAMES[Kind(KIND_OF_TYPE[type(value)])])
    return f"{name} is {_shown(value)}{reason}"


def _mismatch(constraint: Constraint, value: Any, kind: str) -> str:
    """What a person may have overlooked when a condition fails for a reason of types."""
    operand, operator = constraint.operand, constraint.operator
    if operator == "has":
        return "" if kind == "list" else f", of type {kind} and not a list"
    if kind == "list" and operator not in ("exists", "absent"):
        return ", a list: ask with `has`"
    if constraint.demanded is not None and KIND_NAMES[constraint.demanded] != kind:
        return f", of type {kind}; {KIND_NAMES[constraint.demanded]} is demanded"
    constants = operand if isinstance(operand, tuple) else (operand,)
    if operator == IGNORING_CASE:
        constants = (written(operand),)
    if operator in ("exists", "absent", "!=") or any(_comparable(one, value) for one in constants):
        return ""
    if isinstance(value, str) and any(isinstance(one, datetime) for one in constants):
        return ", a string; strings are never taken for times"
    return f", of type {kind}, which is never compared with {literal(constants[0])[:_MAX_SHOWN]}"


def _comparable(constant: Any, value: Any) -> bool:
    numbers = (int, float)
    return type(constant) is type(value) or (type(constant) in numbers and type(value) in numbers)


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        text = f"[{', '.join(literal(one) for one in value[:20])}{', …' if len(value) > 20 else ''}]"
    else:
        text = literal(value)
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 1] + "…"
