"""`stats`: what the data say, as a report, as numbers, and as hints for a broker's index."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
from pyspark.sql import SparkSession

from palio.language import PALIO, read_filter
from palio.spark.frames import PAYLOAD
from palio.spark.jobs.checkpoint import (
    LINES,
    Progress,
    Times,
    asked_of,
    given,
    looks_at,
    place_of,
    readable,
    require_same_files,
    unreadable,
)
from palio.spark.lookback.history import history
from palio.spark.runtime.session import cores_of
from palio.spark.source.moments import Moment, moment_or_none
from palio.spark.source.reading import read
from palio.spark.stats import gather, write_hints, write_numbers, write_report
from palio.spark.stats.figures import Figures
from palio.spark.stats.gathering import LOOKS
from palio.spark.stats.page import TITLE
from palio.spark.stats.preparing import prepared
from palio.spark.tables.inputs import (
    REASON,
    events_at,
    has_lines,
    is_journal,
    is_lake,
    past_events,
    subscriptions_at,
    table_at,
)
from palio.spark.tables.parts import Through
from palio.spark.tables.pieces import cut

FileName = str | Path


def stats(
    spark: SparkSession,
    source: str,
    *,
    subscriptions: str | None = None,
    lake: str | None = None,
    filter: str | None = None,
    dialect: str = PALIO,
    since: Moment = None,
    until: Moment = None,
    time: str | None = None,
    by: str | None = None,
    report: FileName | None = None,
    title: str = TITLE,
    numbers: FileName | None = None,
    hints: FileName | None = None,
    checkpoint: str | None = None,
    progress: Progress | None = None,
) -> Figures:
    """Figures of all events of a place: traffic, values, what subscriptions find and could save.

    `source` is a lake, journals, Parquet or lines; with `lake` it is journals, whose older part the lake has.
    `subscriptions` is Parquet or lines, in `dialect` if they do not say otherwise, as `filter` is. `filter`,
    `since` and `until` choose among the events; `time` names the attribute that says when, `by` the one by
    which events are told apart. `report`, `numbers` and `hints` are files to write: a page, JSON, and hints for
    a broker's index. With `checkpoint` events are looked at in parts, which are kept there: the same call goes
    on after an interrupt, with what there was when it began.

    Raises `UnknownInput`, `WrongOption`, `NothingThere`, `WrongCheckpoint` and `SourceChanged`.
    """
    if filter is not None:
        parsed = read_filter(filter, dialect).require_satisfiable()
        filter = parsed.source or str(parsed)
    times = moment_or_none("since", since), moment_or_none("until", until)
    options = {"filter": filter, "since": since, "until": until, "time": time, "by": by}
    options |= {} if dialect == PALIO else {"dialect": dialect}
    places = {"filters": subscriptions, "source": source, "lake": lake}
    if checkpoint is None:
        figures = _in_one_pass(spark, places, options, times)
    else:
        figures = _in_parts(spark, places, options, times, checkpoint=checkpoint, progress=progress)
    figures = msgspec.structs.replace(figures, filter=filter)
    if report is not None:
        write_report(figures, report, title=title)
    if numbers is not None:
        write_numbers(figures, numbers)
    if hints is not None:
        write_hints(figures, hints)
    return figures


def _in_one_pass(
    spark: SparkSession, places: Mapping[str, str | None], options: Mapping[str, Any], times: Times
) -> Figures:
    """Where a store, a broker or a lake can choose by filter and time, it does."""
    filters, source, lake = places["filters"], places["source"] or "", places["lake"]
    subscriptions = None if filters is None else subscriptions_at(spark, filters, options.get("dialect", PALIO))
    span: dict[str, Any] = dict(zip(("since", "until"), times, strict=True))
    filter, wrong = options["filter"], 0
    with ExitStack() as kept:
        if lake is not None or is_lake(source):
            events = history(spark, lake or source, None if lake is None else source, filter=filter, **span)
            filter = None
        elif is_journal(source):
            events = read(spark, source, filter=filter, **span)
            filter = None
        elif has_lines(source):
            # A compressed file is one partition, and reading lines is work: it is done once, and spread.
            lines = events_at(spark, source).repartition(2 * cores_of(spark)).persist()
            kept.callback(lines.unpersist)
            wrong = lines.where(f"{REASON} is not null").count()
            events = readable(lines).select(PAYLOAD)
        else:
            events = table_at(spark, source)
        chosen: dict[str, Any] = {"filter": filter, "time": options["time"], "by": options["by"], **span}
        return gather(events, subscriptions, source=source, unreadable=wrong, **chosen)


def _in_parts(
    spark: SparkSession,
    places: Mapping[str, str | None],
    options: Mapping[str, Any],
    times: Times,
    *,
    checkpoint: str,
    progress: Progress | None,
) -> Figures:
    """The same figures, look by look and piece by piece, kept in a folder."""
    filters, source, lake = places["filters"], places["source"] or "", places["lake"]
    filter, time = options["filter"], options["time"]
    subscriptions = None if filters is None else subscriptions_at(spark, filters, options.get("dialect", PALIO))
    place, url = (source, None) if lake is None else (lake, source)
    span: dict[str, Any] = dict(zip(("since", "until"), times, strict=True))
    chooses = is_journal(source) or is_lake(place)  # a store or a lake chooses by the filter itself
    choosing: dict[str, Any] = {} if chooses or filter is None else {"filter": read_filter(filter)}
    whole = past_events(spark, place, url, **(span if chooses else {}))
    prepared(readable(whole), time=time, **choosing, **span)  # what is wrong is found before anything is kept
    asked = asked_of("stats", **{name: place_of(one) for name, one in places.items()})
    asked |= {name: given(one) for name, one in options.items()}
    stages = [*([LINES] if REASON in whole.columns else ()), *LOOKS[: 2 if filters is None else 3]]
    looks = looks_at(
        whole,
        checkpoint,
        asked,
        lambda: cut(spark, place, url, **(span if chooses else {})),
        stages=stages,
        read=lambda pieces, piece: pieces.read(spark, piece, filter=filter if chooses else None),
        progress=progress,
    )
    if filters is not None:
        require_same_files(spark, looks, "filters", filters)
    wrong = unreadable(looks) if LINES in stages else 0
    span = dict(zip(("since", "until"), looks.kept("times", lambda: times, Times), strict=True))
    chosen: dict[str, Any] = {"time": time, "by": options["by"], **choosing, **span}
    return gather(Through(looks, readable), subscriptions, source=source, unreadable=wrong, **chosen)
