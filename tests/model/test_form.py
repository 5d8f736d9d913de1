"""The form in which filters and advertisements travel and are stored."""

import pickle

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palio import Advertisement, Filter, FilterTooLarge
from palio.model import form
from palio.model.conjunction import Conjunction
from palio.model.decision import MAX_NODES
from palio.model.errors import FilterError
from palio.model.form import UnreadableForm
from palio.model.questions import RegexMatches
from palio.model.values import Kind
from palio.model.valueset import ValueSet
from tests.generators import Maker, random_advertisement
from tests.model.test_written_out import BOTH, EITHER, GLOBS, MANY, NEGATED
from tests.slices import examples

EXTREME = [
    "true",
    "false",
    "absent(a)",
    "a = true or b = -9223372036854775808 or c >= 9223372036854775807",
    "a > 0001-01-01T00:00:00Z and b <= 9999-12-31T23:59:59.999999Z and c = 1999-01-01T00:00:00.123456Z",
    'a starts with x"ff" or a ends with x"00ff" or b = "\\u0000" or b > "\\ud7ff"',
    "a has = 5 and not a has > 2.5 and b has in (1, true, x\"00\", 2026-01-01T00:00:00Z) or int c has != 1",
    'a has matches "b/**" and a has between "a" and "b" or exists(list a) and not a has "q"',
    "float a > 1 and not a = 2.5 or int a != 9007199254740993",
    "a = -0.0 or a = 1.7976931348623157e308",
    'a like "x_%" and not a regex "[^b]+" or b in network "10.0.0.0/8" or c = "kß" ignoring case',
    'a has like "x_!%" escape "!"' + ' or b has regex "a+" and c has "Kß" ignoring case',
    'a has not in ("x", 5) and not b has not starts with "q" or int c has not > 5',
    'a has not "K" ignoring case or not a has not "k"',
    'a has not "" ignoring case or b has "" ignoring case',
    'a has in network "2001:db8::/32" or not b in network "::/0"',
    NEGATED, GLOBS, EITHER, BOTH, MANY,
]  # fmt: skip


@pytest.mark.parametrize("text", EXTREME, ids=lambda text: text[:30])
def test_a_filter_comes_back_as_it_was(text):
    f = Filter.parse(text)
    again = Filter.of_form(f.form)
    assert again == f
    assert [box.sides.keys() for box in again.conjunctions] == [box.sides.keys() for box in f.conjunctions]
    assert form.encode_conjunctions(again.conjunctions) == f.form
    assert str(again) == str(f)


@examples(300)
@given(st.randoms(use_true_random=False))
def test_any_filter_comes_back_with_the_same_parts(random):
    f = Filter.from_expression(Maker(random).expression(3))
    again = Filter.of_form(f.form)
    for one, other in zip(again.conjunctions, f.conjunctions, strict=True):
        assert list(one.sides) == list(other.sides)
        assert [(s.absent, s.parts) for s in one.sides.values()] == [
            (s.absent, s.parts) for s in other.sides.values()
        ]
    assert pickle.loads(pickle.dumps(f)) == f


@examples(200)
@given(st.randoms(use_true_random=False))
def test_any_advertisement_comes_back(random):
    advertisement = random_advertisement(Maker(random))
    again = Advertisement.of_form(advertisement.form)
    assert again == advertisement
    assert str(again) == str(advertisement)


def test_the_form_is_made_once():
    f = Filter.parse("a = 1")
    assert f.form is f.form
    assert Filter.of_form(f.form).form is f.form


def test_an_advertisement_is_no_filter_and_the_reverse():
    with pytest.raises(UnreadableForm, match="cannot demand 'a'"):
        Advertisement.of_form(Filter.parse("a = 1").form)
    with pytest.raises(UnreadableForm, match="one list of sides"):
        Advertisement.of_form(Filter.parse("a = 1 or b = 1").form)


# What is too large is told when it is written, and what is too large is not read.


def test_what_is_too_large_has_no_form():
    large = ValueSet.of({Kind.STRING: ("x" * form.MAX_BYTES,)})
    with pytest.raises(FilterTooLarge, match="bytes once it is written out"):
        _ = Filter((Conjunction({"a": large}),)).form
    many = Filter(tuple(Filter.parse(f"a{n} = 1").conjunctions[0] for n in range(65)))
    with pytest.raises(FilterTooLarge, match="65 conjunctions"):
        _ = many.form
    assert pickle.loads(pickle.dumps(many)).conjunctions == many.conjunctions


ASKS = [1, "x", [""], []]  # ends with "x"
DAMAGED = {
    "nothing": b"",
    "not MessagePack": b"\xc1",
    "a text": msgspec.msgpack.encode("a = 1"),
    "no version": msgspec.msgpack.encode([]),
    "another version": msgspec.msgpack.encode([2]),
    "no list of sides": msgspec.msgpack.encode([1, "a"]),
    "half a side": msgspec.msgpack.encode([1, ["a"]]),
    "names out of order": msgspec.msgpack.encode([1, ["b", [1], "a", [1]]]),
    "one name twice": msgspec.msgpack.encode([1, ["a", [1], "a", [1]]]),
    "no name": msgspec.msgpack.encode([1, ["", [1]]]),
    "a long name": msgspec.msgpack.encode([1, ["a" * 256, [1]]]),
    "an empty side": msgspec.msgpack.encode([1, ["a", [0]]]),
    "flags beyond": msgspec.msgpack.encode([1, ["a", [1 << 15]]]),
    "a part missing": msgspec.msgpack.encode([1, ["a", [2 << 3]]]),
    "a part too many": msgspec.msgpack.encode([1, ["a", [1, [3]]]]),
    "integers out of order": msgspec.msgpack.encode([1, ["a", [2 << 3, [3, 2]]]]),
    "an integer of 65 bits": msgspec.msgpack.encode([1, ["a", [2 << 3, [2**64 - 1]]]]),
    "a float among integers": msgspec.msgpack.encode([1, ["a", [2 << 3, [1.5]]]]),
    "not a number": msgspec.msgpack.encode([1, ["a", [2 << 5, [float("nan")]]]]),
    "infinity": msgspec.msgpack.encode([1, ["a", [2 << 5, [float("inf")]]]]),
    "bytes above 255": msgspec.msgpack.encode([1, ["a", [2 << 11, ["\u0100"]]]]),
    "a list in order": msgspec.msgpack.encode([1, ["a", [2 << 13, ["x"]]]]),
    "a not of a not": msgspec.msgpack.encode(
        [1, ["a", [2 << 13, [4, ["not", ["not", ["=", 1, None], None], None], [""], []]]]]
    ),
    "a not of another type": msgspec.msgpack.encode(
        [1, ["a", [2 << 13, [4, ["not", ["=", 1, 1], None], [""], []]]]]
    ),
    "half a not": msgspec.msgpack.encode([1, ["a", [2 << 13, [4, ["not", 1, None], [""], []]]]]),
    "an unknown question": msgspec.msgpack.encode([1, ["a", [2 << 7, [9, "x", [""], []]]]]),
    "a pattern in another notation": msgspec.msgpack.encode([1, ["a", [2 << 7, [5, "a%%_", [""], []]]]]),
    "a pattern with half an escape": msgspec.msgpack.encode([1, ["a", [2 << 7, [5, "a_!", [""], []]]]]),
    "a pattern of everything": msgspec.msgpack.encode([1, ["a", [2 << 7, [5, "%", [""], []]]]]),
    "no regular expression": msgspec.msgpack.encode([1, ["a", [2 << 7, [6, "a(", [""], []]]]]),
    "a large regular expression": msgspec.msgpack.encode([1, ["a", [2 << 7, [6, "(a{999}){9}", [""], []]]]]),
    "no characters": msgspec.msgpack.encode([1, ["a", [2 << 7, [7, ["aA"], [""], []]]]]),
    "characters as a text": msgspec.msgpack.encode([1, ["a", [2 << 7, [7, "Aa", [""], []]]]]),
    "an open network": msgspec.msgpack.encode([1, ["a", [2 << 7, [8, "10.0.0.1/8", [""], []]]]]),
    "a network in other words": msgspec.msgpack.encode([1, ["a", [2 << 7, [8, "2001:DB8::/32", [""], []]]]]),
    "a pattern of bytes": msgspec.msgpack.encode([1, ["a", [2 << 11, [5, "a_", [""], []]]]]),
    "an empty question": msgspec.msgpack.encode([1, ["a", [2 << 7, [1, "", [""], []]]]]),
    "a wrong glob": msgspec.msgpack.encode([1, ["a", [2 << 7, [3, "a**", [""], []]]]]),
    "a needless question": msgspec.msgpack.encode([1, ["a", [2 << 7, [1, "x", [], []]]]]),
    "a question twice": msgspec.msgpack.encode([1, ["a", [2 << 7, [1, "x", ASKS, []]]]]),
    "a part that is no list": msgspec.msgpack.encode([1, ["a", [2 << 7, "x"]]]),
    "an answer that is no list": msgspec.msgpack.encode([1, ["a", [2 << 7, [1, "x", [""], 7]]]]),
    "a question about texts to a list": msgspec.msgpack.encode([1, ["a", [2 << 13, [1, "x", [""], []]]]]),
    "half a tree": msgspec.msgpack.encode([1, ["a", [2 << 7, [1, "x", [""]]]]]),
    "elements of no kind": msgspec.msgpack.encode([1, ["a", [2 << 13, [4, ["=", None, None], [""], []]]]]),
    "no operator": msgspec.msgpack.encode([1, ["a", [2 << 13, [4, ["has", 1, None], [""], []]]]]),
    "an operator that does not fit": msgspec.msgpack.encode(
        [1, ["a", [2 << 13, [4, ["contains", 1, None], [""], []]]]]
    ),
    "a kind beyond": msgspec.msgpack.encode([1, ["a", [2 << 13, [4, ["=", 1, 77], [""], []]]]]),
    "too many conjunctions": msgspec.msgpack.encode([1, *[["a", [1]]] * 65]),
    "too deep": b"\x91" * 100_000 + b"\x01",
    "too long": msgspec.msgpack.encode([1, ["a", [2 << 7, ["x" * form.MAX_BYTES]]]]),
}


def _chain(count):
    tree = []
    for number in reversed(range(count)):
        tree = [2, f"{number:04}", [""], tree]
    return msgspec.msgpack.encode([1, ["a", [2 << 7, tree]]])


@pytest.mark.parametrize("data", [*DAMAGED.values(), _chain(MAX_NODES + 1)], ids=[*DAMAGED, "a large tree"])
def test_what_is_no_form_is_refused_with_a_finished_sentence(data):
    for read in (Filter.of_form, Advertisement.of_form):
        with pytest.raises(UnreadableForm) as problem:
            read(data)
        assert str(problem.value).endswith(".")


def test_a_side_that_allows_everything_is_for_advertisements():
    whole = msgspec.msgpack.encode([1, ["a", [0b010101010101011]]])
    with pytest.raises(UnreadableForm, match="nothing or everything"):
        Filter.of_form(whole)
    assert Advertisement.of_form(whole) == Advertisement.parse("a *")


def test_the_largest_tree_is_read():
    f = Filter.of_form(_chain(MAX_NODES))
    assert form.encode_conjunctions(f.conjunctions) == _chain(MAX_NODES)
    assert Filter.parse(str(f)) == f


@examples(300)
@given(st.sampled_from(EXTREME), st.data())
def test_a_damaged_form_is_a_filter_or_refused(text, data):
    damaged = bytearray(Filter.parse(text).form)
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    try:
        f = Filter.of_form(bytes(damaged))
    except FilterError:
        return
    again = form.encode_conjunctions(f.conjunctions)
    assert form.encode_conjunctions(Filter.of_form(again).conjunctions) == again
    f.covers(Filter.parse("a = 1"))
    str(f)


def test_the_states_of_all_patterns_are_bounded_when_writing_and_when_reading(monkeypatch):
    f = Filter.parse('a regex "x{30}y*" or b regex "x{30}y*" or c has regex "x{40}"')
    states = sum(len(RegexMatches(one).table.table) for one in ("x{30}y*", "x{40}"))
    monkeypatch.setattr(form, "MAX_TABLE_STATES", states)
    data = form.encode_conjunctions(f.conjunctions)
    assert form.decode_conjunctions(data) == f.conjunctions
    monkeypatch.setattr(form, "MAX_TABLE_STATES", states - 1)
    with pytest.raises(FilterTooLarge, match="states of patterns"):
        form.encode_conjunctions(f.conjunctions)
    with pytest.raises(UnreadableForm, match="too many states"):
        form.decode_conjunctions(data)


def test_what_ignores_case_travels_as_its_characters():
    """So that a broker with another version of Unicode takes it for the same."""
    [version, [name, [_, [question, characters, yes, no]]]] = msgspec.msgpack.decode(
        Filter.parse('a = "Kß" ignoring case').form
    )
    assert (version, name, question, yes, no) == (1, "a", 7, [""], [])
    assert characters == ["Kk\N{KELVIN SIGN}", "ßẞ"]
