"""Notifications as bytes and back, and bytes that are no notification."""

import math
import random
import struct
from datetime import UTC, datetime, timedelta, timezone

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from palio import InvalidNotification, Notification

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
kinds = (
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.binary(),
    st.datetimes(timezones=st.just(UTC)),
)
values = st.one_of(*kinds, *(st.lists(kind, max_size=4) for kind in kinds))
notifications = st.dictionaries(names, values, max_size=20).map(
    lambda content: Notification.of_values(
        {name: tuple(value) if isinstance(value, list) else value for name, value in content.items()}
    )
)


@given(notifications)
def test_what_is_encoded_is_read_back(notification):
    back = Notification.decode(notification.encode())
    assert back == notification
    assert back.encode() == notification.encode()


@given(notifications, st.randoms(use_true_random=False))
def test_equal_content_gives_equal_bytes(notification, chance):
    pairs = list(notification.attributes.items())
    chance.shuffle(pairs)
    assert Notification.of_values(dict(pairs)).encode() == notification.encode()
    shuffled = msgspec.msgpack.encode(dict(pairs))
    assert Notification.decode(shuffled) == notification


def test_the_form_of_every_kind():
    moment = datetime(2026, 1, 1, 1, tzinfo=timezone(timedelta(hours=1)))
    content = {"b": 1, "a": 1.5, "c": True, "d": "é", "e": b"\xff", "f": [1.0, 2], "g": moment}
    assert Notification(content).encode() == (
        b"\x87\xa1a\xcb\x3f\xf8\0\0\0\0\0\0\xa1b\x01\xa1c\xc3\xa1d\xa2\xc3\xa9\xa1e\xc4\x01\xff"
        b"\xa1f\x92\xcb\x3f\xf0\0\0\0\0\0\0\xcb\x40\0\0\0\0\0\0\0\xa1g\xd6\xff" + struct.pack(">I", 1767225600)
    )
    assert Notification({}).encode() == b"\x80"


def test_properties_are_not_part_of_it():
    notification = Notification({"x": 1}, id="one", priority=9, payload=b"raw")
    back = Notification.decode(notification.encode())
    assert (back.id, back.priority, back.payload) == (None, 4, None)


def of_time(content: bytes) -> bytes:
    return b"\x81\xa1a\xc7" + bytes([len(content)]) + b"\xff" + content


@pytest.mark.parametrize(
    ("seconds", "nanoseconds", "micros"),
    [
        (0, 999, 0),
        (0, 1500, 1),
        (-1, 999_999_999, -1),
        (-62135596800, 501, -62135596800_000_000),
        (5, 0, 5000000),
    ],
)
def test_times_are_cut_to_microseconds(seconds, nanoseconds, micros):
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
    encoded = of_time(struct.pack(">Iq", nanoseconds, seconds))
    assert Notification.decode(encoded)["a"] == moment
    in_list = encoded.replace(b"\xa1a", b"\xa1a\x92") + encoded[3:]
    assert Notification.decode(in_list)["a"] == (moment, moment)


def test_any_width_of_a_number_is_taken():
    for raw, value in (
        (b"\xcc\x01", 1),
        (b"\xd3" + b"\xff" * 8, -1),
        (b"\xcf" + b"\0" * 7 + b"\x05", 5),
        (b"\xca" + struct.pack(">f", 0.5), 0.5),
        (b"\x92\x01\xca" + struct.pack(">f", 0.5), (1.0, 0.5)),
        (b"\xdb\0\0\0\x01x", "x"),
    ):
        found = Notification.decode(b"\x81\xa1a" + raw)["a"]
        assert found == value
        assert type(found) is type(value)


LONG = "x" * 65_537
WRONG = {
    "nothing": (b"", "$"),
    "no map": (b"\x01", "$"),
    "nil": (b"\xc0", "$"),
    "cut": (b"\x82\xa1a\x01", "$"),
    "more": (b"\x81\xa1a\x01\x01", "$"),
    "twice": (b"\x82\xa1a\x01\xa1a\x01", "$"),
    "number for a name": (b"\x81\x01\x01", "$"),
    "bytes for a name": (b"\x81\xc4\x01a\x01", "$"),
    "empty name": (b"\x81\xa0\x01", "$."),
    "long name": (msgspec.msgpack.encode({"n" * 256: 1}), "$." + "n" * 64 + "…"),
    "null": (b"\x81\xa1a\xc0", "$.a"),
    "map": (b"\x81\xa1a\x80", "$.a"),
    "extension": (b"\x81\xa1a\xd4\x01\x00", "$.a"),
    "large int": (msgspec.msgpack.encode({"a": 2**63}), "$.a"),
    "not a number": (msgspec.msgpack.encode({"a": math.nan}), "$.a"),
    "infinite": (msgspec.msgpack.encode({"a": [1.0, -math.inf]}), "$.a[1]"),
    "surrogate": (b"\x81\xa1a\xa3\xed\xa0\x80", "$"),
    "not UTF-8": (b"\x81\xa1\xff\x01", "$"),
    "long string": (msgspec.msgpack.encode({"a": LONG}), "$.a"),
    "long bytes": (msgspec.msgpack.encode({"a": LONG.encode()}), "$.a"),
    "long list": (msgspec.msgpack.encode({"a": [1] * 1_025}), "$.a"),
    "mixed list": (msgspec.msgpack.encode({"a": [1, "b"]}), "$.a"),
    "bools and ints": (msgspec.msgpack.encode({"a": [1, True]}), "$.a"),
    "ints that are no floats": (msgspec.msgpack.encode({"a": [2**53 + 1, 0.5]}), "$.a"),
    "nested list": (msgspec.msgpack.encode({"a": [[1]]}), "$.a"),
    "null in a list": (msgspec.msgpack.encode({"a": [None]}), "$.a"),
    "many": (msgspec.msgpack.encode({f"a{number}": 1 for number in range(1_025)}), "$"),
    "deep": (b"\x81\xa1a" + b"\x91" * 100_000, "$"),
    "deep maps": (b"\x81\xa1a" * 100_000, "$"),
    "huge list": (b"\x81\xa1a\xdd\xff\xff\xff\xff", "$"),
    "huge list for a key": (b"\x81\xa1a\x81\xdd\xff\xff\xff\xff", "$"),
    "huge map": (b"\xdf\xff\xff\xff\xff", "$"),
    "huge string": (b"\x81\xa1a\xdb\xff\xff\xff\xff", "$"),
    "year 10000": (of_time(struct.pack(">Iq", 0, 253402300800)), "$"),
    "year 0": (of_time(struct.pack(">Iq", 0, -62135596801)), "$"),
    "many nanoseconds": (of_time(struct.pack(">Iq", 10**9, 0)), "$"),
    "odd time": (of_time(b"\0" * 5), "$"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_bytes_are_refused_with_the_path(case):
    data, path = WRONG[case]
    with pytest.raises(InvalidNotification) as caught:
        Notification.decode(data)
    assert caught.value.path == path


def taken_or_refused(data: bytes) -> None:
    try:
        notification = Notification.decode(data)
    except InvalidNotification:
        return
    assert Notification.decode(notification.encode()) == notification
    assert Notification(notification.attributes, strict=True) == notification  # all checks of the front door


@given(st.binary(max_size=60))
@example(b"")
def test_garbage_is_refused(data):
    taken_or_refused(data)
    taken_or_refused(b"\x81\xa1a" + data)


@given(notifications, st.integers(0, 2**32))
def test_damaged_bytes_are_taken_or_refused(notification, seed):
    data = bytearray(notification.encode())
    chance = random.Random(seed)
    for _ in range(chance.randint(1, 3)):
        data[chance.randrange(len(data))] = chance.randrange(256)
    taken_or_refused(bytes(data))
    taken_or_refused(bytes(data[: chance.randrange(len(data) + 1)]))
