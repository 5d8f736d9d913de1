"""The grammar of plain filters, read by recursive descent.

What is computed, as `bid > ask`, is read by `parser`, which extends this.

    filter      = alternative
    alternative = all { ("or" | "|") all }
    all         = negation { ("and" | "&") negation }
    negation    = "not" negation | "(" alternative ")" | "true" | "false" | condition
    condition   = ("exists" | "absent") "(" [type] name ")"
                | [type] name [ test ]                       a name alone means: it is true
                | value ("=" | "!=" | "<" | "<=" | ">" | ">=") [type] name
    test        = comparison | "has" ["not"] ( comparison | value [ "ignoring case" ] )
                | "*" | "is" ["not"] "null"
                | "not" ("in" | "between" | "has" | text operator) …
    comparison  = "=" string "ignoring case"
                | ("=" | "!=" | "<" | "<=" | ">" | ">=") value
                | "in" "(" value { "," value } ")" | "in network" string
                | "between" value "and" value
                | ("starts with" | ">*" | "ends with" | "*<" | "contains") string
                | "matches" string [ "across segments" ] | "like" string [ "escape" string ] | "regex" string
    type        = "bool" | "int" | "float" | "string" | "time" | "bytes" | "list"

The tokens come from one regular expression that cannot backtrack over more than a token, so the whole is
linear in the text; filters of the plainest shape take a shorter way (`shortcut`). Size and depth are bounded.
`like`, `regex`, `is`, `network`, `ignoring`, `across` and `escape` mean something only where no name can stand,
so that attributes may be called so.
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

from palio.model import questions, shortcut, texts
from palio.model.constraint import IGNORING_CASE, IN_NETWORK, TEXT_OPERATORS, Constraint, WrongOperand
from palio.model.effort import spend
from palio.model.errors import FilterSyntaxError, FilterTooLarge
from palio.model.expression import KEYWORDS, Always, And, Condition, Expression, Not, Or, name_text
from palio.model.moments import parse_time
from palio.model.networks import canonical_network
from palio.model.regular import STATE_STEPS
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
# States of the tables of all patterns (`like`, `regex`, networks, texts that ignore case): people's have some
# twenty each, and so many take half a second to make.
MAX_TABLE_STATES = 8_192
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
# Words that are operators only behind an attribute.
_WORD_OPERATORS = ("like", "regex")
# The sign that means the same with both sides exchanged.
_TURNED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
# Behind a string in double quotes, which may be a name: a sign and a name, which makes the string a constant.
_SIGN_AND_NAME = re.compile(r"\s*(?:[<>=!]=|<>|[<>=](?!\*))\s*(?![xX]\")(?:`|(?P<word>[^\W\d]\w*))")
_AFTER_NAME = ("=", "!=", "<", "<=", ">", ">=", "in", "between", "has", *TEXT_OPERATORS)
_MISSPELLINGS = {
    "is": "=", "eq": "=", "equals": "=", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "rlike": "regex", "regexp": "regex", "glob": "matches",
    "startswith": "starts with", "endswith": "ends with", "begins": "starts with",
    "prefix": "starts with", "suffix": "ends with", "includes": "has", "any": "exists",
}  # fmt: skip

_NULLS = frozenset(("null", "none", "nil"))
_VALUES = frozenset(("string", "number", "time", "bytes"))
# Searched backwards from a mistake over at most the longest name.
_NAME_ENDS = re.compile(r"[^\W\d][\w.]*\Z")
_NAME_GOES_ON = re.compile(r"\w[^\s\"'`=<>!&|(),;*\\]*")


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
        self.states = 0  # of the tables of patterns
        self.is_unsettled = False  # whether something may stand where a filter should
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

    def says(self, *words: str) -> bool:
        """Whether one of these words stands here: small or large, and no keyword."""
        return self.kind == "word" and self.raw.lower() in words and (self.raw.islower() or self.raw.isupper())

    def take_words(self, first: str, second: str) -> bool:
        """Whether both stand here; the second must follow the first."""
        if not self.says(first):
            return False
        self.advance()
        if not self.says(second):
            self.fail(f"expected `{second}`, found {self.found()}.")
        self.advance()
        return True

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
        if len(operands) == 1:
            return operands[0]
        return self.joined(kind, operands) if self.is_unsettled else kind(tuple(operands))

    def negation(self) -> Expression:
        if self.kind == "keyword" and self.token == "not":
            self._deeper()
            self.advance()
            operand = self.negation()
            self.depth -= 1
            return Not(self.settled(operand))
        if self.kind == "symbol" and self.token == "(":
            self._deeper()
            self.advance()
            inner = self.alternative()
            self.expect(")")
            self.depth -= 1
            return self.closed(inner)
        return self.condition()

    def condition(self) -> Expression:
        self.conditions += 1
        spend(_READING)
        if self.conditions > MAX_CONDITIONS:
            raise FilterTooLarge(limit=MAX_CONDITIONS, got=self.conditions, what="conditions or more")
        if self.kind == "symbol":
            return self.sign_first()
        if self.take("true"):
            return self.always(True)
        if self.take("false"):
            return self.always(False)
        if self.kind == "keyword" and self.token in ("exists", "absent"):
            operator = self.token
            self.advance()
            self.expect("(")
            demanded, name = self.subject()
            self.expect(")")
            return Condition(name, Constraint(operator, None, demanded))
        if self._says_constant():
            return self.turned(self.at, self.value())
        demanded, name = self.subject()
        return self.test(demanded, name)

    # What a language that extends this one reads otherwise

    def sign_first(self) -> Expression:
        """A condition that begins with a sign, as none does."""
        return self.test(*self.subject())

    def always(self, truth: bool) -> Expression:
        """`true` or `false`, where a condition may stand."""
        return Always(truth)

    def closed(self, inner: Expression) -> Expression:
        """What stood in parentheses."""
        return inner

    def settled(self, operand: Expression) -> Expression:
        """What is behind a `not`."""
        return operand

    def joined(self, kind: type[And | Or], operands: list[Expression]) -> Expression:
        """Several that are joined."""
        return kind(tuple(operands))

    def _says_constant(self) -> bool:
        """Whether a constant stands here, and not the name of an attribute."""
        if self.kind != "string" or self.raw[0] == "'":
            return self.kind in _VALUES
        behind = _SIGN_AND_NAME.match(self.text, self.at + len(self.raw))
        return behind is not None and (behind["word"] or "").lower() not in ("true", "false", *_NULLS)

    def turned(self, start: int, value: Scalar) -> Expression:
        """What is behind a constant: a sign and an attribute."""
        if not (self.kind == "symbol" and self.token in COMPARISONS):
            advice = "An attribute comes first, and behind it the value; only a comparison may be turned round."
            self.fail(f"expected a comparison such as `<`, found {self.found()}.", advice)
        sign = self.token
        self.advance()
        return self.turned_condition(start, sign, value)

    def turned_condition(self, start: int, sign: str, value: Scalar) -> Condition:
        """A constant compared with the attribute that stands here."""
        demanded, name = self.turned_subject()
        return Condition(name, self.checked(Constraint(_TURNED[sign], value, demanded), start))

    def turned_subject(self) -> tuple[Kind | None, str]:
        """The attribute behind a constant and a sign."""
        return self.subject()

    def subject(self) -> tuple[Kind | None, str]:
        """An attribute's name, with the type that is demanded of it before."""
        if self.kind == "word" and self.token in KINDS_BY_NAME:
            word = self.token
            self.advance()
            if self.kind in ("word", "name") and not self._says_word_test():
                return KINDS_BY_NAME[word], self.name()
            return None, word  # `time > …` speaks of an attribute that is called so
        return None, self.name()

    def _says_word_test(self) -> bool:
        """Whether `like "…"` or `is null` stands here, and not an attribute that is called so."""
        if not self.says("is", *_WORD_OPERATORS):
            return False
        follows = self.tokens.match(self.text, self.at + len(self.raw))
        behind = "" if follows is None else follows[0].strip().lower()
        return behind in ("null", "not") if self.says("is") else behind[:1] in ('"', "'")

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
            if self.token not in _NEGATABLE and not self.says(*_WORD_OPERATORS):
                expected = _listed(sorted((*_NEGATABLE, *_WORD_OPERATORS)))
                self.fail(f"expected one of {expected}, found {self.found()}.")
            return Not(self.test(demanded, name))
        if self.take("*"):
            return Condition(name, Constraint("exists", None, demanded))
        if self.take("has"):
            element = self._element(demanded)
            return Condition(name, self.checked(Constraint("has", element), start))
        constraint = self.comparison(demanded)
        if constraint is not None:
            return Condition(name, constraint)
        if self.kind in ("word", "string", "number", "name") or (demanded is not None):
            problem = f"expected an operator after `{name[:40]}`, found {self.found()}."
            if self.kind == "word" and self.raw.lower() == "is":
                return Condition(name, self._null_test(demanded, problem))
            if self.kind == "number" and (whole := self._odd_name(self.at)) is not None:
                self.fail(problem, f"If this is one name, write `{whole}` in backticks.")
            self.fail(problem, _suggest(self.raw, _AFTER_NAME) if self.kind == "word" else None)
        return Condition(name, Constraint("=", True))

    def _element(self, demanded: Kind | None) -> Constraint:
        """What an element of a list has to satisfy, or not to."""
        negated = self.take("not")
        element = self.comparison(demanded) or self.equality("=", demanded)
        return Constraint("not", element, demanded) if negated else element

    def comparison(self, demanded: Kind | None) -> Constraint | None:
        """An operator with its operand, or None if there is no operator here."""
        start, token = self.at, self.token
        if self.kind == "symbol":
            if token in COMPARISONS:
                self.advance()
                return self.checked(self.equality(token, demanded), start)
            if token in _SIENA:
                self.advance()
                return self.checked(Constraint(_SIENA[token], self.text_value(), demanded), start)
            return None
        if self.says(*_WORD_OPERATORS):
            self.advance()
            return self.text_test(token.lower(), demanded)
        if self.kind != "keyword":
            return None
        if token == "in":
            self.advance()
            if self.says("network"):
                self.advance()
                return self.text_test(IN_NETWORK, demanded)
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

    def equality(self, sign: str, demanded: Kind | None) -> Constraint:
        """The value behind a sign, which may ignore case behind `=`."""
        self._refuse_null("exists" if sign == "!=" else "absent")
        start, value = self.at, self.value()
        if not (self.says("ignoring") and sign == "="):
            return Constraint(sign, value, demanded)
        if not isinstance(value, str):
            self.fail_at(start, "only strings are compared ignoring case.")
        self.take_words("ignoring", "case")
        variants = questions.variants_of(value)
        try:
            questions.check_variants(variants)
        except texts.TextMistake as mistake:
            self.fail_at(start, _lowered(str(mistake)))
        self._count_states(len(variants))
        return self.checked(Constraint(IGNORING_CASE, variants, demanded), start)

    def text_test(self, operator: str, demanded: Kind | None) -> Constraint:
        start, raw = self.at, self.raw
        operand = self.text_value()
        if operator in ("matches", *_WORD_OPERATORS, IN_NETWORK):
            if not isinstance(operand, str):
                self.fail_at(start, f"`{operator}` compares with a string, not with bytes.")
            try:
                operator, operand = self._pattern(operator, operand)
            except texts.TextMistake as mistake:
                self.fail_at(start + _place_within(raw, mistake.at), str(mistake))
        return self.checked(Constraint(operator, operand, demanded), start)

    def _pattern(self, operator: str, pattern: str) -> tuple[str, str]:
        """The operator and the operand that a pattern and what is behind it mean. Raises `TextMistake`."""
        table: questions.TableQuestion
        if operator == "matches":
            if not self.take_words("across", "segments"):
                texts.check_glob(pattern)
                return operator, pattern
            operator, pattern = "like", questions.across_segments(pattern)
        elif operator == "like":
            pattern = questions.like_of(pattern, self._escape())
        if operator == "like":
            table = questions.Like(pattern)
        elif operator == "regex":
            table = questions.RegexMatches(pattern)
        else:
            pattern = canonical_network(pattern)
            table = questions.InNetwork(pattern)
        self._count_states(len(table.table.table))
        return operator, pattern

    def _escape(self) -> str | None:
        if not self.says("escape"):
            return None
        self.advance()
        start, escape = self.at, self.text_value()
        if not isinstance(escape, str) or len(escape) != 1 or escape in "%_":
            self.fail_at(start, "an escape is one character in quotes, and neither `%` nor `_`.")
        return escape

    def _count_states(self, states: int) -> None:
        self.states += states
        spend(states * STATE_STEPS)
        if self.states > MAX_TABLE_STATES:
            raise FilterTooLarge(limit=MAX_TABLE_STATES, got=self.states, what="states of patterns or more")

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
            return "An attribute is written without quotes, or in backticks."
        return "A value is compared with an attribute." if self.kind in _VALUES else None

    def _advice_for_a_value(self) -> str | None:
        if self.kind != "word":
            return None
        if self.raw.lower() in ("true", "false"):
            return f"Did you mean `{self.raw.lower()}`?"
        return f'A string is written in quotes: "{self.raw}".'

    def _refuse_null(self, instead: str) -> None:
        if self.kind == "word" and self.raw.lower() in _NULLS:
            advice = f"Write `{instead}({name_text(self.subject_name)})`."
            self.fail("there is no null: an attribute has a value, or it is absent.", advice)

    def _null_test(self, demanded: Kind | None, problem: str) -> Constraint:
        """`is null` and `is not null`; and `is 5`, which other languages say instead of an operator."""
        start = self.at
        self.advance()
        negated = self.take("not")
        if not self.says("null"):
            self._refuse_null("exists" if negated else "absent")
            self.fail_at(start, problem, f"Did you mean `{'!=' if negated else '='}`?")
        if demanded is not None:
            self.fail("null is of no type.", "Leave out the type before the attribute.")
        self.advance()
        return Constraint("exists" if negated else "absent")

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
            self.fail_at(at, "this is not a number.")
        if character.isdigit():
            self.fail_at(at, "this is not a number.", "Names that begin with a digit are written in backticks.")
        advice = {"!": "Write `not` or `!=`.", "~": "Write `matches` or `contains`."}.get(character)
        self.fail_at(at, f"the character {character!r} has no meaning here.", advice)


def _place_within(raw: str, at: int) -> int:
    """Where in a string as it is written its character `at` stands."""
    place = 1
    for _ in range(at):
        if raw[place : place + 1] == "\\":
            place += 6 if raw[place + 1 : place + 2] == "u" else 2
        else:
            place += 1
    return place


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
