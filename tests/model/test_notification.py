"""Notifications: what is taken, what is refused and how that is told, JSON and CloudEvents."""

import enum
import json
import math
import pickle
from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palio import Filter, InvalidNotification, Notification
from palio.model.cloudevents import as_event, content_of
from palio.model.moments import format_time, parse_time
from palio.model.values import INT_MAX, INT_MIN, MAX_ATTRIBUTES, MAX_NESTING


class refused:  # noqa: N801  (reads as a statement: with refused(path, reason))
    """The content is refused at this path for this reason."""

    def __init__(self, path, reason):
        self.path, self.reason = path, reason

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        assert isinstance(error, InvalidNotification), f"expected a refusal, got {error!r}"
        assert error.path == self.path
        assert self.reason in error.reason
        assert str(error).endswith(".")
        return True


def test_values_of_all_kinds_keep_their_types():
    content = {
        "bool": True,
        "int": 1,
        "float": 1.0,
        "string": "1",
        "time": datetime(2026, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))),
        "bytes": b"1",
        "list": [1, 2],
    }
    n = Notification(content)
    assert [type(n[name]) for name in content] == [bool, int, float, str, datetime, bytes, tuple]
    assert n["time"] == datetime(2026, 1, 1, tzinfo=UTC)
    assert n["time"].tzinfo is UTC


def test_relatives_of_our_types_are_made_plain():
    class Colour(str, enum.Enum):  # noqa: UP042  (the old way, whose str() is another)
        RED = "red"

    class Moment(datetime):
        """As pandas has one."""

    content = {
        "colour": Colour.RED,
        "level": enum.IntEnum("Level", "LOW").LOW,
        "moment": Moment(2026, 1, 1, 2, 30, 0, 5, tzinfo=timezone(timedelta(hours=2))),
        "half": Fraction(1, 2),
        "raw": bytearray(b"x"),
    }
    n = Notification(content)
    assert dict(n.attributes) == {
        "colour": "red",
        "level": 1,
        "moment": datetime(2026, 1, 1, 0, 30, 0, 5, tzinfo=UTC),
        "half": 0.5,
        "raw": b"x",
    }
    assert [type(value) for value in n.attributes.values()] == [str, int, datetime, float, bytes]


def test_objects_flatten_to_dotted_names_and_null_is_absent():
    n = Notification({"order": {"id": 7, "customer": {"name": "Ana"}}, "note": None})
    assert dict(n.attributes) == {"order.id": 7, "order.customer.name": "Ana"}
    assert "note" not in n
    assert Filter.parse("absent(note)").matches(n)


def test_content_that_attributes_cannot_hold_is_kept_and_listed():
    content = {"id": 1, "order": {"items": [{"sku": "a"}], "mixed": [1, "a"], "nested": [[1], [2]]}}
    n = Notification(content)
    assert n.unindexed == ("order.items", "order.mixed", "order.nested")
    assert json.loads(n.payload) == {
        "order.items": [{"sku": "a"}],
        "order.mixed": [1, "a"],
        "order.nested": [[1], [2]],
    }
    assert Notification.from_json(n.to_json()) == n
    with refused("$.order.items", "one kind"):
        Notification(content, strict=True)


def test_ints_among_floats_become_floats_where_nothing_is_lost():
    assert Notification({"x": [1, 2.5]})["x"] == (1.0, 2.5)
    assert [type(one) for one in Notification({"x": [1, 2.5]})["x"]] == [float, float]
    assert Notification({"x": [2**53 + 1, 2.5]}).unindexed == ("x",)
    assert Notification({"x": [True, 1]}).unindexed == ("x",)


def test_what_is_unindexed_has_the_order_of_its_names():
    one, other = Notification({"b": [1, "x"], "a": [{}]}), Notification({"a": [{}], "b": [1, "x"]})
    assert one == other
    assert one.unindexed == ("a", "b")
    assert one.payload == b'{"a":[{}],"b":[1,"x"]}'


@pytest.mark.parametrize(
    ("content", "path", "reason"),
    [
        ({"x": math.nan}, "$.x", "finite"),
        ({"x": {"y": [1.0, math.inf]}}, "$.x.y[1]", "finite"),
        ({"x": 2**63}, "$.x", "64 bits"),
        ({"x": Fraction(1, 3)}, "$.x", "No float is equal"),
        ({"x": datetime.max.replace(tzinfo=timezone(timedelta(hours=-2)))}, "$.x", "years 1 to 9999"),
        ({"x": [-(2**63) - 1]}, "$.x[0]", "64 bits"),
        ({"n" * 256: 1}, "$." + "n" * 64 + "…", "256 characters"),
        ({"": 1}, "$.", "cannot be empty"),
        ({1: 1}, "$.1", "is a string, not int"),
        ({f"a{i}": i for i in range(10_000)}, "$", f"more than {MAX_ATTRIBUTES:,}"),
        ({"a": {"b": 1}, "a.b": 2}, "$.a.b", "twice once objects are flattened"),
        ({"a.b": [{}], "a": {"b": 2}}, "$.a.b", "twice once objects are flattened"),
        ({"x": datetime(2026, 1, 1)}, "$.x", "needs a zone"),
        ({"x": "\ud800"}, "$.x", "lone surrogate"),
        ({"\ud800": 1}, "$.\ud800", "lone surrogate"),
        ({"x": "a" * 70_000}, "$.x", "70,000 bytes; the limit is 65,536"),
        ({"x": b"a" * 70_000}, "$.x", "the limit is 65,536"),
        ({"x": [1] * 2_000}, "$.x", "2,000 elements"),
        ({"x": object()}, "$.x", "none of bool, int"),
        ({"x": {"$time": "yesterday"}}, "$.x", "is not a time such as"),
        ({"x": {"$time": 5}}, "$.x", "takes a string"),
        ({"x": {"$bytes": "?"}}, "$.x", "base64"),
    ],
    ids=lambda value: (
        str(value)[:24].encode("ascii", "replace").decode() if not isinstance(value, dict) else ""
    ),
)
def test_bad_content_is_refused_with_its_path(content, path, reason):
    with refused(path, reason):
        Notification(content)


def test_the_limits_themselves_are_allowed():
    n = Notification({"x": INT_MAX, "y": INT_MIN, "z": "a" * 65_536, "n" * 255: 1.7976931348623157e308})
    assert n["x"] == INT_MAX
    assert len(Notification({f"a{i}": i for i in range(MAX_ATTRIBUTES)})) == MAX_ATTRIBUTES


def test_nesting_is_bounded():
    deep: dict = {"x": 1}
    for _ in range(MAX_NESTING + 1):
        deep = {"a": deep}
    with pytest.raises(InvalidNotification, match="nested more than"):
        Notification(deep)


@pytest.mark.parametrize(
    ("properties", "path"),
    [
        ({"id": ""}, "id"),
        ({"id": 5}, "id"),
        ({"id": "x" * 256}, "id"),
        ({"time": datetime(2026, 1, 1)}, "time"),
        ({"lifetime": 0}, "lifetime"),
        ({"lifetime": "long"}, "lifetime"),
        ({"lifetime": math.nan}, "lifetime"),
        ({"priority": 10}, "priority"),
        ({"priority": True}, "priority"),
        ({"payload": "text"}, "payload"),
        ({"payload": b"x" * 2_000_000}, "payload"),
    ],
)
def test_bad_properties_are_refused(properties, path):
    with pytest.raises(InvalidNotification) as caught:
        Notification({"x": 1}, **properties)
    assert caught.value.path == path


def test_properties_are_no_attributes():
    n = Notification({"x": 1}, id="n-1", lifetime=2.5, priority=9, payload=b"\x00")
    assert (n.id, n.lifetime, n.priority, n.payload) == ("n-1", timedelta(seconds=2.5), 9, b"\x00")
    assert not Filter.parse("exists(id) or exists(priority)").matches(n)


def test_an_explicit_payload_and_content_that_needs_it_exclude_each_other():
    with refused("$.x", "there is a payload already"):
        Notification({"x": [{}]}, payload=b"")


# JSON


def test_a_json_number_is_an_int_iff_written_without_point_or_exponent():
    n = Notification.from_json('{"a": 1, "b": 1.0, "c": 1e2, "d": 9007199254740993, "e": -0}')
    assert [type(n[name]) for name in "abcde"] == [int, float, float, int, int]
    assert n["d"] == 2**53 + 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "This is not JSON"),
        ("[]", "is a JSON object"),
        ('{"x": {"y": [1.5, NaN]}}', r"\$.x.y\[1\]: A float must be finite"),
        ('{"x": [{"y": -Infinity}]}', "cannot be kept as JSON"),
        ('{"x": 1e400}', "finite"),
        ('{"x": 9223372036854775808}', "64 bits"),
        ('{"x": ' + "9" * 5_000 + "}", "64 bits"),
        ('{"x": 1, "x": 2}', "twice in one object"),
        (b'{"x": "\xff"}', "not UTF-8"),
        ('{"x": "\\ud800"}', "lone surrogate"),
        ("[" * 100_000, "nested"),
    ],
    ids=range(11),
)
def test_bad_json_is_refused(text, reason):
    with pytest.raises(InvalidNotification, match=reason):
        Notification.from_json(text)


values = st.one_of(
    st.booleans(),
    st.integers(INT_MIN, INT_MAX),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=20),
    st.binary(max_size=20),
    st.datetimes(timezones=st.just(UTC)),
)
contents = st.dictionaries(
    st.text(min_size=1, max_size=10).filter(lambda name: name not in ("$time", "$bytes")),
    values | st.lists(st.integers(INT_MIN, INT_MAX), max_size=5) | st.lists(st.text(max_size=5), max_size=5),
    max_size=8,
)


@given(contents)
def test_content_survives_json_and_pickling(content):
    n = Notification(content, id="x", priority=1)
    again = Notification.from_json(n.to_json(), id="x", priority=1)
    assert again == n
    assert hash(again) == hash(n)
    assert pickle.loads(pickle.dumps(n)) == n


def test_notifications_that_python_calls_equal_are_told_apart():
    assert len({Notification({"x": value}) for value in (True, 1, 1.0, [1], [1.0], [True])}) == 6


@given(st.datetimes(timezones=st.just(UTC)))
def test_times_survive_their_text(moment):
    assert parse_time(format_time(moment)) == moment


def test_errors_survive_pickling():
    with pytest.raises(InvalidNotification) as caught:
        Notification({"x": math.nan})
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.path, again.fields) == (str(caught.value), "$.x", caught.value.fields)


# CloudEvents

EVENT = {
    "specversion": "1.0",
    "id": "A234-1234",
    "source": "/orders",
    "type": "com.example.order",
    "time": "2026-07-02T10:45:00Z",
    "priority": 3,
    "data": {"total": 12.5, "lines": [{"sku": "a"}], "tags": ["new"]},
}


def test_a_cloudevent_is_filtered_by_context_and_data():
    n = Notification.from_cloudevent(EVENT)
    assert n.id == "A234-1234"
    assert n["time"] == datetime(2026, 7, 2, 10, 45, tzinfo=UTC)
    assert n.unindexed == ("data.lines",)
    assert Filter.parse('type starts with "com.example" and data.total > 10 and data.tags has "new"').matches(n)
    assert Notification.from_cloudevent(json.dumps(EVENT)) == n


def test_binary_data_is_the_payload():
    event = {key: value for key, value in EVENT.items() if key != "data"} | {"data_base64": "AAE="}
    assert Notification.from_cloudevent(event).payload == b"\x00\x01"


def test_a_batch_names_the_event_that_is_wrong():
    batch = [EVENT, EVENT | {"data": {"x": 2**70}}]
    with refused("$[1].data.x", "64 bits"):
        Notification.from_cloudevents(batch)
    assert len(Notification.from_cloudevents([EVENT, EVENT])) == 2
    with refused("$", "is a JSON array"):
        Notification.from_cloudevents("{}")


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"specversion": "0.3"}, "$.specversion"),
        ({"id": 5}, "$.id"),
        ({"id": "x" * 256}, "$.id"),
        ({"time": "2026-07-02 10:45"}, "$.time"),
        ({"Extension": "x"}, "$.Extension"),
        ({"X" * 10_000: "x"}, f"$.{'X' * 64}…"),
        ({"extension": 1.5}, "$.extension"),
        ({"extension": 2**31}, "$.extension"),
        ({"datacontenttype": "xyz"}, "$.datacontenttype"),
        ({"data_base64": "AA=="}, "$.data_base64"),
    ],
)
def test_a_bad_cloudevent_is_refused_at_its_path(change, path):
    with pytest.raises(InvalidNotification) as caught:
        Notification.from_cloudevent(EVENT | change)
    assert caught.value.path == path


def test_a_refusal_does_not_repeat_all_that_was_sent():
    with pytest.raises(InvalidNotification, match="is not a media type") as caught:
        Notification.from_cloudevent(EVENT | {"datacontenttype": "x" * 10_000})
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    "flat",
    [
        {"x.$time": "2026-01-01T00:00:00Z"},
        {"x.$time": 5, "x.b": 1},
        {"x.$time.a": 1},
        {"a.x.$bytes": "eA==", "a.y": datetime(2026, 1, 1, tzinfo=UTC)},
        {"x.$time.$time": True},
        {"$time": "text", "$bytes.a": 1},
        {"data.$time": 5, "specversion": "1.0", "id": "1", "source": "/s", "type": "t"},
        {"data.$time.a": 5, "specversion": "1.0", "id": "1", "source": "/s", "type": "t"},
    ],
)
def test_what_is_written_nested_is_read_as_it_was(flat):
    notification = Notification(flat)
    assert Notification(content_of(notification)).attributes == notification.attributes
    event = as_event(notification)
    if event is not None:
        assert Notification.from_cloudevent(event).attributes == notification.attributes
