"""From the text of a CESQL expression to a formula that computes it (`model.formulas.cesql`).

    logic      = comparison { ("AND" | "OR" | "XOR") comparison }
    comparison = sum { ("=" | "!=" | "<>" | "<" | "<=" | ">" | ">=") sum }
    sum        = product { ("+" | "-") product }
    product    = tested { ("*" | "/" | "%") tested }
    tested     = unary { ["NOT"] "LIKE" string | ["NOT"] "IN" "(" logic { "," logic } ")" }
    unary      = "NOT" unary | "-" unary | primary
    primary    = "(" logic ")" | "EXISTS" attribute | function "(" [ logic { "," logic } ] ")"
               | attribute | string | integer | "TRUE" | "FALSE"

What binds alike is done from left to right, as the specification says: also AND, OR and XOR, which bind alike.
NOT binds strongest, so that `NOT x = 1` is `(NOT x) = 1`. Keywords, functions and names of attributes may be
written in small or large letters.

The tokens come from one regular expression that does not backtrack; characters, calls and depth are bounded.
What has no attributes in it is computed at once, if it comes to a value.
"""

from __future__ import annotations

import difflib
import re
from typing import NoReturn

from palio.language.errors import MissingFunction, WrongDialectText
from palio.model.effort import spend
from palio.model.errors import FilterTooLarge, InvalidNotification
from palio.model.formulas.cesql import FUNCTIONS, INTEGER_MAX, INTEGER_MIN
from palio.model.formulas.formula import Call, Constant, Failed, Formula, Variable
from palio.model.formulas.formula import depth as depth_of
from palio.model.questions import Like, like_literal, like_of
from palio.model.reading import MAX_CONDITIONS, MAX_DEPTH, MAX_TABLE_STATES, MAX_TEXT_CHARACTERS, MAX_VALUES
from palio.model.regular import STATE_STEPS
from palio.model.texts import TextMistake
from palio.model.values import MAX_NAME_CHARACTERS, check_text

# What reading an operator or a function counts for a meter, with what is made of it.
READING = 50

_TOKEN = re.compile(
    r"""[ \t\r\n]*+(?:
    (?P<word>[A-Za-z0-9_]++)
  | (?P<string>'(?:[^'\\]++|\\.)*+'|"(?:[^"\\]++|\\.)*+")
  | (?P<sign><=|>=|<>|!=|[=<>+\-*/%(),])
  | (?P<end>\Z))""",
    re.VERBOSE | re.DOTALL,
)
KEYWORDS = frozenset(("AND", "OR", "XOR", "NOT", "LIKE", "IN", "EXISTS", "TRUE", "FALSE"))
# How strongly an operator binds, and its function.
BINARY = {
    "AND": (0, "cesql.and"),
    "OR": (0, "cesql.or"),
    "XOR": (0, "cesql.xor"),
    "=": (1, "cesql.equal"),
    "!=": (1, "cesql.unequal"),
    "<>": (1, "cesql.unequal"),
    "<": (1, "cesql.less"),
    "<=": (1, "cesql.less_or_equal"),
    ">": (1, "cesql.greater"),
    ">=": (1, "cesql.greater_or_equal"),
    "+": (2, "cesql.add"),
    "-": (2, "cesql.subtract"),
    "*": (3, "cesql.multiply"),
    "/": (3, "cesql.divide"),
    "%": (3, "cesql.remainder"),
}
# With as many operands as they are given; in parentheses or not, they come to the same.
_CHAINS = ("cesql.and", "cesql.or")
_TESTS = ("LIKE", "IN", "NOT")
BUILT_IN = {
    name: f"cesql.{name.lower()}"
    for name in (
        *("INT", "BOOL", "STRING"),
        *("LENGTH", "CONCAT", "CONCAT_WS", "LOWER", "UPPER", "TRIM", "LEFT", "RIGHT", "SUBSTRING"),
        "ABS",
    )
}
_ESCAPED = re.compile(r"\\([%_])|!")
# The content of an event, which CESQL does not speak of.
CONTENT = "data"


def read_cesql(text: str) -> Formula:
    """The formula that an expression is. Raises `WrongDialectText`, `MissingFunction` or `FilterTooLarge`."""
    if len(text) > MAX_TEXT_CHARACTERS:
        raise FilterTooLarge(limit=MAX_TEXT_CHARACTERS, got=len(text), what="characters")
    reader = _Reader(text)
    formula = reader.joined(0, 0)
    if reader.kind != "end":
        reader.expected("an operator or the end of the expression")
    # Operators in a row stand within each other without any parentheses.
    if reader.calls > MAX_DEPTH and (deep := depth_of(formula)) > MAX_DEPTH:
        raise FilterTooLarge(limit=MAX_DEPTH, got=deep, what="operators and functions within each other")
    return formula


class _Reader:
    """Holds the next token: its `kind`, the `word` that it is in large letters, its `text` and where it is."""

    __slots__ = ("at", "calls", "end", "given", "kind", "operands", "states", "text", "word")

    def __init__(self, given: str) -> None:
        self.given = given
        self.end = 0
        self.calls = self.operands = self.states = 0
        self.step()

    def step(self) -> None:
        found = _TOKEN.match(self.given, self.end)
        if found is None:
            self._unreadable()
        self.kind = found.lastgroup or ""
        self.at, self.end = found.span(self.kind)
        self.text = found[self.kind]
        self.word = self.text.upper() if self.kind == "word" else self.text if self.kind == "sign" else ""

    def takes(self, word: str) -> bool:
        """Goes on if the next token is this one."""
        if self.word != word:
            return False
        self.step()
        return True

    def needs(self, word: str) -> None:
        if not self.takes(word):
            self.expected(f"`{word}`")

    # From the weakest to what binds strongest

    def joined(self, weakest: int, depth: int) -> Formula:
        """What is joined by operators that bind at least so strongly."""
        found = self.tested(depth)
        while (joint := BINARY.get(self.word)) is not None and joint[0] >= weakest:
            strength, function = joint
            self.step()
            operand = self.joined(strength + 1, depth)
            if function in _CHAINS and type(found) is Call and found.function == function:
                found = self.call(function, (*found.operands, operand), 1)
            else:
                found = self.call(function, (found, operand), 2)
        return found

    def tested(self, depth: int) -> Formula:
        found = self.unary(depth)
        while self.word in _TESTS:
            negated = self.takes("NOT")
            if self.takes("LIKE"):
                found = self.call("cesql.like", (found, self._pattern()), 2)
            elif self.takes("IN"):
                others = self._several(depth, 1)
                found = self.call("cesql.in", (found, *others), 1 + len(others))
            else:
                self.expected("`LIKE` or `IN`")
            if negated:
                found = self.call("cesql.not", (found,), 1)
        return found

    def unary(self, depth: int) -> Formula:
        at = self.at
        if depth > MAX_DEPTH:
            raise FilterTooLarge(limit=MAX_DEPTH, got=depth, what="levels of nesting or more")
        if self.takes("NOT"):
            return self.call("cesql.not", (self.unary(depth + 1),), 1)
        if self.word in ("-", "+"):
            sign = self.word
            self.step()
            if self.kind == "word" and self.text.isdecimal() and self.at == at + 1:
                return self._integer(sign, at)
            if sign == "+":
                self.expected("the digits of an integer right behind the sign")
            return self.call("cesql.negate", (self.unary(depth + 1),), 1)
        return self.primary(depth)

    def primary(self, depth: int) -> Formula:
        at, word = self.at, self.word
        if self.kind == "string":
            return Constant(self._string())
        if self.takes("("):
            found = self.joined(0, depth + 1)
            self.needs(")")
            return found
        if self.kind != "word":
            self.expected("a value")
        if self.text.isdecimal():
            return self._integer("", at)
        if self.takes("EXISTS"):
            return self.call("cesql.exists", (self._attribute(),), 1)
        if self.takes("TRUE"):
            return Constant(True)
        if self.takes("FALSE"):
            return Constant(False)
        if word in KEYWORDS:
            self.expected("a value")
        following = _TOKEN.match(self.given, self.end)
        if following is not None and following["sign"] == "(":
            return self._invocation(at, depth)
        return self._attribute()

    # Parts

    def _invocation(self, at: int, depth: int) -> Formula:
        name, word = self.text, self.word
        self.step()
        operands = self._several(depth, 0)
        function = BUILT_IN.get(word)
        if function is None:
            raise MissingFunction(self.given, at + 1, f"there is no function {name[:40]!r}.", _meant(word))
        known = FUNCTIONS[function]
        if not known.least <= len(operands) <= known.most:
            problem = f"there is no {word} of {_operands(len(operands))}."
            raise MissingFunction(self.given, at + 1, problem, _takes(known.least, known.most))
        return self.call(function, operands, len(operands))

    def _several(self, depth: int, least: int) -> tuple[Formula, ...]:
        """Expressions in parentheses."""
        self.needs("(")
        found: list[Formula] = []
        if least == 0 and self.takes(")"):
            return ()
        while True:
            found.append(self.joined(0, depth + 1))
            if not self.takes(","):
                break
        if not self.takes(")"):
            self.expected("`,` or `)`")
        return tuple(found)

    def _attribute(self) -> Variable:
        if self.kind != "word" or self.word in KEYWORDS:
            self.expected("the name of an attribute")
        if "_" in self.text:
            self.wrong(self.at + self.text.index("_"), "the name of an attribute has letters and digits only.")
        name = self.text.lower()
        if name == CONTENT:
            self.wrong(
                self.at,
                "CESQL speaks of the attributes of an event, and not of its data.",
                "Our own language does: data.price > 100.",
            )
        if len(name) > MAX_NAME_CHARACTERS:
            self.wrong(self.at, f"this name has {len(name):,} characters; the limit is {MAX_NAME_CHARACTERS}.")
        self.step()
        return Variable(name)

    def _integer(self, sign: str, at: int) -> Constant:
        digits = self.text.lstrip("0") or "0"
        # No more digits than there can be are made a number: that takes the square of their count.
        number = int(sign + digits) if len(digits) <= len(str(INTEGER_MAX)) else None
        if number is None or not INTEGER_MIN <= number <= INTEGER_MAX:
            self.wrong(
                at, f"this integer does not fit into 32 bits: they go from {INTEGER_MIN} to {INTEGER_MAX}."
            )
        self.step()
        return Constant(number)

    def _string(self) -> str:
        quote, content = self.text[0], self.text[1:-1]
        text = content.replace(f"\\{quote}", quote) if "\\" in content else content
        try:
            check_text(text, "$")
        except InvalidNotification as problem:
            self.wrong(self.at, f"{problem.reason[0].lower()}{problem.reason[1:]}")
        self.step()
        return text

    def _pattern(self) -> Constant:
        if self.kind != "string":
            self.expected("a string with the pattern")
        at, text = self.at, self._string()
        try:
            pattern = like_of(_ESCAPED.sub(lambda found: f"!{found[1] or '!'}", text), "!")
            # What is a prefix, a suffix or a part takes no table.
            states = len(Like(pattern).table.table) if like_literal(pattern) is None else 0
        except TextMistake as mistake:
            self.wrong(at, f"{str(mistake)[0].lower()}{str(mistake)[1:]}")
        spend(states * STATE_STEPS)
        self.states += states
        if self.states > MAX_TABLE_STATES:
            raise FilterTooLarge(limit=MAX_TABLE_STATES, got=self.states, what="states of patterns or more")
        return Constant(pattern)

    # What is made, within bounds

    def call(self, function: str, operands: tuple[Formula, ...], new: int) -> Formula:
        """A function of operands, of which so many are new."""
        spend(READING)
        self.calls += 1
        if self.calls > MAX_CONDITIONS:
            raise FilterTooLarge(limit=MAX_CONDITIONS, got=self.calls, what="operators and functions, or more")
        self.operands += new
        if self.operands > MAX_VALUES:
            raise FilterTooLarge(limit=MAX_VALUES, got=self.operands, what="operands or more")
        if all(type(operand) is Constant for operand in operands):
            value = FUNCTIONS[function].evaluate(*[operand.value for operand in operands])  # type: ignore[union-attr]
            if type(value) is not Failed:
                return Constant(value)
        return Call(function, operands)

    # Mistakes

    def expected(self, what: str) -> NoReturn:
        self.wrong(self.at, f"expected {what}, found {self._found()}.")

    def wrong(self, at: int, problem: str, suggestion: str | None = None) -> NoReturn:
        raise WrongDialectText(self.given, at + 1, problem, suggestion)

    def _found(self) -> str:
        return f"`{self.text[:40]}`" if self.text else "the end"

    def _unreadable(self) -> NoReturn:
        at = self.end + len(self.given[self.end :]) - len(self.given[self.end :].lstrip(" \t\r\n"))
        character = self.given[at]
        if character in "'\"":
            self.wrong(at, f"this string is never closed; a {character} within it is written \\{character}.")
        self.wrong(at, f"expected a value or an operator, found `{character}`.")


def _meant(word: str) -> str:
    close = difflib.get_close_matches(word, list(BUILT_IN), 1)
    return f"Did you mean {close[0]}?" if close else f"There are {', '.join(BUILT_IN)}."


def _operands(count: int) -> str:
    return "no operands" if count == 0 else "one operand" if count == 1 else f"{count} operands"


def _takes(least: int, most: int) -> str:
    if least == most:
        return f"It has {_operands(least)}."
    if least + 1 == most:
        return f"It has {least} or {most} operands."
    return f"It has {least} to {most} operands."
