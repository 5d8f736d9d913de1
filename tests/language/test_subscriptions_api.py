"""Filters of the CloudEvents Subscriptions API: against an evaluator that knows nothing of sets of values."""

from datetime import datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import palio
from palio.language import UnknownDialect, WrongExpression, read_filters


def written(value):
    """A value as CloudEvents writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def is_moment(text: str) -> bool:
    return text.startswith("2026-")


def holds(expression, attributes) -> bool:
    """What the specification says, word by word."""
    ((dialect, content),) = expression.items()
    match dialect:
        case "exact":
            return all(name in attributes and same(attributes[name], text) for name, text in content.items())
        case "prefix":
            return all(
                isinstance(attributes.get(name), str) and attributes[name].startswith(text)
                for name, text in content.items()
            )
        case "suffix":
            return all(
                isinstance(attributes.get(name), str) and attributes[name].endswith(text)
                for name, text in content.items()
            )
        case "all":
            return all(holds(one, attributes) for one in content)
        case "any":
            return any(holds(one, attributes) for one in content)
        case "not":
            return not holds(content, attributes)
        case "palio":
            return palio.Filter.parse(content).matches(palio.Notification(attributes))
    raise AssertionError(dialect)


def same(value, wanted) -> bool:
    if isinstance(value, datetime):  # however it is written: the text that was published is not kept
        return isinstance(wanted, str) and is_moment(wanted) and datetime.fromisoformat(wanted) == value
    if isinstance(wanted, str):
        return not isinstance(value, float) and written(value) == wanted
    if isinstance(wanted, bool) or isinstance(value, bool):
        return value is wanted
    return isinstance(value, int | float) and value == wanted


NOON = "2026-01-31T12:00:00.5Z"  # which palio would write with more digits
times = st.sampled_from(["2026-01-31T12:00:00Z", NOON])
texts = st.sampled_from(["a", "ab", "b", "ba", "5", "-5", "05", "true", "false", "5.0", "é", "0"]) | times
values = st.one_of(
    texts,
    st.integers(-6, 6),
    st.booleans(),
    st.sampled_from([5.0, 2.5, -5.0]),
    times.map(datetime.fromisoformat),
)
names = st.sampled_from(["type", "source", "subject", "data.x"])
compared = st.dictionaries(names, texts, min_size=1, max_size=2)
leaves = st.one_of(
    st.fixed_dictionaries({"exact": compared}),
    st.fixed_dictionaries(
        {
            "exact": st.dictionaries(
                names, st.integers(-6, 6) | st.booleans() | st.just(2.5), min_size=1, max_size=2
            )
        }
    ),
    st.fixed_dictionaries({"prefix": compared}),
    st.fixed_dictionaries({"suffix": compared}),
    st.fixed_dictionaries(
        {"palio": st.sampled_from(['type = "a"', "exists(subject)", "`data.x` > 1", "not source"])}
    ),
)
filters = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.fixed_dictionaries({"all": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"any": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"not": inner}),
    ),
    max_leaves=5,
)
events = st.dictionaries(names, values, max_size=4)


@given(st.lists(filters, max_size=3), st.lists(events, min_size=1, max_size=6))
@example([{"exact": {"type": "5"}}], [{"type": 5}, {"type": 5.0}, {"type": "5"}, {"type": "05"}])
@example([{"exact": {"type": NOON}}], [{"type": datetime.fromisoformat(NOON)}, {"type": NOON}])
@example([{"not": {"exact": {"type": "true"}}}], [{"type": True}, {"type": "true"}, {"type": 1}, {}])
def test_it_selects_what_the_specification_says(expressions, several):
    compiled = read_filters(expressions)
    again = palio.Filter.parse(str(compiled))  # as it travels
    for attributes in several:
        expected = all(holds(one, attributes) for one in expressions)
        notification = palio.Notification(attributes)
        assert compiled.matches(notification) == expected
        assert again.matches(notification) == expected


def test_nothing_selects_everything():
    assert read_filters(None) == read_filters([]) == palio.Filter.parse("true")


@pytest.mark.parametrize(
    ("filters", "path"),
    [
        ({}, "$.filters"),
        ("x", "$.filters"),
        ([3], "$.filters[0]"),
        ([{}], "$.filters[0]"),
        ([{"exact": {"a": "1"}, "prefix": {"a": "1"}}], "$.filters[0]"),
        ([{"exact": {}}], "$.filters[0].exact"),
        ([{"exact": {"type": ""}}], "$.filters[0].exact.type"),
        ([{"exact": {"type": None}}], "$.filters[0].exact.type"),
        ([{"exact": {"": "a"}}], "$.filters[0].exact."),
        ([{"exact": {"n" * 10_000: "a"}}], f"$.filters[0].exact.{'n' * 64}…"),
        ([{"exact": {"type": ["a"]}}], "$.filters[0].exact.type"),
        ([{"exact": {"type": float("nan")}}], "$.filters[0].exact.type"),
        ([{"prefix": {"type": 5}}], "$.filters[0].prefix.type"),
        ([{"all": []}], "$.filters[0].all"),
        ([{"any": {"exact": {"a": "b"}}}], "$.filters[0].any"),
        ([{"not": [{"exact": {"a": "b"}}]}], "$.filters[0].not"),
        ([{"palio": 5}], "$.filters[0].palio"),
        ([{"sql": 5}], "$.filters[0].sql"),
    ],
)
def test_what_is_wrong_is_named_by_its_path(filters, path):
    with pytest.raises(WrongExpression) as caught:
        read_filters(filters)
    assert caught.value.path == path


def test_an_unknown_dialect_is_refused_with_those_that_are_known():
    with pytest.raises(UnknownDialect, match="'soap' is not supported; there are exact") as caught:
        read_filters([{"any": [{"exact": {"a": "b"}}, {"soap": "type = 'a'"}]}])
    assert caught.value.path == "$.filters[0].any[1]"
    assert caught.value.dialect == "soap"


def test_sql_is_cloudevents_sql():
    found = read_filters([{"exact": {"type": "a"}}, {"sql": "hop < ttl OR subject LIKE 'x%'"}])
    assert found.matches(palio.Notification({"type": "a", "hop": "5", "ttl": 6}))
    assert found.matches(palio.Notification({"type": "a", "hop": 6, "ttl": 5, "subject": "xy"}))
    assert not found.matches(palio.Notification({"type": "b", "hop": "5", "ttl": 6}))
    assert not found.matches(palio.Notification({"type": "a", "subject": "xy"}))  # missing is an error


def test_not_sql_is_all_that_it_does_not_select():
    found = read_filters([{"not": {"sql": "hop < ttl"}}])
    assert found.matches(palio.Notification({"hop": 5}))
    assert found.matches(palio.Notification({"hop": 6, "ttl": 5}))
    assert not found.matches(palio.Notification({"hop": 5, "ttl": 6}))


def test_sql_says_what_is_wrong_with_it_in_its_own_columns():
    with pytest.raises(palio.FilterSyntaxError) as caught:
        read_filters([{"exact": {"a": "b"}}, {"not": {"sql": "type = "}}])
    assert (caught.value.column, caught.value.text, caught.value.dialect) == (8, "type = ", "cesql")
    assert "in `$.filters[1].not.sql`, expected a value" in str(caught.value)


def test_sql_that_can_never_match_says_why():
    found = read_filters([{"exact": {"a": "b"}}, {"sql": "1 + 1"}])
    assert found.contradiction is not None
    assert "in `$.filters[1].sql`, the expression comes to an Integer" in found.contradiction
    assert read_filters([{"any": [{"exact": {"a": "b"}}, {"sql": "1 + 1"}]}]).contradiction is None


def test_our_own_language_says_what_is_wrong_with_it():
    with pytest.raises(palio.FilterSyntaxError) as caught:
        read_filters([{"palio": "price >"}])
    assert "Column 8: in `$.filters[0].palio`, expected" in str(caught.value)


def test_bombs_are_refused():
    deep = {"exact": {"a": "b"}}
    for _ in range(100):
        deep = {"not": deep}
    with pytest.raises(WrongExpression, match="nested"):
        read_filters([deep])
    with pytest.raises(palio.FilterError):
        read_filters([{"any": [{"exact": {f"a{n}": "b", f"b{n}": "c"}} for n in range(2_000)]}])
    with pytest.raises(palio.FilterError):  # 2^12 conjunctions
        read_filters([{"any": [{"exact": {f"a{n}": "x"}}, {"exact": {f"b{n}": "x"}}]} for n in range(12)])
