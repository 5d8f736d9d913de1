"""MQTT's topic filters, against a matcher that goes level by level."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palio import Filter, FilterSyntaxError, Notification
from palio.language import read_filter
from palio.language.mqtt import parse_topic_filter


def matched(pattern: list[str], topic: list[str]) -> bool:
    """As the standard tells it, level by level."""
    if pattern == ["#"]:
        return True
    if not pattern or not topic:
        return pattern == topic
    return pattern[0] in ("+", topic[0]) and (
        matched(pattern[1:], topic[1:]) or (len(topic) == 1 and pattern[1:] == ["#"])
    )


def selected(pattern: str, topic: str) -> bool:
    if topic.startswith("$") and pattern[:1] in ("+", "#"):
        return False
    return matched(pattern.split("/"), topic.split("/"))


LEVELS = st.sampled_from(("a", "b", "", "$SYS", "a*", "**", "\\", "é"))


@given(
    st.lists(st.one_of(LEVELS, st.just("+")), min_size=1, max_size=4),
    st.booleans(),
    st.lists(LEVELS, min_size=1, max_size=5),
)
def test_any_topic_filter(levels, open_end, topic):
    pattern, text = "/".join(levels + ["#"] * open_end), "/".join(topic)
    if not pattern or not text:  # neither may be empty
        return
    assert parse_topic_filter(pattern).matches(Notification({"topic": text})) == selected(pattern, text)


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("sport/tennis/#", ["sport/tennis", "sport/tennis/a/b", "sport/tennis/"], ["sport/tennisx", "sport"]),
        ("+/tennis/#", ["a/tennis", "/tennis/b"], ["$SYS/tennis", "tennis"]),
        ("#", ["a", "/", "a/b"], ["$SYS", "$SYS/a"]),
        ("$SYS/#", ["$SYS", "$SYS/a"], ["a"]),
        ("sport/+", ["sport/", "sport/a"], ["sport", "sport/a/b"]),
    ],
)
def test_what_the_standard_shows(pattern, yes, no):
    f = parse_topic_filter(pattern)
    assert [topic for topic in yes if not f.matches(Notification({"topic": topic}))] == []
    assert [topic for topic in no if f.matches(Notification({"topic": topic}))] == []
    assert not f.matches(Notification({"topic": 5}))


def test_conditions_behind_the_topic_are_our_own_language():
    f = read_filter("sensors/+/temperature?value>25 & unit='C'", "mqtt")
    assert f == Filter.parse('topic matches "sensors/*/temperature" and value > 25 and unit = "C"')


@pytest.mark.parametrize(
    ("text", "column", "problem"),
    [
        ("", 1, "expected a topic filter"),
        ("$share/group/a", 1, "shared subscriptions are not supported"),
        ("a/b#", 4, "`#` stands for a whole level"),
        ("a/#/c", 3, "is the last level"),
        ("ab/c+/d", 5, "`+` stands for a whole level"),
        ("a/\0", 3, "no null character"),
        ("a/+?value >> 25", 12, "expected a value"),
        ("a/+?", 5, "expected an attribute"),
        ("a/" * 600 + "#", 1, "at most 1,024 characters"),
    ],
)
def test_a_mistake_is_told_at_its_column_in_the_whole_text(text, column, problem):
    with pytest.raises(FilterSyntaxError) as caught:
        parse_topic_filter(text)
    assert (caught.value.text, caught.value.column) == (text, column)
    assert problem in caught.value.problem
    assert str(caught.value).endswith(".")
