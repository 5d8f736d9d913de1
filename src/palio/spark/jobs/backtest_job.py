"""`backtest`: what a filter would have delivered of all history, and how another one differs."""

from __future__ import annotations

import os
from functools import partial

import msgspec
from pyspark.sql import DataFrame, SparkSession

from palio.language import PALIO, read_filter
from palio.model.filter import Filter
from palio.spark.errors import UnknownInput
from palio.spark.jobs.backtest_result import LookedBack, gather
from palio.spark.jobs.checkpoint import (
    LINES,
    Progress,
    Times,
    asked_of,
    given,
    looks_at,
    place_of,
    readable,
    unreadable,
)
from palio.spark.lookback import backtesting
from palio.spark.lookback.backtesting import TIME, ends_of, span_in, together
from palio.spark.lookback.buckets import Every
from palio.spark.source.moments import Moment, moment_or_none
from palio.spark.tables.inputs import REASON, past_events
from palio.spark.tables.parts import one_file
from palio.spark.tables.pieces import cut

# Parts of time, if nobody says how long they shall be: about as many as a picture or a terminal has room for.
MOST_PARTS = 96
# The looks that are taken: from when to when, and how many.
_ENDS, _COUNTS = "ends", "counts"


def backtest(
    spark: SparkSession,
    filter: str | Filter,
    source: str,
    *,
    against: str | Filter | None = None,
    dialect: str = PALIO,
    journals: str | None = None,
    since: Moment = None,
    until: Moment = None,
    every: str | None = None,
    time: str | None = None,
    samples: int = 3,
    output: str | os.PathLike[str] | None = None,
    checkpoint: str | None = None,
    progress: Progress | None = None,
) -> LookedBack:
    """Count what a filter selects of the events of a place, in parts of time; `against` is another filter.

    Texts of both are in `dialect`.

    `source` is a lake, with what `journals` have after it; or journals, Parquet or lines. `time` names the
    attribute that says when, else it is when an event was published. `every` is the length of the parts (15m,
    1d, 1mo), else one that fits. `output` is a new folder for the counts as Parquet. With `checkpoint` events
    are counted in parts, which are kept there: the same call goes on after an interrupt, with the events and
    the times of the first one, and answers at once when all is done.

    Raises `UnknownInput`, `WrongOption`, `WrongCheckpoint`, `SourceChanged`, and what `palio.spark.backtest`
    raises.
    """
    first = read_filter(filter, dialect).require_satisfiable()
    second = None if against is None else read_filter(against, dialect).require_satisfiable()
    texts = first.source or str(first), None if second is None else second.source or str(second)
    times = moment_or_none("since", since), moment_or_none("until", until)
    span = dict(zip(("since", "until"), times, strict=True)) if time is None else {}
    events = past_events(spark, source, journals, **span)
    if time is None and TIME not in events.columns:
        reason = "its events do not say when they were published; --time names the attribute that does."
        raise UnknownInput(source, reason)
    counting = partial(backtesting.backtest, filter=first, against=second, time=time or TIME, samples=samples)

    def count(some: DataFrame, every: Every, times: Times) -> DataFrame:
        return counting(readable(some), every=every, since=times[0], until=times[1])

    chosen = None if every is None else Every.parse(every)
    count(events, chosen or Every.parse("1d"), times)  # what is wrong is found before anything is kept
    asked = asked_of(
        "backtest",
        filter=texts[0],
        against=texts[1],
        events=place_of(source),
        journals=place_of(journals),
        since=given(since),
        until=given(until),
        every=every,
        time=time,
        samples=samples,
    )
    has_reasons = REASON in events.columns
    stages = [*([LINES] if has_reasons else ()), *([_ENDS] if chosen is None else ()), _COUNTS]
    cutting = partial(cut, spark, source, journals, **span)
    looks = looks_at(events, checkpoint, asked, cutting, stages=stages, progress=progress)
    wrong = unreadable(looks) if has_reasons else 0
    if chosen is None:
        there = span_in(looks.look(_ENDS, lambda some: ends_of(readable(some), time or TIME)))
        chosen = Every.parse("1d") if there is None else Every.fitting(*there, MOST_PARTS)
    kept = looks.kept("times", lambda: times, Times)  # those of the first run
    found = looks.look(_COUNTS, partial(count, every=chosen, times=kept), one_file)
    found = together(found, samples).persist()  # as large as the picture, and read more than once
    try:
        looked = gather(found, texts, chosen, samples)
        if output is not None:
            found.orderBy("begin").write.mode("errorifexists").parquet(os.fspath(output))
    finally:
        found.unpersist()
    return msgspec.structs.replace(looked, unreadable=wrong)
