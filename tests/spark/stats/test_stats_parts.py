"""The parts of `palio.spark.stats` that need no Spark: sketches, steps, savings."""

from __future__ import annotations

import math
import random
from collections import Counter
from datetime import UTC, datetime

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

import palio
from palio.matching.saving import merged, saved
from palio.pages import wording
from palio.spark.stats import axes, steps
from palio.spark.stats.constraints import conditions, equal_to
from palio.spark.stats.content import content_of
from palio.spark.stats.figures import Bin
from palio.spark.stats.sketch import LONGEST_LISTED, MOST_MARKS, MOST_VALUES, Sketch
from tests.matching.drawing import filters, notifications
from tests.slices import sliced

FEW = settings(max_examples=60, deadline=None)
VALUES = st.one_of(
    st.booleans(), st.integers(-5, 5), st.sampled_from([0.5, -0.0, 1e300, 2.0]), st.text(max_size=2)
)


def sketches(events: list[dict]) -> dict[tuple[str, str], Sketch]:
    encoded = pa.array([palio.Notification(event).encode() for event in events], pa.binary())
    found: dict[tuple[str, str], Sketch] = {}
    for part in content_of(pa.record_batch({"payload": encoded})).parts:
        found.setdefault((part.name, part.family), Sketch()).add(part, np.random.default_rng(1))
    return found


def family(value: object) -> str:
    return {bool: "bool", int: "number", float: "number", str: "string"}[type(value)]


@FEW
@given(st.lists(st.dictionaries(st.sampled_from("ab"), VALUES), max_size=40), st.integers(0, 40))
def test_what_parts_say_together_is_what_the_whole_says(events, cut):
    merged_ones = sketches(events[:cut])
    for key, other in sketches(events[cut:]).items():
        again = Sketch.decode(other.encode())
        if key in merged_ones:
            merged_ones[key].merge(again)
        else:
            merged_ones[key] = again
    truth: dict[tuple[str, str], list] = {}
    for event in events:
        for name, value in event.items():
            truth.setdefault((name, family(value)), []).append(value)
    assert merged_ones.keys() == truth.keys()
    for key, values in truth.items():
        sketch = merged_ones[key]
        assert sketch.count == len(values)
        assert (sketch.distinct, sketch.distinct_is_exact) == (len(set(values)), True)
        assert dict(sketch.frequent()) == dict(Counter(values))
        assert sketch.missed == 0
        if key[1] == "number":
            assert (sketch.least, sketch.most) == (min(values), max(values))
            assert sketch.mean == pytest.approx(math.fsum(values) / len(values))
            quantiles = sketch.quantiles()
            assert quantiles == sorted(quantiles)
            assert quantiles[50] == sorted(map(float, values))[math.ceil(len(values) / 2) - 1]


@pytest.mark.parametrize("seed", sliced(range(3), 1))
def test_many_values_are_estimated_within_what_is_promised(seed):
    print(f"seed {seed}")
    draw = random.Random(seed)
    numbers = [draw.expovariate(0.01) for _ in range(30_000)] + [7.0] * 3_000
    draw.shuffle(numbers)
    whole = Sketch()
    for start in range(0, len(numbers), 3_000):
        part = sketches([{"x": number} for number in numbers[start : start + 3_000]])["x", "number"]
        whole.merge(Sketch.decode(part.encode()))
    assert whole.count == len(numbers)
    assert not whole.distinct_is_exact
    assert whole.distinct == pytest.approx(len(set(numbers)), rel=5 / math.sqrt(MOST_MARKS))
    ordered = sorted(numbers)
    for place, quantile in enumerate(whole.quantiles()):
        assert abs(np.searchsorted(ordered, quantile) / len(ordered) - place / 100) < 0.06 + 3_000 / len(
            ordered
        )
    assert whole.deviation == pytest.approx(np.std(numbers))
    value, count = whole.frequent()[0]
    assert value == 7.0
    assert count <= 3_000 <= count + whole.missed


def test_long_and_many_texts_do_not_make_it_grow():
    events = [{"x": "y" * (LONGEST_LISTED + 1), "z": f"{number}"} for number in range(5 * MOST_VALUES)]
    found = sketches(events)
    assert found["x", "string"].values == {}
    assert found["x", "string"].count == len(events)
    assert found["x", "string"].distinct == 1
    assert len(found["z", "string"].encode()) < 100_000


def test_a_batch_of_invented_names_is_bounded():
    encoded = pa.array(
        [palio.Notification({f"n{i}": 1, "common": 1}).encode() for i in range(2_000)], pa.binary()
    )
    found = content_of(pa.record_batch({"payload": encoded}))
    assert len(found.parts) == 512
    assert found.parts[0].name == "common"
    assert found.passed_over == 2_001 - 512


def test_columns_and_payloads_say_the_same():
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    rows = [{"a": 1, "b": "x", "t": moment, "ok": True}, {"a": 2.5, "tags": ["u"]}, {"raw": b"z"}]
    encoded = pa.array([palio.Notification(row).encode() for row in rows], pa.binary())
    by_payload = content_of(pa.record_batch({"payload": encoded}))
    by_column = content_of(
        pa.table(
            {
                "a": pa.array([1.0, 2.5, math.nan]),
                "b": pa.array(["x", None, None]).dictionary_encode(),
                "t": pa.array([moment, None, None], pa.timestamp("ms", "UTC")),
                "ok": [True, None, None],
                "tags": [None, ["u"], None],
                "raw": [None, None, b"z"],
                "nothing": pa.nulls(3),
            }
        )
    )

    def totals(content) -> Counter:
        return Counter({(part.name, part.family): part.count for part in content.parts if part.name != "a"})

    assert totals(by_payload) == totals(by_column)
    assert sum(part.count for part in by_column.parts if part.name == "a") == 2


# Steps and axes


@given(st.floats(0, 4e9), st.floats(0, 4e9))
def test_steps_of_time_contain_everything_and_are_few(one, other):
    first, last = sorted((one, other))
    start, step, number = steps.time_steps(first, last)
    assert start <= first
    assert last < start + step * number or math.isclose(last, start + step * number)
    assert number <= steps.MOST_STEPS + 1
    assert len(axes.time_ticks(start, start + step * number)) <= axes.MOST_TICKS + 1


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=101).map(sorted))
def test_bins_contain_everything_and_are_few(quantiles):
    edges, _ = steps.bin_edges(quantiles)
    assert list(edges) == sorted(set(edges))
    assert edges[0] <= quantiles[0]
    assert edges[-1] >= quantiles[-1]
    assert 2 <= len(edges) <= 2 * steps.BINS + 2


def test_an_axis_has_marks_that_people_say():
    start, end = (datetime(year, 1, 1, tzinfo=UTC).timestamp() for year in (1984, 2005))
    assert [label for _, label in axes.time_ticks(start, end)] == ["1985", "1990", "1995", "2000", "2005"]
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC).timestamp()
    assert [label for _, label in axes.time_ticks(noon, noon + 3_600)][:2] == ["12:00", "12:10"]
    bins = [Bin(10.0**power, 10.0 ** (power + 1), 1) for power in range(-1, 4)]
    assert axes.bin_ticks(bins, logarithmic=True) == [(0.2, "1"), (0.4, "10"), (0.6, "100"), (0.8, "1 k")]


def test_numbers_are_said_as_people_do():
    assert [wording.short(n) for n in (0, 5, 1234, 2_500_000, 0.001)] == ["0", "5", "1.23 k", "2.5 M", "0.001"]
    assert [wording.share(n) for n in (0, 1e-9, 0.004, 0.5, 0.9999, 1)] == [
        "0 %", "< 0.01 %", "0.40 %", "50.0 %", "> 99.9 %", "100 %",
    ]  # fmt: skip
    assert wording.number(math.inf) == "–"
    assert [wording.step(n) for n in (1, 60, 300, 91 * 86_400)] == ["second", "minute", "5 minutes", "13 weeks"]


# Constraints and savings


def test_constraints_are_found_whatever_they_are_joined_with():
    expression = palio.model.parser.parse('a = 1 and not (b > 2 or c starts with "x") or a in (1, 2)')
    assert sorted((name, one.operator) for name, one in conditions(expression)) == [
        ("a", "="), ("a", "in"), ("b", ">"), ("c", "starts with"),
    ]  # fmt: skip
    assert equal_to('a = "x"') == ("a", "x")
    assert equal_to("a > 1") is None
    assert equal_to("int a = 1") is None


def test_what_covering_and_merging_save():
    texts = [
        "x > 1",
        "x > 1",
        "x > 5",
        'y = "a"',
        'y = "b"',
        'y = "b" and x > 7',
        "x < 0 and x > 1",
        "z = 1 or w = 2",
    ]
    found = saved([palio.Filter.parse(text) for text in texts])
    # Different ones without the contradiction; x > 5 and the last y lie below others; y = a, b becomes one.
    assert (found.filters, found.distinct, found.covering, found.merging) == (8, 6, 4, 3)


@FEW
@given(st.lists(filters, max_size=10), st.lists(notifications, max_size=12))
def test_merged_filters_select_exactly_what_the_others_did(several, events):
    fewer = merged(several)
    assert len(fewer) <= len(several)
    for event in events:
        assert any(one.matches(event) for one in fewer) == any(one.matches(event) for one in several)
