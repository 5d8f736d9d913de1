"""What each text means as a moment: by one rule, whoever reads it."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palio.model.amounts import brief_span, size_text, span_in_words
from palio.model.errors import WrongTime
from palio.model.moments import (
    format_time,
    parse_moment,
    parse_since,
    parse_span,
    parse_time,
    read_moment,
    written_moment,
)

NOW = 2_000_000_000.0
DAY = datetime(2026, 1, 1, tzinfo=UTC).timestamp()

# Moments that name themselves: options and data have the same.
MOMENTS = {
    "2026-01-01": DAY,
    "2026-01-01T00:00:00Z": DAY,
    "2026-01-01t00:00:00z": DAY,
    "2026-01-01T02:00:00+02:00": DAY,
    "2026-01-01 02:00:00+02:00": DAY,
    "2025-12-31T19:00:00-0500": DAY,
    "2026-01-01T09:30Z": DAY + 34_200,
    "2026-01-01T00:00:00.25Z": DAY + 0.25,
    "2026-01-01T00:00:00.2500009Z": DAY + 0.25,
    "@1767225600": DAY,
    "@1767225600.25": DAY + 0.25,
    "@0": 0.0,
    "@-1": -1.0,
    "1960-02-29": datetime(1960, 2, 29, tzinfo=UTC).timestamp(),
}
# So long ago: for options only, as data would mean something else whenever they are read.
AGO = {
    "now": 0.0,
    "90s": 90.0,
    "1h30m": 5_400.0,
    "7d": 604_800.0,
    "250ms": 0.25,
    "2w": 1_209_600.0,
    "1.5h": 5_400.0,
}
# What nobody takes for a time.
REFUSED = (
    *("20260101", "1767225600", "1767225600.5", "0", "2026", "202601"),  # dates, seconds, so long ago?
    *("2026-01-01T09:30:00", "2026-01-01 09:30", "09:30", "09:30Z"),  # no zone, no day
    *("2026-1-1", "2026-W01-1", "2026-001", "01/01/2026", "20260101T093000Z", "2026-01-01Z", "2026-01-01T09Z"),
    *("2026-02-30", "2026-13-01", "2026-01-01T25:00:00Z", "2026-01-01T00:00:00+25:00", "0000-01-01"),
    *("", " ", "soon", "yesterday", "-7d", "7", "7 d", "1h 30m", "h", "7x", "nan", "inf", "@", "@1e9", "@soon"),
    *("@99999999999999", "@999999999999", "٢٠٢٦-٠١-٠١", "2026-01-01\n", "9" * 400 + "d", "2026-01-01T09:30.5Z"),
)


def seconds_of(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()


@pytest.mark.parametrize(("text", "seconds"), MOMENTS.items())
def test_what_a_text_means(text, seconds):
    assert parse_moment(text, now=NOW) == seconds
    assert parse_since(text, now=NOW) == seconds
    assert seconds_of(read_moment(text)) == seconds


@pytest.mark.parametrize(("text", "ago"), AGO.items())
def test_a_span_is_ago_and_in_data_no_time(text, ago):
    assert parse_moment(text, now=NOW) == NOW - ago
    assert read_moment(text) is None


@pytest.mark.parametrize("text", REFUSED)
def test_anything_else_is_refused_and_in_data_no_time(text):
    assert read_moment(text) is None
    with pytest.raises(WrongTime, match="cannot be read"):
        parse_moment(text, now=NOW)


def test_who_is_refused_learns_what_to_write():
    said = {}
    for text in ("20260101", "2026-01-01T09:30:00", "soon"):
        with pytest.raises(WrongTime) as refused:
            parse_moment(text, now=NOW)
        assert refused.value.text == text
        said[text] = str(refused.value)
    assert "@20260101 for seconds since 1970, or 20260101s for so long ago" in said["20260101"]
    assert "needs a zone. Write 2026-01-01T09:30:00Z for UTC" in said["2026-01-01T09:30:00"]
    assert "a date (2026-03-28)" in said["soon"]
    assert "(90s, 7d)" in said["soon"]
    assert "@1767225600" in said["soon"]


def test_all_is_a_beginning_and_no_moment():
    assert parse_since("all", now=NOW) == "all"
    with pytest.raises(WrongTime):
        parse_moment("all", now=NOW)


@given(st.floats(-6e10, 2.5e11))
def test_seconds_are_written_so_that_they_are_read_back(seconds):
    assert parse_moment(written_moment(seconds), now=NOW) == seconds


@given(st.datetimes(timezones=st.just(UTC)))
def test_what_is_a_time_for_a_value_means_the_same_everywhere(moment):
    text = format_time(moment)
    assert parse_time(text) == moment == read_moment(text)


# Every entry point, with the same table


def _command_line(text: str) -> float | None:
    from palio.cli.spark.checkpoint import moment_of

    return moment_of(text)


def _gateway(text: str) -> float | None:
    from palio.broker.gateway.stream_request import read_since

    found = read_since(text)
    return time.time() if found == "now" else found


def _option_of_spark(text: str) -> float | None:
    from palio.spark.source.options import read_options

    return read_options({"url": "sqlite:///x", "since": text}).since


def _time_of_a_job(text: str) -> float | None:
    from palio.spark.source.moments import moment

    return moment("until", text, 0.0)


def _backtest(text: str) -> float | None:
    pa = pytest.importorskip("pyarrow")
    from palio.spark.lookback.backtesting import _Times

    [found] = _Times("at", column="at").of(pa.record_batch({"at": [text]})).to_pylist()
    return seconds_of(found)


def _statistics(text: str) -> float | None:
    pa = pytest.importorskip("pyarrow")
    from palio.spark.stats.preparing import BESIDE, TIME, _timed

    batch = pa.record_batch([pa.array([None], pa.int64()), pa.array([None], pa.string()), pa.array([text])],
                            [*BESIDE, "__0"])  # fmt: skip
    [timed] = _timed([*BESIDE, "at"], "at", [batch])
    [micros] = timed.column(TIME).to_pylist()
    return None if micros is None else micros / 1e6


@pytest.mark.parametrize("entry", [_command_line, _gateway, _option_of_spark, _time_of_a_job])
def test_every_option_is_read_by_the_rule(entry):
    for text, seconds in MOMENTS.items():
        assert entry(text) == seconds, text
    for text, ago in AGO.items():
        assert entry(text) == pytest.approx(time.time() - ago, abs=60), text
    for text in REFUSED:
        if text:  # Spark takes an empty option for none
            with pytest.raises(Exception, match="cannot be read"):
                entry(text)


@pytest.mark.parametrize("entry", [_backtest, _statistics])
def test_all_data_are_read_by_the_rule(entry):
    for text, seconds in MOMENTS.items():
        assert entry(text) == seconds, text
    for text in (*AGO, *REFUSED):
        assert entry(text) is None, text


@pytest.mark.parametrize(
    "text", ["20260101", "1767225600", "@1767225600", "2026-01-01", "7d", "2026-01-01T09:30:00"]
)
def test_a_value_that_is_a_time_is_written_in_full(text):
    from palio import InvalidNotification, Notification

    with pytest.raises(ValueError, match="is not a time"):
        parse_time(text)
    with pytest.raises(InvalidNotification):
        Notification({"at": {"$time": text}})


# Spans and sizes


def test_spans_as_people_type_them():
    written = {
        "90s": 90.0,
        "1h30m": 5_400.0,
        "7d": 604_800.0,
        "250ms": 0.25,
        "2.5": 2.5,
        "1.5h": 5_400.0,
        ".5": 0.5,
    }
    assert {text: parse_span(text) for text in written} == written
    for text in ("", "h", "1x", "-1", "nan", "inf", "1h 30m", "1h30", "9" * 400):
        with pytest.raises(WrongTime, match="such as 90s"):
            parse_span(text)


def test_spans_and_sizes_as_people_read_them():
    spans = {0: "0s", 59: "59s", 60: "1m0s", 3_661: "1h1m", 90_000: "1d1h"}
    assert {seconds: brief_span(seconds) for seconds in spans} == spans
    words = {0.25: "250 ms", 90: "90 s", 9_000: "2.5 hours", 5 * 86_400: "5 days", 8e8: "25.4 years"}
    assert {seconds: span_in_words(seconds) for seconds in words} == words
    sizes = {0: "0 B", 999: "999 B", 1_500: "1.5 kB", 2_000_000: "2.0 MB", 3e15: "3,000.0 TB"}
    assert {count: size_text(count) for count in sizes} == sizes
