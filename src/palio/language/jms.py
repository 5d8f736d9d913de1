"""Message selectors of JMS: the conditions of SQL-92, with its three-valued logic.

    symbol = 'IBM' AND volume > 1000
    NOT (country IN ('US', 'UK') OR price * (1 - discount) BETWEEN 10 AND 20)

    selector   = both { "OR" both }
    both       = inverted { "AND" inverted }
    inverted   = "NOT" inverted | comparison
    comparison = sum [ sign sum | "IS" [ "NOT" ] "NULL" | [ "NOT" ] ( "BETWEEN" sum "AND" sum
                 | "IN" "(" sum { "," sum } ")" | "LIKE" string [ "ESCAPE" string ] ) ]
    sum        = product { ( "+" | "-" ) product }
    product    = factor { ( "*" | "/" | "%" ) factor }
    factor     = ( "+" | "-" ) factor | literal | name | "(" selector ")"

A condition is true, false or unknown, and a selector selects what makes it true. So each condition is kept as
what says, of two values, that it is true or that it is false (`Predicate`): NOT exchanges the two, and AND
and OR follow De Morgan. What is unknown is in neither. So `NOT x > 5` is `x <= 5`, and nothing is left that
would need three values.

Unknown is what has an absent attribute in it, what compares values of unlike types, and what cannot be computed
(a text times two, a division by zero, what does not fit into 64 bits). The specification calls a comparison of
unlike types false; the difference is seen behind a NOT only.

The headers (`JMSType`, `JMSPriority` and so on) are attributes of these names, as all other properties are.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeAlias

from palio.language.errors import WrongDialectText
from palio.language.jms_shortcut import plain
from palio.model import texts
from palio.model.constraint import Constraint
from palio.model.errors import FilterError, FilterTooLarge
from palio.model.expression import (
    FALSE,
    Always,
    And,
    Condition,
    Expression,
    Not,
    Or,
    conjunction,
    disjunction,
    truth_of,
)
from palio.model.filter import Filter
from palio.model.formulas.formula import Constant, Formula, Variable
from palio.model.formulas.residual import call
from palio.model.questions import like_of
from palio.model.reading import MAX_CONDITIONS, MAX_DEPTH, MAX_TEXT_CHARACTERS, MAX_VALUES
from palio.model.values import INT_MAX, INT_MIN, MAX_NAME_CHARACTERS, MAX_STRING_BYTES, Kind

# What says that a condition is true, or that it is false; of what is neither, it is unknown.
Predicate: TypeAlias = Callable[[bool], Expression]

_TOKENS = re.compile(
    r"""[ \t\f\r\n]*(?:
      (?P<word>(?:[^\W\d]|\$)[\w$]*(?:\.[\w$]+)*)
    | (?P<string>'(?:[^']|'')*')
    | (?P<real>(?:\d+\.\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)[fFdD]?|\d+[fFdD])(?![\w.])
    | (?P<integer>(?:0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)[lL]?)(?![\w.])
    | (?P<sign><>|<=|>=|!=|[=<>+\-*/%(),])
    | (?P<name>"(?:[^"]|"")*"|\[(?:[^\[\]]|\[\[|\]\])*\])
    | (?P<end>\Z)
    | (?P<unreadable>.)
    )""",
    re.VERBOSE | re.DOTALL,
)
KEYWORDS = frozenset(("NOT", "AND", "OR", "BETWEEN", "LIKE", "IN", "IS", "NULL", "ESCAPE", "TRUE", "FALSE"))
# Of the longest integer of 64 bits, which is written in binary, with what stands before it.
_MOST_DIGITS = 67
_SIGNS = {"=": "equal", "<": "less", "<=": "less_or_equal", ">": "greater", ">=": "greater_or_equal"}
_OPPOSITES = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_SUMS = {"+": "add", "-": "subtract"}
_PRODUCTS = {"*": "multiply", "/": "divide", "%": "remainder"}


def parse_selector(text: str) -> Filter:
    """The filter that a message selector means; an empty one selects everything.

    Raises `FilterSyntaxError` or `FilterTooLarge`.
    """
    if not text.strip():
        return Filter()
    return Filter.from_expression(plain(text, KEYWORDS) or read_selector(text))


def read_selector(text: str) -> Expression:
    """The expression that any selector means, the long way. Raises `FilterSyntaxError` or `FilterTooLarge`."""
    return _SelectorReader(text).selector()


class _SelectorReader:
    """The tokens of a selector, and one method for each rule of the grammar."""

    def __init__(self, text: str) -> None:
        if len(text) > MAX_TEXT_CHARACTERS:
            raise FilterTooLarge(limit=MAX_TEXT_CHARACTERS, got=len(text), what="characters")
        self._text = text
        self._tokens = _TOKENS.finditer(text)
        self._depth = 0
        self._conditions = 0
        self._values = 0
        self._advance()

    def selector(self) -> Expression:
        start, found = self._at, self._either()
        if self._kind != "end":
            self._fail(f"expected `AND`, `OR` or the end of the selector, found {self._found()}.")
        return self._predicate(found, start)(True)

    # Tokens

    def _advance(self) -> None:
        found = next(self._tokens)
        kind, raw = found.lastgroup, found[found.lastindex or 0]
        self._raw = self._token = raw
        self._at = found.end() - len(raw)
        if kind == "word" and raw.upper() in KEYWORDS:
            kind, self._token = "keyword", raw.upper()
        self._kind = kind
        if kind == "unreadable":
            self._refuse_unfinished()

    def _says(self, *tokens: str) -> bool:
        return self._token in tokens and self._kind in ("keyword", "sign")

    def _take(self, token: str) -> bool:
        if not self._says(token):
            return False
        self._advance()
        return True

    def _expect(self, token: str) -> None:
        if not self._take(token):
            self._fail(f"expected `{token}`, found {self._found()}.")

    def _found(self) -> str:
        return "the end of the text" if self._kind == "end" else f"`{self._raw[:40]}`"

    def _fail(self, problem: str, suggestion: str | None = None, at: int | None = None) -> NoReturn:
        raise WrongDialectText(self._text, (self._at if at is None else at) + 1, problem, suggestion)

    def _refuse_unfinished(self) -> None:
        """Of what begins something; whatever else has no meaning is found where something else is expected."""
        character = self._raw
        if character in "'\"[":
            self._fail(f"this {character} is never closed.")
        if character.isdigit() or character == ".":
            self._fail("this is not a number.", "Names that begin with a digit are written in [brackets].")

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise FilterTooLarge(limit=MAX_DEPTH, got=self._depth, what="levels of nesting or more")

    # Conditions: what is read is a value, as a formula, or a predicate

    def _either(self) -> Formula | Predicate:
        return self._joined(self._both, "OR", And, Or)

    def _both(self) -> Formula | Predicate:
        return self._joined(self._inverted, "AND", Or, And)

    def _joined(
        self, part: Callable[[], Formula | Predicate], word: str, false: type[And | Or], true: type[And | Or]
    ) -> Formula | Predicate:
        start, first = self._at, part()
        if not self._says(word):
            return first
        parts = [self._predicate(first, start)]
        while self._take(word):
            start = self._at
            parts.append(self._predicate(part(), start))
        return lambda truth: (true if truth else false)(tuple([one(truth) for one in parts]))

    def _inverted(self) -> Formula | Predicate:
        if not self._take("NOT"):
            return self._comparison()
        self._deeper()
        start = self._at
        inner = self._predicate(self._inverted(), start)
        self._depth -= 1
        return _inverse(inner)

    def _predicate(self, found: Formula | Predicate, start: int) -> Predicate:
        """A condition; of a value, whether it is the bool `true`."""
        if isinstance(found, Variable):
            name = found.name
            return lambda truth: Condition(name, Constraint("=", truth))
        if isinstance(found, Constant) and isinstance(found.value, bool):
            value = found.value
            return lambda truth: Always(value == truth)
        if not callable(found):
            self._fail("expected a condition, and this is a value: compare it with something.", at=start)
        return found

    def _comparison(self) -> Formula | Predicate:
        start, left = self._at, self._sum()
        if (self._kind == "sign" and self._token in _OPPOSITES) or self._token == "!=":
            sign = "<>" if self._token == "!=" else self._token
            self._advance()
            place = self._at
            return self._compared(left, sign, self._sum(), start, place)
        if self._says("IS"):
            return self._null_test(left, start)
        inverted = self._says("NOT")
        if inverted:
            self._advance()
            if not self._says("BETWEEN", "IN", "LIKE"):
                self._fail(f"expected `BETWEEN`, `IN` or `LIKE`, found {self._found()}.")
        elif not self._says("BETWEEN", "IN", "LIKE"):
            return left
        self._count_condition()
        value = self._value(left, start)
        operator = self._token
        self._advance()
        if operator == "LIKE" and not isinstance(value, Variable):
            self._fail("only a name is compared by `LIKE`.", at=start)
        found = {"BETWEEN": self._between, "IN": self._among, "LIKE": self._like}[operator](value)
        return _inverse(found) if inverted else found

    def _count_condition(self) -> None:
        self._conditions += 1
        if self._conditions > MAX_CONDITIONS:
            raise FilterTooLarge(limit=MAX_CONDITIONS, got=self._conditions, what="conditions or more")

    def _value(self, found: Formula | Predicate, start: int) -> Formula:
        if callable(found):
            self._fail("expected a value, and this is a condition.", at=start)
        return found

    def _compared(
        self, left: Formula | Predicate, sign: str, right: Formula | Predicate, start: int, place: int
    ) -> Predicate:
        self._count_condition()
        for one, other, at in ((left, right, place), (right, left, start)):
            if callable(one):  # `(a > b) = TRUE`
                truth = other.value if isinstance(other, Constant) else None
                if not isinstance(truth, bool) or sign not in ("=", "<>"):
                    self._fail("a condition is compared by `=` or `<>` with TRUE or FALSE only.", at=at)
                return one if truth == (sign == "=") else _inverse(one)
        one, other = self._value(left, start), self._value(right, place)
        return lambda truth: _comparison(one, sign if truth else _OPPOSITES[sign], other)

    def _null_test(self, left: Formula | Predicate, start: int) -> Predicate:
        self._count_condition()
        if not isinstance(left, Variable):
            self._fail("only a name can be NULL.", at=start)
        self._advance()
        absent = not self._take("NOT")
        self._expect("NULL")
        name = left.name
        return lambda truth: Condition(name, Constraint("absent" if truth == absent else "exists"))

    def _between(self, value: Formula) -> Predicate:
        low = self._operand()
        self._expect("AND")
        high = self._operand()
        ends = ((low, ">="), (high, "<="))
        return lambda truth: (And if truth else Or)(
            tuple([_comparison(value, sign if truth else _OPPOSITES[sign], end) for end, sign in ends])
        )

    def _among(self, value: Formula) -> Predicate:
        self._expect("(")
        several = [self._operand()]
        while self._take(","):
            several.append(self._operand())
        self._expect(")")
        constants = [one.value for one in several if isinstance(one, Constant)]
        if isinstance(value, Variable) and len(constants) == len(several):
            if all(isinstance(one, str) for one in constants):
                name, among = value.name, Constraint("in", tuple(constants))
                return lambda truth: _of_strings(name, among, truth)
        return lambda truth: (Or if truth else And)(
            tuple([_comparison(value, "=" if truth else "<>", one) for one in several])
        )

    def _like(self, value: Formula) -> Predicate:
        assert isinstance(value, Variable)
        start, raw, pattern = self._at, self._raw, self._string("a pattern in quotes")
        escape = None
        if self._take("ESCAPE"):
            place, escape = self._at, self._string("a character in quotes")
            if len(escape) != 1 or escape in "%_":
                self._fail("an escape is one character in quotes, and neither `%` nor `_`.", at=place)
        name = value.name
        try:
            like = Constraint("like", like_of(pattern, escape))
            like.values()
        except texts.TextMistake as mistake:
            self._fail(str(mistake), at=start + _place_within(raw, mistake.at))
        except FilterError as mistake:
            self._fail(str(mistake), at=start)
        return lambda truth: _of_strings(name, like, truth)

    def _string(self, expected: str) -> str:
        if self._kind != "string":
            self._fail(f"expected {expected}, found {self._found()}.")
        constant = self._factor()
        assert isinstance(constant, Constant)
        return str(constant.value)

    # Values

    def _operand(self) -> Formula:
        start = self._at
        return self._value(self._sum(), start)

    def _sum(self) -> Formula | Predicate:
        return self._computed(_SUMS, self._product)

    def _product(self) -> Formula | Predicate:
        return self._computed(_PRODUCTS, self._factor)

    def _computed(
        self, functions: Mapping[str, str], part: Callable[[], Formula | Predicate]
    ) -> Formula | Predicate:
        start, left = self._at, part()
        while self._kind == "sign" and self._token in functions:
            function = functions[self._token]
            self._advance()
            place = self._at
            left = call(function, self._value(left, start), self._value(part(), place))
        return left

    def _factor(self) -> Formula | Predicate:
        kind, raw = self._kind, self._raw
        if kind == "word":
            return Variable(self._name(raw))
        if kind == "name":
            quote = raw[-1]
            name = raw[1:-1].replace(quote * 2, quote)
            return Variable(self._name(name.replace("[[", "[") if quote == "]" else name))
        if kind == "sign" and raw in ("(", "+", "-"):
            return self._inner(raw)
        self._values += 1
        if self._values > MAX_VALUES:
            raise FilterTooLarge(limit=MAX_VALUES, got=self._values, what="values or more")
        if kind == "string":
            value: Any = raw[1:-1].replace("''", "'")
            if len(value.encode("utf-8", "surrogatepass")) > MAX_STRING_BYTES:
                self._fail(f"a string has at most {MAX_STRING_BYTES:,} bytes.")
        elif kind == "integer":
            value = self._integer(raw)
        elif kind == "real":
            value = float(raw.rstrip("fFdD")) + 0.0
            if not math.isfinite(value):
                self._fail("this number is too large for a float.")
        elif kind == "keyword" and self._token in ("TRUE", "FALSE"):
            value = self._token == "TRUE"
        else:
            self._fail(f"expected a value or a name, found {self._found()}.", self._advice())
        self._advance()
        return Constant(value)

    def _inner(self, raw: str) -> Formula | Predicate:
        """What stands in parentheses, or behind a sign."""
        self._deeper()
        self._advance()
        found: Formula | Predicate
        if raw == "(":
            found = self._either()
            self._expect(")")
        elif raw == "-" and self._kind == "integer":  # the least integer has no positive one
            found = Constant(self._integer(f"-{self._raw}"))
            self._advance()
        else:
            start = self._at
            value = self._value(self._factor(), start)
            found = call("negate", value) if raw == "-" else call("add", value, Constant(0))
        self._depth -= 1
        return found

    def _integer(self, raw: str) -> int:
        """An integer as Java writes it: a zero before it makes it octal."""
        digits = raw.rstrip("lL")
        plain = digits.lstrip("-")
        base = 0 if plain[1:2] in tuple("xXbB") else 8 if plain[0] == "0" else 10
        try:
            value = int(digits, base) if len(plain) < _MOST_DIGITS else INT_MAX + 1
        except ValueError:
            self._fail("this is not an octal number, as one that begins with 0 is.")
        if not INT_MIN <= value <= INT_MAX:
            self._fail("this integer does not fit into 64 bits.", "Write it with a point for a float.")
        return value

    def _name(self, name: str) -> str:
        if not 0 < len(name) <= MAX_NAME_CHARACTERS:
            self._fail(f"an attribute's name has 1 to {MAX_NAME_CHARACTERS} characters.")
        self._advance()
        if self._says("("):
            self._fail("expected an operator, found `(`: selectors have no functions.")
        return name

    def _advice(self) -> str | None:
        if self._says("NULL"):
            return "Nothing is equal to NULL: write `IS NULL` or `IS NOT NULL`."
        if self._kind == "keyword":
            return f"An attribute of that name is written [{self._raw}]."
        return None


def _inverse(predicate: Predicate) -> Predicate:
    return lambda truth: predicate(not truth)


def _comparison(left: Formula, sign: str, right: Formula) -> Expression:
    """What says that a comparison is true; `<>` is, of values that can be compared."""
    if sign != "<>" and isinstance(left, Variable) and isinstance(right, Constant):  # most are
        if sign != "=" and isinstance(right.value, bool):
            return FALSE
        return Condition(left.name, Constraint(sign, right.value))
    if sign == "<>":
        return disjunction([truth_of(call("less", left, right)), truth_of(call("less", right, left))])
    if sign != "=":
        if isinstance(left, Constant) and isinstance(left.value, bool):
            return FALSE
        if isinstance(left, Variable) and isinstance(right, Variable):
            a_bool = Condition(left.name, Constraint("exists", None, Kind.BOOL))
            return conjunction([Not(a_bool), truth_of(call(_SIGNS[sign], left, right))])
    return truth_of(call(_SIGNS[sign], left, right))


def _of_strings(name: str, constraint: Constraint, truth: bool) -> Expression:
    """What says that a condition of strings is true, or false."""
    condition = Condition(name, constraint)
    if truth:
        return condition
    return conjunction([Condition(name, Constraint("exists", None, Kind.STRING)), Not(condition)])


def _place_within(raw: str, at: int) -> int:
    """Where in a string as it is written its character `at` stands."""
    place = 1
    for _ in range(at):
        place += 2 if raw.startswith("''", place) else 1
    return place
