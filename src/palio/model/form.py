"""The form of filters and advertisements: how they travel between brokers and are stored. Structure, not text.

Text is for people: it is read once, at the door, under the parser's limits. What was accepted there, narrowed
to somebody's rights, merged with others or handed over, is the normal form of sets of values, and that is
written as it is, in MessagePack:

    filter         = [VERSION, conjunction …]
    advertisement  = [VERSION, sides]
    conjunction    = sides, and behind them, in the same list, [residual …] where there are such
    residual       = [wanted, formula]
    formula        = name | [0, value] | [function, formula …]
    sides          = [name, set, name, set …]        in the order of the names
    set            = [flags, part …]                 whether absence is in it; and of each kind of values
                                                     nothing (0), everything (1), or a part that follows (2)
    part           = [value …]                       where membership flips (`flips`), or a tree
    tree           = [question, operand, yes, no]    of texts and lists (`decision`); its leaves are parts

1. What is written can be read: both ways apply the same bounds, in the same numbers. Writing raises
   `FilterTooLarge` past them, so whoever asks for the form before something is accepted knows that it travels.
2. Reading trusts nothing: whatever the bytes are, the answer is a form or `UnreadableForm`. It demands all
   that the rest of the model relies on: flips in order, questions in order and none twice, no side that is
   empty or everything on the face of it.
3. Reading applies no limit of the parser, and does not simplify again what was simplified by the writer. 4.
Of one filter the bytes are always the same; reading and writing them again does not change them. 5.
Questions, residuals and functions may be added without another version: what a broker does not know is
unreadable to it, and it takes
   a neighbour's row with such a thing for everything, which costs traffic and loses nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NoReturn, TypeAlias

import msgspec

from palio.model import decision, questions, texts
from palio.model.conjunction import Conjunction, in_order
from palio.model.constraint import IGNORING_CASE, IN_NETWORK, TEXT_OPERATORS, Constraint, having
from palio.model.decision import MAX_NODES, DecisionNode, Tree
from palio.model.effort import spend
from palio.model.errors import FilterError, FilterTooLarge
from palio.model.flips import EVERYTHING, NOTHING
from palio.model.formulas.formula import Call, Constant, Formula, Variable
from palio.model.formulas.functions import FUNCTIONS
from palio.model.formulas.residual import MAX_DEPTH, MAX_PARTS, MAX_RESIDUALS, Residual, check_number
from palio.model.lists import Has
from palio.model.networks import canonical_network
from palio.model.normal import MAX_CONJUNCTIONS
from palio.model.regular import STATE_STEPS
from palio.model.values import FLOAT_MAX, INT_MAX, INT_MIN, MAX_ATTRIBUTES, MAX_NAME_CHARACTERS, Kind
from palio.model.valueset import ValueSet

VERSION = 1
# A filter of as many characters as the parser takes has about twice as many bytes, since each value of a list
# is two flips. What expands beyond that is refused at the door, and a frame has room for it many times over.
MAX_BYTES = 1_048_576
# As many as a notification can have.
MAX_SIDES = MAX_ATTRIBUTES

# States of tables that are made when a form is read, of questions that differ: eight filters of people that the
# parser took, merged into one.
MAX_TABLE_STATES = 65_536

_ENDS_WITH, _CONTAINS, _MATCHES, _HAS, _LIKE, _REGEX, _IGNORING_CASE, _IN_NETWORK = range(1, 9)
_CONSTANT = 0
_ELEMENT_OPERATORS = frozenset(
    ("=", "!=", "<", "<=", ">", ">=", "in", "between", *TEXT_OPERATORS, IGNORING_CASE, IN_NETWORK)
)
# More than any character has; four in Unicode 15.
_MOST_VARIANTS = 16
_TYPES: tuple[type, ...] = (bool, int, float, str, datetime, str, str)
_INT, _FLOAT, _TIME, _BYTES, _LIST = (int(k) for k in (Kind.INT, Kind.FLOAT, Kind.TIME, Kind.BYTES, Kind.LIST))
_KINDS = frozenset(map(int, Kind))
_ASKED = frozenset((int(Kind.STRING), _BYTES, _LIST))
# For each kind, its two bits of the flags when all of it is in the set, and when a part follows.
_WHOLE = tuple(1 << 1 + 2 * kind for kind in range(len(EVERYTHING)))
_FOLLOWS = tuple(2 << 1 + 2 * kind for kind in range(len(EVERYTHING)))
_PRESENT = sum(_WHOLE)
_MOST_FLAGS = 1 << 1 + 2 * len(EVERYTHING)

_Sides: TypeAlias = Mapping[str, ValueSet]
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


class UnreadableForm(FilterError):
    """Bytes that are no filter and no advertisement, or one of another version."""

    reason: str
    sentence = "This is no filter as brokers write it: {reason}"


class _TablesRead:
    """How many states the tables of a form have; each question counts once."""

    def __init__(self) -> None:
        self.states = 0
        self._seen: set[questions.TableQuestion] = set()

    def add(self, atom: questions.TableQuestion) -> None:
        if atom not in self._seen:
            self._seen.add(atom)
            states = len(atom.table.table)
            self.states += states
            spend(states * STATE_STEPS)

    def count(self, values: ValueSet) -> None:
        for part in values.parts:
            for atom in decision.atoms(part) if type(part) is not tuple else ():
                if isinstance(atom, questions.TableQuestion):
                    self.add(atom)
                elif isinstance(atom, Has) and atom.elements.asks:
                    self.count(atom.elements)


def encode_conjunctions(conjunctions: Sequence[Conjunction]) -> bytes:
    """The form of a filter. Raises `FilterTooLarge`."""
    if len(conjunctions) > MAX_CONJUNCTIONS:
        raise FilterTooLarge(limit=MAX_CONJUNCTIONS, got=len(conjunctions))
    _require_few_states([box.sides for box in conjunctions])
    return _bounded([VERSION, *[_written_box(box) for box in conjunctions]])


def decode_conjunctions(data: bytes) -> tuple[Conjunction, ...]:
    """The filter of some bytes. Raises `UnreadableForm`."""
    boxes = _contents(data)
    if len(boxes) > MAX_CONJUNCTIONS + 1:
        _wrong("it has too many conjunctions.")
    tables = _TablesRead()
    return tuple([_read_box(box, tables) for box in boxes[1:]])


def encode_sides(sides: _Sides) -> bytes:
    """The form of an advertisement. Raises `FilterTooLarge`."""
    _require_few_states([sides])
    return _bounded([VERSION, _written_sides(sides)])


def decode_sides(data: bytes) -> dict[str, ValueSet]:
    """The advertisement of some bytes. Raises `UnreadableForm`."""
    contents = _contents(data)
    if len(contents) != 2:
        _wrong("an advertisement is one list of sides.")
    return _read_sides(contents[1], _TablesRead(), closed=True)


# Writing


def _bounded(contents: list[Any]) -> bytes:
    form = _encode(contents)
    if len(form) > MAX_BYTES:
        raise FilterTooLarge(limit=MAX_BYTES, got=len(form), what="bytes once it is written out")
    return form


def _require_few_states(several: Iterable[_Sides]) -> None:
    tables = _TablesRead()
    for sides in several:
        for side in sides.values():
            if side.asks:
                tables.count(side)
    if tables.states > MAX_TABLE_STATES:
        raise FilterTooLarge(limit=MAX_TABLE_STATES, got=tables.states, what="states of patterns")


def _written_box(box: Conjunction) -> list[Any]:
    sides = _written_sides(box.sides)
    if not box.residuals:
        return sides
    check_number(len(box.residuals))
    return [*sides, [[residual.wanted, _written_formula(residual.formula)] for residual in box.residuals]]


def _written_formula(formula: Formula) -> Any:
    match formula:
        case Variable(name):
            return name
        case Constant(value):
            return [_CONSTANT, value]
        case Call(function, operands):
            return [function, *map(_written_formula, operands)]


def _written_sides(sides: _Sides) -> list[Any]:
    if len(sides) > MAX_SIDES:
        raise FilterTooLarge(limit=MAX_SIDES, got=len(sides), what="attributes")
    written: list[Any] = []
    for name, side in sides.items():
        flags = int(side.absent)
        parts: list[Any] = []
        for kind, part in enumerate(side.parts):
            if part == NOTHING:
                continue
            if part == EVERYTHING[kind]:
                flags |= _WHOLE[kind]
                continue
            flags |= _FOLLOWS[kind]
            parts.append(part if type(part) is tuple else _written_tree(part))
        written += (name, [flags, *parts])
    return written


def _written_tree(tree: Tree) -> Any:
    if not isinstance(tree, DecisionNode):
        return tree
    atom = tree.atom
    operand: Any
    match atom:
        case texts.Contains(text):
            question, operand = _CONTAINS, text
        case texts.EndsWith(text):
            question, operand = _ENDS_WITH, text
        case texts.GlobMatches(pattern):
            question, operand = _MATCHES, pattern
        case questions.Like(pattern):
            question, operand = _LIKE, pattern
        case questions.RegexMatches(pattern):
            question, operand = _REGEX, pattern
        case questions.IgnoringCase(variants):
            question, operand = _IGNORING_CASE, variants
        case questions.InNetwork(network):
            question, operand = _IN_NETWORK, network
        case Has(_, constraint):
            question, operand = _HAS, _written_element(constraint)
        case _:
            raise AssertionError(f"no form is known for {atom!r}")
    return question, operand, _written_tree(tree.yes), _written_tree(tree.no)


def _written_element(element: Constraint) -> tuple[Any, ...]:
    operand = _written_element(element.operand) if element.operator == "not" else element.operand
    return element.operator, operand, element.demanded


# Reading


def _wrong(reason: str) -> NoReturn:
    raise UnreadableForm(reason)


def _contents(data: bytes) -> list[Any]:
    if len(data) > MAX_BYTES:
        _wrong(f"it has {len(data):,} bytes, and the limit is {MAX_BYTES:,}.")
    try:
        contents = _decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError) as problem:
        raise UnreadableForm(f"{problem}.") from None
    if type(contents) is not list or not contents or type(contents[0]) is not int:
        _wrong("it does not begin with its version.")
    if contents[0] != VERSION:
        _wrong(f"it has version {contents[0]}, and this Palio knows version {VERSION}.")
    return contents


def _read_box(written: Any, tables: _TablesRead) -> Conjunction:
    if type(written) is not list or not len(written) % 2:
        return Conjunction(_read_sides(written, tables, closed=False))
    *sides, residuals = written
    if type(residuals) is not list or not 0 < len(residuals) <= MAX_RESIDUALS:
        _wrong("residuals are a list, and not too many.")
    found = tuple([_read_residual(one) for one in residuals])
    if in_order(found) != found or len({one.formula for one in found}) != len(found):
        _wrong("its residuals are not in their order.")
    return Conjunction(_read_sides(sides, tables, closed=False), found)


def _read_residual(written: Any) -> Residual:
    if type(written) is not list or len(written) != 2 or type(written[0]) is not bool:
        _wrong("a residual is a formula, and whether it is to be true.")
    formula = _read_formula(written[1], [MAX_PARTS], MAX_DEPTH)
    if type(formula) is not Call:
        _wrong("a residual computes something.")
    return Residual(formula, written[0])


def _read_formula(written: Any, left: list[int], depth: int) -> Formula:
    """`left` is how many parts there may still be, `depth` how many levels."""
    left[0] -= 1
    if left[0] < 0 or not depth:
        _wrong("a formula is too large.")
    if type(written) is str:
        if not 0 < len(written) <= MAX_NAME_CHARACTERS:
            _wrong("a formula speaks of an attribute that has no name.")
        return Variable(written)
    if type(written) is not list or len(written) < 2:
        _wrong("a formula is a name, a constant or a function.")
    head = written[0]
    if type(head) is int and head == _CONSTANT and len(written) == 2:
        return Constant(_read_scalar(written[1]))
    function = FUNCTIONS.get(head) if type(head) is str else None
    if function is None or not function.least <= len(written) - 1 <= function.most:
        _wrong("a function is not known.")
    return Call(head, tuple([_read_formula(one, left, depth - 1) for one in written[1:]]))


def _read_sides(written: Any, tables: _TablesRead, *, closed: bool) -> dict[str, ValueSet]:
    """`closed` are those of an advertisement: every one allows absence, and may allow everything."""
    if type(written) is not list or len(written) % 2 or len(written) > 2 * MAX_SIDES:
        _wrong("sides are a list of names and sets.")
    sides: dict[str, ValueSet] = {}
    before = ""
    for at in range(0, len(written), 2):
        name, values = written[at], written[at + 1]
        if type(name) is not str or not before < name or len(name) > MAX_NAME_CHARACTERS:
            _wrong("its names are not in their order.")
        before = name
        if type(values) is not list or not values or type(values[0]) is not int:
            _wrong(f"what {name!r} may be is no set.")
        flags = values[0]
        if not 0 < flags < _MOST_FLAGS or (flags == 1 if closed else flags == _PRESENT + 1):
            _wrong(f"what {name!r} may be is nothing or everything.")
        if closed and not flags & 1:
            _wrong(f"an advertisement cannot demand {name!r}.")
        side = ValueSet(bool(flags & 1), _read_parts(flags, values, tables))
        side.is_simple = True
        sides[name] = side
    return sides


def _read_parts(flags: int, written: list[Any], tables: _TablesRead) -> tuple[Tree, ...]:
    parts: list[Tree] = [NOTHING] * len(EVERYTHING)
    at = 1
    flags >>= 1
    kind = 0
    while flags:
        bits = flags & 3
        if bits == 1:
            parts[kind] = EVERYTHING[kind]
        elif bits == 2:
            if at == len(written):
                _wrong("a part is missing.")
            parts[kind] = _read_part(kind, written[at], tables)
            at += 1
        elif bits == 3:
            _wrong("a part is both whole and not.")
        flags >>= 2
        kind += 1
    if at != len(written):
        _wrong("it has a part too many.")
    return tuple(parts)


def _read_part(kind: int, written: Any, tables: _TablesRead) -> Tree:
    if type(written) is not list or not written:
        _wrong("a part is a list.")
    if kind in _ASKED and type(written[0]) is int:
        return _read_tree(kind, written, None, [MAX_NODES], tables)
    if kind == _LIST:
        _wrong("lists have no order.")
    part = _read_flips(kind, written)
    if part == EVERYTHING[kind]:
        _wrong("a part is everything.")
    return part


def _read_flips(kind: int, written: list[Any]) -> tuple[Any, ...]:
    wanted = _TYPES[kind]
    before: Any = None
    for value in written:
        if type(value) is not wanted or (before is not None and not before < value):
            _wrong("the values of a part are not in their order.")
        before = value
    if kind == _INT:
        # MessagePack has larger ones.
        if written[-1] > INT_MAX:
            _wrong("an integer does not fit into 64 bits.")
    elif kind == _FLOAT:
        if not (written[0] >= -FLOAT_MAX and written[-1] <= FLOAT_MAX):
            _wrong("a float is not finite.")
        return tuple([value + 0.0 for value in written])  # there is one zero
    elif kind == _TIME:
        if any(value.tzinfo is not UTC for value in written):
            _wrong("a time has no zone.")
    elif kind == _BYTES:
        for value in written:
            _require_bytes(value)
    return tuple(written)


def _require_bytes(text: str) -> None:
    """Bytes are kept as text of the same code points."""
    if not text.isascii() and max(text) > "\xff":
        _wrong("bytes are from 0 to 255.")


def _read_tree(
    kind: int, written: Any, above: tuple[Any, ...] | None, left: list[int], tables: _TablesRead
) -> Tree:
    """`above` is the question before in its order; `left` is how many nodes there may still be."""
    if type(written) is not list:
        _wrong("a tree is a list.")
    if not written or type(written[0]) is str:
        if kind == _LIST and written not in ([], [""]):
            _wrong("lists have no order.")
        return _read_flips(kind, written) if written else NOTHING
    left[0] -= 1
    if left[0] < 0 or len(written) != 4 or type(written[0]) is not int:
        _wrong("a tree is a question, two answers, and not too large.")
    atom = _read_atom(kind, written[0], written[1], tables)
    order = atom.order
    if above is not None and not above < order:
        _wrong("its questions are not in their order.")
    yes = _read_tree(kind, written[2], order, left, tables)
    no = _read_tree(kind, written[3], order, left, tables)
    if yes == no:
        _wrong("a question makes no difference.")
    return DecisionNode(atom, yes, no)


def _read_atom(kind: int, question: int, operand: Any, tables: _TablesRead) -> Any:
    if kind == _LIST:
        return _read_has(question, operand, tables)
    if question == _IGNORING_CASE and kind != _BYTES:
        return _read_table(questions.IgnoringCase(_read_variants(operand)), tables)
    if type(operand) is not str or not operand:
        _wrong("a question about a text has a text.")
    if kind == _BYTES:
        _require_bytes(operand)
    if question == _CONTAINS:
        return texts.Contains(operand)
    if question == _ENDS_WITH:
        return texts.EndsWith(operand)
    if kind == _BYTES or question not in (_MATCHES, _LIKE, _REGEX, _IN_NETWORK):
        _wrong("a question is not known.")
    if question != _MATCHES:
        return _read_pattern(question, operand, tables)
    try:
        texts.check_glob(operand)
    except texts.TextMistake as mistake:
        _wrong(str(mistake))
    return texts.GlobMatches(operand)


def _read_pattern(question: int, operand: str, tables: _TablesRead) -> questions.TableQuestion:
    try:
        if question == _REGEX:
            return _read_table(questions.RegexMatches(operand), tables)
        if question == _LIKE:
            if questions.like_of(operand, questions.ESCAPE) != operand:
                _wrong("a pattern is not in its one notation.")
            return _read_table(questions.Like(operand), tables)
        if canonical_network(operand) != operand:
            _wrong("a network is not in its one notation.")
    except texts.TextMistake as mistake:
        _wrong(str(mistake))
    return _read_table(questions.InNetwork(operand), tables)


def _read_table(atom: questions.TableQuestion, tables: _TablesRead) -> questions.TableQuestion:
    try:
        tables.add(atom)
        if len(atom.table.table) == 1:
            _wrong("a question has one answer.")
    except texts.TextMistake as mistake:
        _wrong(str(mistake))
    _require_states(tables)
    return atom


def _require_states(tables: _TablesRead) -> None:
    if tables.states > MAX_TABLE_STATES:
        _wrong("its patterns have too many states.")


def _read_variants(written: Any) -> tuple[str, ...]:
    if type(written) is not list or not written or len(written) > questions.MAX_IGNORING_CHARACTERS:
        _wrong("a text that ignores case is a list of its characters.")
    for one in written:
        if type(one) is not str or not 0 < len(one) <= _MOST_VARIANTS or "".join(sorted(set(one))) != one:
            _wrong("characters that are the same are not in their order.")
    return tuple(written)


def _read_has(question: int, written: Any, tables: _TablesRead) -> Has:
    if question != _HAS:
        _wrong("a question about a list is about its elements.")
    try:
        element = _read_element(written)
        if element.operator == "not":
            inner = _read_element(element.operand, within=True)
            if inner.demanded != element.demanded:
                _wrong("a question about elements demands two types.")
            element = Constraint("not", inner, element.demanded)
        element.check()
        part = having(element).parts[_LIST]
    except FilterError as problem:
        raise problem if isinstance(problem, UnreadableForm) else UnreadableForm(str(problem)) from None
    if not isinstance(part, DecisionNode):
        _wrong("no element can satisfy a question.")
    found: Has = part.atom
    tables.count(found.elements)
    _require_states(tables)
    return found


def _read_element(written: Any, *, within: bool = False) -> Constraint:
    """A constraint on elements; what a `not` is about is left as it is written."""
    if type(written) is not list or len(written) != 3:
        _wrong("a question about a list is about its elements.")
    operator, operand, demanded = written
    # What comes in may be of any type, also of one that no set can be asked about.
    is_known = type(operator) is str and (operator in _ELEMENT_OPERATORS or (operator == "not" and not within))
    if not is_known or not (demanded is None or (type(demanded) is int and demanded in _KINDS)):
        _wrong("a question about elements is not known.")
    if operator in ("in", "between"):
        if type(operand) is not list or not operand or (operator == "between" and len(operand) != 2):
            _wrong("a question about elements has no values.")
        operand = tuple([_read_scalar(value) for value in operand])
    elif operator == IGNORING_CASE:
        operand = _read_variants(operand) if operand != [] else ()  # an element may be empty
    elif operator != "not":
        operand = _read_scalar(operand)
    return Constraint(operator, operand, None if demanded is None else Kind(demanded))


def _read_scalar(value: Any) -> Any:
    kind = type(value)
    if (
        kind in (bool, str, bytes)
        or (kind is int and INT_MIN <= value <= INT_MAX)
        or (kind is float and -FLOAT_MAX <= value <= FLOAT_MAX)
        or (kind is datetime and value.tzinfo is UTC)
    ):
        return value
    _wrong("a value is of no kind.")
