"""From the formula of a CESQL expression to a filter: what sets of values say, and a residual for the rest.

Nothing is selected where something fails, so each part of an expression has three sides: where it comes to
true, where to false, and where it is defined, that is, comes to either. From them follow the sides of what is
joined, exactly:

    a AND b     true: both are            false: a is, or a is defined and b is false
    a OR b      true: a is, or a is defined and b is true            false: both are
    a XOR b     true: one is true and the other one false            defined: both are
    NOT a       the sides change places

A condition on one attribute and constants is told by `plain`, where sets of values can. Whatever else there is
stands in a residual, beside what it says of attributes.

A residual is decided event by event, so as little as possible is left to it. But where that would make too many
conjunctions, whole operands of an AND become residuals, and in the end all of them one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from palio.language.cesql.conditions import MAX_TOLD_APART, compares_a_number
from palio.language.cesql.nested import nested
from palio.language.cesql.plain import NEVER, Leaf, leaf, truth
from palio.language.cesql.quick_reader import plain
from palio.language.cesql.reader import read_cesql
from palio.language.cesql.shortcut import short
from palio.model.constraint import Constraint
from palio.model.errors import FilterTooLarge
from palio.model.expression import TRUE, Always, And, Condition, Expression, conjunction, disjunction
from palio.model.filter import Filter
from palio.model.formulas.cesql import FUNCTIONS, as_boolean
from palio.model.formulas.evaluation import evaluate
from palio.model.formulas.formula import Call, Constant, Failed, Formula, Variable, parts, variables
from palio.model.formulas.function import BOOLS, INTEGERS, STRINGS
from palio.model.formulas.residual import Residual

# Sides of parts that one expression may be made of; what needs more has too many conjunctions anyway.
MAX_SIDES = 2_048

_JOINTS = frozenset(("cesql.and", "cesql.or", "cesql.xor", "cesql.not"))
_RESULTS = ((INTEGERS, "an Integer"), (STRINGS, "a String"))


def parse_cesql(text: str) -> Filter:
    """The filter that an expression means. Raises `WrongDialectText`, `MissingFunction` or `FilterTooLarge`."""
    formula = plain(text) or read_cesql(text)
    conjunctions = short(formula) or nested(formula)
    return Filter(conjunctions) if conjunctions is not None else compiled(formula)


def compiled(formula: Formula) -> Filter:
    """The filter of any formula, the long way. Raises `FilterTooLarge`."""
    result = _result_of(formula)
    if result is not None:
        conflict = f"the expression comes to {result}, and only the Boolean `true` selects an event"
        return Filter((), conflicts=(conflict,))
    try:
        return Filter.from_expression(_Sides(formula).selecting(formula))
    except FilterTooLarge:
        return Filter.from_expression(_with_residuals(formula))


def _result_of(formula: Formula) -> str | None:
    """What it comes to if that is never a Boolean."""
    if isinstance(formula, Call):
        return next((said for kinds, said in _RESULTS if FUNCTIONS[formula.function].gives == kinds), None)
    if isinstance(formula, Constant) and type(formula.value) is not bool:
        return "an Integer" if type(formula.value) is int else "a String"
    return None


def _with_residuals(formula: Formula) -> Expression:
    """Of the operands of an AND what each says of one attribute, and one residual for all of the rest."""
    operands = formula.operands if isinstance(formula, Call) and formula.function == "cesql.and" else (formula,)
    told: list[Expression] = []
    left: list[Formula] = []
    for operand in operands:
        found = leaf(operand, together=True)
        match found and found.true:
            case And((implied, Residual())):
                told.append(implied)
                left.append(operand)
            case Condition() as condition:
                told.append(condition)
            case _:
                left.append(operand)
    if left:
        told.append(Residual(left[0] if len(left) == 1 else Call("cesql.and", tuple(left))))
    return conjunction(told)


class _Sides:
    """The three sides of a formula's parts. Raises `FilterTooLarge` if there are too many."""

    def __init__(self, formula: Formula) -> None:
        self.count = 0
        self.together = sum(map(compares_a_number, parts(formula))) > MAX_TOLD_APART

    def selecting(self, formula: Formula) -> Expression:
        """Where the whole comes to the Boolean true."""
        if isinstance(formula, Variable):  # nothing is cast
            return Condition(formula.name, Constraint("=", True))
        return self.true(formula)

    def true(self, formula: Formula, *, negated: bool = False) -> Expression:
        """`negated` says that it stands behind NOT, where an Integer is a mistake."""
        joint, operands = _joint(formula)
        if joint == "cesql.and":
            return conjunction(map(self.true, operands))
        if joint == "cesql.or":
            return self._decided(operands, self.true)
        if joint == "cesql.xor":
            left, right = operands
            return _one_of_two(self.true(left), self.false(right), self.false(left), self.true(right))
        if joint == "cesql.not":
            return self.false(operands[0], negated=True)
        return self._leaf(formula, negated).true

    def false(self, formula: Formula, *, negated: bool = False) -> Expression:
        joint, operands = _joint(formula)
        if joint == "cesql.and":
            return self._decided(operands, self.false)
        if joint == "cesql.or":
            return conjunction(map(self.false, operands))
        if joint == "cesql.xor":
            left, right = operands
            return _one_of_two(self.true(left), self.true(right), self.false(left), self.false(right))
        if joint == "cesql.not":
            return self.true(operands[0], negated=True)
        return self._leaf(formula, negated).false

    def defined(self, formula: Formula, *, negated: bool = False) -> Expression:
        joint, operands = _joint(formula)
        if joint in ("cesql.and", "cesql.or"):
            decides = self.false if joint == "cesql.and" else self.true
            # Where the last one decides, and all before it are defined, all are.
            early = self._decided(operands[:-1], decides)
            return disjunction([early, conjunction(map(self.defined, operands))])
        if joint == "cesql.xor":
            return conjunction(map(self.defined, operands))
        if joint == "cesql.not":
            return self.defined(operands[0], negated=True)
        return self._leaf(formula, negated).defined

    def _decided(self, operands: Sequence[Formula], decides: Callable[[Formula], Expression]) -> Expression:
        """One of them decides, and all before it are defined."""
        found: list[Expression] = []
        before: list[Expression] = []
        for place, operand in enumerate(operands):
            found.append(conjunction([*before, decides(operand)]))
            if place < len(operands) - 1:
                before.append(self.defined(operand))
        return disjunction(found)

    def _leaf(self, formula: Formula, negated: bool) -> Leaf:
        self.count += 1
        if self.count > MAX_SIDES:
            raise FilterTooLarge(limit=MAX_SIDES, got=self.count, what="sides of conditions")
        if isinstance(formula, Variable):
            return truth(formula.name, negated=negated)
        if isinstance(formula, Constant):
            return self._constant(formula, negated)
        found = leaf(formula, together=self.together)
        if found is not None:
            return found
        if not variables(formula):
            return self._constant(formula, negated)
        gives = FUNCTIONS[formula.function].gives
        if gives == BOOLS:
            return _computed(formula)
        if gives == INTEGERS and negated:
            return NEVER
        return _computed(Call("cesql.bool", (formula,)))

    def _constant(self, formula: Formula, negated: bool) -> Leaf:
        value = evaluate(formula, lambda _name: None)
        if type(value) is int and negated:
            return NEVER
        value = as_boolean(value)
        if isinstance(value, Failed):
            return NEVER
        return Leaf(Always(value), TRUE, lambda: Always(not value))


def _joint(formula: Formula) -> tuple[str, tuple[Formula, ...]]:
    """How parts are joined, and these; nothing for a condition or a value."""
    if type(formula) is Call and formula.function in _JOINTS:
        return formula.function, formula.operands
    return "", ()


def _one_of_two(*parts: Expression) -> Expression:
    return disjunction([conjunction(parts[:2]), conjunction(parts[2:])])


def _computed(formula: Call) -> Leaf:
    """What comes to a Boolean, and is left to a residual."""
    return Leaf(
        Residual(formula),
        Residual(Call("cesql.defined", (formula,))),
        lambda: Residual(Call("cesql.not", (formula,))),
    )
