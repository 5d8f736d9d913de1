"""Topic expressions. The oracle walks topics segment by segment, as WS-Topics has it, and knows no filters."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palio.broker.soap.faults import SoapProblem
from palio.broker.soap.names import TOPIC_CONCRETE, TOPIC_CONCRETE_SET, TOPIC_FULL, TOPIC_SIMPLE
from palio.broker.soap.topics import ATTRIBUTES, topic_filter
from palio.language import read_filter
from palio.model.notification import Notification

SPACES = {"tns1": "urn:topics"}
NAMES = st.sampled_from(["a", "b", "ab", "a-b", "a.b"])
TOPICS = st.lists(NAMES, min_size=1, max_size=4)
# A step of an expression: what is before its name, and the name.
STEPS = st.lists(st.tuples(st.sampled_from(["/", "/", "//"]), NAMES | st.just("*")), min_size=1, max_size=4)


def selected(steps, below, topic):
    """Whether a topic is one of an expression's."""
    if not steps:
        return below or not topic
    (axis, name), rest = steps[0], steps[1:]
    starts = range(len(topic)) if axis == "//" else range(min(1, len(topic)))
    return any(name in ("*", topic[at]) and selected(rest, below, topic[at + 1 :]) for at in starts)


@settings(max_examples=60)
@given(st.lists(st.tuples(STEPS, st.booleans()), min_size=1, max_size=3), TOPICS, st.sampled_from(ATTRIBUTES))
def test_expressions_select_what_walking_the_topic_finds(alternatives, topic, attribute):
    written = []
    for steps, below in alternatives:
        text = "".join(axis + name for axis, name in steps)
        written.append((text if text.startswith("//") else text[1:]) + ("//." if below else ""))
    filter = read_filter(topic_filter(" | ".join(written), TOPIC_FULL, SPACES))
    expected = any(selected(steps, below, topic) for steps, below in alternatives)
    assert filter.matches(Notification({attribute: "/".join(topic)})) is expected, written


@pytest.mark.parametrize(
    ("text", "dialect", "reason"),
    [
        ("", TOPIC_CONCRETE, "empty"),
        ("a b", TOPIC_CONCRETE, "character 2"),
        ("a/", TOPIC_CONCRETE, "character 2"),
        ("/a", TOPIC_CONCRETE, "character 1"),
        ("other:a", TOPIC_CONCRETE, "not declared"),
        ("a/b", TOPIC_SIMPLE, "cannot say this"),
        ("a/*", TOPIC_CONCRETE_SET, "cannot say this"),
        ("a//.", TOPIC_CONCRETE, "ConcreteSet"),
        ("a|b", TOPIC_CONCRETE, "ConcreteSet"),
        ("a//./b", TOPIC_FULL, "is the last"),
        ("//.", TOPIC_FULL, "comes after"),
        ("|".join(["a"] * 21), TOPIC_FULL, "more than 20"),
        ('a" or true or "', TOPIC_FULL, "character 2"),
    ],
)
def test_expressions_that_cannot_be_used_say_why(text, dialect, reason):
    with pytest.raises(SoapProblem, match=reason) as refused:
        topic_filter(text, dialect, SPACES)
    assert refused.value.fault == "InvalidTopicExpressionFault"
    assert str(refused.value).endswith(".")


def test_prefixes_only_have_to_be_declared():
    assert topic_filter("tns1:a/b", TOPIC_CONCRETE, SPACES) == topic_filter("a/b", TOPIC_CONCRETE, {})
