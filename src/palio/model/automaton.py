"""Deciding about sets of texts exactly: decision trees as finite automata.

All our questions about texts (order, prefix, suffix, substring, patterns) can be answered by machines that read
a text once from left to right with a bounded memory. So a whole decision tree can: run the machines of its
atoms and of its leaves side by side; the tuple of their states is the state of the product. Whether the set
is empty is whether an accepting state can be reached; covering is emptiness of a difference. And since the
*smallest* deterministic automaton of a language is unique, it serves as the identity of the set: two trees
that mean the same have the same one.

Each machine says where the alphabet is to be cut (`cuts`, in the numbers of `codes`): between two cuts it reads
all characters alike. So the machines only read one representative a class.

The product can grow with the product of its parts. `MAX_EFFORT` bounds the work to some milliseconds; past
it `Undecided` is raised and callers fall back to the safe answer. Two filters with a few text conditions of
some twenty characters stay far below.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from typing import Any, ClassVar

import msgspec

from palio.model import decision, flips
from palio.model.codes import ALPHABET, character_of, code_of, cuts_around
from palio.model.decision import DecisionNode, Tree
from palio.model.effort import Effort
from palio.model.flips import Flips
from palio.model.texts import STEP_COST, Contains, EndsWith
from palio.model.values import Kind

# In transitions of single machines.
MAX_EFFORT = 150_000
# In transitions looked at while an automaton is made as small as it can be: about a tenth of a second.
MAX_REFINING = 1_000_000
# A set of texts that is written as points and ranges is turned back into them up to this many ends.
MAX_FLIPS = 2_048

_ALPHABET_SIZE = {Kind.STRING: ALPHABET, Kind.BYTES: 0x100}
_PLEASANT = "xamk-5 XQ0"


class Language(msgspec.Struct, frozen=True):
    """The smallest automaton of a set of texts, its states numbered in the order of a breadth-first walk.

    Class i are the characters from `cuts[i]` up to `cuts[i + 1]`; `table[state][i]` is the next state.
    """

    cuts: tuple[int, ...]
    table: tuple[tuple[int, ...], ...]
    accepting: tuple[bool, ...]


class _Leaf(msgspec.Struct, frozen=True):
    """A leaf as a machine: its state is what was read, as long as that begins some end of an interval."""

    ends: Flips
    cost: ClassVar[int] = STEP_COST

    @property
    def start(self) -> str | bool:
        return self._state("")

    def step(self, state: str | bool, character: str) -> str | bool:
        return state if isinstance(state, bool) else self._state(state + character)

    def _state(self, read: str) -> str | bool:
        place = bisect_left(self.ends, read)
        if place < len(self.ends) and self.ends[place].startswith(read):
            return read
        return flips.contains(self.ends, read)

    def accepts(self, state: str | bool) -> bool:
        return state if isinstance(state, bool) else flips.contains(self.ends, state)

    @property
    def cuts(self) -> set[int]:
        return cuts_around("".join(self.ends))


class _Product:
    """The machines of a tree side by side, and one representative character for each class."""

    def __init__(self, kind: int, tree: Tree) -> None:
        self.tree = tree
        atoms = decision.atoms(tree)
        leaves = dict.fromkeys(one for one in decision.walk(tree) if not isinstance(one, DecisionNode))
        self.machines: list[Any] = atoms + [_Leaf(leaf) for leaf in leaves]
        self.place = {machine: index for index, machine in enumerate(self.machines)}
        cuts = {0}
        for machine in self.machines:
            cuts |= machine.cuts
        self.size = _ALPHABET_SIZE[Kind(kind)]
        self.cuts = sorted(cut for cut in cuts if cut < self.size)
        self.characters = [
            _representative(low, high) for low, high in zip(self.cuts, [*self.cuts[1:], self.size], strict=True)
        ]
        self.start = tuple(machine.start for machine in self.machines)
        self.rows: list[dict[Any, list[Any]]] = [{} for _ in self.machines]
        self.effort = Effort(MAX_EFFORT)

    def successors(self, state: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """The state after each of the characters."""
        self.effort.spend(len(self.characters) * len(self.machines))
        rows = [
            known.get(part) or self._row(machine, part, known)
            for machine, part, known in zip(self.machines, state, self.rows, strict=True)
        ]
        return list(zip(*rows, strict=True))

    def _row(self, machine: Any, part: Any, known: dict[Any, list[Any]]) -> list[Any]:
        self.effort.spend(machine.cost * len(self.characters))
        row = known[part] = [machine.step(part, character) for character in self.characters]
        return row

    def accepts(self, state: tuple[Any, ...]) -> bool:
        tree = self.tree
        while isinstance(tree, DecisionNode):
            tree = tree.yes if tree.atom.accepts(state[self.place[tree.atom]]) else tree.no
        leaf = _Leaf(tree)
        return leaf.accepts(state[self.place[leaf]])


def _representative(low: int, high: int) -> str:
    return next((one for one in _PLEASANT if low <= ord(one) < high), character_of(low))


def example(kind: int, tree: Tree) -> str | None:
    """A shortest member, or None if there is none. Raises `Undecided`."""
    if not isinstance(tree, DecisionNode):
        return _plain_example(kind, tree)
    product = _Product(kind, tree)
    if product.accepts(product.start):
        return ""
    came_from: dict[Any, tuple[Any, str]] = {product.start: (None, "")}
    frontier = [product.start]
    while frontier:
        following = []
        for state in frontier:
            for character, reached in zip(product.characters, product.successors(state), strict=True):
                if reached in came_from:
                    continue
                came_from[reached] = (state, character)
                if product.accepts(reached):
                    return _read_back(came_from, reached)
                following.append(reached)
        frontier = following
    return None


def _read_back(came_from: dict[Any, tuple[Any, str]], state: Any) -> str:
    characters = []
    while state is not None:
        state, character = came_from[state]
        characters.append(character)
    return "".join(reversed(characters))


def _plain_example(kind: int, ends: Flips) -> str | None:
    if not ends:
        return None
    low = ends[0]
    pleasant = low.rstrip("\0") + "x"
    return pleasant if low.endswith("\0") and flips.contains(ends, pleasant) else str(low)


def language(kind: int, tree: Tree) -> Language:
    """The smallest automaton of the tree's set. Raises `Undecided`."""
    if isinstance(tree, DecisionNode) and isinstance(tree.atom, EndsWith):
        if tree.yes == flips.EVERYTHING[kind] and not tree.no and tree.atom.text:
            return _of_one_text(kind, tree.atom)
    return _of_product(kind, tree)


def _of_product(kind: int, tree: Tree) -> Language:
    """That of any tree."""
    product = _Product(kind, tree)
    numbers = {product.start: 0}
    table: list[tuple[int, ...]] = []
    accepting: list[bool] = []
    for state in (waiting := [product.start]):
        row = []
        for reached in product.successors(state):
            if reached not in numbers:
                numbers[reached] = len(numbers)
                waiting.append(reached)
            row.append(numbers[reached])
        table.append(tuple(row))
        accepting.append(product.accepts(state))
    return smallest(product.cuts, table, accepting)


def _of_one_text(kind: int, atom: EndsWith) -> Language:
    """That of a lone "ends with" or "contains": its states are how much of the text was read last.

    It is the smallest already. After so much of the text, a character leads where it leads from the longest end
    of this that the text begins with, unless it is the text's next one. So each row is another one with one
    place changed.
    """
    text = atom.text
    cuts = sorted({0} | {cut for cut in atom.cuts if cut < _ALPHABET_SIZE[Kind(kind)]})
    column = {character: bisect_left(cuts, code_of(character)) for character in text}
    Effort(MAX_EFFORT).spend(len(text) * len(cuts))
    rows: list[list[int]] = []
    shorter = 0  # that longest end
    for read, character in enumerate(text):
        row = rows[shorter].copy() if read else [0] * len(cuts)
        at = column[character]
        shorter = row[at]
        row[at] = read + 1
        rows.append(row)
    rows.append([len(text)] * len(cuts) if isinstance(atom, Contains) else rows[shorter])
    return _numbered(cuts, rows.__getitem__, len(text).__eq__, 0)


def _blocks(table: list[tuple[int, ...]], accepting: list[bool]) -> list[int]:
    """For each state the number of its block: those of one block accept the same. Raises `Undecided`.

    "Accepting or not" is refined until the states of a block all lead to the same blocks. Only states that lead
    to one whose block has changed are looked at again, and when a block falls apart its largest part keeps the
    number: so a state is looked at a few times only, however long the texts are.
    """
    effort = Effort(MAX_REFINING)
    before: list[list[int]] = [[] for _ in table]
    for state, row in enumerate(table):
        for to in set(row):
            before[to].append(state)
    block = [int(flag) for flag in accepting]
    members = [{state for state, flag in enumerate(accepting) if flag is side} for side in (False, True)]
    doubtful = set(range(len(table)))
    while doubtful:
        effort.spend(len(doubtful) * len(table[0]))
        affected: dict[int, list[int]] = {}
        for state in doubtful:
            affected.setdefault(block[state], []).append(state)
        leaving: list[list[int]] = []
        for number, states in affected.items():
            parts: dict[tuple[int, ...], list[int]] = {}
            for state in states:
                parts.setdefault(tuple([block[to] for to in table[state]]), []).append(state)
            calm = members[number].difference(states)  # they all lead where they led before
            if calm:
                parts.setdefault(tuple([block[to] for to in table[next(iter(calm))]]), []).extend(calm)
            largest = max(parts.values(), key=len)
            leaving += [part for part in parts.values() if part is not largest]
        doubtful = set()
        for part in leaving:
            members[block[part[0]]].difference_update(part)
            members.append(set(part))
            for state in part:
                block[state] = len(members) - 1
                doubtful.update(before[state])
    return block


def smallest(cuts: list[int], table: list[tuple[int, ...]], accepting: list[bool]) -> Language:
    """The automaton with one state for each block. Raises `Undecided`."""
    different = dict.fromkeys(zip(*table, strict=True))  # most characters are read like others
    block = _blocks(list(zip(*different, strict=True)), accepting)
    member = {number: state for state, number in reversed(list(enumerate(block)))}

    def row_of(number: int) -> list[int]:
        return [block[to] for to in table[member[number]]]

    return _numbered(cuts, row_of, lambda number: accepting[member[number]], block[0])


def _numbered(
    cuts: list[int], row_of: Callable[[int], list[int]], accepts: Callable[[int], bool], start: int
) -> Language:
    """The same automaton with its states in the order in which they are met; what is read alike is joined."""
    order = [start]
    place = {start: 0}
    rows: list[list[int]] = []
    for state in order:
        rows.append(row_of(state))
        for to in rows[-1]:
            if to not in place:
                place[to] = len(order)
                order.append(to)
    columns = list(zip(*rows, strict=True))
    kept = [i for i in range(len(columns)) if i == 0 or columns[i] != columns[i - 1]]
    return Language(
        cuts=tuple(cuts[i] for i in kept),
        table=tuple(tuple(place[row[i]] for i in kept) for row in rows),
        accepting=tuple(accepts(state) for state in order),
    )


def as_flips(kind: int, language: Language) -> Flips | None:
    """The set as points and ranges, or None if it is not a (short) list of them.

    It is one iff no state but the two final ones, from which everything or nothing is accepted, can be
    reached from itself, for then every branch ends at a text that an interval can name.
    """
    verdict = {
        state: language.accepting[state]
        for state, row in enumerate(language.table)
        if all(to == state for to in row)
    }
    highs = (*language.cuts[1:], _ALPHABET_SIZE[Kind(kind)])
    widths = [high - low for low, high in zip(language.cuts, highs, strict=True)]
    if _texts_to_name(language, widths, verdict) > MAX_FLIPS * 4:
        return None
    ends: list[str] = []
    inside = False
    waiting = [(0, "")]
    while waiting:
        state, read = waiting.pop()
        if language.accepting[state] != inside:
            ends.append(read)
            inside = not inside
        if state not in verdict:
            waiting += [
                (to, read + character_of(code))
                for low, high, to in reversed([*zip(language.cuts, highs, language.table[state], strict=True)])
                for code in reversed(range(low, low + 1 if to in verdict else high))
            ]
    return tuple(ends) if len(ends) <= MAX_FLIPS else None


def _texts_to_name(language: Language, widths: list[int], verdict: dict[int, bool]) -> float:
    """How many texts lead to where it is decided, with all that they begin with; infinite with a loop."""
    counts: dict[int, float] = dict.fromkeys(verdict, 1)
    unfinished = [0]
    above: set[int] = set()
    while unfinished:
        state = unfinished[-1]
        row = language.table[state]
        waiting = [to for to in set(row) if to not in counts]
        if not waiting:
            counts[state] = 1 + sum(
                1 if to in verdict else width * counts[to] for to, width in zip(row, widths, strict=True)
            )
            unfinished.pop()
            above.discard(state)
            continue
        above.add(state)
        if not above.isdisjoint(waiting):
            return math.inf
        unfinished += waiting
    return counts[0]
