"""From text to expression: the filter language, with what is computed in it.

    bid > ask and price * volume > 1000 and abs(x) < 5

    condition   = … | sum [ sign sum | "between" sum "and" sum ]
    sum         = product { ("+" | "-") product }
    product     = factor { ("*" | "/" | "%") factor }
    factor      = value | name | "-" factor | "(" sum ")" | function "(" sum { "," sum } ")"

All other rules are those of `reading`. What begins like a plain condition is read as one, and no token is
read twice: only behind an attribute, a value or a sign is looked whether something is computed. A parenthesis
may hold a sum or a filter, and which of them is known when it closes: until then a sum that is not compared
is a `_Sum`.

What turns out to be plain, as `price > 2 * 3`, is a plain condition (`truth_of`).
"""

from __future__ import annotations

import difflib
from typing import ClassVar

import msgspec

from palio.model import shortcut
from palio.model.constraint import Constraint
from palio.model.expression import Always, And, Condition, Expression, Or, truth_of
from palio.model.formulas.evaluation import possible
from palio.model.formulas.formula import Constant, Formula, Variable
from palio.model.formulas.function import TRUE
from palio.model.formulas.functions import FUNCTIONS
from palio.model.formulas.residual import call
from palio.model.formulas.writing import PRODUCTS, SUMS
from palio.model.reading import COMPARISONS, Reader, token_pattern
from palio.model.values import Kind, Scalar

_TOKENS = token_pattern(signs="+/%-")
_SIGNS = {
    "=": "equal", "!=": "unequal", "<": "less", "<=": "less_or_equal", ">": "greater", ">=": "greater_or_equal"
}  # fmt: skip
# Signs that people have in names, which then need backticks.
_IN_NAMES = ("-", "/")
_ARITHMETIC = frozenset((*SUMS, *PRODUCTS))
# Of what a token is behind which a sum goes on, or is compared.
_GOES_ON = frozenset(("symbol", "number", "keyword"))
_VALUES = frozenset(("string", "number", "time", "bytes"))
# Words that look like values; for them there is advice.
_LIKE_VALUES = frozenset(("true", "false", "null", "none", "nil"))


def parse(text: str) -> Expression:
    """The expression that a filter's text means. Raises `FilterSyntaxError` or `FilterTooLarge`."""
    expression = shortcut.plain(text)
    if expression is not None:
        return expression
    reader = CalculatingReader(text)
    expression = reader.alternative()
    reader.expect_end("`and`, `or` or the end of the filter")
    return expression


def parse_items(text: str) -> list[Expression]:
    """Expressions separated by commas, semicolons or `and`, as an advertisement lists them."""
    reader = CalculatingReader(text)
    items = [] if reader.kind == "end" else [reader.item()]
    while reader.take(",") or reader.take(";") or reader.take("and"):
        items.append(reader.item())
    reader.expect_end("a comma or the end of the advertisement")
    return items


class _Sum(msgspec.Struct, frozen=True):
    """A sum in parentheses that is not compared yet; `at` is where the sign of that would be."""

    formula: Formula
    at: int


class CalculatingReader(Reader):
    """The rules of filters, and of what is computed in them."""

    tokens: ClassVar = _TOKENS

    _bare: Expression | None = None  # the condition that is a name alone, if that was the last one

    # Where a filter may be a sum

    def closed(self, inner: Expression) -> Expression:
        if self.kind in _GOES_ON and self._continues_sum():
            if isinstance(inner, _Sum):
                return self._computed(self.sum(inner.formula))
            if inner is self._bare and isinstance(inner, Condition):
                return self._computed(self.sum(Variable(inner.attribute)))
        if not isinstance(inner, _Sum) or (self.depth > 0 and self.kind == "symbol" and self.token == ")"):
            return inner
        return self.settled(inner)

    def joined(self, kind: type[And | Or], operands: list[Expression]) -> Expression:
        return kind(tuple([self.settled(one) for one in operands]))

    def settled(self, operand: Expression) -> Expression:
        """A filter; of a sum that is not compared, whether it is true."""
        if not isinstance(operand, _Sum):
            return operand
        if not possible(operand.formula).overlaps(TRUE):
            self.fail_at(operand.at, "expected a comparison such as `>` behind what is computed.")
        return truth_of(operand.formula)

    def sign_first(self) -> Expression:
        return self._computed(self.sum()) if self.token == "-" else super().sign_first()

    def always(self, truth: bool) -> Expression:
        if self._continues_sum():
            return self._computed(self.sum(Constant(truth)))
        return Always(truth)

    def turned(self, start: int, value: Scalar) -> Expression:
        if self._continues_sum(compared=False):
            return self._computed(self.sum(Constant(value)))
        if not (self.kind == "symbol" and self.token in COMPARISONS):
            return super().turned(start, value)
        sign = self.token
        self.advance()
        if self._begins_sum(names=False):
            return self._compared(Constant(value), sign, self.sum())
        found = self.turned_condition(start, sign, value)
        if not self._continues_sum(compared=False):
            return found
        return self._compared(Constant(value), sign, self.sum(Variable(found.attribute)))

    def test(self, demanded: Kind | None, name: str) -> Expression:
        kind, token = self.kind, self.token
        if kind == "symbol":
            if token in COMPARISONS:
                return self._tested(demanded, name)
            if token in _ARITHMETIC and (token != "*" or self._multiplies()):
                return self._demanding(demanded, name, self._computed(self.sum(Variable(name))))
            if token == "(" and demanded is None and self.text.endswith(name, 0, self.at):
                return self._computed(self.sum(self._call(self.at - len(name), name)))
        elif kind == "number":
            if token[0] in "+-" and self.text[self.at - 1].isspace():  # `user-2` is meant for a name
                return self._demanding(demanded, name, self._computed(self.sum(Variable(name))))
        elif kind == "keyword" and token == "between":
            return self._between(demanded, name)
        start = self.at
        found = super().test(demanded, name)
        if self.at == start:
            self._bare = found
        return found

    def _tested(self, demanded: Kind | None, name: str) -> Expression:
        """A sign and what is behind it."""
        start, sign = self.at, self.token
        self.advance()
        if self.kind not in _VALUES and self._begins_sum():
            return self._demanding(demanded, name, self._compared(Variable(name), sign, self.sum()))
        constraint = self.equality(sign, demanded)
        if self.kind in _GOES_ON and constraint.operator == sign and self._continues_sum(compared=False):
            right = self.sum(Constant(constraint.operand))
            return self._demanding(demanded, name, self._compared(Variable(name), sign, right))
        return Condition(name, self.checked(constraint, start))

    def _between(self, demanded: Kind | None, name: str) -> Expression:
        start = self.at
        self.advance()
        low = self._end()
        self.expect("and")
        high = self._end()
        if isinstance(low, Constant) and isinstance(high, Constant):
            among = Constraint("between", (low.value, high.value), demanded)
            return Condition(name, self.checked(among, start))
        ends = self._compared(Variable(name), ">=", low), self._compared(Variable(name), "<=", high)
        return self._demanding(demanded, name, And(ends))

    def _end(self) -> Formula:
        """An end of a range: most often a value."""
        if self.kind not in _VALUES:
            return self.sum()
        value = Constant(self.value())
        return self.sum(value) if self._continues_sum(compared=False) else value

    def _demanding(self, demanded: Kind | None, name: str, computed: Expression) -> Expression:
        """What was computed, where a type is demanded of its first attribute."""
        if demanded is None:
            return computed
        return And((Condition(name, Constraint("exists", None, demanded)), computed))

    def _computed(self, left: Formula) -> Expression:
        """What a sum is compared with; or nothing, if it may be true by itself."""
        if self.kind == "symbol" and self.token in COMPARISONS:
            sign = self.token
            self.advance()
            return self._compared(left, sign, self.sum())
        if self.take("between"):
            low = self.sum()
            self.expect("and")
            return And((self._compared(left, ">=", low), self._compared(left, "<=", self.sum())))
        alone = _Sum(left, self.at)
        if self.depth and self.kind == "symbol" and self.token == ")":
            self.is_unsettled = True
            return alone  # type: ignore[return-value]  # whoever closes the parenthesis knows what it is
        if not possible(left).overlaps(TRUE):
            self.fail(f"expected a comparison such as `>` behind what is computed, found {self.found()}.")
        return self.settled(alone)  # type: ignore[arg-type]

    def _compared(self, left: Formula, sign: str, right: Formula) -> Expression:
        return truth_of(call(_SIGNS[sign], left, right))

    # Sums

    def sum(self, first: Formula | None = None) -> Formula:
        """A sum; its first factor may have been read before."""
        left = self._product(first)
        while True:
            if self.kind == "number" and self.raw[0] in "+-":  # `price -1` is a difference
                sign = self.raw[0]
                self.token = self.token[1:]
                left = call(SUMS[sign], left, self._product(Constant(self.value())))
            elif self.kind == "symbol" and self.token in SUMS:
                self._require_no_name()
                sign = self.token
                self.advance()
                left = call(SUMS[sign], left, self._product())
            else:
                return left

    def _product(self, first: Formula | None = None) -> Formula:
        left = self._factor() if first is None else first
        while self.kind == "symbol" and self.token in PRODUCTS:
            self._require_no_name()
            sign = self.token
            self.advance()
            left = call(PRODUCTS[sign], left, self._factor())
        return left

    def _factor(self) -> Formula:
        if self.kind in ("word", "name") and self.raw.lower() not in _LIKE_VALUES:
            start, name = self.at, self.name()
            if self.kind == "symbol" and self.token == "(" and self.text.endswith(name, start, self.at):
                return self._call(start, name)
            return Variable(name)
        if self.kind == "symbol" and self.token in ("(", "-"):
            self._deeper()
            if self.take("-"):
                inner = call("negate", self._factor())
            else:
                self.advance()
                inner = self.sum()
                self.expect(")")
            self.depth -= 1
            return inner
        return Constant(self.value())

    def _call(self, start: int, name: str) -> Formula:
        """What stands in parentheses directly behind the name of a function."""
        function = FUNCTIONS.get(name)
        if function is None:
            close = difflib.get_close_matches(name[:40], FUNCTIONS, n=1)
            advice = f"Did you mean `{close[0]}`?" if close else None
            self.fail_at(start, f"there is no function `{name[:40]}`.", advice)
        self._deeper()
        self.expect("(")
        operands = [self.sum()]
        while self.take(","):
            operands.append(self.sum())
        self.expect(")")
        self.depth -= 1
        if not function.least <= len(operands) <= function.most:
            counts = (
                str(function.least)
                if function.least == function.most
                else f"{function.least} to {function.most}"
            )
            self.fail_at(start, f"`{name}` is computed of {counts}, and here there are {len(operands)}.")
        return call(name, *operands)

    # What stands here

    def _begins_sum(self, *, names: bool = True) -> bool:
        """Whether something stands here that is neither a value nor, unless that is asked for, a name."""
        if self.kind == "symbol":
            return self.token in ("(", "-")
        if self.kind in ("word", "name"):
            if not names:  # unless it is that of a function
                return self.kind == "word" and self.text.startswith("(", self.at + len(self.raw))
            return self.raw.lower() not in _LIKE_VALUES
        return False

    def _continues_sum(self, *, compared: bool = True) -> bool:
        """Whether a sign stands here behind which a sum goes on, or is compared."""
        if self.kind == "symbol":
            return self.token in _ARITHMETIC or (compared and self.token in COMPARISONS)
        if self.kind == "number":
            return self.raw[0] in "+-"
        return compared and self.kind == "keyword" and self.token == "between"

    def _multiplies(self) -> bool:
        """Whether the `*` here is followed by a factor; if not, it says that an attribute is there."""
        follows = self.tokens.match(self.text, self.at + 1)
        if follows is None or follows.lastgroup in ("end", "unreadable"):
            return False
        if follows.lastgroup == "symbol":
            return follows["symbol"] in ("(", "-")
        return follows.lastgroup in _VALUES or follows[0].strip().lower() not in ("and", "or")

    def _require_no_name(self) -> None:
        """Refuse `user-id`, which may be a name or a difference."""
        if self.token in _IN_NAMES and (whole := self._odd_name(self.at)) is not None:
            problem = f"a name with {self.token!r} in it needs backticks, and a sign has spaces around it."
            self.fail(problem, f"Write `{whole}`.")
