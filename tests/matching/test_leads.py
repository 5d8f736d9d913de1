"""Texts, lists and exclusions are found by leads: what the oracle finds, in steps that can be counted."""

import random

import pyarrow as pa
import pytest

import palio
from palio.matching import oracle
from palio.matching.leads import Literals, literals
from palio.model.texts import Contains, EndsWith, GlobMatches
from tests.slices import sliced

core = pytest.importorskip("palio.matching.core")

PIECES = ("a", "b", "/", "é", "\0", "ab", "abc", "a/b", "\U0001f600", "xyz")


class Drawn:
    """Filters and events about texts, with few pieces, so that they meet."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)

    def text(self, least: int, most: int) -> str:
        return "".join(self.draw.choice(PIECES) for _ in range(self.draw.randint(least, most)))

    def long(self) -> str:
        return self.text(0, 3) + "ab" * self.draw.choice((31, 32, 33, 45)) + self.text(0, 3)

    def literal(self) -> str:
        return quoted(self.long() if self.draw.random() < 0.1 else self.text(0, 4))

    def glob(self) -> str:
        segments = []
        for _ in range(self.draw.randint(1, 4)):
            if self.draw.random() < 0.25:
                segments.append("**")
                continue
            runs = [self.text(0, 3).replace("/", "") for _ in range(self.draw.randint(1, 4))]
            if self.draw.random() < 0.1:
                runs.append("\\*")
            segment = runs[0]
            for run in runs[1:]:
                segment += run if segment.endswith("*") else "*" + run
            segments.append(segment)
        return "/".join(segments)

    def condition(self, name: str) -> str:
        draw = self.draw
        match draw.randrange(12):
            case 0 | 1 | 2 | 3:
                operator = draw.choice(("=", "!=", "starts with", "ends with", "contains", "contains"))
                return f"{name} {operator} {self.literal()}"
            case 4 | 5:
                return f"{name} matches {quoted(self.glob())}"
            case 6:
                return f"{name} {draw.choice(('=', '!=', '<', '>=', '>'))} {draw.choice((1, 2, 2.5, 3))}"
            case 7:
                return f"{name} in ({self.literal()}, {self.literal()}, 3)"
            case 8:
                operator = draw.choice(("contains", "ends with", "starts with", "=", "!="))
                return f'{name} {operator} x"{self.text(0, 2).encode().hex()}"'
            case 9:
                low, high = sorted((self.text(0, 3), self.text(0, 3)))
                return f"{name} between {quoted(low)} and {quoted(high)}"
            case 10:
                return f"{name} between 1 and 2"
            case _:
                return draw.choice((f"exists({name})", f"absent({name})"))

    def expression(self) -> str:
        draw, found = self.draw, ""
        for _ in range(draw.randint(1, 4)):
            name = draw.choice("xyz")
            text = self.condition(name)
            if draw.random() < 0.25 and "(" not in text[:7]:
                text = f"{name} has {text[2:]}"
            if draw.random() < 0.2:
                text = f"not {text}"
            found = f"({found}) {draw.choice(('and', 'and', 'or'))} ({text})" if found else text
        return found

    def filters(self, count: int) -> dict[str, palio.Filter]:
        found: dict[str, palio.Filter] = {}
        while len(found) < count:
            text = self.expression()
            try:
                found[text] = palio.Filter.parse(text)
            except palio.FilterTooLarge:
                continue
        return found

    def value(self):
        draw, count = self.draw, self.draw.randint(0, 3)
        match draw.randrange(10):
            case 0:
                return draw.choice((1, 2, 3, 2.5, True))
            case 1:
                return self.text(0, 3).encode()
            case 2:
                return [self.text(0, 6) for _ in range(count)]
            case 3:
                return [draw.choice((1, 2, 3)) for _ in range(count)]
            case 4:
                return [self.text(0, 2).encode() for _ in range(count)]
            case 5:
                return self.long()
            case _:
                return self.text(0, 8)

    def event(self) -> palio.Notification:
        return palio.Notification({name: self.value() for name in "xyz" if self.draw.random() < 0.8})


def quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\0", "\\u0000")
    return f'"{escaped}"'


@pytest.mark.parametrize("seed", sliced(range(60), 6))
def test_whatever_comes_and_goes_the_oracle_finds_the_same(seed, tmp_path):
    drawn = Drawn(seed)
    filters = drawn.filters(drawn.draw.choice((3, 20, 120)))
    index = palio.MatchIndex(filters.items() if seed % 2 else ())
    truth = oracle.MatchIndex(filters.items())
    for text, filter in filters.items():
        if text not in index:
            index.add(text, filter)
    for _ in range(4):
        events = [drawn.event() for _ in range(10)]
        wanted = [sorted(truth.match(event)) for event in events]
        assert [sorted(index.match(event)) for event in events] == wanted
        assert [sorted(one) for one in index.match_encoded([event.encode() for event in events])] == wanted
        for text, filter in filters.items():
            if text in truth and drawn.draw.random() < 0.4:
                index.remove(text)
                truth.remove(text)
            elif text not in truth and drawn.draw.random() < 0.4:
                index.add(text, filter)
                truth.add(text, filter)
    index.save(tmp_path / "index")
    mapped = palio.MatchIndex.open_mapped(tmp_path / "index")
    for event in [drawn.event() for _ in range(10)]:
        assert sorted(mapped.match(event)) == sorted(truth.match(event))


def test_what_has_been_removed_leaves_nothing_behind():
    drawn = Drawn(99)
    filters = drawn.filters(200)
    index = palio.MatchIndex(filters.items())
    for text in filters:
        index.remove(text)
    facts = index.statistics()
    assert (facts.values, facts.groups) == (0, 0)
    assert index.match(drawn.event()) == []


def test_many_factors_share_their_grams_and_are_told_apart():
    texts = [f"{left}common part{right}" for left in range(20) for right in range(40)]
    index = palio.MatchIndex((text, f'x contains "{text}"') for text in texts)
    for text in texts[::7]:
        index.remove(text)
    kept = set(texts) - set(texts[::7])
    for event in ("0common part0", "17common part23 and 19common part39", "common part"):
        wanted = {text for text in kept if text in event}
        assert set(index.match(palio.Notification({"x": event}))) == wanted


# Globs


@pytest.mark.parametrize("seed", sliced(range(20), 2))
def test_a_glob_is_asked_as_its_machine_answers(seed):
    drawn = Drawn(1_000 + seed)
    for _ in range(100):
        pattern = drawn.glob()
        index = palio.MatchIndex([(1, f"x matches {quoted(pattern)}"), (2, f"not x matches {quoted(pattern)}")])
        glob = palio.Filter.parse(f"x matches {quoted(pattern)}")
        for _ in range(6):
            text = drawn.text(0, 8)
            assert index.match(palio.Notification({"x": text})) == [
                1 if glob.matches(palio.Notification({"x": text})) else 2
            ], (pattern, text)


def test_a_long_block_of_a_glob_is_run_by_its_machine():
    pattern = "**/" + "a/" * 20 + "b/**"
    index = palio.MatchIndex([(1, f'x matches "{pattern}"')])
    for text in ("a/" * 20 + "b", "c/" + "a/" * 25 + "b/d", "a/" * 19 + "b"):
        assert bool(index.match(palio.Notification({"x": text}))) == GlobMatches(pattern).holds(text)


@pytest.mark.parametrize(
    ("atom", "found"),
    [
        (Contains("abc"), Literals(factors=("abc",), exact=True)),
        (EndsWith("abc"), Literals(suffix="abc", exact=True)),
        (GlobMatches("*.log"), Literals(suffix=".log", exact=True, without="/")),
        (GlobMatches("*abc*"), Literals(factors=("abc",), exact=True, without="/")),
        (GlobMatches("ab*"), Literals(prefix="ab", exact=True, without="/")),
        (GlobMatches("shop/**"), Literals(prefix="shop")),
        (GlobMatches("a/**/c"), Literals(prefix="a/", suffix="/c")),
        (GlobMatches("**/b/*c"), Literals(suffix="c", factors=("b/",))),
        (GlobMatches("a/*/c*d/e"), Literals(prefix="a/", suffix="d/e", factors=("/c",))),
        (GlobMatches("*"), Literals()),
        (GlobMatches("\\*a*"), Literals(prefix="*a", exact=True, without="/")),
    ],
)
def test_what_a_text_has_to_have(atom, found):
    assert literals(atom) == found


# Lists in tables


LISTS = [
    pa.array([["a", "b"], None, [], ["a", None], ["c"]]),
    pa.array([[1, 2], [3], None, [], [5]], pa.list_(pa.int32())),
    pa.array([[1.5, float("nan")], [2.0], None, [], [9.5]]),
    pa.array([[b"x"], [b"y", b"x"], None, [], [b""]]),
    pa.array([["a", "b"]] * 5, pa.list_(pa.string(), 2)),
    pa.array([[True], [False, True], None, [], [False]]),
    pa.array([["a", "b"], ["a"], [], None, ["z"]], pa.list_(pa.dictionary(pa.int32(), pa.string()))),
    pa.array([[], [], None, [], []], pa.list_(pa.null())),
]
ABOUT_LISTS = [
    'x has "a"', "x has > 2", "x has < 2", "x has between 2 and 4", 'x has x"78"', "x has true", "exists(x)",
    'x has ends with "a"', 'x != "a"', 'not x has "a"', 'x has in ("a", "c")', 'x has contains "b"', "x has 3",
    "int x has >= 3", 'x has "a" and x has "b"', "x has >= 2 and x has < 1",
]  # fmt: skip


@pytest.mark.parametrize("column", LISTS, ids=lambda column: str(column.type))
def test_lists_of_a_table_are_read_where_they_lie(column):
    index, truth = palio.MatchIndex(enumerate(ABOUT_LISTS)), oracle.MatchIndex(enumerate(ABOUT_LISTS))
    whole = pa.table({"x": column})
    chunks = pa.table({"x": pa.chunked_array([column.slice(0, 2), column.slice(2)])})
    for table in (whole, whole.slice(1, 3), chunks):
        found, wanted = (
            sorted(zip(*(one.to_pylist() for one in each.match_batch(table)), strict=True))
            for each in (index, truth)
        )
        assert found == wanted


# Steps, not seconds


def steps(filters, value) -> int:
    """How much was looked up or compared for one event; it does not grow with what the filters were before."""
    index = palio.MatchIndex(enumerate(filters))
    event = palio.Notification({"x": value})
    truth = sum(palio.Filter.parse(text).matches(event) for text in filters[:50])
    assert sum(id < 50 for id in index.match(event)) == truth
    before = index._core.steps
    index.match(event)
    return index._core.steps - before


LONG = 20_000


def test_the_steps_do_not_grow_with_filters_that_have_nothing_to_do_with_the_text():
    few = [f'x contains "needle {number}"' for number in range(100)]
    many = [f'x contains "needle {number}"' for number in range(3_000)]
    text = "hay with a needle " * 20
    assert steps(many, text) <= steps(few, text) + len(text)


def test_one_letter_again_and_again():
    patterns = [f'x contains "{"a" * count}"' for count in range(1, 65)]
    classes = 8
    assert steps(patterns, "a" * LONG) <= LONG * (classes + len(patterns))
    assert steps([f'x contains "{"a" * 200}b"'], "a" * LONG) <= 4 * LONG


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("*a*a*a*b", "a" * LONG),
        ("*aaaa*aaaa*aaab", "a" * LONG),
        ("**/a/a/a/b/**", "a/" * (LONG // 2)),
        ("**/*a*a/b*/**", "aaaa/" * (LONG // 5)),
        ("**/" + "a/" * 200 + "b/**", "a/" * (LONG // 2)),
    ],
)
def test_a_hostile_glob_takes_some_steps_a_character(pattern, text):
    assert steps([f'x matches "{pattern}"'], text) <= 8 * len(text)


@pytest.mark.parametrize(
    "condition",
    [
        'x like "%a%a%a%b"',
        'x regex "(a*)*b"',
        'x regex "(.*a){12}b"',
        'x regex ".*[ab]{3}aaaa.*"',
        f'x = "{"a" * 300}" ignoring case',
        'x in network "10.0.0.0/8"',
    ],
)
def test_a_hostile_pattern_takes_some_steps_a_character(condition):
    for text in ("a" * LONG, "aA" * (LONG // 2), "10." * (LONG // 3)):
        assert steps([condition] * 2, text) <= 8 * len(text)


def test_patterns_are_asked_only_of_texts_that_have_their_literals():
    filters = [f'x like "%needle {number}_%"' for number in range(40)]
    filters += [f'x regex ".*(pin|nail) {number}[a-z]+"' for number in range(40)]
    filters += [f'x in network "10.{number}.0.0/16"' for number in range(40)]
    filters += [f'x = "Needle {number}" ignoring case' for number in range(40)]
    index = palio.MatchIndex(enumerate(filters))
    assert index.statistics().asked == 0
    hay = "hay and more hay " * 20
    assert steps(filters, hay) <= 8 * len(hay)
    assert steps(filters, "10.7.1.1") <= 60
    assert steps(filters, "nEEDLE 7") <= 80


def test_a_factor_that_every_event_has_is_asked_of_its_own_filters_only():
    common = [f'x contains "common" and y = {number}' for number in range(1_000)]
    assert steps(common, "a common text") < 100
    endings = [f'x matches "*common*{number % 10}*{number % 7}"' for number in range(500)]
    text = "a common text " * 10
    assert steps(endings, text) <= len(text) * (8 + len(endings))


def test_a_list_is_looked_up_element_by_element():
    filters = [f'x has "tag {number}"' for number in range(2_000)]
    assert steps(filters, [f"tag {number}" for number in range(100)]) < 300


def test_who_excludes_another_value_costs_no_question():
    filters = [f'x != "{number}"' for number in range(1_000)]
    assert steps(filters, "7") < 10


def test_what_has_nothing_to_be_found_by_is_counted():
    asked = ['x matches "*a*b*"', 'x > "m"', "exists(string x)", 'x matches "*ab*b*" and z > 3']
    found = [
        'x matches "*abc*b"', 'x matches "a*b"', 'x contains "a"', 'x != "a"', 'x between "ab1" and "ab2"',
        "exists(x)", 'x > "m" and y = 1', 'x in ("a", 3)', 'tags has > 3',
        'x contains "a" or x ends with "b"', "z > 3",
    ]  # fmt: skip
    index = palio.MatchIndex(enumerate(asked + found))
    assert index.statistics().asked == len(asked)
    many = palio.MatchIndex((number, f'x > "{number}"') for number in range(600))  # enough for a block
    assert many.statistics().asked == 600


def test_values_of_which_one_has_to_hold_are_chosen_where_they_are_rarer_than_what_is_demanded():
    filters = [f'x contains "common" and y in ("a{number}", "b{number}", 3)' for number in range(300)]
    index, truth = palio.MatchIndex(enumerate(filters)), oracle.MatchIndex(enumerate(filters))
    for id in range(0, 300, 3):
        index.remove(id)
        truth.remove(id)
    for y in ("a7", "b8", "b9", 3, "c"):
        event = palio.Notification({"x": "a common text", "y": y})
        assert sorted(index.match(event)) == sorted(truth.match(event))
    before = index._core.steps
    index.match(palio.Notification({"x": "a common text", "y": "c"}))
    assert index._core.steps - before < 100


def test_a_few_stretches_of_numbers_are_swept_and_what_is_to_be_absent_is_a_bit():
    draw = random.Random(5)
    filters = ["absent(x)", "not x = true", "not x = false", "x > 5 or x < -5", "x != 1 and x >= 0 and x < 9.5"]
    for _ in range(150):
        low, high = draw.randint(-9, 0), draw.choice((draw.random() * 9, draw.randint(1, 9)))
        third = draw.choice((f" or x = {high + 3}", f" or x > {high + 2}", ""))
        filters.append(f"x < {low} or (x >= {low + 0.5} and x < {high + 1}){third}")
    index, truth = palio.MatchIndex(enumerate(filters)), oracle.MatchIndex(enumerate(filters))
    assert index.statistics().asked == 0
    values = [draw.choice((draw.randint(-12, 14), draw.random() * 24 - 12, True, "a", None)) for _ in range(60)]
    for value in [*values, 2**53, -(2**60), 1e300, False]:
        event = palio.Notification({} if value is None else {"x": value})
        assert sorted(index.match(event)) == sorted(truth.match(event)), value
    for id in range(len(filters)):
        index.remove(id)
    assert (index.statistics().values, index.statistics().groups) == (0, 0)
