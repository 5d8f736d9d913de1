"""How an expression is written: in its shortest spelling, of which there is one only.

The names of namespaces are up to who asks: in the canonical text they are the family's prefixes, and for the
library that evaluates an expression some of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from palio.documents.xpath.expression import (
    NEGATIVE,
    PARENT,
    PRECEDENCE,
    SEARCH,
    SELF,
    FilteredPath,
    LocationPath,
    LocationStep,
    NameTest,
    XPathCall,
    XPathExpression,
    XPathNegation,
    XPathNumber,
    XPathOperation,
    XPathString,
)

# What a namespace is called on an axis; nothing, where names without a prefix are in it.
Naming = Callable[[str, str], str]


def write_xpath(expression: XPathExpression, prefix_of: Naming) -> str:
    """The text of an expression; `prefix_of` says, for a namespace and an axis, its prefix or nothing."""
    return _written(expression, prefix_of, 0)


def _written(expression: XPathExpression, prefix_of: Naming, around: int) -> str:
    """The text, in parentheses if what is around it binds more tightly."""
    match expression:
        case XPathOperation(operator, left, right):
            binds = PRECEDENCE[operator]
            sides = _written(left, prefix_of, binds), _written(right, prefix_of, binds + 1)
            return _enclosed(f" {operator} ".join(sides), binds, around)
        case XPathNegation(operand):
            return _enclosed(f"-{_written(operand, prefix_of, NEGATIVE)}", NEGATIVE, around)
        case XPathCall(function, operands):
            return f"{function}({', '.join(_written(one, prefix_of, 0) for one in operands)})"
        case XPathString(value):
            return f"'{value}'" if '"' in value else f'"{value}"'
        case XPathNumber(value):
            return _number(value)
        case LocationPath(absolute, steps):
            text = _steps(steps, prefix_of, "/" if absolute else "")
            # A path that is only the document would take what follows it, `/ * 2`, for a step.
            return f"({text})" if text == "/" and around else text
        case FilteredPath(nodes, predicates, steps):
            within = _written(nodes, prefix_of, 0)
            if not isinstance(nodes, XPathCall):
                within = f"({within})"
            kept = "".join(f"[{_written(one, prefix_of, 0)}]" for one in predicates)
            return within + kept + (_steps(steps, prefix_of, "/") if steps else "")


def _enclosed(text: str, binds: int, around: int) -> str:
    return f"({text})" if binds < around else text


def _steps(steps: tuple[LocationStep, ...], prefix_of: Naming, before: str) -> str:
    text = before
    for place, step in enumerate(steps):
        if step == SEARCH and place + 1 < len(steps):
            text = f"{text or './'}/" if text.endswith("/") or not text else f"{text}//"
            continue
        text += "" if not text or text.endswith("/") else "/"
        text += _step(step, prefix_of)
    return text or "."


def _step(step: LocationStep, prefix_of: Naming) -> str:
    if step in (SELF, PARENT):
        return "." if step == SELF else ".."
    axis = {"child": "", "attribute": "@"}.get(step.axis, f"{step.axis}::")
    if isinstance(step.test, NameTest):
        test = _name(step.test, step.axis, prefix_of)
    else:
        target = "" if step.test.target is None else _written(XPathString(step.test.target), prefix_of, 0)
        test = f"{step.test.kind}({target})"
    return f"{axis}{test}" + "".join(f"[{_written(one, prefix_of, 0)}]" for one in step.predicates)


def _name(test: NameTest, axis: str, prefix_of: Naming) -> str:
    prefix = prefix_of(test.namespace, axis) if test.namespace else ""
    return f"{prefix}:{test.local or '*'}" if prefix else test.local or "*"


def _number(value: float) -> str:
    text = format(Decimal(repr(value)), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
