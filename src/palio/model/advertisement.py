"""`Advertisement`: what a publisher may say. A box that is closed on all other sides.

Each attribute that it names may be absent or have a value that satisfies at least one of its constraints;
every attribute that it does not name is absent. So, unlike in a filter, several constraints on one attribute
are a disjunction, and every further attribute of a notification takes it outside.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from palio.model.describe import describe
from palio.model.errors import ComputedCondition, FilterError, FilterTooLarge
from palio.model.expression import Condition, Expression, Or, text_of
from palio.model.filter import Filter
from palio.model.form import MAX_SIDES, decode_sides, encode_sides
from palio.model.normal import normalise
from palio.model.notification import Notification
from palio.model.parser import parse_items
from palio.model.valueset import ABSENT, EMPTY, ValueSet


class MixedAlternative(FilterError):
    """An alternative between different attributes, which an advertisement cannot express."""

    item: str
    sentence = "An advertisement lists constraints attribute by attribute; `{item}` is not about exactly one."


class Advertisement:
    """An immutable advertisement; `sides` maps its attributes to the values that they may have, or absence."""

    __slots__ = ("_form", "_hash", "sides", "source")

    def __init__(self, sides: Mapping[str, ValueSet]) -> None:
        if len(sides) > MAX_SIDES:
            raise FilterTooLarge(limit=MAX_SIDES, got=len(sides), what="attributes")
        allowed = {name: (sides[name] | ABSENT).simplified() for name in sorted(sides)}
        self.sides: Mapping[str, ValueSet] = {
            name: side for name, side in allowed.items() if not (side - ABSENT).is_empty()
        }
        self.source: str | None = None  # the text that it was read from, if it was
        self._hash: int | None = None
        self._form: bytes | None = None

    @classmethod
    def of_form(cls, form: bytes) -> Advertisement:
        """The advertisement of some bytes that `form` gave. Raises `UnreadableForm`."""
        advertisement = cls({})
        advertisement.sides = decode_sides(form)
        advertisement._form = form
        return advertisement

    @property
    def form(self) -> bytes:
        """As it travels; made once. Raises `FilterTooLarge`: then it must not be accepted."""
        if self._form is None:
            self._form = encode_sides(self.sides)
        return self._form

    @classmethod
    def parse(cls, text: str) -> Advertisement:
        """Constraints separated by commas, semicolons or `and`; those on one attribute are alternatives.

        A conjunction on one attribute is put in parentheses: `(price > 0 and price < 100)`.
        Raises `FilterSyntaxError`, `FilterTooLarge` or `MixedAlternative`.
        """
        sides: dict[str, ValueSet] = {}
        for item in parse_items(text):
            name, values = _one_side(item)
            sides[name] = sides.get(name, EMPTY) | values
        advertisement = cls(sides)
        advertisement.source = text
        return advertisement

    def covers(self, other: Notification | Advertisement) -> bool:
        """Whether all of it is advertised: a notification, or (if proven) all that another one allows."""
        if isinstance(other, Advertisement):
            return all(self._side(name).includes(side) for name, side in other.sides.items())
        return all(value in self._side(name) for name, value in other.attributes.items())

    def overlaps(self, other: Filter | Advertisement) -> bool:
        """False iff it is proven that no notification is advertised here and selected (or advertised) there."""
        if isinstance(other, Advertisement):
            return True  # the notification without attributes is in both
        return any(
            not box.is_empty() and all(side.overlaps(self._side(name)) for name, side in box.sides.items())
            for box in other.conjunctions
        )

    def _side(self, name: str) -> ValueSet:
        return self.sides.get(name, ABSENT)

    def __str__(self) -> str:
        return ", ".join(_side_text(name, side - ABSENT) for name, side in self.sides.items())

    def __repr__(self) -> str:
        return f"Advertisement.parse({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Advertisement):
            return NotImplemented
        return self is other or self.sides == other.sides

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self.sides.items()))
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return Advertisement, (dict(self.sides),)


def _one_side(item: Expression) -> tuple[str, ValueSet]:
    conjunctions = normalise(item).conjunctions
    computed = [residual for box in conjunctions for residual in box.residuals]
    if computed:
        raise ComputedCondition("An advertisement", text_of(computed[0]))
    if len(conjunctions) != 1 or len(conjunctions[0].sides) != 1:
        raise MixedAlternative(text_of(item))
    ((name, values),) = conjunctions[0].sides.items()
    return name, values


def _side_text(name: str, values: ValueSet) -> str:
    """Where an advertisement is read, `and` begins another alternative: what it joins stands in parentheses."""
    expression = describe(name, values)
    parts = expression.operands if isinstance(expression, Or) else (expression,)
    text = text_of(expression)
    return text if all(isinstance(part, Condition) for part in parts) else f"({text})"
