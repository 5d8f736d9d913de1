"""The same matches, whoever is asked: the oracle, the index, Spark with one shard and with many."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import palio
from tests.generators import Maker
from tests.matching.drawing import RAW, TEXTS, TIMES
from tests.slices import sliced
from tests.spark.engines import by_asking, by_index, by_oracle, on_spark

FILTERS = 60
EVENTS = 40
# Few, as each takes a while, above all on Spark, but each of many filters and events; and many for patience.
FEW = {"oracle": 3, "index": 6, "spark": 1, "spark, many shards": 1}
MANY = {"oracle": 20, "index": 50, "spark": 4, "spark, many shards": 4}
LISTS = (["a"], [], ["a", "b/c"], ["b", None])
COLUMNS = {
    "a": (pa.int64(), (0, 1, 2, 3, 5, -1, 2**53 + 1, 2**63 - 1)),
    "b": (pa.float64(), (0.0, 0.5, 2.5, 3.0, float(2**53), float("nan"))),
    "c": (pa.string(), TEXTS),
    "d": (pa.bool_(), (True, False)),
    "e": (pa.timestamp("us", "UTC"), [one for one in TIMES if 1000 < one.year < 9000]),
    "f": (pa.binary(), RAW),
    "g": (pa.list_(pa.string()), LISTS),
    "h": (pa.int32(), (0, 1, 2, 3)),
}


@pytest.fixture(params=sliced([*FEW.items(), *MANY.items()], len(FEW)))
def engine(request):
    """How many examples, and who is asked about them."""
    name, examples = request.param
    if name == "oracle":
        return examples, by_oracle
    if name == "index":
        return examples, by_index
    spark = request.getfixturevalue("spark")
    return examples, on_spark(spark, size=7 if "many" in name else None, partitions=3)


def drawn_filters(maker: Maker) -> list[tuple[int, str]]:
    texts: list[tuple[int, str]] = []
    while len(texts) < FILTERS:
        try:
            texts.append((len(texts), str(palio.Filter.from_expression(maker.expression()))))
        except palio.PalioError:
            continue  # combinations of conditions that nobody can mean
    return texts


def agree(engine, entries, table) -> None:
    assert sorted(engine(entries, table)) == sorted(by_asking(entries, table))


def test_a_column_for_each_attribute(engine):
    examples, pairs = engine

    @settings(max_examples=examples)
    @given(st.integers(0, 2**32))
    def agrees(seed):
        chance = random.Random(seed)
        entries = drawn_filters(Maker(chance, names=tuple(COLUMNS), computed=chance.random() < 0.5))
        columns = {"event_id": pa.array(range(EVENTS), pa.int64())}
        for attribute, (kind, values) in COLUMNS.items():
            drawn = [chance.choice((None, *values)) for _ in range(EVENTS)]
            columns[attribute] = pa.array(drawn, kind)
        agree(pairs, entries, pa.table(columns))

    agrees()


def test_encoded_notifications(engine):
    examples, pairs = engine

    @settings(max_examples=examples)
    @given(st.integers(0, 2**32))
    def agrees(seed):
        chance = random.Random(seed)
        maker = Maker(chance, computed=chance.random() < 0.5)
        entries = drawn_filters(maker)
        encoded = [maker.notification().encode() for _ in range(EVENTS)]
        table = {"event_id": pa.array([f"e{row}" for row in range(EVENTS)]), "payload": pa.array([*encoded])}
        agree(pairs, entries, pa.table(table))

    agrees()
