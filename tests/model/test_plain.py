"""The short way to the bytes of attributes agrees with the long one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palio import InvalidNotification, Notification
from palio.model.body import Body
from palio.model.plain import encode_plain, has_part
from palio.model.values import MAX_ATTRIBUTES, MAX_NAME_CHARACTERS, MAX_STRING_BYTES

texts = st.text(st.characters(codec=None, categories=("L", "N", "Cs")), max_size=3)  # also lone surrogates
plain = st.booleans() | st.integers(-(2**65), 2**65) | st.floats() | texts
other = (
    st.none()
    | st.binary(max_size=3)
    | st.lists(st.integers(), max_size=2)
    | st.dictionaries(texts, plain, max_size=1)
)


@given(st.dictionaries(texts | st.integers(), plain | other, max_size=5))
def test_it_gives_the_same_bytes_or_leaves_it_to_the_other(attributes):
    encoded = encode_plain(attributes)
    if encoded is not None:
        assert encoded == Notification(attributes).encode()


@given(
    st.dictionaries(
        st.text(min_size=1, max_size=8), st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text()
    )
)
def test_it_is_taken_for_what_is_plain(attributes):
    assert encode_plain(attributes) == Notification(attributes).encode()


class Text(str):
    __slots__ = ()


@pytest.mark.parametrize(
    "attributes",
    [
        {"n": float("nan")},
        {"n": float("inf")},
        {"n": 2**63},
        {"n": -(2**63) - 1},
        {"": 1},
        {"x" * (MAX_NAME_CHARACTERS + 1): 1},
        {"text": "x" * (MAX_STRING_BYTES + 1)},
        {"text": "\ud800"},
        {"\ud800": 1},
        {f"n{n}": n for n in range(MAX_ATTRIBUTES + 1)},
    ],
)
def test_what_a_notification_refuses_is_not_encoded(attributes):
    assert encode_plain(attributes) is None
    with pytest.raises(InvalidNotification):
        Notification(attributes)


@pytest.mark.parametrize(
    "attributes", [{"n": None}, {"n": [1]}, {"a": {"b": 1}}, {"text": Text("x")}, {"b": b""}]
)
def test_what_is_not_plain_is_left_to_the_other(attributes):
    assert encode_plain(attributes) is None
    Notification(attributes)


EDGES = [0, 31, 32, 127, 128, 255, 256, 2**15, 2**16 - 1, 2**16, 2**31, 2**32 - 1, 2**32, 2**63 - 1]
NEGATIVE_EDGES = [-1, -32, -33, -128, -129, -(2**15), -(2**15) - 1, -(2**31), -(2**31) - 1, -(2**63)]


@pytest.mark.parametrize("value", [*EDGES, *NEGATIVE_EDGES, 0.0, -0.0, 1e308, True, False])
@pytest.mark.parametrize("length", [1, 31, 32, 200, 255])
def test_the_same_bytes_at_the_edges_of_every_form(value, length):
    attributes = {"n" * length: value, "m": "x" * length, "l": "", "o" * length: "y" * 20 * length}
    assert encode_plain(attributes) == Notification(attributes).encode()


@pytest.mark.parametrize("count", [0, 1, 15, 16, 31, 32, 33, 100])
def test_names_are_sorted_however_many_there_are(count):
    attributes = {f"a{(number * 37) % 101}": number for number in range(count)}
    assert encode_plain(attributes) == Notification(attributes).encode()


def notifications(*attributes):
    return [Notification.of_body(Body(one)) for one in attributes]


@given(st.lists(st.text("xml.y", max_size=600).map(str.encode), max_size=4))
def test_a_part_is_found_wherever_it_is(several):
    assert has_part(notifications(*several), b"xml.") == any(b"xml." in one for one in several)


@pytest.mark.parametrize("place", [0, 1, 251, 252, 253, 254, 255, 256, 257, 508, 509, 512])
def test_a_part_is_found_at_the_end_of_a_stretch(place):
    one = b"x" * place + b"xml."
    assert has_part(notifications(b"", b"xm", one), b"xml.")
    assert not has_part(notifications(one[:-1], one[:-1] + b"xml"), b"xml.")
