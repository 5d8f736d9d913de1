"""Message selectors of JMS: by examples, and against an evaluator with three truth values."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palio import Filter, FilterSyntaxError, FilterTooLarge, Notification
from palio.language import read_filter
from palio.language.jms import KEYWORDS, read_selector
from palio.language.jms_shortcut import plain
from tests.selectors import check
from tests.slices import examples, sliced


def selected(text: str, properties: dict) -> bool:
    return read_filter(text, "jms").matches(Notification(properties))


@examples(300)
@given(st.randoms(use_true_random=False))
def test_any_selector_selects_what_makes_it_true(random):
    check(random)


@pytest.mark.parametrize("part", sliced(range(40), 1))
def test_selectors_of_a_fixed_seed_select_what_makes_them_true(part):
    for number in range(part * 250, (part + 1) * 250):
        try:
            check(Random(f"selectors/{number}"))
        except AssertionError as broken:
            broken.add_note(f"again: check(Random('selectors/{number}'))")
            raise


@pytest.mark.parametrize(
    ("selector", "meant"),
    [
        ("symbol='IBM' AND volume > 1000", 'symbol = "IBM" and volume > 1000'),
        ("NOT x > 5", "x <= 5"),
        ("NOT (NOT x > 5)", "x > 5"),
        ("NOT (a >= 1 AND b = 'x')", 'a < 1 or string b != "x"'),
        ("x <> 5", "x < 5 or x > 5"),
        ("NOT active", "active = false"),
        ("country IN ('US', 'UK')", 'country in ("UK", "US")'),
        ("country NOT IN ('US')", 'string country != "US"'),
        ("NOT price BETWEEN 10 AND 20", "price < 10 or price > 20"),
        ("x LIKE 'A!_%' ESCAPE '!'", 'x starts with "A_"'),
        ("x LIKE '%b_'", 'x like "%b_"'),
        ("x IS NULL OR y IS NOT NULL", "absent(x) or exists(y)"),
        ("0x1F = n AND m = 017 AND k < 5L AND l >= .5e3D", "n = 31 and m = 15 and k < 5 and l >= 500"),
        ("n = -9223372036854775808", "n = -9223372036854775808"),
        ("[my ]]key] = 'it''s' and \"a\"\"b\" = 1", '`my ]key` = "it\'s" and `a"b` = 1'),
        ("JMSPriority > 4 AND JMSType = 'car'", 'JMSPriority > 4 and JMSType = "car"'),
        ("(a > 5) = TRUE AND (b > 5) <> TRUE", "a > 5 and b <= 5"),
        ("price * volume > 1000", "price * volume > 1000"),
        ("NOT (price + 1) / 2 > volume", "(price + 1) / 2 <= volume"),
        ("", "true"),
        ("1 < 1.5 OR x = 1", "true"),
    ],
)
def test_what_sets_of_values_can_say_is_said_by_them(selector, meant):
    assert read_filter(selector, "jms") == Filter.parse(meant)


@pytest.mark.parametrize(
    ("selector", "yes", "no"),
    [
        ("absent OR active", {"active": True}, {"active": False}),
        ("percentage OR active", {"percentage": 7, "active": True}, {"percentage": 7}),
        ("NOT (absent IN ('a') AND premium)", {"premium": False}, {"premium": True}),
        ("weight / 2 = 2.5", {"weight": 5}, {"weight": 4}),
        ("7 % t = 2", {"t": -5}, {"t": 0}),
        ("weight + weight * quantity - -t / 2 = 502.5", {"weight": 5, "quantity": 100, "t": -5}, {"weight": 5}),
        ("'London' IN (city, country)", {"city": "London"}, {"city": "Paris"}),
        ("a = b", {"a": 1, "b": 1.0}, {"a": 1, "b": True}),
        ("a <> b", {"a": "x", "b": "y"}, {"a": 1, "b": "y"}),
        ("+city = 'x' OR n = 1", {"n": 1}, {"city": "x"}),
        ("key LIKE '_$%' ESCAPE '$'", {"key": "\U0001f955%"}, {"key": "5"}),
        ("key NOT LIKE 'U_'", {"key": "UKX"}, {"key": 5}),
    ],
)
def test_what_other_brokers_answer(selector, yes, no):
    assert selected(selector, yes)
    assert not selected(selector, no)


@pytest.mark.parametrize(
    ("selector", "column", "problem"),
    [
        ("3+5", 1, "expected a condition"),
        ("a = 1 AND 3+5", 11, "expected a condition"),
        ("=TEST 'test'", 1, "expected a value or a name, found `=`."),
        ("x = NULL", 5, "write `IS NULL`"),
        ("name = 'abc", 8, "this ' is never closed."),
        ("x LIKE 'it''s!' ESCAPE '!'", 14, "Behind the escape"),
        ("x LIKE 'a' ESCAPE 'ab'", 19, "an escape is one character"),
        ("x LIKE y", 8, "expected a pattern in quotes, found `y`."),
        ("5 LIKE 'a'", 1, "only a name is compared by `LIKE`."),
        ("a + 1 IS NULL", 1, "only a name can be NULL."),
        ("abs(x) > 3", 4, "expected an operator, found `(`: selectors have no functions."),
        ("x ~ 5", 3, "expected `AND`, `OR` or the end of the selector, found `~`."),
        ('{"x": [5]}', 1, "expected a value or a name, found `{`."),
        ("x > 5 AND #", 11, "expected a value or a name, found `#`."),
        ("x NOT 5", 7, "expected `BETWEEN`, `IN` or `LIKE`, found `5`."),
        ("in = 5", 1, "An attribute of that name is written [in]."),
        ("x = 08", 5, "not an octal number"),
        ("x = 9223372036854775808", 5, "does not fit into 64 bits"),
        ("x = 1e999", 5, "too large for a float"),
        ("2nd = 5", 1, "this is not a number."),
        ("(a > 5) = b", 11, "compared by `=` or `<>` with TRUE or FALSE only."),
        ("(a > 5) + 1 = 2", 1, "expected a value, and this is a condition."),
        ("x = 1 y = 2", 7, "expected `AND`, `OR` or the end of the selector, found `y`."),
        ("(x = 1", 7, "expected `)`, found the end of the text."),
        ("[] = 1", 1, "1 to 255 characters"),
    ],
)
def test_a_mistake_is_told_at_its_column(selector, column, problem):
    with pytest.raises(FilterSyntaxError) as caught:
        read_filter(selector, "jms")
    assert caught.value.column == column
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    "selector", ["active >= TRUE", "'UK' = 5", "x > 5 AND x < 3", "x + 'a' = 1", "1 / 0 = 1"]
)
def test_what_can_never_match_says_so(selector):
    assert read_filter(selector, "jms").contradiction is not None


@pytest.mark.parametrize(
    "selector",
    [
        "(" * 100 + "x = 1" + ")" * 100,
        "NOT " * 100 + "x",
        "x = 1 OR " * 600 + "x = 2",
        "+".join("x" * 300) + " = 1",
    ],
)
def test_what_is_too_large_is_refused(selector):
    with pytest.raises(FilterTooLarge):
        read_filter(selector, "jms")


# Texts that the short way reads, and such as it must not take for them.
names = st.sampled_from(["a", "B_1", "x.y", "not", "Like", "$a", "[a]", "é", "a" * 300])
values = st.sampled_from(
    [
        *("5", "-7", "+5", "007", "0", "-0", "5L", "0x1F", "1.5"),
        *("-0.0", "1.", ".5", "1e3", "2.5d", "TRUE", "b"),
        *("'x'", "''", "'it''s'", "'a%'", "'%a'", "'%a%'", "'a_'", "'%'", "'é'"),
        *("9" * 18, "9" * 19, "'a!%' ESCAPE '!'", "5 + 1"),
    ]
)
conditions = st.one_of(
    st.tuples(
        names, st.sampled_from(["=", "<>", "!=", "<", "<=", ">", ">=", "LIKE", "not like", "like"]), values
    ),
    st.tuples(names, st.sampled_from(["BETWEEN", "between", "NOT BETWEEN"]), values, st.just("AND"), values),
    st.tuples(names, st.just("IS NULL")),
)


@examples(500)
@given(
    st.lists(st.tuples(conditions, st.sampled_from(["AND", "and", "OR", ""])), min_size=1, max_size=4),
    st.sampled_from([" ", " ", "", "\f\n", "\v"]),
)
def test_the_short_way_leads_where_the_long_one_does(several, blank):
    text = blank.join([word for condition, joint in several for word in (*condition, joint)][:-1])
    short = plain(text, KEYWORDS)
    if short is not None:
        assert Filter.from_expression(short).form == Filter.from_expression(read_selector(text)).form


@pytest.mark.parametrize(
    "selector",
    [
        "a = 'x'",
        " a>=-5\n",
        "A.b between -1.5 and 7 AND c LIKE 'x%'",
        "a LIKE '%x' AND b LIKE '%x%' AND c LIKE 'x'",
    ],
)
def test_plain_selectors_take_the_short_way(selector):
    assert plain(selector, KEYWORDS) is not None
