"""The same work wherever Spark runs: `python -m tests.spark.job FOLDER [--master M | --remote R] [--conf
K=V]…`.

It matches events that come slowly, so that there is time for something to go wrong; publishes some, archives
them and looks back on them; and finds patterns, in a table and in a stream. What came out it writes to the
folder: how many pairs, their checksum, what could not be read, and so on. A file for each partition that was
begun says how far it is.
"""

from __future__ import annotations

import argparse
import json
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec

import palio.spark
import palio.sync
import palio.testing
from palio.spark.lookback.backtesting import together
from palio.spark.runtime.session import session
from palio.spark.stats import gather
from palio.spark.tables import pieces
from palio.spark.tables.parts import open_parts

EVENTS = 4_000
PARTITIONS = 24
SUBSCRIPTIONS = 600
RESULT = "result.json"
BEGUN = "begun"


def slowly(folder: str, pause: float, batches):
    """Events as they are, after a while. Runs on bare Pythons, so all that it needs comes with it."""
    import time
    import uuid
    from pathlib import Path

    for batch in batches:
        Path(folder, uuid.uuid4().hex).touch()
        time.sleep(pause)
        yield batch


def run(spark, folder: Path, pause: float) -> dict:
    from pyspark.sql import functions as f

    begun = folder / BEGUN
    begun.mkdir(parents=True, exist_ok=True)
    numbers = spark.range(0, EVENTS, 1, PARTITIONS)
    events = numbers.select(
        f.col("id").alias("event_id"),
        (f.col("id") % 97).alias("level"),
        f.concat(f.lit("S"), (f.col("id") % 13).cast("string")).alias("symbol"),
    )
    slow = events.mapInArrow(partial(slowly, str(begun), pause), events.schema)
    subscriptions = spark.range(SUBSCRIPTIONS).select(
        f.concat(f.lit("sub-"), f.col("id").cast("string")).alias("subscription_id"),
        f.when(f.col("id") == 7, f.lit("level >"))
        .otherwise(f.expr("concat('level > ', id % 90, ' and symbol = \"S', id % 13, '\"')"))
        .alias("filter"),
    )
    shards = palio.spark.build_shards(subscriptions, invalid="skip", size=150)
    pairs = palio.spark.match(slow, shards, partitions=PARTITIONS)
    hashed = f.xxhash64("event_id", "subscription_id") % 1_000_003
    found = pairs.agg(f.count("*").alias("pairs"), f.sum(hashed).alias("sum")).first()
    bad = [tuple(row) for row in palio.spark.unreadable(subscriptions).collect()]
    figures = gather(events, subscriptions)
    return {
        "in_parts": in_parts(spark, folder, events),
        "pairs": found["pairs"],
        "sum": found["sum"],
        "unreadable": bad,
        "shards": len(shards.reports),
        "hits": msgspec.to_builtins(figures.hits, str_keys=True),
        "distinct": {one.name: one.distinct for one in figures.attributes},
        **looked_back(spark, folder),
        "patterns": patterns(spark, folder),
    }


def looked_back(spark, folder: Path) -> dict:
    """What a filter would have delivered, and a past that goes over into a durable subscription."""
    lake = str(folder / "lake")
    events = [{"level": number % 97} for number in range(300)]
    with palio.testing.broker(name="b", journal=True) as address, palio.sync.connect(address) as client:
        client.publish(events[:200])
        palio.spark.archive(spark, address, lake)
        client.publish(events[200:])
        history = palio.spark.history(spark, lake, address)
        counts = palio.spark.backtest(history, "level > 50", against="level < 60", every="1d", samples=2)
        rows = counts.collect()
        before = palio.spark.reach_back(spark, lake, address, "level > 50", durable="desk")
        past = [row["sequence"] for row in before.select("sequence").collect()]
        after = []
        subscription = client.subscribe("level > 50", durable="desk")
        while len(past) + len(after) < sum(event["level"] > 50 for event in events):
            event = subscription.next(60)
            after.append(event.sequence)
            event.ack()
    return {
        "backtest": {side: sum(row[side] for row in rows) for side in ("only_first", "both", "only_second")},
        "reached_back": [sorted(past), sorted(after)],
    }


def patterns(spark, folder: Path) -> dict:
    """The constituents of each match, in a table and in a stream of the same rows."""
    from pyspark.sql import functions as f

    quotes = spark.range(0, 400, 1, 4).select(
        f.col("id").alias("position"),
        (f.lit(1_700_000_000) + f.col("id")).cast("timestamp").alias("time"),
        f.concat(f.lit("S"), (f.col("id") % 5).cast("string")).alias("symbol"),
        ((f.col("id") * 37) % 101).cast("double").alias("price"),
    )
    sought = {"jump": "A[price > 80] then B[price > A.price * 1.1] within 1 min by symbol"}
    table = palio.spark.find_patterns(quotes, sought)
    rows = str(folder / "quotes")
    quotes.write.parquet(rows)
    stream = spark.readStream.schema(quotes.schema).parquet(rows)
    found = palio.spark.find_patterns(stream, sought, delay=0, buckets=4)
    writer = found.writeStream.option("checkpointLocation", str(folder / "state")).option(
        "path", str(folder / "found")
    )
    writer.format("parquet").trigger(availableNow=True).start().awaitTermination()
    both = {"table": table, "stream": spark.read.parquet(str(folder / "found"))}
    return {
        name: sorted(
            [one.position for one in row.events] for row in some.where("pattern is not null").collect()
        )
        for name, some in both.items()
    }


def in_parts(spark, folder: Path, events) -> list:
    """A backtest in parts; the first run is interrupted, and a second one goes on."""
    place = str(folder / "events")
    events.selectExpr("*", "timestamp_seconds(event_id * 60) AS at").repartition(3).write.parquet(place)
    pieces.LEAST_BYTES = 1

    def opened():
        return open_parts(spark, folder / "parts", {}, lambda: pieces.cut(spark, place), stages=["counts"])

    def count(some):
        return palio.spark.backtest(some, "level > 90", every="1d", time="at", samples=2)

    first = opened()
    with suppress(InterruptedError):
        first.look("counts", interrupted_after(1, count))
    assert (first.done, first.total, opened().done) == (1, 3, 1)
    found = together(opened().look("counts", interrupted_after(2, count)), 2)
    rows = found.selectExpr("unix_seconds(begin) AS begin", "events", "only_first", "samples.id AS ids")
    return [list(row) for row in rows.orderBy("begin").collect()]


def interrupted_after(times: int, look):
    """A look that cannot be taken more often."""
    left = iter(range(times))

    def limited(some):
        if next(left, None) is None:
            raise InterruptedError
        return look(some)

    return limited


def expected() -> dict:
    """What has to come out, found without Spark."""
    index = palio.MatchIndex(
        (f"sub-{one}", f'level > {one % 90} and symbol = "S{one % 13}"')
        for one in range(SUBSCRIPTIONS)
        if one != 7
    )
    events = ({"level": one % 97, "symbol": f"S{one % 13}"} for one in range(EVENTS))
    days = [range(first, min(first + 1_440, EVENTS)) for first in range(0, EVENTS, 1_440)]
    high = [[one for one in day if one % 97 > 90] for day in days]
    levels = [number % 97 for number in range(300)]
    return {
        "pairs": sum(len(index.match(palio.Notification(one))) for one in events),
        "shards": 4,
        "backtest": {
            "only_first": sum(level >= 60 for level in levels),
            "both": sum(50 < level < 60 for level in levels),
            "only_second": sum(level <= 50 for level in levels),
        },
        "reached_back": [sum(level > 50 for level in part) for part in (levels[:200], levels[200:])],
        "in_parts": [
            [len(day), len(chosen), [str(one) for one in chosen[:-3:-1]]]
            for day, chosen in zip(days, high, strict=True)
        ],
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--master")
    parser.add_argument("--remote")
    parser.add_argument("--pause", type=float, default=0.0)
    parser.add_argument("--conf", action="append", default=[])
    chosen = parser.parse_args()
    settings = dict(one.split("=", 1) for one in chosen.conf)
    started = time.monotonic()
    with session(chosen.master, remote=chosen.remote, settings=settings) as spark:
        result = run(spark, chosen.folder, chosen.pause)
    result["seconds"] = time.monotonic() - started
    (chosen.folder / RESULT).write_text(json.dumps(result))


if __name__ == "__main__":
    main()
