"""From text to expression: the grammar of the filter language, read by recursive descent.

    filter      = alternative
    alternative = all { ("or" | "|") all }
    all         = negation { ("and" | "&") negation }
    negation    = "not" negation | "(" alternative ")" | "true" | "false" | condition
    condition   = ("exists" | "absent") "(" [type] name ")"
                | [type] name [ test ]                       a name alone means: it is true
    test        = comparison | "has" comparison | "has" value | "*"
                | "not" ("in" | "between" | "has" | text operator) …
    comparison  = ("=" | "!=" | "<" | "<=" | ">" | ">=") value
                | "in" "(" value { "," value } ")"
                | "between" value "and" value
                | ("starts with" | ">*" | "ends with" | "*<" | "contains" | "matches") string
    type        = "bool" | "int" | "float" | "string" | "time" | "bytes" | "list"

The tokens come from one regular expression that cannot backtrack over more than a token, so the whole is
linear in the text; filters of the plainest shape take a shorter way (`shortcut`). Size and depth are bounded.
A mistake is reported at its column, with what was expected and, for a word that is no operator, the one that
was probably meant.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Callable
from typing import ClassVar, NoReturn

from palio.model import shortcut, texts
from palio.model.constraint import TEXT_OPERATORS, Constraint, WrongOperand
from palio.model.effort import spend
from palio.model.errors import FilterSyntaxError, FilterTooLarge
from palio.model.expression import KEYWORDS, Always, And, Condition, Expression, Not, Or, name_text
from palio.model.moments import parse_time
from palio.model.values import (
    INT_MAX,
    INT_MIN,
    KINDS_BY_NAME,
    MAX_NAME_CHARACTERS,
    MAX_STRING_BYTES,
    Kind,
    Scalar,
)

# A filter of a person has some ten conditions; generated ones list a few thousand values.
MAX_TEXT_CHARACTERS = 262_144
MAX_CONDITIONS = 512
MAX_VALUES = 16_384
MAX_DEPTH = 64
# What reading a value, or a condition without one, counts for a meter.
_READING = 50


def token_pattern(before_numbers: str = "", before_words: str = "", signs: str = "") -> re.Pattern[str]:
    """All tokens; a language that extends this one has some more, and further signs."""
    return re.compile(
        rf"""\s*(?:
          (?P<time>\d{{4}}-\d\d-\d\d[\w:.+-]*) {before_numbers}
        | (?P<number>{shortcut.NUMBER}(?![\w.]))
        | (?P<bytes>[xX]"[0-9A-Fa-f]*") {before_words}
        | (?P<word>[^\W\d]\w*(?:\.\w+)*)
        | (?P<string>"[^"\\]*(?:\\.[^"\\]*)*"|'[^'\\]*(?:\\.[^'\\]*)*')
        | (?P<name>`[^`\\]*(?:\\.[^`\\]*)*`)
        | (?P<symbol>>\*|\*<|<=|>=|!=|<>|==|&&|\|\||[=<>&|(),;*{signs}])
        | (?P<end>\Z)
        | (?P<unreadable>.)
        )""",
        re.VERBOSE | re.DOTALL,
    )


_WORDS = {word: word for word in KEYWORDS} | {word.upper(): word for word in KEYWORDS}
_SYMBOLS = {"&": "and", "&&": "and", "|": "or", "||": "or", "==": "=", "<>": "!="}
COMPARISONS = frozenset(("=", "!=", "<", "<=", ">", ">="))
_SIENA = {">*": "starts with", "*<": "ends with"}
_PHRASES = {"starts": "starts with", "ends": "ends with"}
_NEGATABLE = frozenset(("in", "between", "has", "starts", "ends", "contains", "matches"))
_AFTER_NAME = ("=", "!=", "<", "<=", ">", ">=", "in", "between", "has", *TEXT_OPERATORS)
_MISSPELLINGS = {
    "is": "=", "eq": "=", "equals": "=", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "like": "matches", "startswith": "starts with", "endswith": "ends with", "begins": "starts with",
    "prefix": "starts with", "suffix": "ends with", "includes": "has", "any": "exists",
}  # fmt: skip

_NULLS = frozenset(("null", "none", "nil"))
_VALUES = frozenset(("string", "number", "time", "bytes"))
# Searched backwards from a mistake over at most the longest name.
_NAME_ENDS = re.compile(r"[^\W\d][\w.]*\Z")
_NAME_GOES_ON = re.compile(r"\w[^\s\"'`=<>!&|(),;*\\]*")


def parse(text: str) -> Expression:
    """The expression that a filter's text means. Raises `FilterSyntaxError` or `FilterTooLarge`."""
    expression = shortcut.plain(text)
    if expression is not None:
        return expression
    reader = Reader(text)
    expression = reader.alternative()
    reader.expect_end("`and`, `or` or the end of the filter")
    return expression


def parse_items(text: str) -> list[Expression]:
    """Expressions separated by commas, semicolons or `and`, as an advertisement lists them."""
    reader = Reader(text)
    items = [] if reader.kind == "end" else [reader.item()]
    while reader.take(",") or reader.take(";") or reader.take("and"):
        items.append(reader.item())
    reader.expect_end("a comma or the end of the advertisement")
    return items


class Reader:
    """The tokens of a text, and one method for each rule of the grammar. Patterns extend it
    (`patterns.reader`)."""

    tokens: ClassVar[re.Pattern[str]] = token_pattern()
    mistake: ClassVar[type[FilterSyntaxError]] = FilterSyntaxError

    def __init__(self, text: str) -> None:
        if len(text) > MAX_TEXT_CHARACTERS:
            raise FilterTooLarge(limit=MAX_TEXT_CHARACTERS, got=len(text), what="characters")
        self.text = text
        self.depth = 0
        self.conditions = 0
        self.values = 0
        self.subject_name = ""  # the attribute that was named last, for advice about what is behind it
        self._tokens = self.tokens.finditer(text)
        self.advance()

    def advance(self) -> None:
        # One at a time: behind the first mistake nothing is looked at, however often it could be made again.
        found = next(self._tokens)
        kind, raw = found.lastgroup, found[found.lastindex or 0]
        self.raw = raw
        self.at = found.end() - len(raw)
        if kind == "word":
            if raw in _WORDS:
                kind, raw = "keyword", _WORDS[raw]
        elif kind == "symbol":
            if raw in _SYMBOLS:
                raw = _SYMBOLS[raw]
                if raw in ("and", "or"):
                    kind = "keyword"
        elif kind == "unreadable":
            self._unreadable()
        self.kind = kind
        self.token = raw

    def take(self, token: str) -> bool:
        if self.token == token and self.kind in ("keyword", "symbol"):
            self.advance()
            return True
        return False

    def expect(self, token: str) -> None:
        if not self.take(token):
            self.fail(f"expected `{token}`, found {self.found()}.")

    def expect_end(self, expected: str) -> None:
        if self.kind == "end":
            return
        advice = "Write `and` between conditions." if self.token == "," else None
        if self.kind == "word":
            advice = _suggest(self.raw, ("and", "or"))
        self.fail(f"expected {expected}, found {self.found()}.", advice)

    # Rules

    def alternative(self) -> Expression:
        return self._joined(Or, self.all, "or")

    def all(self) -> Expression:
        return self._joined(And, self.negation, "and")

    def item(self) -> Expression:
        return self._joined(Or, self.negation, "or")

    def _joined(self, kind: type[And | Or], part: Callable[[], Expression], word: str) -> Expression:
        operands = [part()]
        while self.take(word):
            operands.append(part())
        return kind(tuple(operands)) if len(operands) > 1 else operands[0]

    def negation(self) -> Expression:
        if self.kind == "keyword" and self.token == "not":
            self._deeper()
            self.advance()
            operand = self.negation()
            self.depth -= 1
            return Not(operand)
        if self.kind == "symbol" and self.token == "(":
            self._deeper()
            self.advance()
            inner = self.alternative()
            self.expect(")")
            self.depth -= 1
            return inner
        return self.condition()

    def condition(self) -> Expression:
        self.conditions += 1
        spend(_READING)
        if self.conditions > MAX_CONDITIONS:
            raise FilterTooLarge(limit=MAX_CONDITIONS, got=self.conditions, what="conditions or more")
        if self.take("true"):
            return Always(True)
        if self.take("false"):
            return Always(False)
        if self.kind == "keyword" and self.token in ("exists", "absent"):
            operator = self.token
            self.advance()
            self.expect("(")
            demanded, name = self.subject()
            self.expect(")")
            return Condition(name, Constraint(operator, None, demanded))
        demanded, name = self.subject()
        return self.test(demanded, name)

    def subject(self) -> tuple[Kind | None, str]:
        """An attribute's name, with the type that is demanded of it before."""
        if self.kind == "word" and self.token in KINDS_BY_NAME:
            word = self.token
            self.advance()
            if self.kind in ("word", "name"):
                return KINDS_BY_NAME[word], self.name()
            return None, word  # `time > …` speaks of an attribute that is called so
        return None, self.name()

    def name(self) -> str:
        if self.kind == "word":
            name = self.token
        elif self.kind == "name":
            name = re.sub(r"\\(.)", r"\1", self.token[1:-1], flags=re.DOTALL)
        elif self.kind == "string" and self.raw[0] == '"':
            name = self._unquoted()
        else:
            self.fail(f"expected an attribute or `(`, found {self.found()}.", self._advice_for_a_name())
        if not 0 < len(name) <= MAX_NAME_CHARACTERS:
            self.fail(f"an attribute's name has 1 to {MAX_NAME_CHARACTERS} characters.")
        self.subject_name = name
        self.advance()
        return name

    def test(self, demanded: Kind | None, name: str) -> Expression:
        start = self.at
        if self.take("not"):
            if self.token not in _NEGATABLE:
                self.fail(f"expected one of {_listed(sorted(_NEGATABLE))}, found {self.found()}.")
            return Not(self.test(demanded, name))
        if self.take("*"):
            return Condition(name, Constraint("exists", None, demanded))
        if self.take("has"):
            element = self.comparison(demanded) or Constraint("=", self.value(), demanded)
            return Condition(name, self.checked(Constraint("has", element), start))
        constraint = self.comparison(demanded)
        if constraint is not None:
            return Condition(name, constraint)
        if self.kind in ("word", "string", "number", "name") or (demanded is not None):
            problem = f"expected an operator after `{name[:40]}`, found {self.found()}."
            if self.kind == "word" and self.raw.lower() == "is":
                self._fail_at_is(problem)
            if self.kind == "number" and (whole := self._odd_name(self.at)) is not None:
                self.fail(problem, f"If this is one name, write `{whole}` in backticks.")
            self.fail(problem, _suggest(self.raw, _AFTER_NAME) if self.kind == "word" else None)
        return Condition(name, Constraint("=", True))

    def comparison(self, demanded: Kind | None) -> Constraint | None:
        """An operator with its operand, or None if there is no operator here."""
        start, token = self.at, self.token
        if self.kind == "symbol":
            if token in COMPARISONS:
                self.advance()
                self._refuse_null("exists" if token == "!=" else "absent")
                return self.checked(Constraint(token, self.value(), demanded), start)
            if token in _SIENA:
                self.advance()
                return self.checked(Constraint(_SIENA[token], self.text_value(), demanded), start)
            return None
        if self.kind != "keyword":
            return None
        if token == "in":
            self.advance()
            return self.checked(Constraint("in", self.several(), demanded), start)
        if token == "between":
            self.advance()
            low = self.value()
            self.expect("and")
            return self.checked(Constraint("between", (low, self.value()), demanded), start)
        if token in ("contains", "matches"):
            self.advance()
            return self.text_test(token, demanded)
        if token in _PHRASES:
            self.advance()
            self.expect("with")
            return self.text_test(_PHRASES[token], demanded)
        return None

    def text_test(self, operator: str, demanded: Kind | None) -> Constraint:
        start = self.at
        operand = self.text_value()
        if operator == "matches":
            if not isinstance(operand, str):
                self.fail_at(start, "`matches` compares with a string, not with bytes.")
            try:
                texts.check_glob(operand)
            except texts.GlobMistake as mistake:
                self.fail_at(start + 1 + mistake.at, str(mistake))
        return self.checked(Constraint(operator, operand, demanded), start)

    def several(self) -> tuple[Scalar, ...]:
        self.expect("(")
        values = [self.value()]
        while self.take(","):
            values.append(self.value())
        self.expect(")")
        return tuple(values)

    def text_value(self) -> Scalar:
        if self.kind not in ("string", "bytes"):
            advice = f'Write "{self.raw}" in quotes.' if self.kind in ("word", "number") else None
            self.fail(f"expected a string in quotes, found {self.found()}.", advice)
        return self.value()

    def value(self) -> Scalar:
        self.values += 1
        spend(_READING)
        if self.values > MAX_VALUES:
            raise FilterTooLarge(limit=MAX_VALUES, got=self.values, what="values or more")
        value: Scalar
        match self.kind:
            case "string":
                value = self._unquoted()
            case "number":
                value = self._number()
            case "time":
                value = self._time()
            case "bytes":
                value = self._bytes()
            case "keyword" if self.token in ("true", "false"):
                value = self.token == "true"
            case _:
                self._refuse_null("absent")
                self.fail(f"expected a value, found {self.found()}.", self._advice_for_a_value())
        self.advance()
        return value

    # Tokens

    def _unquoted(self) -> str:
        raw = self.token
        body = raw[1:-1]
        if raw[0] == "'" and "\\" in body:
            body = body.replace("\\'", "'")
        if "\\" in body:
            quoted = body if raw[0] == '"' else re.sub(r'(?<!\\)((?:\\\\)*)"', r'\1\\"', body)
            try:
                body = json.loads(f'"{quoted}"', strict=False)
            except ValueError as problem:
                offset = getattr(problem, "pos", 1)
                self.fail_at(self.at + offset, 'this escape is not known; use \\\\, \\", \\n, \\t or \\uXXXX.')
        try:
            size = len(body.encode())
        except UnicodeEncodeError:
            self.fail("a string cannot hold a lone surrogate.")
        if size > MAX_STRING_BYTES:
            self.fail(f"a string has at most {MAX_STRING_BYTES:,} bytes.")
        return str(body)

    def _number(self) -> int | float:
        raw = self.token
        if raw.lstrip("+-").isdigit():
            number = int(raw) if len(raw) < 24 else INT_MAX + 1
            if not INT_MIN <= number <= INT_MAX:
                self.fail("this integer does not fit into 64 bits.", "Write it with a point for a float.")
            return number
        real = float(raw)
        if not math.isfinite(real):
            self.fail("this number is too large for a float.")
        return real + 0.0

    def _time(self) -> Scalar:
        try:
            return parse_time(self.token)
        except ValueError as problem:
            self.fail(str(problem))

    def _bytes(self) -> bytes:
        digits = self.token[2:-1]
        if len(digits) % 2:
            self.fail("bytes are written with two hexadecimal digits each.")
        return bytes.fromhex(digits)

    # Mistakes

    def checked(self, constraint: Constraint, start: int) -> Constraint:
        """The constraint, once it is known to mean something: so that nothing can fail later."""
        if constraint.demanded is not None or constraint.operator in ("between", "has"):
            try:
                constraint.check()
            except WrongOperand as problem:
                self.fail_at(start, _lowered(str(problem)))
        return constraint

    def _deeper(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise FilterTooLarge(limit=MAX_DEPTH, got=self.depth, what="levels of nesting or more")

    def found(self) -> str:
        return "the end of the text" if self.kind == "end" else f"`{self.raw[:40]}`"

    def fail(self, problem: str, suggestion: str | None = None) -> NoReturn:
        self.fail_at(self.at, problem, suggestion)

    def fail_at(self, at: int, problem: str, suggestion: str | None = None) -> NoReturn:
        raise self.mistake(self.text, at + 1, problem, suggestion)

    def _advice_for_a_name(self) -> str | None:
        if self.kind == "keyword":
            return f"To speak of an attribute called {self.raw}, write it in backticks."
        if self.kind == "string":
            return "An attribute comes first, without quotes or in backticks, and behind it the value."
        return "An attribute comes first, and behind it the value." if self.kind in _VALUES else None

    def _advice_for_a_value(self) -> str | None:
        if self.kind != "word":
            return None
        if self.raw.lower() in ("true", "false"):
            return f"Did you mean `{self.raw.lower()}`?"
        return f'A string is written in quotes: "{self.raw}"; a filter never compares two attributes.'

    def _refuse_null(self, instead: str) -> None:
        if self.kind == "word" and self.raw.lower() in _NULLS:
            advice = f"Write `{instead}({name_text(self.subject_name)})`."
            self.fail("there is no null: an attribute has a value, or it is absent.", advice)

    def _fail_at_is(self, problem: str) -> NoReturn:
        """`is null`, `is not null`, `is 5`: what other languages say instead of an operator."""
        start = self.at
        self.advance()
        negated = self.take("not")
        self._refuse_null("exists" if negated else "absent")
        self.fail_at(start, problem, f"Did you mean `{'!=' if negated else '='}`?")

    def _odd_name(self, at: int) -> str | None:
        """What was probably meant to be one name, if the character at this place is in the middle of it."""
        before = _NAME_ENDS.search(self.text, max(0, at - MAX_NAME_CHARACTERS), at)
        behind = _NAME_GOES_ON.match(self.text, at + 1, at + MAX_NAME_CHARACTERS)
        return before[0] + self.text[at] + behind[0] if before and behind else None

    def _unreadable(self) -> NoReturn:
        at, character = self.at, self.raw
        if character in "\"'`":
            self.fail_at(at, f"this {character} is never closed.")
        whole = self._odd_name(at)
        if whole is not None:
            self.fail_at(at, f"a name with {character!r} in it needs backticks.", f"Write `{whole}`.")
        if character in "+-":
            self.fail_at(at, "this is not a number, and filters do not calculate.")
        if character.isdigit():
            self.fail_at(at, "this is not a number.", "Names that begin with a digit are written in backticks.")
        advice = {"!": "Write `not` or `!=`.", "~": "Write `matches` or `contains`."}.get(character)
        self.fail_at(at, f"the character {character!r} has no meaning here.", advice)


def _lowered(sentence: str) -> str:
    return sentence if sentence.startswith("`") else sentence[0].lower() + sentence[1:]


def _listed(words: list[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _suggest(word: str, known: tuple[str, ...]) -> str | None:
    meant = _MISSPELLINGS.get(word.lower())
    if meant is None or meant not in known:
        first_words = {phrase.split()[0]: phrase for phrase in known}
        close = difflib.get_close_matches(word.lower()[:40], first_words, n=1, cutoff=0.6)
        meant = first_words[close[0]] if close else None
    return f"Did you mean `{meant}`?" if meant else None
