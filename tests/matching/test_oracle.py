"""The oracle's interface, which every index has."""

import sys
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from palio import (
    DuplicateId,
    Filter,
    FilterSyntaxError,
    MatchIndex,
    MissingDependency,
    Notification,
    UnknownId,
    UnsupportedColumn,
)


def test_ids_of_any_hashable_kind_come_and_go():
    index = MatchIndex([("cheap", "price < 10"), (("desk", 7), Filter.parse("price > 5"))])
    index.add(3, "true")
    n = Notification({"price": 7})
    assert set(index.match(n)) == {"cheap", ("desk", 7), 3}
    index.remove("cheap")
    assert set(index.match(n)) == {("desk", 7), 3}
    assert len(index) == 2
    assert 3 in index
    assert "cheap" not in index
    assert index[3] == Filter.parse("true")
    assert set(index) == {("desk", 7), 3}


def test_an_id_is_returned_once_however_many_alternatives_match():
    index = MatchIndex([("x", "a = 1 or b = 1 or c = 1")])
    assert index.match(Notification({"a": 1, "b": 1, "c": 1})) == ["x"]


def test_all_that_can_be_wrong_is_found_when_a_filter_is_added():
    index = MatchIndex([("x", "a = 1")])
    with pytest.raises(DuplicateId, match="'x' is in the index already"):
        index.add("x", "b = 1")
    with pytest.raises(FilterSyntaxError):
        index.add("y", "b = ")
    for forbidden in (index.remove, index.__getitem__):
        with pytest.raises(UnknownId, match="'y' is not in the index"):
            forbidden("y")
    assert list(index) == ["x"]


def test_statistics_count_what_is_held_and_done():
    index = MatchIndex([("x", "a = 1 and b = 2"), ("y", "a = 1 or b = 1")])
    index.match(Notification({"a": 1}))
    statistics = index.statistics()
    assert (statistics.filters, statistics.conjunctions, statistics.constraints) == (2, 3, 4)
    assert (statistics.matched_notifications, statistics.matches) == (1, 1)


def pairs(index, table):
    rows, ids = index.match_batch(table)
    assert rows.type == pa.int64()
    assert rows.to_pylist() == sorted(rows.to_pylist())
    return list(zip(rows.to_pylist(), ids.to_pylist(), strict=True))


def test_a_batch_is_a_table_with_a_column_for_each_attribute():
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    table = pa.table(
        {
            "price": [1.5, None, float("nan"), 7.0],
            "symbol": pa.array(["A", "B", "A", None]).dictionary_encode(),
            "when": pa.array([moment, None, moment, None], pa.timestamp("us", "UTC")),
            "tags": [["red"], [], None, ["red", "blue"]],
            "order": [{"id": 1}, {"id": 2}, None, {"id": 4}],
        }
    )
    index = MatchIndex(
        [
            ("priced", "exists(price)"),
            ("A", 'symbol = "A"'),
            ("when", "when = 2026-01-01T00:00:00Z"),
            ("red", 'tags has "red"'),
            ("list", "exists(tags)"),
            ("order", "order.id >= 2"),
        ]
    )
    assert set(pairs(index, table)) == {
        *[(0, one) for one in ("priced", "A", "when", "red", "list")],
        *[(1, one) for one in ("list", "order")],
        *[(2, one) for one in ("A", "when")],
        *[(3, one) for one in ("priced", "red", "list", "order")],
    }
    assert set(pairs(index, table.to_batches()[0])) == set(pairs(index, table))


def test_an_empty_batch_and_an_empty_index():
    empty = pa.table({"x": pa.array([], pa.int64())})
    assert pairs(MatchIndex([(1, "true")]), empty) == []
    assert pairs(MatchIndex(), pa.table({"x": [1]})) == []


def test_the_type_of_the_ids_does_not_depend_on_what_matched():
    rows, ids = MatchIndex([("s", "x = 1")]).match_batch(pa.table({"x": [2]}))
    assert ids.type == pa.string()
    assert len(rows) == 0


@pytest.mark.parametrize(
    ("column", "name"),
    [
        (pa.array([datetime(2026, 1, 1)], pa.timestamp("us")), "a time needs a zone"),
        (pa.array([1], pa.decimal128(10, 2)), "cast it to"),
        (pa.array([1], pa.date32()), "cast it to"),
    ],
)
def test_a_column_that_no_attribute_can_be_is_refused(column, name):
    with pytest.raises(UnsupportedColumn, match=name):
        MatchIndex([(1, "true")]).match_batch(pa.table({"x": column}))


def test_values_beyond_an_int_or_a_time_are_absent():
    table = pa.table(
        {"x": pa.array([2**63, 5], pa.uint64()), "t": pa.array([2**62, 0], pa.timestamp("s", "UTC"))}
    )
    assert pairs(MatchIndex([(1, "exists(x)"), (2, "exists(t)")]), table) == [(1, 1), (1, 2)]


def test_without_arrow_only_batches_are_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    index = MatchIndex([("x", "a = 1")])
    assert index.match(Notification({"a": 1})) == ["x"]
    with pytest.raises(MissingDependency, match=r"pip install 'palio\[arrow\]'"):
        index.match_batch(None)
