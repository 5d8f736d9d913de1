"""What is written in a dialect is read back to an equal filter, or refused with what has no words there."""

import json
from contextlib import suppress
from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from palio import Filter, FilterTooLarge
from palio.language import (
    PALIO,
    WRITERS,
    UnwritableCondition,
    UnwritableDialect,
    read_filter,
    write_filter,
)
from palio.model.constraint import Constraint
from palio.model.expression import And, Condition
from tests.generators import GLOBS, Maker
from tests.language.test_eventbridge import PATTERNS
from tests.language.test_mqtt import LEVELS
from tests.selectors import check as check_selector
from tests.selectors import selector
from tests.selectors import written as selector_text
from tests.slices import examples


def filter_at_random(seed: int) -> Filter:
    """A filter, half of them about a topic; the same one for the same number."""
    random = Random(seed)
    expression = Maker(random, names=("topic", "a", "b.c")).expression()
    if random.random() < 0.5:
        operator = random.choice(("=", "matches", "starts with"))
        topic = Condition("topic", Constraint(operator, random.choice((*GLOBS, "$a/", "a+/?", "#"))))
        expression = And((topic, expression))
    return Filter.from_expression(expression)


@examples(400)
@given(st.integers(0, 10**9), st.sampled_from([name for name in WRITERS if name != PALIO]))
def test_any_filter_is_written_as_what_it_means_or_refused(seed, dialect):
    try:
        f = filter_at_random(seed)
        text = write_filter(f, dialect)
    except FilterTooLarge:
        return
    except UnwritableCondition:
        return
    assert read_filter(text, dialect) == f


@examples(200)
@given(
    st.lists(st.one_of(LEVELS, st.just("+")), min_size=1, max_size=4),
    st.booleans(),
    st.integers(0, 10**9),
    st.booleans(),
)
def test_every_topic_filter_is_written_again(levels, open_end, seed, conditional):
    text = "/".join(levels + ["#"] * open_end)
    assume(text)
    if conditional:
        text += f"?{Filter.from_expression(Maker(Random(seed)).expression(1))}"
    f = read_filter(text, "mqtt")
    assert read_filter(write_filter(f, "mqtt"), "mqtt") == f


@examples(300)
@given(st.randoms(use_true_random=False))
def test_a_selector_is_written_again_as_one_that_selects_the_same(random):
    check_selector(random, 3)


def test_nearly_every_selector_is_written_again():
    written = refused = 0
    for seed in range(300):
        random = Random(seed)
        with suppress(FilterTooLarge):
            f = read_filter(selector_text(random, selector(random)), "jms")
            try:
                write_filter(f, "jms")
                written += 1
            except UnwritableCondition:
                refused += 1
    assert written > 250
    assert refused < 10


@examples(60)
@given(PATTERNS)
def test_every_pattern_is_written_again_that_names_each_attribute_once(pattern):
    inside = [one for beside in pattern.get("$or", []) for one in beside]
    f = read_filter(json.dumps(pattern), "eventbridge")
    said_twice = set(inside) & pattern.keys()
    if said_twice or f.contradiction or str(f) == "true":  # these may be refused
        with suppress(UnwritableCondition):
            assert read_filter(write_filter(f, "eventbridge"), "eventbridge") == f
        return
    assert read_filter(write_filter(f, "eventbridge"), "eventbridge") == f


@pytest.mark.parametrize(
    "alternatives",
    [
        [{"wildcard": "a*"}, {"wildcard": ["a*b", "*/a"]}],
        [{"wildcard": ["a*", "*b"]}, {"wildcard": ["b*", "*a"]}, {"prefix": ["ab", "ba"]}],
        [{"suffix": ["a", "b"]}, {"suffix": ["b", "ca"]}, {"equals-ignore-case": ["ab", "ca"]}],
        [{"prefix": [{"equals-ignore-case": "a"}, "b"]}, {"wildcard": ["*a", "b*c*"]}],
    ],
)
def test_several_exclusions_of_one_attribute_are_written_again(alternatives):
    pattern = {"y": [{"anything-but": one} for one in alternatives]}
    f = read_filter(json.dumps(pattern), "eventbridge")
    assert read_filter(write_filter(f, "eventbridge"), "eventbridge") == f


@pytest.mark.parametrize(
    ("dialect", "text", "written"),
    [
        ("mqtt", 'topic = "a/b"', "a/b"),
        ("mqtt", 'topic starts with "ab/c" and n > 5', 'ab/#?n > 5 and topic starts with "ab/c"'),
        ("mqtt", 'topic matches "a/**/b"', 'a/#?topic matches "a/**/b"'),
        ("mqtt", 'topic = "a?b"', '+?topic = "a?b"'),
        ("mqtt", 'topic = "a+/b" and n = 5', '#?n = 5 and topic = "a+/b"'),
        ("mqtt", 'topic = "a/b" and (n = 5 or m = 6)', "a/b?m = 6 or n = 5"),
        ("jms", 'symbol = "IBM" and price > 100', "price > 100 AND symbol = 'IBM'"),
        ("jms", 'x = "it\'s" or absent(y) and z = true', "x = 'it''s' OR (y IS NULL AND z = TRUE)"),
        ("jms", "a = 1 and (b = 2 or c between -5 and 7.5)", "a = 1 AND (b = 2 OR c BETWEEN -5 AND 7.5)"),
        ("jms", 'string x != "a"', "x <> 'a'"),
        ("jms", 'string x != "a" and not x contains "b"', "x <> 'a' AND x NOT LIKE '%b%'"),
        ("jms", 'x contains "50%"', "x LIKE '%50!%%' ESCAPE '!'"),
        ("jms", "x in (1, 2) or x < -9", "x IN (1, 2) OR x < -9"),
        ("jms", "exists(int x) or exists(float x)", "x < 0 OR x >= 0"),
        ("jms", "price * (1 - discount) > 5", "price * (1 - discount) > 5"),
        ("jms", "bid < ask and not exists(bool bid)", "bid < ask"),
        ("jms", "bid < ask and not exists(bool ask)", "ask > bid"),
        ("jms", "bid < ask or ask < bid", "ask <> bid"),
        ("jms", "`not` = 5 and `a]b[` = 6", "[a]]b[[] = 6 AND [not] = 5"),
        ("jms", "true", "TRUE"),
        ("jms", "false", "FALSE"),
        ("cesql", 'type = "order" and source starts with "/eu/"', "source LIKE '/eu/%' AND type = 'order'"),
        (
            "cesql",
            'type = "a" or kind in ("b", "c")',
            "(EXISTS kind AND (kind = 'b' OR kind = 'c')) OR (EXISTS type AND type = 'a')",
        ),
        ("cesql", 'type != "a" and not type ends with "50%"', "type NOT LIKE '%50\\%' AND type != 'a'"),
        ("cesql", 'absent(x) or x = "it\'s"', 'NOT EXISTS x OR x = "it\'s"'),
        ("cesql", "true", "TRUE"),
        ("cesql", "false", "FALSE"),
        ("eventbridge", "exists(a) and absent(b.c)", '{"a":[{"exists":true}],"b":{"c":[{"exists":false}]}}'),
        (
            "eventbridge",
            "n > 1 and n <= 5 or n has between 1.0000000000000002 and 5",
            '{"n":[{"numeric":[">",1,"<=",5]}]}',
        ),
        (
            "eventbridge",
            "exists(a) and (exists(b) or exists(a.b))",
            '{"a":[{"exists":true}],"$or":[{"a":{"b":[{"exists":true}]}},{"b":[{"exists":true}]}]}',
        ),
    ],
)
def test_what_a_filter_is_written_as(dialect, text, written):
    f = Filter.parse(text)
    assert write_filter(f, dialect) == written
    assert read_filter(written, dialect) == f


@pytest.mark.parametrize(
    ("dialect", "text", "condition"),
    [
        ("mqtt", "n > 5", "n > 5"),
        ("mqtt", 'n = 5 and topic in ("$a", "b")', 'topic in ("$a", "b")'),
        ("mqtt", "exists(topic)", "exists(topic)"),
        ("mqtt", 'topic = "$share/x/y"', 'topic = "$share/x/y"'),
        ("mqtt", 'topic = "a" or n = 5', "n = 5"),
        ("mqtt", "true", "true"),
        ("cesql", 'type = "a" and price > 5', "price > 5"),
        ("cesql", 'x = "5"', 'x = "5"'),
        ("cesql", 'Type = "a"', 'Type = "a"'),
        ("cesql", 'data = "a"', 'data = "a"'),
        ("cesql", "bid < ask", "bid < ask"),
        ("cesql", 'x matches "a/*"', 'x matches "a/*"'),
        ("jms", "x = 5 and price != 5", "price != 5"),
        ("jms", "int price >= 6", "int price >= 6"),
        ("jms", 'tags has "x" and y = 5', 'tags has "x"'),
        ("jms", "d > 2026-01-01T00:00:00Z", "d > 2026-01-01T00:00:00Z"),
        ("jms", 'x matches "a/*"', 'x matches "a/*"'),
        ("jms", 'x regex "[ab]+"', 'x regex "[ab]+"'),
        ("jms", 'x = "A" ignoring case', 'x = "A" ignoring case'),
        ("jms", "a < b", "a < b"),
        ("jms", "abs(x) > 5", "abs(x) > 5"),
        ("jms", "a != b", "a != b"),
        ("jms", "not (a * b > 5)", "not a * b > 5"),
        ("eventbridge", "a = 5 and (b = 5 or b has 5)", "a = 5"),
        ("eventbridge", "b = 5 or b has 6", "b = 5 or b has 6"),
        ("eventbridge", "d = 2026-01-01T00:00:00Z", "d = 2026-01-01T00:00:00Z"),
        ("eventbridge", 'd = x"00"', 'd = x"00"'),
        ("eventbridge", "n < 6000000001 or n has < 6000000001", "n < 6000000001 or n has < 6000000001"),
        ("eventbridge", "exists(`$or`)", "exists(`$or`)"),
        ("eventbridge", "true", "true"),
        ("eventbridge", "false", "false"),
    ],
)
def test_what_cannot_be_said_is_named(dialect, text, condition):
    with pytest.raises(UnwritableCondition) as caught:
        write_filter(Filter.parse(text), dialect)
    assert (caught.value.dialect, caught.value.condition) == (dialect, condition)
    assert str(caught.value).endswith(".")


def test_many_alternatives_are_written_as_they_were():
    pattern = {"x": [f"{number:03}" for number in range(60)]}
    assert json.loads(write_filter(read_filter(json.dumps(pattern), "eventbridge"), "eventbridge")) == pattern


def test_a_dialect_that_is_only_read_says_so():
    with pytest.raises(UnwritableDialect) as caught:
        write_filter(Filter(), "cloudevents")
    assert caught.value.known == tuple(WRITERS)
