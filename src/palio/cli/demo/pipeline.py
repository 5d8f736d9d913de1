"""The last part of `palio demo`: what the network carried becomes data.

The journals of all brokers go to a lake, Spark matches everything in it in bulk and looks for the pattern that
the lookout saw live. What it finds has to be what was delivered, and what was seen. A report stays.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from rich.console import Console

import palio.spark
from palio.cli.demo.patterns import NAME, PATTERN, TIME
from palio.cli.program.terminal import plural
from palio.cli.spark.output import quiet_session
from palio.model.errors import MissingDependency
from palio.spark.errors import JavaMissing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Delivered(msgspec.Struct, frozen=True):
    """What came to a subscriber, of those trades that had to come to it."""

    filter: str
    trades: frozenset[str]
    among: frozenset[str]


def missing_for_spark() -> str | None:
    """Why there is no pipeline here, in a sentence; None if there can be one."""
    from palio.spark.runtime.java import java_version  # noqa: PLC0415

    try:
        java_version()
        import pandas  # noqa: F401, PLC0415
        import pyspark  # noqa: F401, PLC0415
    except JavaMissing as problem:
        return str(problem)
    except ImportError as problem:
        return str(MissingDependency(problem.name or "pyspark", "spark"))
    return None


class Story(msgspec.Struct, frozen=True):
    """What happened while it was live: what was delivered, and the matches of the lookout's pattern."""

    delivered: Sequence[Delivered]
    found: frozenset[tuple[str, ...]]
    report: Path


def look_back(console: Console, url: str, folder: Path, story: Story) -> str | None:
    """Archive, match and look for the pattern; returns what differs from the story, None if nothing does."""
    started = time.perf_counter()
    with quiet_session(name="palio demo", settings={"spark.sql.shuffle.partitions": "4"}) as spark:
        console.print(f"Spark is up in {time.perf_counter() - started:.1f} s.", soft_wrap=True)
        started = time.perf_counter()
        lake = str(folder / "lake")
        done = palio.spark.archive(spark, url, lake)
        console.print(
            f"The journals of all five brokers, {plural(done.events, 'event')}, are a lake of "
            f"{plural(done.files, 'Parquet file')} after {time.perf_counter() - started:.1f} s.",
            soft_wrap=True,
        )
        difference = _matched(console, spark, lake, story) or _patterns(console, spark, lake, story)
        if difference is None:
            _report(console, spark, lake, story)
        return difference


def _matched(console: Console, spark: SparkSession, lake: str, story: Story) -> str | None:
    started = time.perf_counter()
    history = palio.spark.history(spark, lake, schema="trade string, _payload binary")
    events = history.where("trade is not null").withColumnsRenamed({"trade": "event_id", "_payload": "payload"})
    pairs = palio.spark.match(events, _subscriptions(spark, story))
    found: dict[int, set[str]] = {number: set() for number in range(len(story.delivered))}
    count = 0
    for row in pairs.toLocalIterator():
        count += 1
        found[row["subscription_id"]].add(row["event_id"])
    console.print(
        f"Bulk matching finds {plural(count, 'pair')} of them and "
        f"{plural(len(story.delivered), 'subscription')} in {time.perf_counter() - started:.1f} s.",
        soft_wrap=True,
    )
    return _difference(story.delivered, found)


def _subscriptions(spark: SparkSession, story: Story) -> DataFrame:
    rows = [(number, one.filter) for number, one in enumerate(story.delivered)]
    return spark.createDataFrame(rows, "subscription_id int, filter string")


def _patterns(console: Console, spark: SparkSession, lake: str, story: Story) -> str | None:
    started = time.perf_counter()
    columns = f"{TIME} timestamp, _journal string, _sequence bigint, _id string, _payload binary"
    history = palio.spark.history(spark, lake, schema=columns)
    rows = palio.spark.find_patterns(history, {NAME: PATTERN}, time=TIME, close=True).toLocalIterator()
    found = {tuple(event["id"] for event in row["events"]) for row in rows if row["pattern"] is not None}
    console.print(
        f"The lookout's pattern is in this history {len(found):,} times: found in "
        f"{time.perf_counter() - started:.1f} s.",
        soft_wrap=True,
    )
    if odd := sorted(found ^ story.found):
        whose = "Spark" if odd[0] in found else "The lookout"
        return f"{whose} alone found the pattern in {' and '.join(odd[0])}."
    return None


def _report(console: Console, spark: SparkSession, lake: str, story: Story) -> None:
    from palio.spark.stats import gather, write_report  # noqa: PLC0415 - numpy and pandas take their time

    started = time.perf_counter()
    figures = gather(
        palio.spark.history(spark, lake),
        _subscriptions(spark, story),
        source="the journals of five brokers",
        filter="exists(trade)",
        by="ward",
    )
    place = write_report(figures, story.report, title="A few seconds at a made-up market")
    console.print(
        f"What all of this says, found in {time.perf_counter() - started:.1f} s, is a page for the browser: "
        f"{place}",
        soft_wrap=True,
    )


def _difference(delivered: Sequence[Delivered], found: dict[int, set[str]]) -> str | None:
    for number, one in enumerate(delivered):
        wanted = found[number] & one.among
        if wanted != one.trades & one.among:
            odd = sorted(wanted ^ (one.trades & one.among))[0]
            whose = "Spark found" if odd in wanted else "the network delivered"
            return f"Only {whose} {odd} for the subscription {one.filter!r}."
    return None
