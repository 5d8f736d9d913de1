"""`Filter`: what a subscriber wants, as conjunctions of sets of values joined by or.

>>> wide = Filter.parse("x between 5 and 8")
>>> wide.covers(Filter.parse("x between 4 and 7 and x between 6 and 9"))
True
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from palio.model.conjunction import MAX_EFFORT, STEPS, Conjunction, uncovered
from palio.model.constraint import Constraint
from palio.model.describe import describe_conjunction
from palio.model.effort import Effort, Undecided
from palio.model.errors import ComputedCondition, ContradictoryFilter, FilterTooLarge
from palio.model.explanation import Explanation, explain
from palio.model.expression import Condition, Expression, check, conjunction, disjunction, text_of
from palio.model.flatten import flatten
from palio.model.form import decode_conjunctions, encode_conjunctions
from palio.model.formulas.formula import variables
from palio.model.identity import identity
from palio.model.merging import Merge, merge_boxes
from palio.model.normal import intersection, normalise, settle
from palio.model.notification import Notification
from palio.model.parser import parse


class Filter:
    """An immutable filter. Equal filters are equal and hash alike however they were written.

    `conjunctions` is its normal form; `source` the text it was read from, if it was.
    """

    __slots__ = ("_conflicts", "_form", "_hash", "_identity", "conjunctions", "source")

    conjunctions: tuple[Conjunction, ...]
    source: str | None

    def __init__(
        self,
        conjunctions: tuple[Conjunction, ...] = (Conjunction({}),),
        *,
        source: str | None = None,
        conflicts: tuple[str, ...] = (),
    ) -> None:
        self.conjunctions = conjunctions
        self.source = source
        self._conflicts = conflicts
        self._identity: Hashable | None = None
        self._hash: int | None = None
        self._form: bytes | None = None

    @classmethod
    def parse(cls, text: str) -> Filter:
        """Read a filter's text. Raises `FilterSyntaxError` or `FilterTooLarge`; contradictions are allowed."""
        normal = normalise(parse(text))
        return cls(normal.conjunctions, source=text, conflicts=normal.conflicts)

    @classmethod
    def of_form(cls, form: bytes, source: str | None = None) -> Filter:
        """The filter of some bytes that `form` gave. Raises `UnreadableForm`."""
        filter = cls(decode_conjunctions(form), source=source)
        filter._form = form
        return filter

    @classmethod
    def from_expression(cls, expression: Expression) -> Filter:
        """The filter that an expression means. Raises `FilterTooLarge` or `WrongOperand`."""
        check(expression)
        normal = normalise(expression)
        return cls(normal.conjunctions, conflicts=normal.conflicts)

    @classmethod
    def template(cls, example: Mapping[str, Any]) -> Filter:
        """Notifications that look like the example: equal where it has a value, present where it has None.

        Nested mappings name dotted attributes. Raises `InvalidNotification` for values that cannot be.
        """
        flat = flatten(example, keep_null=True, strict=True).attributes
        conditions = [
            Condition(name, Constraint("exists") if value is None else Constraint("=", value))
            if not isinstance(value, tuple)
            else conjunction(Condition(name, Constraint("has", Constraint("=", one))) for one in value)
            for name, value in flat.items()
        ]
        return cls.from_expression(conjunction(conditions))

    # What it selects

    def matches(self, notification: Notification) -> bool:
        """Whether the notification satisfies the filter. Cannot fail."""
        value_of = notification.attributes.get
        for box in self.conjunctions:
            for name, side in box.sides.items():
                if value_of(name) not in side:
                    break
            else:
                if not box.residuals or all(one.holds(value_of) for one in box.residuals):
                    return True
        return False

    @property
    def has_residuals(self) -> bool:
        """Whether it has conditions that no set of values says."""
        return any(box.residuals for box in self.conjunctions)

    def explain(self, notification: Notification) -> Explanation:
        """Why the notification satisfies the filter, or why not, condition by condition."""
        expression = parse(self.source) if self.source is not None else self.expression
        return explain(expression, notification)

    # How it relates to others

    def covers(self, other: Filter) -> bool:
        """True iff it is proven that this filter selects all that the other one does."""
        mine = self.conjunctions
        if len(mine) == 1:
            return all(mine[0].includes(box) for box in other.conjunctions)
        effort = Effort(MAX_EFFORT, STEPS)
        try:
            return all(uncovered(box, mine, effort) is None for box in other.conjunctions)
        except (Undecided, FilterTooLarge):
            return False

    def overlaps(self, other: Filter) -> bool:
        """False iff it is proven that no notification satisfies both."""
        return any(mine.overlaps(theirs) for mine in self.conjunctions for theirs in other.conjunctions)

    def example(self) -> Notification | None:
        """A notification that the filter selects; None if none is known."""
        return _NOTHING.counterexample(self)

    def counterexample(self, other: Filter) -> Notification | None:
        """A notification that the other filter selects and this one does not; None if none is known."""
        effort = Effort(MAX_EFFORT, STEPS)
        for box in other.conjunctions:
            try:
                left = uncovered(box, self.conjunctions, effort)
                if left is None:
                    continue
                values = {name: side.example() for name, side in left.sides.items()}
            except (Undecided, FilterTooLarge):
                continue
            found = Notification.of_values({name: one for name, one in values.items() if one is not None})
            if other.matches(found) and not self.matches(found):
                return found
        return None

    def intersect(self, other: Filter) -> Filter:
        """The filter for what satisfies both. Raises `FilterTooLarge`."""
        normal = intersection(self.conjunctions, other.conjunctions)
        return Filter(normal.conjunctions, conflicts=normal.conflicts)

    def union(self, other: Filter) -> Filter:
        """The filter for what satisfies at least one. Raises `FilterTooLarge`."""
        return Filter(settle([*self.conjunctions, *other.conjunctions]))

    def merge(self, other: Filter) -> Merge:
        """One filter that covers both, and what it selects beyond them. Raises `FilterTooLarge`.

        Conjunctions are merged into one; filters of several are united, which is always perfect.
        """
        if len(self.conjunctions) != 1 or len(other.conjunctions) != 1:
            return Merge(self.union(other), True, Filter(()), 0.0)
        box, extra, share = merge_boxes(self.conjunctions[0], other.conjunctions[0])
        return Merge(Filter((box,)), not extra, Filter(extra), share)

    # Contradictions

    @property
    def contradiction(self) -> str | None:
        """Why no notification can satisfy the filter, as a finished sentence; None if some can."""
        if self.conjunctions:
            return None
        return "; ".join(self._conflicts or ("its conditions exclude each other",)) + "."

    def require_satisfiable(self) -> Filter:
        """The filter itself; raises `ContradictoryFilter` if nothing can satisfy it."""
        reason = self.contradiction
        if reason is not None:
            raise ContradictoryFilter(self.source or str(self), reason)
        return self

    def require_sets(self, where: str) -> Filter:
        """The filter itself; raises `ComputedCondition` if it has residuals. `where` begins a sentence."""
        for box in self.conjunctions:
            if box.residuals:
                raise ComputedCondition(where, text_of(box.residuals[0]))
        return self

    # Form, text and identity

    @property
    def form(self) -> bytes:
        """As it travels and is stored; made once. Raises `FilterTooLarge`: then it must not be accepted."""
        if self._form is None:
            self._form = encode_conjunctions(self.conjunctions)
        return self._form

    @property
    def expression(self) -> Expression:
        """The normal form as an expression."""
        return disjunction(map(describe_conjunction, self.conjunctions))

    @property
    def attributes(self) -> frozenset[str]:
        """The attributes that the normal form names."""
        named = {name for box in self.conjunctions for name in box.sides}
        computed = [variables(one.formula) for box in self.conjunctions for one in box.residuals]
        return frozenset(named.union(*computed))

    def __str__(self) -> str:
        return text_of(self.expression)

    def __repr__(self) -> str:
        return f"Filter.parse({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Filter):
            return NotImplemented
        return self is other or self._identify() == other._identify()

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(self._identify())
        return self._hash

    def _identify(self) -> Hashable:
        if self._identity is None:
            self._identity = identity(self.conjunctions)
        return self._identity

    def __reduce__(self) -> tuple[Any, ...]:
        try:
            return Filter.of_form, (self.form, self.source)
        except FilterTooLarge:  # of a program that makes its own; nobody else would take it
            return Filter, (self.conjunctions,)


_NOTHING = Filter(())
