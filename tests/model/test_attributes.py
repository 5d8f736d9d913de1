"""Events and notifications as mappings, and their getters by kind."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palio import NoSuchAttribute, Notification, PalioError, WrongKind

MOMENT = datetime(2026, 7, 2, tzinfo=UTC)
NOTE = Notification(
    {
        "n": 3,
        "x": 1.5,
        "s": "ACME",
        "b": True,
        "t": MOMENT,
        "raw": b"\1",
        "tags": ["a"],
        "sizes": [1, 2],
        "none": [],
    }
)
GETTERS = ("number", "integer", "text", "boolean", "moment", "binary")
KINDS = {
    "n": {"number", "integer"},
    "x": {"number"},
    "s": {"text"},
    "b": {"boolean"},
    "t": {"moment"},
    "raw": {"binary"},
    "tags": set(),
}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("getter", GETTERS)
def test_each_getter_gives_its_kind_and_nothing_else(name, getter):
    get = getattr(NOTE, getter)
    if getter in KINDS[name]:
        assert get(name) is NOTE[name] or get(name) == NOTE[name]
        assert get(name, None) == NOTE[name]
    else:
        with pytest.raises(WrongKind) as caught:
            get(name, None)  # a default is for what is absent
        assert caught.value.name == name
        assert isinstance(caught.value, TypeError)
    assert get("absent", None) is None
    with pytest.raises(NoSuchAttribute):
        get("absent")


def test_lists():
    assert NOTE.elements("tags", str) == ("a",)
    assert NOTE.elements("sizes", float) == NOTE.elements("sizes", int) == (1, 2)
    assert NOTE.elements("none", str) == ()
    assert NOTE.elements("absent", str, ()) == ()
    with pytest.raises(WrongKind, match="of the kind list of string, and was asked for as list of int"):
        NOTE.elements("tags", int)
    with pytest.raises(WrongKind, match="of the kind string, and was asked for as list of int"):
        NOTE.elements("s", int)


def test_what_errors_say():
    with pytest.raises(WrongKind) as wrong:
        NOTE.number("s")
    assert str(wrong.value) == "The attribute 's' is of the kind string, and was asked for as number."
    with pytest.raises(NoSuchAttribute) as missing:
        Notification({"price": 1}).number("prise")
    told = "There is no attribute 'prise', which was asked for as number. Did you mean 'price'?"
    assert str(missing.value) == told
    assert missing.value.likely == ("price",)
    assert isinstance(missing.value, KeyError)
    assert isinstance(missing.value, PalioError)
    with pytest.raises(NoSuchAttribute, match=r"Did you mean 'order\.id' or 'order\.total'"):
        Notification({"order": {"id": 1, "total": 2}}).text("order")


values = st.integers(-9, 9) | st.floats(-9, 9) | st.booleans() | st.text("xy") | st.lists(st.text("xy"))


@given(st.dictionaries(st.text("abc", min_size=1, max_size=3), values))
def test_a_notification_is_a_mapping(published):
    notification = Notification(published)
    content = dict(notification)
    assert content == dict(notification.attributes)
    assert list(notification) == list(notification.keys()) == list(content)
    assert list(notification.items()) == list(content.items())
    assert list(notification.values()) == list(content.values())
    assert len(notification) == len(content)
    assert {**notification} == content
    assert all(name in notification and notification.get(name) == content[name] for name in content)
