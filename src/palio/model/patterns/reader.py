"""From text to pattern: the filter language's reader, with the few rules more that patterns have.

    pattern     = sequence "within" span { span } [ "by" name { "," name } ] { policy }
    sequence    = alternative { join alternative | "not" "next" unit }
    join        = ( "then" | "next" ) [ "within" span { span } ]
    alternative = all { "or" all }
    all         = unit { "and" unit }
    unit        = count ( "×" | "x" ) unit | "not" unit | looped [ loop ]
    looped      = "(" sequence ")" | [ word ] "[" filter "]"
    loop        = ( "?" | "*" | "+" | "{" count [ "," [ count ] ] "}" ) [ "?" ] [ "until" unit ]
    policy      = "select" ( "first" | "every" ) | "consume" ( "all" | "own" | "none" )
                | "order" ( "arrival" | "time" ) | "timeout" ( "drop" | "tell" )
                | "skip" "to" ( "next" | ( "first" | "last" ) word )

A filter stands in brackets, which filters themselves do not use: nothing in it can be taken for a part of the
pattern. Within it, the other side of a comparison may be computed from events of earlier steps. A word that
begins with the name of a step and a point speaks of that step; no value of the filter language begins with a
word, so this takes nothing away from it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, ClassVar

import msgspec

from palio.model.constraint import Constraint
from palio.model.errors import PatternSyntaxError, PatternTooLarge, UnboundedPattern
from palio.model.expression import And, Condition, Expression, conjunction
from palio.model.filter import Filter
from palio.model.patterns.computed import (
    AGGREGATES,
    Aggregate,
    Arithmetic,
    Comparison,
    Computed,
    Number,
    Reference,
    conditions,
    flattened,
    is_computed,
    references,
)
from palio.model.patterns.policies import CLAUSES, POLICIES
from palio.model.patterns.shape import PLAIN, Absence, All, Either, Loop, PartJoin, Shape, Step, Then, Times
from palio.model.patterns.spans import UNITS, microseconds
from palio.model.reading import COMPARISONS, Reader, token_pattern
from palio.model.values import Kind

# Nobody counts further in a window, and sums of people have a handful of terms.
MAX_REPETITIONS = 10_000
MAX_TERMS = 64
# None of them is taken from anybody: before a bracket, a word is the name of a step.
PATTERN_WORDS = frozenset(("then", "next", "within", "by", "skip", *POLICIES))
_TOKENS = token_pattern(
    rf"| (?P<times>\d+\s*(?:×|[xX](?=[\s(\[]))) | (?P<span>\d+(?:\.\d+)?\s*(?:{UNITS})(?![^\W\d]))",
    r"| (?P<reference>[^\W\d]\w*\.`[^`\\]*(?:\\.[^`\\]*)*`)",
    r"+/\[\]?{}-",
)
_SPAN = re.compile(rf"(\d+(?:\.\d+)?)\s*({UNITS})")


class Said(msgspec.Struct, frozen=True):
    """What a text says, before anything is known about whether it makes sense."""

    shape: Shape
    within: int
    by: tuple[str, ...]
    policies: dict[str, str]


class PatternReader(Reader):
    """The rules of patterns above those of filters."""

    tokens: ClassVar[re.Pattern[str]] = _TOKENS
    mistake: ClassVar[Any] = PatternSyntaxError

    def __init__(self, text: str) -> None:
        self.columns: dict[str, int] = {}  # where each step stands
        self._step: str | None = None  # whose filter is being read
        self._terms = 0  # in the comparison that is being read
        super().__init__(text)

    def pattern(self) -> Said:
        shape = self.sequence()
        if self.kind == "end":
            raise UnboundedPattern(self.text)
        if not self.take_word("within"):
            self.fail(f"expected `then`, `next`, `and`, `or` or `within`, found {self.found()}.")
        within = self.span()
        by: list[str] = []
        if self.take_word("by"):
            by.append(self._partition(by))
            while self.take(","):
                by.append(self._partition(by))
        policies: dict[str, str] = {}
        while self.kind != "end":
            self._policy(policies)
        return Said(shape, within, tuple(by), policies)

    def take_word(self, word: str) -> bool:
        if self.kind == "word" and self.token.lower() == word:
            self.advance()
            return True
        return False

    # What happens

    def sequence(self) -> Shape:
        parts: list[Shape] = []
        joins: list[PartJoin] = []
        join: PartJoin | None = PLAIN
        while join is not None:
            start, part = self.at, self.either()
            if isinstance(part, Absence) and join != PLAIN:
                self.fail_at(
                    start, f"behind `{join}` stands what happens; what must not happen stands behind `then`."
                )
            if isinstance(part, Then) and join == PLAIN:
                joins += [join, *map(part.join, range(1, len(part.parts)))]
                parts += part.parts
            else:
                joins.append(join)
                parts.append(part)
            while self._says_not_next():
                joins.append(PLAIN)
                parts.append(Absence(self._single("not next"), adjacent=True))
            join = self._join()
        if len(parts) == 1:
            return parts[0]
        return Then(tuple(parts), tuple(joins[1:]) if any(one != PLAIN for one in joins) else ())

    def _says_not_next(self) -> bool:
        if not self.take("not"):
            return False
        if not self.take_word("next"):
            self.fail(
                f"expected `next`, found {self.found()}.", "What must not happen stands behind `then not`."
            )
        return True

    def _join(self) -> PartJoin | None:
        strict = self.take_word("next")
        if not strict and not self.take_word("then"):
            return None
        if self.kind == "word" and self.token.lower() == "within":
            follows = _TOKENS.match(self.text, self.at + len(self.raw))
            if follows is not None and follows.lastgroup != "symbol":  # `within[` is a step
                self.advance()
                return PartJoin(strict, self.span())
        return PartJoin(strict)

    def either(self) -> Shape:
        return self._shapes(Either, self.every, "or")

    def every(self) -> Shape:
        return self._shapes(All, self.unit, "and")

    def _shapes(self, kind: Any, part: Callable[[], Shape], word: str) -> Shape:
        parts: list[Shape] = []
        while not parts or self.take(word):
            one = part()
            parts += one.parts if type(one) is kind else (one,)  # type: ignore[union-attr]
        return kind(tuple(parts)) if len(parts) > 1 else parts[0]

    def unit(self) -> Shape:
        if self.kind == "times":
            at, digits = self.at, self.token[:-1].rstrip()
            self.advance()
            count = self._count(digits, at)
            if count < 1:
                self.fail_at(at, f"a step is repeated 1 to {MAX_REPETITIONS:,} times.")
            part = self._single("×")
            return Times(count, part) if count > 1 else part
        if self.take("not"):
            return Absence(self._single("not"))
        start = self.at
        if self.kind == "symbol" and self.token == "(":
            self._deeper()
            self.advance()
            inner = self.sequence()
            self.expect(")")
            self.depth -= 1
        else:
            inner = self.step()
        return self._repeated(inner, start)

    def _repeated(self, part: Shape, start: int) -> Shape:
        """What stands before a loop's sign, with the sign."""
        if not (self.kind == "symbol" and self.token in ("?", "*", "+", "{")):
            return part
        at, sign = self.at, self.token
        self.advance()
        least, most = {"?": (0, 1), "*": (0, None), "+": (1, None)}.get(sign) or self._bounds(at)
        greedy = not self.take("?")
        if not is_single(part):
            self.fail_at(start, f"before `{sign}` stands a step, or steps joined by `or` in parentheses.")
        if most == 0 or (most is not None and most < least):
            self.fail_at(
                at, "a loop ends with a number that is at least 1, and not less than the one it begins with."
            )
        ends = self.at
        until = self._single("until") if self.take_word("until") else None
        if most == least:
            if until is not None:
                self.fail_at(ends, "`until` ends a loop, and this is always repeated so often.")
            return Times(most, part) if most > 1 else part
        return Loop(least, most, part, greedy, until)

    def _bounds(self, at: int) -> tuple[int, int | None]:
        least = self._bound(at)
        most: int | None = least
        if self.take(","):
            most = None if self.token == "}" else self._bound(at)
        self.expect("}")
        return least, most

    def _bound(self, at: int) -> int:
        if self.kind != "number" or not self.token.isdecimal():
            self.fail_at(at, "a loop is written as {2,5}, {2,} or {3}.")
        count = self._count(self.token, at)
        self.advance()
        return count

    def _count(self, digits: str, at: int) -> int:
        count = int(digits) if len(digits) <= 5 else MAX_REPETITIONS + 1
        if count > MAX_REPETITIONS:
            self.fail_at(at, f"a step is repeated 1 to {MAX_REPETITIONS:,} times.")
        return count

    def _single(self, sign: str) -> Shape:
        """A step, or several of which one is enough: what can be counted, and be missing."""
        start = self.at
        self._deeper()
        part = self.unit()
        self.depth -= 1
        if not is_single(part):
            self.fail_at(start, f"behind `{sign}` stands a step, or steps joined by `or` in parentheses.")
        return part

    def step(self) -> Step:
        start, name, found = self.at, None, self.found()
        if self.kind == "word":
            name = self._step_name()
        if not (self.kind == "symbol" and self.token == "["):
            if name is None or name.lower() in PATTERN_WORDS:
                self.fail_at(start, f"expected a step or `(`, found {found}.")
            advice = f"A step has its filter in brackets: {name}[price > 100]."
            self.fail(f"expected `[`, found {self.found()}.", advice)
        own = name or f"step{len(self.columns) + 1}"
        if own in self.columns:
            self.fail_at(start, f"there is a step called `{own}` already; each has a name of its own.")
        self.columns[own] = start
        self._step = own
        self.advance()
        expression = self.alternative()
        self.expect("]")
        self._step = None
        filter, guard = _divided(expression)
        return Step(own, filter, guard, name is not None)

    def _step_name(self) -> str:
        name = self.token
        if "." in name:
            self.fail("the name of a step has no points.")
        self.advance()
        return name

    # Its bounds

    def span(self) -> int:
        start, total = self.at, 0
        if self.kind != "span":
            advice = "A span has a unit, such as 5 min or 90 s." if self.kind == "number" else None
            self.fail(f"expected a span of time such as `5 min`, found {self.found()}.", advice)
        while self.kind == "span":
            number, unit = _SPAN.fullmatch(self.token).groups()  # type: ignore[union-attr]
            part = microseconds(number, unit) if len(number) < 20 else None
            if part is None:
                self.fail("a span is a whole number of microseconds.")
            total += part
            self.advance()
        if total == 0:
            self.fail_at(start, "a window must be longer than nothing.")
        return total

    def _partition(self, known: list[str]) -> str:
        if self.kind == "word" and self.token.lower() in CLAUSES:
            self.fail(f"expected an attribute, found {self.found()}.")
        start, name = self.at, self.name()
        if name in known:
            self.fail_at(start, f"`{name[:40]}` is there twice.")
        return name

    def _policy(self, policies: dict[str, str]) -> None:
        clause = self.token.lower() if self.kind == "word" else ""
        if clause == "skip":
            self._skip(policies)
            return
        if clause not in POLICIES:
            expected = ", ".join(f"`{one}`" for one in (*POLICIES, "skip"))
            self.fail(f"expected `by`, {expected} or the end of the pattern, found {self.found()}.")
        if clause in policies:
            if clause == "consume" and "to" in policies:
                self.fail("`skip` and `consume` both say what follows a match; there is one of them.")
            self.fail(f"`{clause}` is there twice.")
        self.advance()
        # `all` and `and` are no different from other words here
        if self.token.lower() not in POLICIES[clause]:
            choices = " or ".join(f"`{one}`" for one in POLICIES[clause])
            self.fail(f"expected {choices}, found {self.found()}.")
        policies[clause] = self.token.lower()
        self.advance()

    def _skip(self, policies: dict[str, str]) -> None:
        """`skip to next` is `consume none` by another name; the others go on with an event of the match."""
        if "consume" in policies:
            self.fail("`skip` and `consume` both say what follows a match; there is one of them.")
        self.advance()
        if not self.take_word("to"):
            self.fail(f"expected `to`, found {self.found()}.")
        where = self.token.lower()
        if where == "next":
            policies["consume"] = "none"
            self.advance()
            return
        if where not in ("first", "last"):
            self.fail(f"expected `next`, `first` or `last`, found {self.found()}.")
        self.advance()
        if self.kind != "word" or self.token not in self.columns:
            self.fail(f"expected the name of a step, found {self.found()}.")
        policies |= {"consume": where, "to": self.token}
        self.advance()

    # Comparisons with other events

    def condition(self) -> Expression:
        if self._says_aggregate():
            return self._comparison()  # type: ignore[no-any-return]
        own = self._reference()
        if own is None:
            return super().condition()
        if own.step != self._step:
            self.fail(
                f"a comparison begins with an attribute of its own event, found {self.found()}.",
                f"Write `{self._step}.… = {own!r}`, the other way round.",
            )
        self.advance()
        return self.test(None, own.attribute)

    def turned_subject(self) -> tuple[Kind | None, str]:
        own = self._reference()
        if own is None:
            return super().turned_subject()
        if own.step != self._step:
            self.fail(f"a constant is compared with an attribute of its own event, found {self.found()}.")
        self.advance()
        return None, own.attribute

    def _says_aggregate(self) -> bool:
        """Whether `sum(` or the like stands here, in the filter of a step."""
        if self._step is None or self.kind != "word" or self.token.lower() not in AGGREGATES:
            return False
        follows = _TOKENS.match(self.text, self.at + len(self.raw))
        return follows is not None and follows["symbol"] == "("

    def _comparison(self) -> Any:
        """What begins with a figure over earlier events, and not with an attribute of its own event."""
        self._terms = 0
        left = self.sum()
        if not (self.kind == "symbol" and self.token in COMPARISONS):
            self.fail(f"expected a comparison such as `>`, found {self.found()}.")
        sign = self.token
        self.advance()
        return Comparison(left, sign, self.sum())

    def _aggregate(self) -> Aggregate:
        function = self.token.lower()
        self.advance()
        self.expect("(")
        reference = self._reference()
        if reference is not None:
            step, attribute = reference.step, reference.attribute
        elif function == "count" and self.kind == "word" and self.token in self.columns:
            step, attribute = self.token, None
        else:
            advice = (
                "A figure is about an attribute of a step, as in avg(A.price), or about its events: count(A)."
            )
            self.fail(f"expected a step and an attribute, found {self.found()}.", advice)
        self.advance()
        self.expect(")")
        return Aggregate(function, step, attribute, step == self._step)

    def test(self, demanded: Kind | None, name: str) -> Expression:
        if self._step is not None:
            self._refuse_residual(name)
        if self._step is None or not (self.kind == "symbol" and self.token in COMPARISONS):
            return super().test(demanded, name)
        operator = self.token
        follows = _TOKENS.match(self.text, self.at + len(self.raw))
        if follows is None or (
            follows.lastgroup not in ("word", "reference", "number") and follows[0][-1:] != "("
        ):
            return super().test(demanded, name)
        if follows.lastgroup == "word" and follows["word"].lower() in ("true", "false"):
            return super().test(demanded, name)
        self.advance()
        self._terms = 0
        start, computed = self.at, self.sum()
        if isinstance(computed, Number):
            return Condition(name, self.checked(Constraint(operator, computed.value, demanded), start))
        if not any(references(computed)):
            self.fail_at(start, "this is a constant, and is written as one.")
        if demanded is not None:
            self.fail_at(start, "a type is demanded only where the other side is a constant.")
        return Condition(name, Constraint(operator, computed))

    def _refuse_residual(self, name: str) -> None:
        """Say where computing has its place in a pattern, if an attribute is followed by it here."""
        if self.kind == "symbol" and self.token == "(":
            self.fail(
                f"a step of a pattern calls no functions such as `{name[:40]}`.",
                f"In steps there are + - * / and {', '.join(sorted(AGGREGATES))}; a filter may call functions.",
            )
        signed = self.kind == "number" and self.raw[0] in "+-"
        if signed or (self.kind == "symbol" and self.token in ("+", "-", "*", "/")):
            self.fail(
                f"expected a comparison such as `>`, found {self.found()}.",
                "In a pattern only the right side of a comparison is computed, and attributes have their step: "
                f"{self._step}[{name[:40]} > 2 * {self._step}.bid].",
            )

    def sum(self) -> Computed:
        left = self.product()
        while True:
            if self.kind == "number" and self.raw[0] in "+-":  # `A.price -1` is a difference
                sign, number = self.raw[0], self._number()
                self.advance()
                left = Arithmetic(sign, left, Number(-number if sign == "-" else number))
                self._count_term()
            elif self.kind == "symbol" and self.token in ("+", "-"):
                sign = self.token
                self.advance()
                left = Arithmetic(sign, left, self.product())
            else:
                return left

    def product(self) -> Computed:
        left = self.factor()
        while self.kind == "symbol" and self.token in ("*", "/"):
            sign = self.token
            self.advance()
            left = Arithmetic(sign, left, self.factor())
        return left

    def factor(self) -> Computed:
        self._count_term()
        if self.kind == "number":
            number = self._number()
            self.advance()
            return Number(number)
        if self.take("("):
            self._deeper()
            inner = self.sum()
            self.expect(")")
            self.depth -= 1
            return inner
        if self._says_aggregate():
            return self._aggregate()
        reference = self._reference()
        if reference is None:
            advice = None
            if self.kind == "word":
                known = ", ".join(f"`{step}.{self.raw[:20]}`" for step in self.columns)
                advice = (
                    f'A string is written in quotes: "{self.raw[:40]}"; an attribute with its step: {known}.'
                )
            self.fail(f"expected a value, found {self.found()}.", advice)
        self.advance()
        return reference

    def _count_term(self) -> None:
        self._terms += 1
        if self._terms > MAX_TERMS:
            raise PatternTooLarge(what="terms or more in a comparison", limit=MAX_TERMS, got=self._terms)

    def _reference(self) -> Reference | None:
        """The attribute of a step that the present word speaks of, if it does."""
        if self.kind not in ("word", "reference"):
            return None
        step, _, attribute = self.token.partition(".")
        if not attribute or step not in self.columns:
            return None
        if attribute.startswith("`"):
            attribute = re.sub(r"\\(.)", r"\1", attribute[1:-1], flags=re.DOTALL)
        return Reference(step, attribute)


def is_single(part: Shape) -> bool:
    return isinstance(part, Step) or (
        isinstance(part, Either) and all(isinstance(one, Step) for one in part.parts)
    )


def _divided(expression: Expression) -> tuple[Filter, Expression | None]:
    """What a filter can say, and what has to be compared with other events."""
    flat = flattened(expression)
    parts = flat.operands if isinstance(flat, And) else (flat,)
    computed = [part for part in parts if any(map(is_computed, conditions(part)))]
    plain = [part for part in parts if part not in computed]
    return Filter.from_expression(conjunction(plain)), conjunction(computed) if computed else None
