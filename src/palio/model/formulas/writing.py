"""The text of a formula, which is read back to the same one.

Arithmetic and an outermost comparison are written with their signs, everything else as `function(operand, …)`.
"""

from __future__ import annotations

from collections.abc import Callable

from palio.model.formulas.formula import Constant, Formula, Variable

COMPARISONS = {"less": "<", "less_or_equal": "<=", "equal": "=", "unequal": "!="}
SUMS = {"+": "add", "-": "subtract"}
PRODUCTS = {"*": "multiply", "/": "divide", "%": "remainder"}
# How strongly a sign binds; what is written as a call binds strongest.
_SIGNS = {
    **{function: (sign, 1) for function, sign in COMPARISONS.items()},
    **{function: (sign, 2) for sign, function in SUMS.items()},
    **{function: (sign, 3) for sign, function in PRODUCTS.items()},
}
_ALONE = 4
_TURNED = {"<": ">", "<=": ">="}


def _single_quoted(text: str) -> str:
    return "'" + text[1:-1].replace('\\"', '"').replace("'", "\\'") + "'"


def formula_text(formula: Formula, literal: Callable[[object], str], name_text: Callable[[str], str]) -> str:
    """The text of a formula; `literal` writes constants, `name_text` attributes."""

    def written(one: Formula, strength: int) -> str:
        if isinstance(one, Variable):
            return name_text(one.name)
        if isinstance(one, Constant):
            text = literal(one.value)
            # Where a condition begins, double quotes would be those of a name.
            return _single_quoted(text) if strength > 1 and isinstance(one.value, str) else text
        if one.function == "negate":
            inner = written(one.operands[0], _ALONE)
            is_name = isinstance(one.operands[0], Variable) or inner.startswith("(")
            return f"-{inner}" if is_name else f"-({inner})"
        sign, binds = _SIGNS.get(one.function, ("", _ALONE))
        if not sign or (one.function in COMPARISONS and one is not formula):
            return f"{one.function}({', '.join([written(operand, 0) for operand in one.operands])})"
        left, right = one.operands
        if sign in _TURNED and isinstance(left, Constant):  # people have the constant on the right
            left, right, sign = right, left, _TURNED[sign]
        # Of what binds alike, the left is done first.
        text = f"{written(left, binds)} {sign} {written(right, binds + (binds > 1))}"
        return f"({text})" if binds < strength else text

    return written(formula, 0)
