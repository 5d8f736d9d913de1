"""Who says what matches: the oracle, the index, and Spark in several ways, all behind one function each.

An engine takes the ids and texts of filters and an Arrow table of events with their ids, and gives the pairs.
"""

from __future__ import annotations

import pyarrow

import palio
import palio.spark
from palio.matching import MatchIndex, columns, oracle

Pairs = list[tuple[object, object]]


def by_asking(entries, table) -> Pairs:
    """The truth: every filter is asked about every event."""
    filters = [(id, palio.Filter.parse(text)) for id, text in entries]
    events = table.column("event_id").to_pylist()
    content = columns.notifications(table.drop_columns(["event_id"]))
    return [
        (event, id)
        for event, notification in zip(events, content, strict=True)
        for id, filter in filters
        if filter.matches(notification)
    ]


def _by_index(kind):
    def pairs(entries, table) -> Pairs:
        rows, ids = kind(entries).match_batch(table.drop_columns(["event_id"]))
        events = table.column("event_id").take(rows).to_pylist()
        return list(zip(events, ids.to_pylist(), strict=True))

    return pairs


by_oracle = _by_index(oracle.MatchIndex)
by_index = _by_index(MatchIndex)


def on_spark(spark, *, size=None, **options):
    """Spark, with shards of a size and with options of `match`."""

    def pairs(entries, table) -> Pairs:
        events = spark.createDataFrame(table)
        subscriptions = frame_of(spark, entries)
        if size is not None:
            subscriptions = palio.spark.build_shards(subscriptions, size=size)
        return collected(palio.spark.match(events, subscriptions, **options))

    return pairs


def frame_of(spark, entries):
    """Subscriptions as a DataFrame; the type of the ids is that of the first."""
    ids = pyarrow.array([id for id, _ in entries])
    texts = pyarrow.array([text for _, text in entries], pyarrow.string())
    return spark.createDataFrame(pyarrow.table({"subscription_id": ids, "filter": texts}))


def collected(frame) -> Pairs:
    table = frame.toArrow()
    return list(
        zip(table.column("event_id").to_pylist(), table.column("subscription_id").to_pylist(), strict=True)
    )
