"""Tables with a column of encoded notifications: the compiled index decodes them as the model does."""

import math
import random
import struct
import threading

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import palio
from palio.matching import oracle
from tests.matching.drawing import filters, notifications
from tests.matching.test_batches import agree, tables
from tests.model.test_encoding import WRONG, of_time
from tests.slices import examples

pa = pytest.importorskip("pyarrow")


def of_payloads(rows, kind=None):
    return pa.table({"payload": pa.array(rows, kind or pa.binary())})


def pairs(found):
    rows, ids = found
    return sorted(zip(rows.to_pylist(), ids.to_pylist(), strict=True))


def outcome(index, table):
    try:
        return pairs(index.match_batch(table))
    except palio.InvalidNotification as problem:
        return problem.path, problem.reason


several_filters = st.lists(filters, min_size=1, max_size=10)


@examples(400)
@given(several_filters, st.lists(st.one_of(st.none(), notifications), max_size=8), st.data())
def test_encoded_notifications_are_matched_like_themselves(several, rows, data):
    index, truth = palio.MatchIndex(enumerate(several)), oracle.MatchIndex(enumerate(several))
    kind = data.draw(st.sampled_from([pa.binary(), pa.large_binary(), pa.binary_view()]))
    table = of_payloads([None if one is None else one.encode() for one in rows], kind)
    start, length = data.draw(st.integers(0, len(rows))), data.draw(st.integers(0, len(rows)))
    pieces = data.draw(
        st.sampled_from(
            [
                [table],
                [table.slice(start)],
                [table.slice(start, length)],
                [table, table.slice(0, 0), table.slice(start, length)],
                [],
            ]
        )
    )
    kept = [row for piece in pieces for row in _rows_of(rows, piece, table, start, length)]
    whole = pa.concat_tables([table.slice(0, 0), *pieces])
    wanted = [
        (row, id)
        for row, one in enumerate(kept)
        for id in truth.match(palio.Notification({}) if one is None else one)
    ]
    assert pairs(index.match_batch(whole)) == sorted(wanted)
    agree(index, truth, whole)


def _rows_of(rows, piece, table, start, length):
    if piece is table:
        return rows
    if piece.num_rows == 0:
        return []
    return rows[start : start + piece.num_rows]


@examples(400)
@given(several_filters, tables())
def test_a_table_of_columns_says_the_same_encoded(several, table):
    rows = [
        palio.Notification(
            {name: value for name, value in row.items() if _is_value(value)}, strict=True
        ).encode()
        for row in table.to_pylist()
    ]
    index, truth = palio.MatchIndex(enumerate(several)), oracle.MatchIndex(enumerate(several))
    assert pairs(index.match_batch(of_payloads(rows))) == pairs(truth.match_batch(table))


def _is_value(value):
    """What is null in a column: no value, no finite float, no int of 64 bits, or a list with such."""
    if isinstance(value, list):
        return all(map(_is_value, value))
    if isinstance(value, float):
        return math.isfinite(value)
    return value is not None and not (isinstance(value, int) and value >= 2**63)


def damaged(encoded: bytes, chance: random.Random) -> bytes:
    data = bytearray(encoded)
    for _ in range(chance.randint(0, 2)):
        data[chance.randrange(len(data))] = chance.choice([chance.randrange(256), *INTERESTING])
    if chance.random() < 0.3:
        at = chance.randrange(len(data) + 1)
        data[at:at] = bytes(chance.choice(INTERESTING) for _ in range(chance.randint(1, 3)))
    return bytes(data[: chance.randrange(len(data) + 1)] if chance.random() < 0.2 else data)


# The first bytes of all forms, and the ends of UTF-8's ranges.
INTERESTING = (
    *range(0xC0, 0xE0),
    *(0, 1, 0x7F, 0x80, 0x81, 0x82, 0x8F, 0x90, 0x91, 0x9F, 0xA0, 0xA1, 0xBF, 0xE0, 0xED, 0xF0, 0xF4, 0xFF),
)
DEMANDS = (
    "exists(a)",
    "absent(b)",
    "a has > 0",
    'a has "a"',
    "a > 1",
    "b <= 0",
    'c = "abc"',
    "int a >= 0",
    "float b > 0",
    "a >= 2026-01-01T00:00:00Z",
    "b < 1970-01-01T00:00:00Z",
    "c = true",
    "exists(d)",
    'd contains "a"',
    "a != 3",
)


@examples(400)
@given(st.lists(notifications, min_size=1, max_size=4), st.integers(0, 2**32))
def test_damaged_bytes_are_refused_or_read_as_the_model_does(rows, seed):
    chance = random.Random(seed)
    index, truth = palio.MatchIndex(enumerate(DEMANDS)), oracle.MatchIndex(enumerate(DEMANDS))
    for _ in range(10):
        data = [damaged(one.encode(), chance) for one in rows]
        for table in (of_payloads(data), of_payloads(data[-1:])):
            assert outcome(index, table) == outcome(truth, table)


@examples(400)
@given(
    st.lists(st.binary(max_size=40), min_size=1, max_size=6), st.sampled_from([b"", b"\x81\xa1a", b"\x81\xa1z"])
)
def test_garbage_is_refused_or_read_as_the_model_does(rows, prefix):
    index, truth = palio.MatchIndex(enumerate(DEMANDS)), oracle.MatchIndex(enumerate(DEMANDS))
    table = of_payloads([prefix + row for row in rows])
    assert outcome(index, table) == outcome(truth, table)


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.parametrize("known", [True, False])
def test_every_wrong_encoding_is_refused(case, known):
    filter = "exists(a)" if known else "exists(other)"
    table = of_payloads([b"\x80", None, WRONG[case][0], b"\x81\xa1a\x01", b""])
    for index in (palio.MatchIndex([(1, filter)]), oracle.MatchIndex([(1, filter)])):
        with pytest.raises(palio.InvalidNotification) as caught:
            index.match_batch(table)
        assert caught.value.path == "payload[2]"
        assert WRONG[case][1] in caught.value.reason
        rows, _ = index.match_batch(table.slice(3, 1))  # and the index is as good as before
        assert len(rows) == known


@pytest.mark.parametrize(
    "raw",
    [
        *(of_time(struct.pack(">Iq", nanos, seconds))
          for seconds in (0, -1, -62135596800, -62135596801, 253402300799, 253402300800, 2**63 - 1, -(2**63))
          for nanos in (0, 499, 500, 1500, 999_999_499, 999_999_500, 999_999_999, 10**9, 2**32 - 1)),
        *(of_time(struct.pack(">Q", nanos << 34 | seconds))
          for seconds in (0, 1, 2**34 - 1) for nanos in (0, 500, 999_999_999, 10**9, 2**30 - 1)),
        b"\x81\xa1a\xc8\x00\x04\xff\x00\x00\x00\x05",
        b"\x81\xa1a\xc9\x00\x00\x00\x04\xff\x00\x00\x00\x05",
        b"\x81\xa1a\x92\x05\xcb\x43\x40\x00\x00\x00\x00\x00\x00",
        b"\x81\xa1a\x92\xcb\x3f\xf0\x00\x00\x00\x00\x00\x00\xd3\x80" + b"\0" * 7,
        b"\x81\xa1a\x92\xcb\x3f\xf0\x00\x00\x00\x00\x00\x00\xcf\x7f" + b"\xff" * 7,
        b"\xdf\x00\x00\x00\x01\xd9\x01a\xd0\xff",
        b"\xde\x00\x02\xda\x00\x01b\xd1\xff\xfe\xdb\x00\x00\x00\x01a\xd2\xff\xff\xff\xff",
        msgspec.msgpack.encode({"é" * 255: 1, "a": 2}),
        msgspec.msgpack.encode({"é" * 256: 1, "a": 2}),
        msgspec.msgpack.encode({"\U0001f600" * 255: 1, "a": 2}),
        msgspec.msgpack.encode({"a": "é" * 32_768, "b": b"x" * 65_536, "c": list(range(1_024))}),
        msgspec.msgpack.encode({f"a{number % 1_000}": number for number in range(1_024)} | {"a": 1}),
        msgspec.msgpack.encode({f"{number * 7 % 1_023}": number for number in range(1_023)} | {"a": 1}),
    ],
)  # fmt: skip
def test_odd_encodings_are_read_as_the_model_does(raw):
    texts = (
        *DEMANDS,
        "a < 1970-01-01T00:00:00Z",
        "a = 1970-01-01T00:00:05Z",
        "a = 1969-12-31T23:59:59.999999Z",
        "a = 0001-01-01T00:00:00Z",
        "a has = 5",
        "a has > 1000000",
        "a < 0",
    )
    index, truth = palio.MatchIndex(enumerate(texts)), oracle.MatchIndex(enumerate(texts))
    table = of_payloads([raw, raw])
    assert outcome(index, table) == outcome(truth, table)


def test_other_columns_are_ignored_and_other_kinds_of_payload_are_attributes():
    entries = [(1, "x = 1"), (2, 'payload = "raw"'), (3, "x = 2")]
    encoded = pa.array([palio.Notification({"x": 1, "payload": "raw"}).encode(), None, b"\x80"], pa.binary())
    ignored = {"x": [2, 2, 2], "odd": pa.array([1, 2, 3]).cast(pa.decimal128(30, 2))}
    for index in (palio.MatchIndex(entries), oracle.MatchIndex(entries)):
        assert pairs(index.match_batch(pa.table({**ignored, "payload": encoded}))) == [(0, 1), (0, 2)]
        batch = pa.record_batch({"payload": encoded.dictionary_encode()})
        assert pairs(index.match_batch(batch)) == [(0, 1), (0, 2)]
        assert pairs(index.match_batch(pa.table({"x": [2], "payload": ["raw"]}))) == [(0, 2), (0, 3)]


def test_rows_of_changing_shapes_over_many_tiles():
    chance = random.Random(5)
    entries = [(f"sub-{number}", f"a{number % 40} > {number}") for number in range(200)]
    entries += [(f"list-{number}", f"l{number} has {number}") for number in range(10)]
    index, truth = palio.MatchIndex(entries), oracle.MatchIndex(entries)

    def content():
        chosen = {f"a{chance.randrange(60)}": chance.randrange(300) for _ in range(chance.randrange(12))}
        return chosen | {f"l{chance.randrange(12)}": list(range(chance.randrange(12))) for _ in range(2)}

    rows = [palio.Notification(content()) for _ in range(1_000)]
    plain = [msgspec.msgpack.encode(dict(one.attributes)) for one in rows]
    encoded = [chance.choice([one.encode(), other]) for one, other in zip(rows, plain, strict=True)]
    table = of_payloads(encoded)
    agree(index, truth, table)
    agree(index, truth, pa.concat_tables([table.slice(3, 300), table.slice(700), table.slice(0, 1)]))
    late = of_payloads([*encoded, b"\x81"])
    assert outcome(index, late) == outcome(truth, late)
    assert outcome(index, late)[0] == "payload[1000]"
    for one in (index, truth):
        one.add("late", "a50 >= 0")
    agree(index, truth, table)


def test_a_mapped_index_and_several_threads(tmp_path):
    entries = [(number, f"a{number % 7} > {number}") for number in range(100)]
    palio.MatchIndex(entries).save(tmp_path / "index")
    index, truth = palio.MatchIndex.open_mapped(tmp_path / "index"), oracle.MatchIndex(entries)
    rows = [palio.Notification({f"a{number % 7}": number % 120, "s": "x"}) for number in range(2_000)]
    table = of_payloads([one.encode() for one in rows])
    wanted = pairs(truth.match_batch(table))
    found = []
    threads = [threading.Thread(target=lambda: found.append(pairs(index.match_batch(table)))) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert found == [wanted] * 4


def test_no_filters_and_no_rows():
    for index in (palio.MatchIndex(), oracle.MatchIndex()):
        assert pairs(index.match_batch(of_payloads([b"\x80", None]))) == []
        with pytest.raises(palio.InvalidNotification):
            index.match_batch(of_payloads([b"\x81"]))
    assert pairs(palio.MatchIndex([(1, "true")]).match_batch(of_payloads([None, None]))) == [(0, 1), (1, 1)]
    assert pairs(palio.MatchIndex([(1, "true")]).match_batch(of_payloads([]))) == []
