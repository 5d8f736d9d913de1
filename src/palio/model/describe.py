"""From a set of values back to the expression that a person would have written.

The present values are described kind by kind; ranges come from the flips, with the shorter of the two ways to
write an end (`> 100` rather than `>= 100.00000000000001`), single holes as `!=`. Where most kinds are allowed
in full, it is shorter to say what is excluded. The description of a set is read back to an equal set.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from palio.model import decision, flips, numberline, questions, texts
from palio.model.conjunction import Conjunction
from palio.model.constraint import IGNORING_CASE, IN_NETWORK, Constraint, prefix
from palio.model.cover import Answers, Term, cover
from palio.model.decision import DecisionNode, Tree
from palio.model.errors import FilterTooLarge
from palio.model.expression import Condition, Expression, Not, conjunction, disjunction, literal, text_of
from palio.model.flips import EVERYTHING, LEAST, NOTHING, Flips
from palio.model.formulas.evaluation import implied
from palio.model.numberline import ValueRange
from palio.model.values import Kind
from palio.model.valueset import PRESENT, ValueSet, part_includes

_OTHERS = (Kind.STRING, Kind.TIME, Kind.BYTES)
# From this many kinds allowed in full, what is excluded is described instead.
_MOSTLY = 4
# Up to this many answers on all ways through a decision tree it is tried to do with fewer.
_FEW_ANSWERS = 24


def describe(attribute: str, values: ValueSet) -> Expression:
    """An expression over one attribute that means the set."""
    values = values.simplified()
    mostly = sum(part == EVERYTHING[kind] for kind, part in enumerate(values.parts)) >= _MOSTLY
    if not values.absent:
        pieces = _all_but(attribute, values) if mostly else list(_present(attribute, values))
        return conjunction(pieces) if mostly else disjunction(pieces)
    if mostly:
        excluded = list(_present(attribute, ~values))
        return Not(disjunction(excluded)) if excluded else conjunction(())
    return disjunction([Condition(attribute, Constraint("absent")), *_present(attribute, values)])


def describe_conjunction(box: Conjunction) -> Expression:
    """An expression that means a conjunction; what its residuals say about attributes is not said again."""
    sides = [describe(name, side) for name, side in said_sides(box).items()]
    return conjunction([*sides, *box.residuals])


def said_sides(box: Conjunction) -> dict[str, ValueSet]:
    """The sides of a conjunction that its residuals do not imply."""
    if not box.residuals:
        return dict(box.sides)
    implications: dict[str, ValueSet] = {}
    for residual in box.residuals:
        for name, side in (implied(residual.formula) or {}).items() if residual.wanted else ():
            implications[name] = implications[name] & side if name in implications else side
    return {
        name: side for name, side in box.sides.items() if name not in implications or side != implications[name]
    }


def _all_but(attribute: str, values: ValueSet) -> list[Expression]:
    """What all must hold of a value that is there: that it is none of those that are excluded."""
    excluded = list(_present(attribute, PRESENT - values))
    unequal = [part for one in excluded for part in _unequal(one)]
    others = [Not(one) for one in excluded if not _unequal(one)]
    exists = [] if unequal else [Condition(attribute, Constraint("exists"))]
    return [*exists, *unequal, *others]


def _unequal(excluded: Expression) -> list[Expression]:
    """`!=` for what is excluded as single values; nothing for anything else."""
    match excluded:
        case Condition(attribute, Constraint("=", operand, None)):
            return [Condition(attribute, Constraint("!=", operand))]
        case Condition(attribute, Constraint("in", operand, None)):
            return [Condition(attribute, Constraint("!=", one)) for one in operand]
        case _:
            return []


def _present(attribute: str, values: ValueSet) -> Iterator[Expression]:
    """Expressions, one for each piece of the set, that are to be joined by `or`."""
    booleans = values.parts[Kind.BOOL]
    if booleans == EVERYTHING[Kind.BOOL]:
        yield Condition(attribute, Constraint("exists", None, Kind.BOOL))
    elif booleans:
        yield Condition(attribute, Constraint("=", booleans == (True,)))
    integers, floats = values.parts[Kind.INT], values.parts[Kind.FLOAT]  # about which there are no questions
    yield from _ranges(attribute, numberline.stretches(integers, floats), None)  # type: ignore[arg-type]
    for kind in _OTHERS:
        part = values.parts[kind]
        if isinstance(part, DecisionNode):
            yield from _terms(attribute, kind, part)
        elif part == EVERYTHING[kind]:
            yield Condition(attribute, Constraint("exists", None, kind))
        elif part:
            yield from _ordered(attribute, kind, part)
    lists = values.parts[Kind.LIST]
    if lists == EVERYTHING[Kind.LIST]:
        yield Condition(attribute, Constraint("exists", None, Kind.LIST))
    elif lists:
        yield from _terms(attribute, Kind.LIST, lists)


# Ranges


def _ordered(attribute: str, kind: Kind, ends: Flips) -> list[Expression]:
    """The pieces of a set of strings, times or bytes."""
    prefixes: list[Expression] = []
    runs = []
    for low, high in flips.intervals(ends):
        if kind is not Kind.TIME and low and (low, high) == (*prefix(kind, low), None)[:2]:
            prefixes.append(Condition(attribute, Constraint("starts with", _outside(kind, low))))
            continue
        below_low = None if low == LEAST[kind] else flips.predecessor(kind, low)
        last = None if high is None else flips.predecessor(kind, high)
        # The least value is only worth writing where it stands alone, as the empty text does.
        at_least = None if low == LEAST[kind] != last else low
        runs.append(ValueRange(*[_outside(kind, end) for end in (at_least, below_low, last, high)]))
    return [*_ranges(attribute, runs, kind), *prefixes]


def _outside(kind: Kind, value: Any) -> Any:
    return value.encode("latin-1") if kind is Kind.BYTES and value is not None else value


def _ranges(attribute: str, runs: list[ValueRange], kind: Kind | None) -> list[Expression]:
    """`kind` is what all the runs are of, or None for numbers, which are of two kinds."""
    singles = [run for run in runs if run.is_single]
    found: list[Expression] = []
    for demanded in dict.fromkeys(run.demanded for run in singles):
        values = tuple(run.at_least for run in singles if run.demanded == demanded)
        one = Constraint("=", values[0], demanded)
        found.append(Condition(attribute, one if len(values) == 1 else Constraint("in", values, demanded)))
    groups: list[list[ValueRange]] = []
    for run in [run for run in runs if not run.is_single]:
        if groups and _single_hole(groups[-1][-1], run):
            groups[-1].append(run)
        else:
            groups.append([run])
    for group in groups:
        found += _hull(attribute, group, kind)
    return found


def _single_hole(left: ValueRange, right: ValueRange) -> bool:
    return left.below is not None and left.below == right.above and left.demanded == right.demanded


def _hull(attribute: str, group: list[ValueRange], kind: Kind | None) -> list[Expression]:
    """Ranges with nothing but single values between them, as one range without these values."""
    first, last, demanded = group[0], group[-1], group[0].demanded
    low = _shorter((">=", first.at_least), (">", first.above))
    high = _shorter(("<=", last.at_most), ("<", last.below))
    if low is None and high is None and demanded is None:
        # Without an end that names the kind, `!=` and `exists` would allow all kinds.
        if kind is None:
            return _all_numbers(attribute, group)
        demanded = kind
    parts: list[Constraint] = []
    if low and high and low[0] == ">=" and high[0] == "<=":
        parts.append(Constraint("between", (low[1], high[1]), demanded))
    else:
        parts += [Constraint(*end, demanded) for end in (low, high) if end]
    parts += [Constraint("!=", left.below, demanded) for left in group[:-1]]
    return [conjunction(Condition(attribute, part) for part in parts or [Constraint("exists", None, demanded)])]


def _all_numbers(attribute: str, group: list[ValueRange]) -> list[Expression]:
    if len(group) > 1:
        return [part for run in group for part in _hull(attribute, [run], None)]
    return [Condition(attribute, Constraint("exists", None, kind)) for kind in (Kind.INT, Kind.FLOAT)]


def _shorter(closed: tuple[str, Any], open_end: tuple[str, Any]) -> tuple[str, Any] | None:
    ways = [way for way in (closed, open_end) if way[1] is not None]
    return min(ways, key=lambda way: len(literal(way[1]))) if ways else None


# Trees


def _terms(attribute: str, kind: Kind, tree: Tree) -> Iterator[Expression]:
    """Terms whose union is a decision tree, without needless answers as far as it is cheap to know them."""
    terms: list[Term] = list(decision.paths(tree))
    if _answers(terms) <= _FEW_ANSWERS:
        terms = _fewer(kind, [_weakened(kind, tree, list(answers), leaf) for answers, leaf in terms])
    else:
        with suppress(FilterTooLarge):
            terms = cover(kind, tree)
            fewest = len(decision.atoms(tree))  # every question must be asked at least once
            others = cover(kind, decision.complement(kind, tree)) if _answers(terms) > fewest else terms
            if _answers(others) < _answers(terms):
                there = Condition(attribute, Constraint("exists", None, kind))
                yield conjunction((there, Not(disjunction(_joined(attribute, kind, others)))))
                return
    yield from _joined(attribute, kind, terms)


def _answers(terms: list[Term]) -> int:
    return sum(len(answers) for answers, _ in terms)


def _joined(attribute: str, kind: Kind, terms: list[Term]) -> list[Expression]:
    # Trees of one set can differ in which question comes to matter where; the order must not show it.
    return sorted((_term(attribute, kind, answers, leaf) for answers, leaf in terms), key=text_of)


def _fewer(kind: Kind, terms: list[Term]) -> list[Term]:
    """Without the terms that lie within the union of the others."""
    kept = list(dict.fromkeys(terms))
    for term in list(kept):
        others: Tree = NOTHING
        for other in kept:
            if other != term:
                others = decision.combine(others, _term_tree(kind, *other), 1)
        if part_includes(kind, others, _term_tree(kind, *term)):
            kept.remove(term)
    return kept


def _weakened(kind: Kind, tree: Tree, answers: list[tuple[Any, bool]], leaf: Flips) -> Term:
    for answer in sorted(answers, key=lambda one: one[1]):
        fewer = tuple(one for one in answers if one != answer)
        if part_includes(kind, tree, _term_tree(kind, fewer, leaf)):
            answers = list(fewer)
    whole = EVERYTHING[kind]
    if leaf != whole and part_includes(kind, tree, _term_tree(kind, tuple(answers), whole)):
        leaf = whole
    return tuple(answers), leaf


def _term_tree(kind: Kind, answers: Answers, leaf: Flips) -> Tree:
    tree: Tree = leaf
    for atom, answer in answers:
        yes, no = (EVERYTHING[kind], NOTHING) if answer else (NOTHING, EVERYTHING[kind])
        tree = decision.combine(tree, DecisionNode(atom, yes, no), 2)
    return tree


def _term(attribute: str, kind: Kind, answers: Answers, leaf: Flips) -> Expression:
    parts: list[Expression] = []
    if leaf != EVERYTHING[kind]:
        parts.append(disjunction(_ordered(attribute, kind, leaf)))
    elif not any(answer for _, answer in answers):
        parts.append(Condition(attribute, Constraint("exists", None, kind)))
    for atom, answer in answers:
        condition = Condition(attribute, _question(kind, atom))
        parts.append(condition if answer else Not(condition))
    return conjunction(parts)


def _question(kind: Kind, atom: Any) -> Constraint:
    match atom:
        case texts.Contains(text):
            return Constraint("contains", _outside(kind, text))
        case texts.EndsWith(text):
            return Constraint("ends with", _outside(kind, text))
        case texts.GlobMatches(pattern):
            return Constraint("matches", pattern)
        case questions.Like(pattern):
            return Constraint("like", pattern)
        case questions.RegexMatches(pattern):
            return Constraint("regex", pattern)
        case questions.IgnoringCase(variants):
            return Constraint(IGNORING_CASE, variants)
        case questions.InNetwork(network):
            return Constraint(IN_NETWORK, network)
        case _:
            return Constraint("has", atom.constraint)
