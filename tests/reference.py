"""What an expression means, said a second time: directly on values, with nothing of `ValueSet` in it.

Slow and obviously right; all that the package decides about filters is compared with this.
"""

import ipaddress
import re
from fractions import Fraction

from palio.model.constraint import IGNORING_CASE, Constraint
from palio.model.expression import Always, And, Condition, Expression, Not, Or
from palio.model.formulas.formula import Call, Constant, Formula, Variable
from palio.model.formulas.residual import Residual
from palio.model.values import Kind

TYPES = {
    Kind.BOOL: "bool",
    Kind.INT: "int",
    Kind.FLOAT: "float",
    Kind.STRING: "str",
    Kind.TIME: "datetime",
    Kind.BYTES: "bytes",
    Kind.LIST: "tuple",
}


def evaluate(expression: Expression, attributes) -> bool:
    match expression:
        case Always(truth):
            return truth
        case Not(operand):
            return not evaluate(operand, attributes)
        case And(operands):
            return all(evaluate(operand, attributes) for operand in operands)
        case Or(operands):
            return any(evaluate(operand, attributes) for operand in operands)
        case Condition(attribute, constraint):
            return holds(constraint, attributes.get(attribute))
        case Residual(formula, wanted):
            return (computed(formula, attributes) is True) == wanted


def computed(formula: Formula, attributes):
    """The value of a formula of our own language; None if it has none. Numbers are computed as fractions."""
    match formula:
        case Constant(value):
            return value
        case Variable(name):
            return attributes.get(name)
        case Call(function, operands):
            return called(function, *[computed(one, attributes) for one in operands])


def called(function: str, first, second=None, *others):
    match function:
        case "coalesce":
            return next((one for one in (first, second, *others) if one is not None), None)
        case "length":
            return len(first) if isinstance(first, str | bytes | tuple) else None
        case "lower" | "upper":
            if not isinstance(first, str):
                return None
            change = str.lower if function == "lower" else str.upper
            return "".join(change(one) if one.isascii() else one for one in first)
        case "equal" | "unequal" | "less" | "less_or_equal":
            return compared(function, first, second)
    numbers = [first] if function in ("negate", "abs", "floor", "ceil", "round") else [first, second]
    if any(isinstance(one, bool) or not isinstance(one, int | float) for one in numbers):
        return None
    floating = any(isinstance(one, float) for one in numbers)
    exact = [Fraction(float(one) if floating else one) for one in numbers]
    match function:
        case "add":
            return fitting(exact[0] + exact[1], floating)
        case "subtract":
            return fitting(exact[0] - exact[1], floating)
        case "multiply":
            return fitting(exact[0] * exact[1], floating)
        case "divide":
            return fitting(exact[0] / exact[1], True) if exact[1] else None
        case "remainder":
            if not exact[1]:
                return None
            return fitting(exact[0] - exact[1] * int(exact[0] / exact[1]), floating)
        case "negate":
            return fitting(-exact[0], floating)
        case "abs":
            return fitting(abs(exact[0]), floating)
        case "floor":
            return fitting(Fraction(exact[0].__floor__()), False)
        case "ceil":
            return fitting(Fraction(exact[0].__ceil__()), False)
        case "round":
            away = (abs(exact[0]) + Fraction(1, 2)).__floor__()
            return fitting(Fraction(away if exact[0] > 0 else -away), False)


def fitting(number: Fraction, floating: bool):
    if not floating:
        return int(number) if -(2**63) <= number < 2**63 else None
    try:
        return float(number)
    except OverflowError:
        return None


def compared(function: str, left, right):
    if left is None or right is None:
        return None
    if function == "unequal":
        if isinstance(left, tuple) and isinstance(right, tuple):
            return None
        return not equal(left, right)
    if isinstance(left, tuple) or isinstance(right, tuple):
        return None
    order = ordered(left, right)
    return None if order == -2 else order in {"equal": (0,), "less": (-1,), "less_or_equal": (-1, 0)}[function]


def holds(constraint: Constraint, value) -> bool:
    operator, operand = constraint.operator, constraint.operand
    if operator == "absent":
        return value is None
    if value is None:
        return False
    if operator == "has":
        return isinstance(value, tuple) and any(holds(operand, element) for element in value)
    if constraint.demanded is not None and type(value).__name__ != TYPES[constraint.demanded]:
        return False
    match operator:
        case "exists":
            return True
        case "not":
            return not holds(operand, value)
        case "!=":
            return not equal(value, operand)
        case "=":
            return equal(value, operand)
        case "in":
            return any(equal(value, one) for one in operand)
        case "between":
            return ordered(value, operand[0]) >= 0 and ordered(value, operand[1]) in (-1, 0)
        case "<":
            return ordered(value, operand) == -1
        case "<=":
            return ordered(value, operand) in (-1, 0)
        case ">":
            return ordered(value, operand) == 1
        case ">=":
            return ordered(value, operand) in (0, 1)
    if operator == IGNORING_CASE:
        same = isinstance(value, str) and len(value) == len(operand)
        return same and all(one in several for one, several in zip(value, operand, strict=True))
    if type(value) is not type(operand):
        return False
    match operator:
        case "starts with":
            return value.startswith(operand)
        case "ends with":
            return value.endswith(operand)
        case "contains":
            return operand in value
        case "matches":
            return re.fullmatch(glob_as_regular_expression(operand), value, re.DOTALL) is not None
        case "like":
            return re.fullmatch(like_as_regular_expression(operand), value, re.DOTALL) is not None
        case "regex":
            return re.fullmatch(python_regular_expression(operand), value) is not None
        case "in network":
            return in_network(operand, value)
    raise AssertionError(operator)


def comparable(value, constant) -> bool:
    numbers = (int, float)
    return type(value) is type(constant) or (type(value) in numbers and type(constant) in numbers)


def equal(value, constant) -> bool:
    return comparable(value, constant) and value == constant


def ordered(value, constant) -> int:
    """-1, 0 or 1; -2 where the two are not compared."""
    if not comparable(value, constant):
        return -2
    if isinstance(value, str):
        value, constant = value.encode(), constant.encode()
    return (value > constant) - (value < constant)


def glob_as_regular_expression(pattern: str) -> str:
    parts = []
    segments = pattern.split("/")
    for index, segment in enumerate(segments):
        last = index == len(segments) - 1
        if segment == "**":
            if len(segments) == 1:
                return ".*"
            if last:
                # The slash before it has been written; it is needed only if something follows.
                parts[-1] = "(?:/.*)?" if parts[-1] == "/" else parts[-1] + ".*"
            else:
                parts.append("(?:[^/]*/)*")
            continue
        parts.append("".join(_character(one) for one in re.findall(r"\\.|.", segment, re.DOTALL)))
        if not last:
            parts.append("/")
    return "".join(parts)


def like_as_regular_expression(pattern: str) -> str:
    """Of a pattern in the notation that constraints have: `!` is the escape."""
    tokens = re.findall(r"!.|.", pattern, re.DOTALL)
    return "".join({"%": ".*", "_": "."}.get(token) or re.escape(token[-1]) for token in tokens)


def python_regular_expression(pattern: str) -> str:
    """An I-Regexp for `re`: there `^` and `$` are no characters, and `.` takes carriage returns."""
    parts = []
    inside = False
    for token in re.findall(r"\\.|\[\^|.", pattern, re.DOTALL):
        inside = (inside or token in ("[", "[^")) and token != "]"
        outside = {"^": r"\^", "$": r"\$", ".": r"[^\n\r]"}
        parts.append(token if inside else outside.get(token, token))
    return "".join(parts)


def in_network(network: str, text: str) -> bool:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    found = ipaddress.ip_network(network)
    return str(address) == text and address.version == found.version and address in found


def _character(token: str) -> str:
    return "[^/]*" if token == "*" else re.escape(token[-1])
