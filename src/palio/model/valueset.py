"""`ValueSet`: a set of values that an attribute may have. All reasoning about values is here.

A set has eight parts: whether the attribute may be absent, and for each kind of value which ones may be
there. Kinds never mix, so every operation works part by part. A part is a sorted tuple of flips (`flips`), or,
where "ends with", "contains", patterns or "has" are involved, a decision tree whose leaves are such tuples
(`decision`). Sets are closed under intersection, union and complement.

What is guaranteed:

- membership is exact and cannot fail;
- `includes` and `is_empty` say yes only when that is proven; they say no where a combination of text
  conditions outgrows the bounds of `automaton` (or is really not so);
- equal sets are equal and hash alike however they were made, within those same bounds.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from palio.model import automaton, decision, flips, lists, questions, texts
from palio.model.decision import DecisionNode, Tree
from palio.model.effort import Undecided
from palio.model.errors import FilterTooLarge
from palio.model.flips import EVERYTHING, NOTHING, Flips
from palio.model.values import KIND_OF_TYPE, Kind, Value

_BYTES, _LIST = int(Kind.BYTES), int(Kind.LIST)
_ASKED = (Kind.STRING, Kind.BYTES, Kind.LIST)  # whose values there can be questions about

# Whether a question can be dropped is only tried where there are few of them: it is for the reader's sake.
MAX_ATOMS_TO_DROP = 6

# Patterns that may turn out to be points and ranges; they are kept as such if these are few, for a table is
# quicker to ask and to reason about than a long list.
_SIMPLER = (texts.GlobMatches, questions.Like, questions.RegexMatches)
MAX_ENDS = 16

# In which kind an example is looked for first: what people find easiest to read.
_EXAMPLE_ORDER = (Kind.INT, Kind.FLOAT, Kind.STRING, Kind.BOOL, Kind.TIME, Kind.BYTES, Kind.LIST)


class ValueSet:
    """An immutable set of values; None stands for absence."""

    __slots__ = ("_identity", "absent", "is_simple", "parts")

    def __init__(self, absent: bool, parts: tuple[Tree, ...]) -> None:
        self.absent = absent
        self.parts = parts
        self._identity: tuple[Any, ...] | None = None
        self.is_simple = False  # whether needless questions are known to be gone

    @staticmethod
    def of(parts: dict[int, Tree], absent: bool = False) -> ValueSet:
        """The set with these parts and nothing else."""
        placed: list[Tree] = [NOTHING] * len(EVERYTHING)  # len(Kind) takes its time
        for kind, part in parts.items():
            placed[kind] = part
        return ValueSet(absent, tuple(placed))

    # Membership

    def __contains__(self, value: Value | None) -> bool:
        if value is None:
            return self.absent
        kind = KIND_OF_TYPE[type(value)]
        part = self.parts[kind]
        if kind == _BYTES:
            value = value.decode("latin-1")  # type: ignore[union-attr]
        leaf = part if type(part) is tuple else decision.leaf_for(part, value)
        # Lists have no order; behind all questions it is everything or nothing.
        return bool(leaf) if kind == _LIST else bisect_right(leaf, value) & 1 == 1

    # Operations

    def __and__(self, other: ValueSet) -> ValueSet:
        if self is other:
            return self
        # Most parts are nothing or the same, and need no combining.
        pairs = zip(self.parts, other.parts, strict=True)
        parts = [a if a is b else a and b and decision.combine(a, b, 2) for a, b in pairs]
        return ValueSet(self.absent and other.absent, tuple(parts))

    def __or__(self, other: ValueSet) -> ValueSet:
        if self is other:
            return self
        pairs = zip(self.parts, other.parts, strict=True)
        parts = [decision.combine(a, b, 1) if a and b else a or b for a, b in pairs]
        return ValueSet(self.absent or other.absent, tuple(parts))

    def __invert__(self) -> ValueSet:
        parts = [decision.complement(kind, part) for kind, part in enumerate(self.parts)]
        return ValueSet(not self.absent, tuple(parts))

    def __sub__(self, other: ValueSet) -> ValueSet:
        return self & ~other

    def only(self, *kinds: Kind) -> ValueSet:
        """The present values of these kinds."""
        return ValueSet.of({kind: self.parts[kind] for kind in kinds})

    @property
    def asks(self) -> bool:
        """Whether text or list questions are involved: then decisions are dear."""
        _, _, _, strings, _, texts, several = self.parts  # there are none about other kinds
        return type(strings) is not tuple or type(texts) is not tuple or type(several) is not tuple

    # Decisions

    def is_empty(self) -> bool:
        """True iff it is proven that there is no value in the set, and absence is not in it."""
        if self.absent:
            return False
        for kind, part in enumerate(self.parts):
            if part and (type(part) is tuple or not _proven_empty(kind, part)):
                return False
        return True

    def is_everything(self) -> bool:
        return self.absent and (~self).is_empty()

    def includes(self, other: ValueSet) -> bool:
        """True iff it is proven that every value of the other set is in this one."""
        if self is other:
            return True
        if other.absent and not self.absent:
            return False
        parts = self.parts
        for kind, theirs in enumerate(other.parts):
            # Most are nothing, or the same.
            if theirs and theirs is not (mine := parts[kind]) and not part_includes(kind, mine, theirs):
                return False
        return True

    def overlaps(self, other: ValueSet) -> bool:
        """False iff it is proven that no value (and no absence) is in both."""
        return (self.absent and other.absent) or any(
            NOTHING not in (mine, theirs) and _overlap(kind, mine, theirs)
            for kind, (mine, theirs) in enumerate(zip(self.parts, other.parts, strict=True))
        )

    def example(self) -> Value | None:
        """A value of the set that reads well, or None if there is none (then it may still hold absence).

        Raises `Undecided` where none is found within the bounds.
        """
        for kind in _EXAMPLE_ORDER:
            part = self.parts[kind]
            if part == NOTHING:
                continue
            found: Any
            if kind not in _ASKED:
                found = _ordered_example(kind, part)  # type: ignore[arg-type]
            elif (found := _example(kind, part)) is not None and kind is Kind.BYTES:
                found = found.encode("latin-1")
            if found is not None:
                return found  # type: ignore[no-any-return]
        return None

    # Identity

    def simplified(self) -> ValueSet:
        """The same set without questions that cannot make a difference."""
        if self.is_simple or not self.asks:
            self.is_simple = True
            return self
        simple = ValueSet(self.absent, tuple(_simplified(kind, part) for kind, part in enumerate(self.parts)))
        simple.is_simple = True
        return simple

    def _identify(self) -> tuple[Any, ...]:
        if self._identity is None:
            self._identity = (self.absent, *[_identity(kind, part) for kind, part in enumerate(self.parts)])
        return self._identity

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ValueSet):
            return NotImplemented
        return self is other or self._identify() == other._identify()

    def __hash__(self) -> int:
        return hash(self._identify())

    def __repr__(self) -> str:
        return f"ValueSet(absent={self.absent}, parts={self.parts!r})"


ANYTHING = ValueSet(True, tuple(EVERYTHING[kind] for kind in Kind))
PRESENT = ValueSet(False, ANYTHING.parts)
ABSENT = ValueSet.of({}, absent=True)
EMPTY = ValueSet.of({})
SCALARS = PRESENT.only(*[kind for kind in Kind if kind is not Kind.LIST])


def union(sets: Iterable[ValueSet]) -> ValueSet:
    """The union of many sets, halving, so that a thousand small ones cost no square."""
    waiting = list(sets) or [EMPTY]
    while len(waiting) > 1:
        pairs = zip(waiting[::2], waiting[1::2], strict=False)
        waiting = [a | b for a, b in pairs] + (waiting[-1:] if len(waiting) % 2 else [])
    return waiting[0]


def _example(kind: int, tree: Tree) -> Any:
    return lists.example(tree, SCALARS) if kind == Kind.LIST else automaton.example(kind, tree)


def _proven_empty(kind: int, tree: Tree) -> bool:
    if isinstance(tree, DecisionNode) and _is_plain_question(kind, tree) and _is_endless(tree.atom):
        return False
    try:
        return _example(kind, tree) is None
    except (Undecided, FilterTooLarge):
        return False


def part_includes(kind: int, mine: Tree, theirs: Tree) -> bool:
    """`includes` for the parts of one kind."""
    if theirs == NOTHING or mine is theirs or mine == EVERYTHING[kind]:
        return True
    if type(mine) is tuple and type(theirs) is tuple:
        return mine != NOTHING and flips.combine(mine, theirs, 2) == theirs
    if mine == theirs:
        return True
    if _is_lone(mine) and _is_lone(theirs):
        return texts.implies(theirs.atom, mine.atom)  # type: ignore[union-attr]
    try:
        outside = decision.combine(theirs, decision.complement(kind, mine), 2)
    except FilterTooLarge:
        return False
    return outside == NOTHING or (isinstance(outside, DecisionNode) and _proven_empty(kind, outside))


def _overlap(kind: int, mine: Tree, theirs: Tree) -> bool:
    try:
        both = decision.combine(mine, theirs, 2)
    except FilterTooLarge:
        return True
    return both != NOTHING and not (isinstance(both, DecisionNode) and _proven_empty(kind, both))


def _simplified(kind: int, tree: Tree) -> Tree:
    if not isinstance(tree, DecisionNode) or _is_plain_question(kind, tree):
        return tree
    atoms = decision.atoms(tree)
    if kind == Kind.LIST and len(atoms) <= MAX_ATOMS_TO_DROP and (joined := lists.joined_by_or(tree)):
        return lists.either(lists.without_needless(joined))
    if kind != Kind.LIST:
        plain = _without_questions(kind, tree)
        if plain is not None:
            return plain
    elif _proven_empty(kind, tree):
        return NOTHING
    if len(atoms) > MAX_ATOMS_TO_DROP:
        return tree
    for atom in atoms:
        for answer in (True, False):
            shorter = decision.assume(tree, atom, answer)
            if part_includes(kind, shorter, tree) and part_includes(kind, tree, shorter):
                tree = shorter
                break
    return tree


def _without_questions(kind: int, tree: Tree) -> Flips | None:
    """The set as points and ranges alone, where it is known to be that."""
    leaves = [leaf for _, leaf in decision.paths(tree)]
    spans = [span for leaf in leaves for span in flips.intervals(leaf)]
    if all(high == flips.successor(kind, low) for low, high in spans):
        return flips.points(
            kind, [low for low, _ in spans if flips.contains(decision.leaf_for(tree, low), low)]
        )
    try:
        ends = automaton.as_flips(kind, automaton.language(kind, tree))
    except Undecided:
        return None
    return None if ends is not None and len(ends) > MAX_ENDS and _asks_tables(tree) else ends


def _asks_tables(tree: Tree) -> bool:
    return any(isinstance(atom, questions.TableQuestion) for atom in decision.atoms(tree))


def _is_lone(tree: Tree) -> bool:
    """Whether the set is what satisfies one "ends with" or "contains": the most frequent tree by far."""
    return (
        isinstance(tree, DecisionNode)
        and isinstance(tree.atom, texts.EndsWith)
        and (tree.yes, tree.no) == (EVERYTHING[Kind.STRING], NOTHING)
    )


def _is_plain_question(kind: int, tree: DecisionNode) -> bool:
    """A lone "ends with", "contains" or "has", or its opposite: by far most trees, and nothing to simplify.

    What ignores case, and what is in a network, may be a list of texts, but nobody would like to read that.
    """
    if (tree.yes, tree.no) not in ((EVERYTHING[kind], NOTHING), (NOTHING, EVERYTHING[kind])):
        return False
    return not isinstance(tree.atom, _SIMPLER) or _is_endless(tree.atom)


def _is_endless(atom: Any) -> bool:
    """Whether it is seen at once that it asks for some texts, not for all, and for no points and ranges."""
    if isinstance(atom, texts.EndsWith):
        return atom.text != ""
    return isinstance(atom, (texts.GlobMatches, questions.Like)) and atom.is_endless


class _ListIdentity:
    """Equality of sets of lists is mutual inclusion; the hash is that of a fingerprint that both share."""

    __slots__ = ("fingerprint", "tree")

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.fingerprint = lists.singles(tree, SCALARS)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _ListIdentity)
            and self.fingerprint == other.fingerprint
            and part_includes(Kind.LIST, self.tree, other.tree)
            and part_includes(Kind.LIST, other.tree, self.tree)
        )

    def __hash__(self) -> int:
        return hash(self.fingerprint)


def _identity(kind: int, tree: Tree) -> Any:
    tree = _simplified(kind, tree)
    if not isinstance(tree, DecisionNode):
        return tree
    try:
        if kind == Kind.LIST:
            return _ListIdentity(tree)
        language = automaton.language(kind, tree)
    except (Undecided, FilterTooLarge):
        return tree
    # What is kept as a question may still be what others have as points and ranges.
    ends = automaton.as_flips(kind, language) if _asks_tables(tree) else None
    return language if ends is None else ends


def _ordered_example(kind: Kind, ends: Flips) -> bool | int | float | datetime:
    zero: Any = {Kind.INT: 0, Kind.FLOAT: 0.0}.get(kind)
    if zero is not None and flips.contains(ends, zero):
        return zero  # type: ignore[no-any-return]
    low, high = flips.intervals(ends)[0]
    if low == flips.LEAST[kind] and high is not None:
        return flips.predecessor(kind, high)  # type: ignore[return-value]
    return low  # type: ignore[no-any-return]
