"""ItemFilters. The oracle is libxml2, which evaluates the same over the message that an event becomes."""

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from palio.broker.soap.content import content_filter
from palio.broker.soap.faults import SoapProblem
from palio.broker.soap.messages import items_of
from palio.broker.soap.names import CONTENT_ITEMS, TT
from palio.language import read_filter
from palio.model.notification import Notification
from palio.protocol.envelope import Envelope

SPACES = {"tt": TT}
NAMES = st.sampled_from(["a", "b"])
SCALARS = st.sampled_from(
    [
        True,
        False,
        5,
        5.0,
        -5,
        1e300,
        "5",
        "5.0",
        "true",
        "",
        "x",
        "AQI=",
        b"\x01\x02",
        datetime(2026, 7, 2, tzinfo=UTC),
    ]
)
LISTS = st.lists(st.sampled_from([5, 6, -5]), min_size=1) | st.lists(
    st.sampled_from(["5", "x", "true"]), min_size=1
)
TEXTS = st.sampled_from(["5", "5.0", "-5", "05", "true", "1e+300", "", "x", "AQI=", "2026-07-02T00:00:00Z"])


def item(name, value, apart):
    if value is None:
        return f'boolean(//tt:SimpleItem[@Name="{name}"])'
    joined = f'@Name="{name}"][@Value="{value}"' if apart else f'@Value="{value}" and @Name="{name}"'
    return f"boolean(//tt:SimpleItem[{joined}])"


EXPRESSIONS = st.recursive(
    st.builds(item, NAMES, st.none() | TEXTS, st.booleans()),
    lambda inner: (
        inner.map("not({})".format)
        | st.tuples(inner, inner).map("({0[0]} and {0[1]})".format)
        | st.tuples(inner, inner).map("({0[0]} or {0[1]})".format)
    ),
    max_leaves=4,
)


@settings(max_examples=100)
@given(EXPRESSIONS, st.dictionaries(NAMES, SCALARS | LISTS))
def test_what_is_selected_is_what_libxml2_finds_in_the_message(expression, attributes):
    notification = Notification(attributes)
    message = items_of(Envelope("b", 1, 0.0, 0, "b", notification))
    expected = etree.ElementTree(message).xpath(expression, namespaces=SPACES)
    filter = read_filter(content_filter(expression, CONTENT_ITEMS, SPACES))
    assert filter.matches(notification) is expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "true()",
        "//tt:ElementItem",
        'boolean(//tt:SimpleItem[@Value="x"])',
        'boolean(//tt:SimpleItem[@Name="a" or @Name="b"])',
        'boolean(//tt:SimpleItem[@Name="a" and @Value="x" and @Value="y"])',
        'boolean(//tt:SimpleItem[@Name="a" and @Value > 5])',
        'boolean(//tt:SimpleItem[@Name="a"]/tt:SimpleItem)',
        'boolean(//other:SimpleItem[@Name="a"])',
        'count(//tt:SimpleItem[@Name="a"]) = 1',
    ],
)
def test_what_no_item_filter_can_say_is_refused_with_a_sentence(text):
    with pytest.raises(SoapProblem) as refused:
        content_filter(text, CONTENT_ITEMS, SPACES)
    assert refused.value.fault == "InvalidMessageContentExpressionFault"
    assert str(refused.value).endswith((".", "?", "`.", '…"])'))
