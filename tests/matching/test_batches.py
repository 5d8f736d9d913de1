"""Arrow tables of every kind of column: the compiled index reads them as the oracle does."""

import math
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

import palio
from palio.matching import oracle
from tests.matching.drawing import NUMBERS, RAW, TEXTS, TIMES, filters
from tests.slices import examples

pa = pytest.importorskip("pyarrow")


def agree(index, truth, table) -> None:
    rows, ids = index.match_batch(table)
    wanted_rows, wanted_ids = truth.match_batch(table)
    assert rows.type == wanted_rows.type
    assert ids.type == wanted_ids.type
    found = zip(rows.to_pylist(), ids.to_pylist(), strict=True)
    assert sorted(found) == sorted(zip(wanted_rows.to_pylist(), wanted_ids.to_pylist(), strict=True))
    assert rows.to_pylist() == wanted_rows.to_pylist()


INTEGERS = [number for number in NUMBERS if isinstance(number, int)]
REALS = [float(number) for number in NUMBERS] + [math.nan, math.inf, -math.inf]
KINDS = {
    "int64": (pa.int64(), INTEGERS),
    "int8": (pa.int8(), [0, 1, 2, 100]),
    "uint64": (pa.uint64(), [0, 1, 2**63 - 1, 2**63, 2**64 - 1]),
    "double": (pa.float64(), REALS),
    "float": (pa.float32(), [0.0, 0.5, 1.5, math.nan]),
    "bool": (pa.bool_(), [True, False]),
    "string": (pa.string(), list(TEXTS)),
    "large": (pa.large_string(), list(TEXTS)),
    "view": (pa.string_view(), list(TEXTS)),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), list(TEXTS)),
    "binary": (pa.binary(), list(RAW)),
    "fixed": (pa.binary(2), [b"ab", b"b\0"]),
    "time": (pa.timestamp("us", "UTC"), list(TIMES)),
    "list": (pa.list_(pa.string()), [["a"], [], ["a", None], ["b", "abc"]]),
    "numbers": (pa.list_(pa.float64()), [[1.0], [0.5, math.nan], [2.0, 1.5]]),
    "null": (pa.null(), [None]),
}


@st.composite
def tables(draw):
    rows = draw(st.integers(0, 6))
    columns = {}
    for name in "abc":
        kind, values = KINDS[draw(st.sampled_from(sorted(KINDS)))]
        drawn = draw(st.lists(st.one_of(st.none(), st.sampled_from(values)), min_size=rows, max_size=rows))
        if pa.types.is_dictionary(kind):
            columns[name] = pa.array(drawn, kind.value_type).dictionary_encode()
        else:
            columns[name] = pa.array(drawn, kind)
    table = pa.table(columns)
    start = draw(st.integers(0, rows))
    return draw(st.sampled_from([table, table.slice(start), pa.concat_tables([table, table.slice(start)])]))


@examples(400)
@given(st.lists(filters, min_size=1, max_size=10), tables())
def test_a_table_is_matched_like_its_rows(several, table):
    agree(palio.MatchIndex(enumerate(several)), oracle.MatchIndex(enumerate(several)), table)


TEXT_FILTERS = ['symbol = "A"', "price > 1 and price < 5", "at >= 2026-01-01T00:00:00Z", "user.age > 3", "true"]


@pytest.mark.parametrize(
    "make", [int, str, lambda n: f"sub-{n}", lambda n: n / 2, lambda n: n > 2, lambda n: bytes([n])]
)
def test_ids_of_every_kind_that_arrow_knows(make):
    entries = list({make(number): (make(number), text) for number, text in enumerate(TEXT_FILTERS)}.values())
    table = pa.table({"symbol": ["A", "B", None], "price": [2, None, 7]})
    agree(palio.MatchIndex(entries), oracle.MatchIndex(entries), table)


def test_columns_of_codes_and_of_nothing():
    entries = list(enumerate(TEXT_FILTERS))
    symbols = pa.array(["A", "B", None, "A"]).dictionary_encode()
    table = pa.table({"symbol": symbols, "price": pa.nulls(4)})
    index, truth = palio.MatchIndex(entries), oracle.MatchIndex(entries)
    agree(index, truth, table)
    agree(index, truth, pa.concat_tables([table, table.slice(1)]))
    rows, ids = index.match_batch(table)
    assert [row for row, id in zip(rows.to_pylist(), ids.to_pylist(), strict=True) if id == 0] == [0, 3]


def test_string_ids_after_changes():
    entries = [(f"sub-{number}", f"x > {number}") for number in range(50)]
    index, truth = palio.MatchIndex(entries), oracle.MatchIndex(entries)
    table = pa.table({"x": [10, 60, None, 3] * 20})
    for number in range(5):
        agree(index, truth, table)
        agree(index, truth, table.slice(0, 1))
        for one in (index, truth):
            one.remove(f"sub-{number * 3}")
            one.add(f"new-{number}", f"x < {number * 10}")


def test_structs_chunks_batches_and_empty_tables():
    entries = list(enumerate(TEXT_FILTERS))
    index, truth = palio.MatchIndex(entries), oracle.MatchIndex(entries)
    table = pa.table({"user": [{"age": 5}, None, {"age": None}], "price": [2.0, math.nan, math.inf]})
    for one in (
        table,
        table.slice(1),
        table.slice(0, 0),
        table.to_batches()[0],
        pa.concat_tables([table, table, table]),
        pa.table({}),
        pa.table({"unknown": [1, 2]}),
    ):
        agree(index, truth, one)
    agree(palio.MatchIndex(), oracle.MatchIndex(), table)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_in_every_unit(unit):
    index = palio.MatchIndex(
        [(1, "at >= 2026-01-01T00:00:00Z"), (2, "at < 1970-01-01T00:00:00Z"), (3, "exists(at)")]
    )
    truth = oracle.MatchIndex((id, index[id]) for id in index)
    moments = [-1, 0, 1_767_225_600, 2**62, -(2**62)]
    scale = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    counts = [count * scale if abs(count) < 2**40 else count for count in moments] + [-1, None]
    agree(index, truth, pa.table({"at": pa.array(counts, pa.int64()).cast(pa.timestamp(unit, "Europe/Rome"))}))


@pytest.mark.parametrize("index", [palio.MatchIndex([(1, "x > 1")]), oracle.MatchIndex([(1, "x > 1")])])
def test_columns_that_no_attribute_can_be_are_refused(index):
    for column in (
        pa.array([datetime(2026, 1, 1, tzinfo=UTC)]).cast(pa.timestamp("us")),
        pa.array([1]).cast(pa.decimal128(30, 2)),
        pa.array([[{"a": 1}]]),
    ):
        with pytest.raises(palio.UnsupportedColumn):
            index.match_batch(pa.table({"other": column}))


def test_what_is_computed_is_decided_for_views_of_strings_too():
    index = palio.MatchIndex()
    index.add("shout", palio.Filter.parse('upper(s) = "X" and n > 1'))
    index.add("many", palio.Filter.parse("n > 1"))
    table = pa.table({"s": pa.array(["x", None, "y", "x"], pa.string_view()), "n": [1, 2, 3, 4]})
    for rows in (table, table.to_batches()[0]):
        found = zip(*(one.to_pylist() for one in index.match_batch(rows)), strict=True)
        assert sorted(found) == [(1, "many"), (2, "many"), (3, "many"), (3, "shout")]
