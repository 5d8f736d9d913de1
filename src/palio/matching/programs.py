"""Sets of values as flat bytes that the compiled core runs (`native/programs.h` reads what is written here).

A program begins with whether absence is allowed and, for each kind, where its part is. A part is a node:
nothing, everything, flips, or a question with the places of its two branches. All places count bytes from the
beginning. Strings are written as UTF-8, whose bytes order as their characters do; bytes, which the model keeps
as text of the same code points, as Latin-1.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import accumulate
from typing import Any

from palio.matching.leads import GlobBlocks, glob_blocks
from palio.model import texts
from palio.model.automaton import Language
from palio.model.codes import point_of
from palio.model.decision import DecisionNode, Tree
from palio.model.flips import EVERYTHING
from palio.model.lists import Has
from palio.model.questions import TableQuestion
from palio.model.values import Kind
from palio.model.valueset import ValueSet

_NOTHING, _EVERYTHING, _NUMBERS, _TEXTS, _ENDS_WITH, _CONTAINS, _GLOB, _HAS, _PATH = range(9)
_ENCODINGS = {int(Kind.STRING): ("utf-8", "surrogatepass"), int(Kind.BYTES): ("latin-1", "strict")}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_TABLE = 16  # a kind of node, as in `native/tables.h`
_BITS = (1 << 64) - 1
MAX_REMEMBERED = 4_096
# The words that a glob may need, written: its characters take up to four bytes, and a few words each.
_WORDS = [struct.pack("<I", number) for number in range(16 * texts.MAX_GLOB_CHARACTERS)]
# A block of a glob with more segments than these is run by its machine: it would be tried at each place anew.
MAX_TRIED_SEGMENTS = 8


def microseconds(moment: datetime) -> int:
    """Since 1970."""
    return (moment - _EPOCH) // _MICROSECOND


def compiled(values: ValueSet) -> bytes:
    """The program of a set."""
    for kind, part in enumerate(values.parts):
        if type(part) is not tuple:
            assert isinstance(part, DecisionNode)
            head = _LONE_HEADS.get(kind)
            if head is not None and _is_lone_question(values, kind, part):
                writer = _ProgramWriter(head)
                writer.ask(kind, part.atom, _LONE_YES, _LONE_NO)
                return bytes(writer.output)
            return _compiled(values.absent, values.parts)
    return _remembered(values.absent, values.parts)


# A program that asks one question, the commonest of those that are written again for each filter, has this
# before it: the places of its parts, all of them nothing but one, and what is behind either answer.
_LONE_NO, _LONE_YES, _LONE_QUESTION = 32, 36, 40
_LONE_HEADS = {
    kind: struct.pack(
        "<10I", 0, *(_LONE_QUESTION if one == kind else _LONE_NO for one in Kind), _NOTHING, _EVERYTHING
    )
    for kind in _ENCODINGS
}


def _is_lone_question(values: ValueSet, kind: int, node: DecisionNode) -> bool:
    others = (*values.parts[:kind], *values.parts[kind + 1 :])
    return not values.absent and not any(others) and not node.no and node.yes == EVERYTHING[kind]


def _compiled(absent: bool, parts: tuple[Tree, ...]) -> bytes:
    writer = _ProgramWriter()
    writer.table(ValueSet(absent, parts))
    return bytes(writer.output)


# Sets without questions are alike in many filters, and brokers of one process file the same filters.
_remembered = lru_cache(MAX_REMEMBERED)(_compiled)


class _ProgramWriter:
    def __init__(self, head: bytes = b"") -> None:
        self.output = bytearray(head)
        self._known: dict[Any, int] = {}

    def table(self, values: ValueSet) -> int:
        """Absence and the places of the parts; returns where."""
        at = len(self.output)
        self.output += struct.pack("<I7I", values.absent, *[0] * len(Kind))
        for kind, part in enumerate(values.parts):
            place = self._node(kind, part)
            struct.pack_into("<I", self.output, at + 4 + 4 * kind, place)
        return at

    def _node(self, kind: int, tree: Tree) -> int:
        key = (kind, id(tree)) if isinstance(tree, DecisionNode) else (kind, tree)
        if key not in self._known:
            self._known[key] = (
                self._question(kind, tree) if isinstance(tree, DecisionNode) else self._leaf(kind, tree)
            )
        return self._known[key]

    def _leaf(self, kind: int, flips: tuple[Any, ...]) -> int:
        at = len(self.output)
        if not flips:
            self.output += struct.pack("<I", _NOTHING)
        elif kind == Kind.LIST or flips == EVERYTHING[kind]:
            self.output += struct.pack("<I", _EVERYTHING)
        elif kind in _ENCODINGS:
            raw = [text.encode(*_ENCODINGS[kind]) for text in flips]
            places = list(accumulate(map(len, raw), initial=0))
            self.output += struct.pack(f"<II{len(places)}I", _TEXTS, len(raw), *places)
            self._text(b"".join(raw))
        elif kind == Kind.FLOAT:
            self.output += struct.pack(f"<II{len(flips)}d", _NUMBERS, len(flips), *flips)
        else:
            numbers = [microseconds(one) if kind == Kind.TIME else int(one) for one in flips]
            self.output += struct.pack(f"<II{len(flips)}q", _NUMBERS, len(flips), *numbers)
        return at

    def _question(self, kind: int, node: DecisionNode) -> int:
        yes, no = self._node(kind, node.yes), self._node(kind, node.no)
        return self.ask(kind, node.atom, yes, no)

    def ask(self, kind: int, atom: Any, yes: int, no: int) -> int:
        """A question and where its answers lead; returns where it is."""
        elements = self.table(atom.elements) if isinstance(atom, Has) else 0
        at = len(self.output)
        match atom:
            case TableQuestion():
                self.output += struct.pack("<3I", _TABLE, yes, no)
                self._table(atom.table)
            case Has():
                self.output += struct.pack("<4I", _HAS, yes, no, elements)
            case texts.GlobMatches():
                blocks = glob_blocks(atom.pattern)
                if any(len(block.segments) > MAX_TRIED_SEGMENTS for block in blocks.blocks):
                    self.output += struct.pack("<3I", _GLOB, yes, no)
                    self._glob(texts.machine(atom.pattern))
                else:
                    self.output += struct.pack("<3I", _PATH, yes, no)
                    self._path(blocks)
            case texts.EndsWith():
                raw = atom.text.encode(*_ENCODINGS[kind])
                question = _CONTAINS if isinstance(atom, texts.Contains) else _ENDS_WITH
                self.output += struct.pack("<4I", question, yes, no, len(raw))
                self._text(raw)
            case _:
                raise TypeError(f"There is no program for {atom!r}.")
        return at

    def _path(self, glob: GlobBlocks) -> None:
        words = _WORDS
        written = [words[glob.open_begin], words[glob.open_end], words[len(glob.blocks)]]
        for block in glob.blocks:
            parts = []
            for segment in block.segments:
                parts.append(words[len(segment)])
                for run in segment:
                    raw = run.encode("utf-8", "surrogatepass")
                    parts += (words[len(raw)], raw, b"\0\0\0"[: -len(raw) % 4])
            inside = b"".join(parts)
            written += (words[len(inside) // 4], words[len(block.segments)], inside)
        self.output += b"".join(written)

    def _glob(self, machine: texts.Machine) -> None:
        words = machine.last.bit_length() // 64 + 1
        literals = sorted((ord(character), mask) for character, mask in machine.literals.items())
        self.output += struct.pack("<II", words, len(literals))
        places = (machine.stars, machine.borders, machine.borders << 1, machine.tails, machine.anything)
        for mask in (machine.first, machine.last, *places):
            self._mask(mask, words)
        self.output += struct.pack(f"<{len(literals)}I", *[character for character, _ in literals])
        for _, mask in literals:
            self._mask(mask, words)

    def _table(self, language: Language) -> None:
        """Cuts, the class of each ASCII character; of each state where each class leads, and what it says."""
        cuts = [point_of(cut) for cut in language.cuts]
        classes = [bisect_right(cuts, character) - 1 for character in range(128)]
        self.output += struct.pack(f"<II{len(cuts)}I128H", len(language.table), len(cuts), *cuts, *classes)
        cells: list[int] = []
        for state, row in enumerate(language.table):
            settled = all(to == state for to in row)
            cells += (*row, language.accepting[state] | settled << 1)
        self._text(struct.pack(f"<{len(cells)}H", *cells))

    def _mask(self, mask: int, words: int) -> None:
        self.output += struct.pack(f"<{words}Q", *[mask >> (64 * word) & _BITS for word in range(words)])

    def _text(self, raw: bytes) -> None:
        self.output += raw + b"\0" * (-len(raw) % 4)
