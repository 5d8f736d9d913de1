"""CloudEvents SQL: against an evaluator that knows no formulas and no sets of values."""

import re
import time
from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import palio
from palio.language import MissingFunction, UnwritableCondition, WrongDialectText, read_filter, write_filter
from palio.language.cesql.compiling import compiled
from palio.language.cesql.nested import nested
from palio.language.cesql.quick_reader import plain as quickly_read
from palio.language.cesql.reader import read_cesql
from palio.language.cesql.shortcut import short
from palio.model.filter import Filter
from palio.model.reading import MAX_CONDITIONS, MAX_DEPTH, MAX_VALUES
from tests.slices import examples

# The language once more, as its specification says it: a mistake ends everything, and whoever
# does not look at an operand does not make its mistakes.


class Mistake(Exception):
    pass


def typed(value):
    """What an attribute is in the language."""
    match value:
        case None:
            raise Mistake("missing")
        case bool() | str():
            return value
        case int():
            return value if -(2**31) <= value < 2**31 else str(value)
        case float():
            return str(value)
        case datetime():
            return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S") + (
                f".{value.microsecond:06}Z" if value.microsecond else "Z"
            )
        case _:
            return ""


def cast(value, wanted):
    if type(value) is wanted:
        return value
    if wanted is str:
        return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)
    if wanted is bool:
        if isinstance(value, int):
            return value != 0
        if value.lower() not in ("true", "false"):
            raise Mistake("cast")
        return value.lower() == "true"
    if isinstance(value, bool):
        return 1 if value else 0
    if not re.fullmatch("[+-]?[0-9]+", value):
        raise Mistake("cast")
    return small(int(value))


def small(number):
    if not -(2**31) <= number < 2**31:
        raise Mistake("overflow")
    return number


def truncated(left, right):
    if right == 0:
        raise Mistake("math")
    found = abs(left) // abs(right)
    return found if (left < 0) == (right < 0) else -found


def substring(text, position, length=10**9):
    if length < 0 or position > len(text) or position < -len(text):
        raise Mistake("function")
    if position == 0:
        return ""
    rest = text[position - 1 :] if position > 0 else text[position:]
    return rest[:length]


def end(text, count, cut):
    if count < 0:
        raise Mistake("function")
    return cut(text, count)


NUMBERS = {
    "+": lambda left, right: small(left + right),
    "-": lambda left, right: small(left - right),
    "*": lambda left, right: small(left * right),
    "/": lambda left, right: small(truncated(left, right)),
    "%": lambda left, right: left - right * truncated(left, right),
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}
CALLS = {
    "INT": ((int,), lambda one: one),
    "BOOL": ((bool,), lambda one: one),
    "STRING": ((str,), lambda one: one),
    "LENGTH": ((str,), len),
    "CONCAT": ((str, str), lambda one, other: one + other),
    "CONCAT_WS": ((str, str, str), lambda between, one, other: one + between + other),
    "LOWER": ((str,), str.lower),
    "UPPER": ((str,), str.upper),
    "TRIM": ((str,), str.strip),
    "LEFT": ((str, int), lambda text, count: end(text, count, lambda text, count: text[:count])),
    "RIGHT": ((str, int), lambda text, count: end(text, count, lambda text, count: text[::-1][:count][::-1])),
    "SUBSTRING": ((str, int, int), substring),
    "ABS": ((int,), lambda number: small(abs(number))),
}


def like(text, pattern):
    found, at = "", 0
    while at < len(pattern):
        if pattern[at] == "\\" and pattern[at + 1 : at + 2] in ("%", "_"):
            at += 1
            found += re.escape(pattern[at])
        else:
            found += {"%": "(?s:.*)", "_": "(?s:.)"}.get(pattern[at]) or re.escape(pattern[at])
        at += 1
    return re.fullmatch(found, text) is not None


def value_of(expression, event):
    match expression:
        case ("constant", value):
            return value
        case ("attribute", name):
            return typed(event.get(name))
        case ("exists", name):
            return name in event
        case ("not", operand):
            value = value_of(operand, event)
            if type(value) is int:
                raise Mistake("cast")
            return not cast(value, bool)
        case ("negative", operand):
            return small(-cast(value_of(operand, event), int))
        case ("AND", left, right):
            return cast(value_of(left, event), bool) and cast(value_of(right, event), bool)
        case ("OR", left, right):
            return cast(value_of(left, event), bool) or cast(value_of(right, event), bool)
        case ("XOR", left, right):
            return cast(value_of(left, event), bool) != cast(value_of(right, event), bool)
        case ("=" | "!=" | "<>" as sign, left, right):
            left, right = value_of(left, event), value_of(right, event)
            return (cast(left, type(right)) == right) == (sign == "=")
        case ("like", operand, pattern, truth):
            return like(cast(value_of(operand, event), str), pattern) == truth
        case ("in", operand, others, truth):
            one = value_of(operand, event)
            return (one in [cast(value_of(other, event), type(one)) for other in others]) == truth
        case ("call", name, operands):
            takes, compute = CALLS[name]
            values = [cast(value_of(one, event), kind) for one, kind in zip(operands, takes, strict=True)]
            return compute(*values)
        case (sign, left, right):
            return NUMBERS[sign](cast(value_of(left, event), int), cast(value_of(right, event), int))


def selects(expression, event):
    try:
        return value_of(expression, event) is True
    except Mistake:
        return False


def written(expression):
    """Everything in parentheses, so that no precedence matters."""
    match expression:
        case ("constant", bool() as truth):
            return str(truth)
        case ("constant", str() as text):
            return "'" + text.replace("'", "\\'") + "'"
        case ("constant", number):
            return str(number)
        case ("attribute", name):
            return name
        case ("exists", name):
            return f"EXISTS {name}"
        case ("not", operand):
            return f"NOT ({written(operand)})"
        case ("negative", operand):
            return f"- ({written(operand)})"
        case ("like", operand, pattern, truth):
            return f"({written(operand)}) {'' if truth else 'NOT '}LIKE '{pattern}'"
        case ("in", operand, others, truth):
            return f"({written(operand)}) {'' if truth else 'NOT '}IN ({', '.join(map(written, others))})"
        case ("call", name, operands):
            return f"{name}({', '.join(map(written, operands))})"
        case (sign, left, right):
            return f"({written(left)}) {sign} ({written(right)})"


NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
LATER = datetime(2026, 1, 31, 12, 0, 0, 500_000, tzinfo=UTC)
TEXTS = [
    *(
        "a",
        "ab",
        "ba",
        "b%",
        "",
        "é",
        "5",
        "+5",
        "05",
        "-5",
        "-0",
        "00",
        "1",
        "0",
        "15",
        "5 ",
        "+",
        "5.0",
        "2.5",
    ),
    *("true", "TRUE", "false", "fAlSe", "truer", "2147483647", "2147483648", "-2147483648", "5000000000"),
    *(
        "2026-01-31T12:00:00Z",
        "2026-01-31T12:00:00.500000Z",
        "2026-01-31T12:00:00.5Z",
        "1e+20",
        "aGk=",
        "[]",
        "a\\b",
    ),
]
INTEGERS = [*range(-6, 16), 2**31 - 1, -(2**31), 2**31 - 2]
names = st.sampled_from(["x", "y", "z"])
texts = st.sampled_from(TEXTS)
patterns = st.sampled_from(
    [
        "%",
        "",
        "a%",
        "%a",
        "%b%",
        "_",
        "1%",
        "%5",
        "-_",
        "tr%",
        "%e",
        "2026%",
        "%Z",
        "5\\%",
        "b\\%",
        "_\\%",
        "5._",
        "%!%",
    ]
)
constants = st.tuples(st.just("constant"), texts | st.sampled_from(INTEGERS) | st.booleans())
attributes = st.tuples(st.just("attribute"), names)
exists = st.tuples(st.just("exists"), names)
signs = st.sampled_from([*"+-*/%<>=", "<=", ">=", "!=", "<>"])
comparisons = st.sampled_from([*"<>=", "<=", ">=", "!=", "<>"])


def conditions_of(operands):
    return st.one_of(
        st.tuples(comparisons, operands, operands),
        st.tuples(st.just("like"), operands, patterns, st.booleans()),
        st.tuples(
            st.just("in"), operands, st.lists(constants | operands, min_size=1, max_size=3), st.booleans()
        ),
    )


def joined(inner):
    return st.one_of(
        st.tuples(st.sampled_from(["AND", "OR", "XOR"]), inner, inner),
        st.tuples(st.just("not"), inner),
    )


def anything(inner):
    calls = [
        st.tuples(st.just("call"), st.just(name), st.tuples(*[inner] * len(takes)))
        for name, (takes, _) in CALLS.items()
    ]
    return st.one_of(
        *(
            conditions_of(inner),
            joined(inner),
            st.tuples(signs, inner, inner),
            st.tuples(st.just("negative"), inner),
        ),
        *calls,
    )


# Conditions as people join them, which sets of values can say for the most part, and just anything.
plain = st.recursive(
    st.one_of(
        conditions_of(attributes | constants), st.tuples(comparisons, attributes, constants), exists, attributes
    ),
    joined,
    max_leaves=6,
)
wild = st.recursive(constants | attributes | exists, anything, max_leaves=6)
values = st.one_of(
    texts,
    st.sampled_from(
        [*INTEGERS, 2**31, 5_000_000_000, 5.0, 2.5, 1e20, -0.5, NOON, LATER, b"hi", b"", [], ["a"]]
    ),
    st.booleans(),
)
events = st.dictionaries(names, values, max_size=3)


@examples(300)
@given(plain | wild, st.lists(events, min_size=4, max_size=10))
@example(
    ("not", ("=", ("attribute", "x"), ("constant", 1))),
    [{"x": one} for one in ("1", 1, True, "+01", "2", 2, 1.0)] + [{}],
)
@example(
    ("in", ("attribute", "x"), [("constant", "5"), ("constant", "a")], False),
    [{"x": one} for one in (5, "5", "b", True, 2.5)],
)
@example(("=", ("constant", "05"), ("attribute", "x")), [{"x": one} for one in (5, "5", "05", True)])
@example(
    ("OR", ("=", ("attribute", "x"), ("constant", "a")), ("=", ("attribute", "y"), ("constant", "b"))),
    [{"x": "a"}, {"y": "b"}, {"x": "b", "y": "b"}, {}],
)
def test_it_selects_what_the_specification_says(expression, several):
    text = written(expression)
    found = read_filter(text, "cesql")
    travelled = Filter.of_form(found.form)
    for event in several:
        notification = palio.Notification(event)
        expected = selects(expression, event)
        assert found.matches(notification) == expected, (text, event, str(found))
        assert travelled.matches(notification) == expected


@examples(150)
@given(plain | wild, st.lists(events, min_size=4, max_size=10))
def test_it_is_written_again_as_what_selects_the_same_or_refused(expression, several):
    try:
        text = write_filter(read_filter(written(expression), "cesql"), "cesql")
    except UnwritableCondition:
        return
    found = read_filter(text, "cesql")
    for event in several:
        assert found.matches(palio.Notification(event)) == selects(expression, event), (text, event)


@pytest.mark.parametrize(
    "text",
    [
        "a < 5 OR b > 7",
        "x = 5 OR type = 'a'",
        "type = 'a' OR x = 5",
        "NOT (a < b) AND hop >= 10",
        "a = b XOR c = 'x'",
        "type LIKE '1%' AND INT(x) % 5 = -(2 - y)",
        "(x + 5) * -3 > 7 AND x IN (y, 'a', 5)",
        "CONCAT(x, 'it\\'s \"so\"') = ABS(z) AND NOT EXISTS w",
        "fatal AND NOT done",
        "fatal",
    ],
)
def test_expressions_of_people_are_written_again(text):
    f = read_filter(text, "cesql")
    assert read_filter(write_filter(f, "cesql"), "cesql") == f


simple = st.one_of(
    attributes,
    exists,
    st.tuples(comparisons, constants, attributes),
    st.tuples(comparisons, attributes, constants),
    st.tuples(comparisons, attributes, st.tuples(st.just("constant"), st.sampled_from(INTEGERS))),
    st.tuples(st.just("like"), attributes, patterns, st.booleans()),
    st.tuples(st.just("in"), attributes, st.lists(constants, min_size=1, max_size=3), st.booleans()),
)


def is_the_same_on_both_ways(text):
    formula = read_cesql(text)
    short_way = short(formula)
    if short_way is not None:
        assert Filter(short_way).form == compiled(formula).form


@examples(300)
@given(st.lists(simple | st.tuples(st.just("not"), simple), min_size=1, max_size=5))
@example([(">", ("attribute", "x"), ("constant", 5)), ("<", ("attribute", "x"), ("constant", 7))])
@example([("not", ("=", ("attribute", "x"), ("constant", 5))), ("like", ("attribute", "x"), "a%", False)])
@example([("=", ("attribute", name), ("constant", 5)) for name in "xyzx"])
@example([(sign, ("constant", -6), ("attribute", "x")) for sign in "<<="])
def test_the_short_way_leads_where_the_long_one_does(several):
    is_the_same_on_both_ways(" AND ".join(f"({written(one)})" for one in several))


@examples(300)
@given(
    st.lists(
        st.lists(simple | st.tuples(st.just("not"), simple), min_size=1, max_size=3), min_size=1, max_size=3
    )
)
@example([[(">", ("attribute", "x"), ("constant", number)) for number in (-5, 5)]])
@example([[(sign, ("attribute", "x"), ("constant", 5)) for sign in ("<", ">=", "!=")]])
@example([[(">=", ("attribute", "x"), ("constant", -(2**31))), ("=", ("attribute", "y"), ("constant", 1))]])
@example([[("=", ("attribute", name), ("constant", 5)) for name in "xyz"]])
@example([[("like", ("attribute", name), "a%", truth) for name in "xy"] for truth in (True, False)])
def test_so_it_does_where_there_are_alternatives(groups):
    joined = (" OR ".join(f"({written(one)})" for one in group) for group in groups)
    is_the_same_on_both_ways(" AND ".join(f"({one})" for one in joined))


nestings = st.recursive(
    simple,
    lambda inner: st.one_of(
        st.tuples(st.just("not"), inner), st.tuples(st.sampled_from(["AND", "OR", "XOR"]), inner, inner)
    ),
    max_leaves=4,
)


@examples(60)
@given(nestings)
@example(("XOR", ("=", ("attribute", "x"), ("constant", True)), ("=", ("attribute", "y"), ("constant", 5))))
@example(
    (
        "AND",
        ("not", ("=", ("attribute", "x"), ("constant", True))),
        ("OR", ("=", ("attribute", "x"), ("constant", True)), ("=", ("attribute", "y"), ("constant", "a"))),
    )
)
def test_what_is_nested_is_the_same_filter_as_on_the_long_way(expression):
    formula = read_cesql(written(expression))
    found = nested(formula)
    if found is not None:
        assert Filter(found) == compiled(formula)


@pytest.mark.parametrize(
    "text",
    [
        "price > 100",
        "NOT (price = 100)",
        "symbol = 'IBM' AND volume > 1000 AND volume <= 5000",
        "a = 1 AND b < 2 AND c > 3 AND d IN ('x', 'y') AND e LIKE 'a%'",
        "a <> 'x' AND b NOT IN ('x', 'y') AND c NOT LIKE '%x%'",
        "price < 5 OR price > 10",
        "(a = 'x' OR a LIKE 'y%' OR a IN ('z', 'true')) AND b > 5",
        "5 < price AND active = TRUE AND (NOT open OR open2 != FALSE)",
        "a < 5 OR b > 10 OR c = 'x'",
        "t = 'x' AND (a < 5 OR b = 'y') AND (c = 'x' OR d LIKE 'y%')",
    ],
)
def test_comparisons_with_constants_take_the_short_way(text):
    assert short(read_cesql(text)) is not None


# Texts that a regular expression reads, and such as it must not take for them.
tokens = st.sampled_from(
    [
        *("a", "B1", "data", "like", "5b", "a_b", "=", "<>", "!="),
        *("<", ">=", "LIKE", "NOT", "IN", "AND", "and", "Or", "XOR"),
        *("TRUE", "EXISTS", "(", ")"),
        *("5", "-7", "+5", "007", "2147483648", "'x'", "'x%'", "'%x%'", "'%'"),
        *("'x_'", "'x!'", "'é'"),
        *("- 7", r"'\'x'", '"x"', "\v", "\n", "\xa0", ""),
    ]
)
named = st.sampled_from(["a", "B1", "type", "data", "exists", "not", "a" * 300])
told = st.one_of(
    st.tuples(named, st.sampled_from(["=", "<>", "!=", "<", "<=", ">", ">="]), tokens),
    st.tuples(named, st.sampled_from(["LIKE", "like", "NOT LIKE", "IN"]), tokens),
    st.tuples(tokens, tokens, tokens),
)


@examples(500)
@given(
    st.lists(st.tuples(told, st.sampled_from(["AND", "and", "OR", "XOR", "ANDS", ""])), min_size=1, max_size=4),
    st.sampled_from([" ", "", "\n ", "\v"]),
)
def test_what_is_read_quickly_is_what_the_reader_reads(several, blank):
    words = [word for condition, joint in several for word in (*condition, joint)][:-1]
    text = blank.join(words)
    quick = quickly_read(text)
    if quick is not None:
        assert quick == read_cesql(text)


@pytest.mark.parametrize(
    "text", ["a='x'", " A1 < -5\n", "a LIKE '%x%' and b != 5 AND c <> 'y'", "a = 1 OR b = 2"]
)
def test_plain_conditions_are_read_quickly(text):
    assert quickly_read(text) == read_cesql(text)


@given(plain | wild, plain | wild, st.lists(events, min_size=4, max_size=10))
def test_covering_and_overlapping_are_sound(one, other, several):
    first, second = (read_filter(written(expression), "cesql") for expression in (one, other))
    for event in several:
        if selects(other, event):
            assert selects(one, event) or not first.covers(second)
            assert not selects(one, event) or first.overlaps(second)
            assert second.contradiction is None


# What is plain, and what is left to a residual


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("type = 'com.example'", 'type = "com.example"'),
        ("TYPE <> 'a' and Exists SUBJECT", 'type != "a" and exists(subject)'),
        ("source LIKE '/a/%'", 'source starts with "/a/"'),
        ("NOT (EXISTS subject)", "absent(subject)"),
        ("NOT (x LIKE '%.err')", 'exists(x) and not x ends with ".err"'),
        ("x IN ('a', \"b\") XOR FALSE", 'x in ("a", "b")'),
        ("x = '5'", 'x = "5" or int x = 5'),
        ("x = '5.0'", 'x = "5.0" or float x = 5.0'),
        ("x = 'TRUE'", 'x = "TRUE"'),
        ("x = 'true'", 'x = "true" or x = true'),
        ("x = 'a' OR y = 'b'", 'x = "a" or exists(x) and y = "b"'),
        ("x = 'a' AND TRUE OR x = 'b'", 'x in ("a", "b")'),
        ("x LIKE 'a\\%b!_'", 'x like "a!%b!!_" escape "!"'),
        ("x", "x = true"),
    ],
)
def test_what_sets_of_values_can_say_is_a_filter_of_ours(text, meaning):
    found = read_filter(text, "cesql")
    assert found == palio.Filter.parse(meaning)
    assert not found.has_residuals


def test_a_residual_stands_beside_what_it_implies():
    found = read_filter("type = 'a' AND hop < ttl", "cesql")
    (box,) = found.conjunctions
    assert found.has_residuals
    assert set(box.sides) == {"hop", "ttl", "type"}
    assert palio.Filter.parse('type = "a" and exists(hop)').covers(found)


def test_integers_are_told_from_strings_that_are_cast_to_them():
    found = read_filter("price > 100", "cesql")
    assert found.covers(palio.Filter.parse("int price between 200 and 300"))
    assert palio.Filter.parse("int price > 100 or exists(string price)").covers(found)


def test_so_they_are_beside_comparisons_of_texts():
    texts = "type = 'a' AND source = 'b' AND subject = 'c'"
    ours = 'type = "a" and source = "b" and subject = "c"'
    found = read_filter(f"{texts} AND price > 100", "cesql")
    assert found.covers(palio.Filter.parse(f"{ours} and int price between 200 and 300"))


def test_what_makes_too_many_conjunctions_is_left_to_residuals():
    text = " AND ".join(f"(a{number} = 'x' OR b{number} = 'y')" for number in range(8))
    found = read_filter(f"type = 't' AND {text}", "cesql")
    (box,) = found.conjunctions
    assert "type" in box.sides
    event = {
        "type": "t",
        **{f"a{number}": "z" for number in range(8)},
        **{f"b{number}": "y" for number in range(8)},
    }
    assert found.matches(palio.Notification(event))
    assert not found.matches(palio.Notification({**event, "b3": "z"}))


# Precedence, which is not that of SQL


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("EXISTS a OR EXISTS b AND EXISTS c", "(EXISTS a OR EXISTS b) AND EXISTS c"),
        ("EXISTS a XOR EXISTS b OR EXISTS c", "(EXISTS a XOR EXISTS b) OR EXISTS c"),
        ("NOT x = TRUE", "(NOT x) = TRUE"),
        ("a + b * 2 - 1 = 5", "((a + (b * 2)) - 1) = 5"),
        ("10-a = 5", "(10 - a) = 5"),
        ("a = b IN (c, d)", "a = (b IN (c, d))"),
        ("- a LIKE '5'", "(- a) LIKE '5'"),
        ("--5 = x", "5 = x"),
        ("x LIKE '1%' = y", "(x LIKE '1%') = y"),
    ],
)
def test_operators_bind_as_the_specification_says(text, same):
    assert read_filter(text, "cesql") == read_filter(same, "cesql")


# Mistakes


@pytest.mark.parametrize(
    ("text", "column", "problem"),
    [
        ("", 1, "expected a value, found the end."),
        ("type =", 7, "expected a value, found the end."),
        ("type == 'a'", 7, "expected a value, found `=`."),
        ("type = 'a", 8, "this string is never closed; a ' within it is written \\'."),
        ("type = 'a' adn x = 'b'", 12, "expected an operator or the end of the expression, found `adn`."),
        ("type = 'a''b'", 11, "expected an operator or the end of the expression, found `'b'`."),
        ("(type = 'a'", 12, "expected `)`, found the end."),
        ("type NOT = 'a'", 10, "expected `LIKE` or `IN`, found `=`."),
        ("x LIKE 5", 8, "expected a string with the pattern, found `5`."),
        ("x IN ()", 7, "expected a value, found `)`."),
        ("x IN ('a' 'b')", 11, "expected `,` or `)`, found `'b'`."),
        ("EXISTS (x)", 8, "expected the name of an attribute, found `(`."),
        ("my_ext = 'a'", 3, "the name of an attribute has letters and digits only."),
        ("a.b = 'a'", 2, "expected a value or an operator, found `.`."),
        (
            "a = 2147483648",
            5,
            "this integer does not fit into 32 bits: they go from -2147483648 to 2147483647.",
        ),
        ("a = + 5", 7, "expected the digits of an integer right behind the sign, found `5`."),
        ("data = 'x'", 1, "CESQL speaks of the attributes of an event, and not of its data."),
        (
            f"x LIKE '%a{'_' * 10}'",
            8,
            "this pattern takes more than 1,024 states, or too many steps to find them.",
        ),
    ],
)
def test_a_mistake_is_told_with_its_column(text, column, problem):
    with pytest.raises(WrongDialectText) as caught:
        read_filter(text, "cesql")
    assert (caught.value.column, caught.value.problem) == (column, problem)
    assert caught.value.text == text


@pytest.mark.parametrize(
    ("text", "column", "said"),
    [
        ("x = LENGHT('a')", 5, "there is no function 'LENGHT'. Did you mean LENGTH?"),
        ("LEFT(x) = 'a'", 1, "there is no LEFT of one operand. It has 2 operands."),
        ("substring('a') = 'a'", 1, "there is no SUBSTRING of one operand. It has 2 or 3 operands."),
    ],
)
def test_a_function_that_is_missing_is_told_with_what_there_is(text, column, said):
    with pytest.raises(MissingFunction) as caught:
        read_filter(text, "cesql")
    assert str(caught.value) == f"Column {column} (cesql): {said}"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1 + 2", "the expression comes to an Integer, and only the Boolean `true` selects an event."),
        ("LOWER(type)", "the expression comes to a String, and only the Boolean `true` selects an event."),
        ("type = 'a' AND type = 'b'", '`type = "a"` and `type = "b"` exclude each other.'),
        ("NOT 10", "`false` never holds."),
        ("1 / 0 = 1", "`false` never holds."),
        ("type < 'a'", "`false` never holds."),
    ],
)
def test_what_can_never_match_is_known(text, reason):
    found = read_filter(text, "cesql")
    assert found.contradiction == reason
    with pytest.raises(palio.PalioError):
        found.require_satisfiable()


@pytest.mark.parametrize(
    "text",
    [
        "(" * 100_000,
        "(" * MAX_DEPTH + "(x)" + ")" * MAX_DEPTH,
        "NOT " * 1_000 + "x",
        "-" * 1_000 + "x",
        "x + " * 1_000 + "1 = 1",
        "a AND b OR " * 200 + "c",
        "EXISTS a AND " * (MAX_CONDITIONS + 1) + "EXISTS a",
        f"x IN ({'1,' * MAX_VALUES}1)",
        f"y IN (x, {'1,' * 300}1)",
        "'" * 99_999,
        "x = '" + "\\" * 99_999,
        "x" * 300 + " = 1",
        "x = " + "9" * 100_000,
        "x = '\ud800'",
        "x LIKE '" + "_" * 1_025 + "'",
        "CONCAT(" * 70 + "x" + ")" * 70 + " = 'a'",
        " " * 300_000,
        " AND ".join(f"a LIKE '%{number}a{'_' * 8}'" for number in range(200)),
    ],
)
def test_hostile_texts_are_refused_at_once(text):
    began = time.process_time()
    with pytest.raises(palio.PalioError):
        read_filter(text, "cesql")
    assert time.process_time() - began < 2


@pytest.mark.parametrize(
    "text",
    [
        "x = '" + "0" * 60_000 + "1'",
        " AND ".join(f"a{number} < b{number}" for number in range(40)),
        " AND ".join(f"a{number} < {number}" for number in range(40)),
        " OR ".join(f"a{number} < {number}" for number in range(20)),
        " XOR ".join(f"a{number} = 'x'" for number in range(40)),
        "a = 'x' OR b = 'x' AND " * 20 + "c = 'y'",
    ],
)
def test_what_is_large_but_allowed_is_read_and_asked(text):
    began = time.process_time()
    read_filter(text, "cesql").matches(palio.Notification({"x": "0" * 60_000 + "1", "a1": 1, "b1": "2"}))
    assert time.process_time() - began < 2


def test_a_pattern_takes_a_step_for_each_character_of_a_text_whatever_it_is():
    pattern = "!%" + "%a" * 400 + "_" * 10 + "b"  # which has too many states for a table
    found = palio.Filter.parse(f'cesql.like(cesql.concat(x, "!"), "{pattern}")')
    began = time.process_time()
    for _ in range(5):
        assert not found.matches(palio.Notification({"x": "%" + "a" * 60_000}))
    assert found.matches(palio.Notification({"x": "%" + "a" * 500 + "b"})) is False
    assert time.process_time() - began < 5


@pytest.mark.parametrize("pattern", ["!", "a!", "x" * 1_025, "!x"])
def test_a_pattern_that_nobody_can_have_read_matches_nothing(pattern):
    found = palio.Filter.parse(f'cesql.like(cesql.concat(x, ""), "{pattern}")')
    assert not found.matches(palio.Notification({"x": pattern}))


def test_white_space_is_that_of_unicode():
    found = read_filter("TRIM(x) = 'a b'", "cesql")
    assert found.matches(palio.Notification({"x": "\u2003\t a b\u00a0\u3000\n"}))
    assert not found.matches(palio.Notification({"x": "\x1ca b"}))  # which Python would strip


def test_texts_that_grow_end_before_they_are_large():
    text = "x"
    for _ in range(4):
        text = f"CONCAT({text}, {text}, {text})"
    found = read_filter(f"LENGTH({text}) > 0", "cesql")
    assert found.matches(palio.Notification({"x": "é" * 400}))
    assert not found.matches(palio.Notification({"x": "é" * 30_000}))
