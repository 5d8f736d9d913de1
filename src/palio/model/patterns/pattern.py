"""`Pattern`: what a subscriber wants to hear of several events together.

>>> rise = Pattern.parse('A[price > 100] then B[price > A.price * 1.1] within 5 min by symbol')
>>> rise.by, rise.window
(('symbol',), datetime.timedelta(seconds=300))
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from palio.model.errors import FilterTooLarge, ImpossiblePattern, PatternTooLarge
from palio.model.expression import name_text
from palio.model.patterns.checking import (
    check_absences,
    check_beginning,
    check_names,
    check_references,
    check_sizes,
    check_skip,
    impossibility,
)
from palio.model.patterns.policies import CLAUSES, Policies
from palio.model.patterns.reader import PatternReader, Said
from palio.model.patterns.shape import Shape, Step, shape_text, steps_of
from palio.model.patterns.spans import span_text
from palio.model.patterns.variants import Variant, variants_of


class Pattern:
    """An immutable pattern; all that can be wrong with it is found when it is made.

    `steps` are its steps in the order of the text, `within` its window in microseconds, `by` the attributes
    that all its events share, `policies` which matches count, and `variants` the automata that find them.
    """

    __slots__ = ("by", "policies", "shape", "steps", "variants", "within")

    shape: Shape
    within: int
    by: tuple[str, ...]
    policies: Policies
    steps: tuple[Step, ...]
    variants: tuple[Variant, ...]

    def __init__(
        self, shape: Shape, within: int, by: tuple[str, ...] = (), policies: Policies | None = None
    ) -> None:
        self.shape = shape
        self.within = within
        self.by = by
        self.policies = policies or Policies()
        self.steps = tuple(steps_of(shape))
        check_sizes(self.steps, within, by)
        check_absences(shape)
        check_names(self.steps)
        self.variants = variants_of(shape, {step.name: number for number, step in enumerate(self.steps)})
        check_beginning(self.variants)
        check_skip(self.policies.to, self.steps, self.variants)
        check_references(self.steps, self.variants)
        problem = impossibility(self.steps, self.variants, by)
        if problem is not None:
            raise ImpossiblePattern(str(self), problem)

    @classmethod
    def parse(cls, text: str) -> Pattern:
        """Read a pattern's text. Raises a `PatternError`, which says what is wrong, and if it can, where."""
        try:
            said: Said = PatternReader(text).pattern()
        except FilterTooLarge as problem:
            raise PatternTooLarge(what=problem.what, limit=problem.limit, got=problem.got) from None
        return cls(said.shape, said.within, said.by, Policies.of(said.policies))

    @property
    def window(self) -> timedelta:
        """How far its events may lie apart."""
        return timedelta(microseconds=self.within)

    def __str__(self) -> str:
        parts = [shape_text(self.shape), f"within {span_text(self.within)}"]
        if self.by:
            parts.append(f"by {', '.join(map(_partition_text, self.by))}")
        if policies := str(self.policies):
            parts.append(policies)
        return " ".join(parts)

    def __repr__(self) -> str:
        return f"Pattern.parse({str(self)!r})"

    def _key(self) -> tuple[Any, ...]:
        return self.shape, self.within, self.by, self.policies

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, Pattern) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def __reduce__(self) -> tuple[Any, ...]:
        return Pattern.parse, (str(self),)


def _partition_text(attribute: str) -> str:
    """A name that could be the beginning of a policy stands in backticks."""
    return f"`{attribute}`" if attribute.lower() in CLAUSES else name_text(attribute)
