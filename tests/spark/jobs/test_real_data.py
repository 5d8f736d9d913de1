"""Forty years of stock quotes go through everything once: published, archived, matched."""

from __future__ import annotations

import gzip
import json
from itertools import islice

import pytest

import palio.spark
import palio.sync
import palio.testing

FILTERS = {
    "apple": 'symbol = "AAPL" and close > 100',
    "risers": "open < 20 and close > 21",
    "busy": "volume > 20000000",
    "nineties": 'date starts with "199" and symbol in ("MSFT", "INTC", "ORCL")',
    "quiet": "volume < 100 or absent(volume)",
    "stocks": 'class = "STOCK" and low between 10 and 10.5',
}
BATCH = 500


def quotes(path):
    with gzip.open(path, "rt") as file:
        for line in file:
            yield json.loads(line)


@pytest.mark.slow
def test_real_quotes_from_publishing_to_pairs(spark, shared, tmp_path):
    path = shared / "data" / "stockquotes.jsonl.gz"
    index = palio.MatchIndex(FILTERS.items())
    wanted = 0
    published = 0
    with palio.testing.broker(journal=True) as address:
        with palio.sync.connect(address) as client:
            events = quotes(path)
            while some := [palio.Notification(one) for one in islice(events, BATCH)]:
                client.publish(some)
                published += len(some)
                wanted += sum(map(len, index.match_encoded([one.encode() for one in some])))
        done = palio.spark.archive(spark, address, str(tmp_path / "lake"))
    assert (done.events, done.quarantined) == (published, 0)
    lake = palio.spark.history(spark, str(tmp_path / "lake"), schema="_sequence long, _payload binary")
    events = lake.withColumnsRenamed({"_sequence": "event_id", "_payload": "payload"})
    subscriptions = spark.createDataFrame(list(FILTERS.items()), "subscription_id string, filter string")
    pairs = palio.spark.match(events, subscriptions)
    assert pairs.count() == wanted
    assert pairs.distinct().count() == wanted
