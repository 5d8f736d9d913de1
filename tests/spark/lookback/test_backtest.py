"""`palio spark backtest`: counts over time and samples are those of an oracle; and one can look at them."""

import json
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import palio
import palio.spark
from palio.cli.output.bars import lying, squeezed, standing
from palio.model.errors import ContradictoryFilter
from palio.spark.errors import MissingColumn, WrongOption
from palio.spark.lake.archiving import archive
from palio.spark.lookback.backtesting import Counting, ends_of, span_in
from palio.spark.lookback.buckets import Every
from palio.spark.source.rows import UTC_MICROSECONDS
from tests.spark.filling import MIDNIGHT, fill

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytestmark = pytest.mark.usefixtures("several_parts")

SIDES = ("only_first", "only_second", "both")
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


# Parts of time


@given(
    st.datetimes(datetime(1950, 1, 1), datetime(2090, 1, 1), timezones=st.just(UTC)),
    st.sampled_from(("1s", "15s", "1m", "30m", "1h", "12h", "1d", "1w", "1mo", "3mo", "1y")),
)
@settings(max_examples=200, deadline=None)
def test_each_moment_is_in_one_part(moment, text):
    every = Every.parse(text)
    begin = every.floor(pa.array([moment], UTC_MICROSECONDS))[0].as_py()
    assert begin <= moment < every.after(begin)
    assert every.floor(pa.array([every.after(begin)], UTC_MICROSECONDS))[0].as_py() == every.after(begin)


def test_parts_are_chosen_to_fit_and_have_names():
    for span, most, text in (
        (timedelta(0), 96, "1s"),
        (timedelta(hours=1), 96, "1m"),
        (timedelta(days=2), 96, "1h"),
        (timedelta(days=365), 96, "1w"),
        (timedelta(days=7_400), 96, "3mo"),
        (timedelta(days=400_000), 10, "100y"),
    ):
        assert Every.fitting(BEGIN, BEGIN + span, most) == Every.parse(text)
    assert [str(Every.parse(text)) for text in ("1d", "3mo", "15m")] == ["day", "3 months", "15 minutes"]
    for wrong in ("", "0h", "1", "h", "1.5h", "1h30m"):
        with pytest.raises(WrongOption, match="every"):
            Every.parse(wrong)


# Counting, as a task does it

FILTERS = ("x > 2", 'class = "b"', "true", 'x <= 2 and class != "a"', "x = 9")


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_counts_and_samples_are_those_of_an_oracle(data):
    first = data.draw(st.sampled_from(FILTERS))
    second = data.draw(st.sampled_from((None, *FILTERS)))
    samples = data.draw(st.integers(0, 3))
    events = [
        (data.draw(st.one_of(st.none(), st.integers(-5_000_000, 5_000_000))), {"class": kind, "x": x}, number)
        for number, (kind, x) in enumerate(
            data.draw(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5)), max_size=40))
        )
    ]
    since, until = data.draw(st.sampled_from(((None, None), (-1.5, None), (None, 2.0), (-2.0, 3.0))))
    size = data.draw(st.integers(1, 10))
    batches = [
        pa.RecordBatch.from_pydict(
            {
                "time": pa.array([time for time, *_ in some], UTC_MICROSECONDS),
                "sequence": pa.array([number for *_, number in some], pa.int64()),
                "payload": pa.array([palio.Notification(what).encode() for _, what, _ in some], pa.binary()),
            }
        )
        for some in [events[place : place + size] for place in range(0, len(events), size)]
    ]
    infinite = float("inf")
    counting = Counting(
        first,
        second,
        every=Every.parse("1s"),
        time="time",
        column="time",
        span=(-infinite if since is None else since, infinite if until is None else until),
        samples=samples,
    )
    [table] = counting.count(iter(batches))
    expected = {}
    for time, what, number in events:
        if (since is not None and (time is None or time < since * 1e6)) or (
            until is not None and (time is None or time >= until * 1e6)
        ):
            continue
        said = palio.Notification(what)
        by_first = palio.Filter.parse(first).matches(said)
        by_second = second is not None and palio.Filter.parse(second).matches(said)
        part = expected.setdefault(None if time is None else time // 1_000_000, {side: [] for side in SIDES})
        part.setdefault("events", []).append(number)
        if by_first or by_second:
            side = "both" if by_first and by_second else "only_first" if by_first else "only_second"
            part[side].append((-infinite if time is None else time, number))
    rows = table.to_pylist()
    begins = [None if row["begin"] is None else round(row["begin"].timestamp()) for row in rows]
    assert sorted(begins, key=str) == sorted(expected, key=str)
    for begin, row in zip(begins, rows, strict=True):
        assert row["events"] == len(expected[begin]["events"])
        for side in SIDES:
            there = expected[begin][side]
            assert row[side] == len(there)
            shown = [(one["time"], one["sequence"]) for one in row["samples"] if one["which"] == side]
            assert len(shown) == min(samples, len(there))
            assert {number for _, number in shown} <= {number for _, number in there}
            newest = sorted([time for time, _ in there], reverse=True)[:samples]
            times = [-infinite if time is None else round(time.timestamp() * 1e6) for time, _ in shown]
            assert sorted(times, reverse=True) == newest


def test_too_many_parts_are_refused_rather_than_kept(monkeypatch):
    monkeypatch.setattr("palio.spark.lookback.backtesting.MAX_PARTS", 10)
    batch = pa.RecordBatch.from_pydict(
        {"time": pa.array(range(0, 20_000_000, 1_000_000), UTC_MICROSECONDS), "x": [1] * 20}
    )
    span = (-float("inf"), float("inf"))
    counting = Counting(
        "x = 1", None, every=Every.parse("1s"), time="time", column="time", span=span, samples=0
    )
    with pytest.raises(WrongOption, match="more than 10 parts of time"):
        list(counting.count([batch]))


# On Spark


def quotes(count):
    day = timedelta(days=1)
    return [
        {
            "symbol": f"S{n % 5}",
            "price": n % 100,
            "date": (BEGIN + n * day).date().isoformat(),
            "at": BEGIN + n * day,
        }
        for n in range(count)
    ]


@pytest.fixture(scope="module")
def lake(spark, tmp_path_factory):
    """300 events of five hours in a lake, and 60 more in the journal after it; nobody changes them."""
    folder = tmp_path_factory.mktemp("history")
    url, place = f"sqlite:///{folder}/palio.db", str(folder / "lake")
    fill(url, quotes(300), step=60.0)
    archive(spark, url, place)
    fill(url, quotes(60), at=MIDNIGHT + 300 * 60, step=60.0)
    return place, url


def counted(frame):
    rows = frame.selectExpr("unix_seconds(begin) AS begin", "events", *SIDES).orderBy("begin").collect()
    return [(row.begin, row.events, row.only_first, row.only_second, row.both) for row in rows]


def test_lake_and_journal_are_one_history(spark, lake):
    place, url = lake
    whole = palio.spark.history(spark, place, url)
    found = palio.spark.backtest(whole, "price < 10", against='symbol = "S1"', every="1h", samples=2)
    expected = []
    for hour in range(6):
        prices = [n % 100 for n in [*range(300), *range(60)][hour * 60 : hour * 60 + 60]]
        first, second = [price < 10 for price in prices], [price % 5 == 1 for price in prices]
        pairs = list(zip(first, second, strict=True))
        sides = (pairs.count((True, False)), pairs.count((False, True)), pairs.count((True, True)))
        expected.append((int(MIDNIGHT) + hour * 3_600, 60, *sides))
    assert counted(found) == expected
    samples = found.selectExpr("inline(samples)").collect()
    assert {row.which for row in samples} == {*SIDES}
    assert all(
        palio.Notification.decode(bytes(row.payload))["price"] < 10 for row in samples if row.which == "both"
    )
    assert span_in(ends_of(whole)) == tuple(
        datetime.fromtimestamp(MIDNIGHT + seconds, UTC) for seconds in (0, 359 * 60)
    )


def test_an_attribute_as_the_axis_of_time(spark, lake):
    place, _ = lake
    events = palio.spark.history(spark, place)
    for attribute in ("date", "at"):
        assert span_in(ends_of(events, attribute)) == (BEGIN, BEGIN + timedelta(days=299))
        found = palio.spark.backtest(events, "price < 50", every="1mo", time=attribute, since="2026-02-01")
        rows = counted(found)
        assert [datetime.fromtimestamp(row[0], UTC).month for row in rows] == list(range(2, 11))
        assert [row[1] for row in rows[:3]] == [28, 31, 30]
        assert sum(row[2] for row in rows) == sum(1 for n in range(31, 300) if n % 100 < 50)
    assert counted(palio.spark.backtest(events, "true", every="1d", time="symbol")) == [(None, 300, 300, 0, 0)]


def test_a_table_with_a_column_for_each_attribute(spark):
    rows = [(n, float(n), BEGIN + timedelta(hours=n)) for n in range(48)]
    table = spark.createDataFrame(rows, "event_id long, price double, at timestamp")
    found = palio.spark.backtest(table, "price >= 40", every="1d", time="at", samples=1)
    assert [row[1:3] for row in counted(found)] == [(24, 0), (24, 8)]
    [sample] = found.selectExpr("inline(samples)").collect()
    assert (sample.id, palio.Notification.decode(bytes(sample.payload))["price"]) == ("47", 47.0)


def test_what_cannot_be_is_an_error_at_once(spark, lake):
    events = palio.spark.history(spark, lake[0])
    with pytest.raises(ContradictoryFilter):
        palio.spark.backtest(events, "x > 2 and x < 1", every="1h")
    with pytest.raises(WrongOption, match="samples"):
        palio.spark.backtest(events, "true", every="1h", samples=1_000)
    with pytest.raises(WrongOption, match="since"):
        palio.spark.backtest(events, "true", every="1h", since=2.0, until=1.0)
    with pytest.raises(MissingColumn, match="'time'"):
        palio.spark.backtest(events.drop("time"), "true", every="1h")


# The command


def test_the_command_counts_compares_and_draws(spark, command, lake, tmp_path):
    place, url = lake
    picture, drawing = tmp_path / "difference.png", tmp_path / "difference.svg"
    both = ("price < 10", place, "--journals", url, "--against", 'symbol = "S1"', "--every", "1h")
    shown = command("spark", "backtest", *both, "--picture", str(picture), "--output", str(tmp_path / "counts"))
    assert shown.exit_code == 0, shown.output
    assert "A  price < 10" in shown.stdout
    assert "104 of 360 events, 2023-11-15 to 2023-11-15 06:00 (UTC), each hour" in shown.stdout
    assert all(label in shown.stdout for label in ("only A  32", "both  8", "only B  64"))
    assert "█" in shown.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert spark.read.parquet(str(tmp_path / "counts")).count() == 6
    told = command("spark", "backtest", *both, "--json", "--samples", "1", "--picture", str(drawing))
    document = json.loads(told.stdout)
    assert document["events"] == 360
    assert sum(part["both"] for part in document["when"]) == document["both"]
    assert {one["side"] for one in document["samples"]} == {*SIDES}
    assert "<svg" in drawing.read_text()


def test_the_command_says_what_is_wrong(command, lake, tmp_path):
    place, _ = lake
    none = command("spark", "backtest", "price > 1000", place)
    assert (none.exit_code, "0 of 300 events" in none.stdout) == (1, True)
    lines = tmp_path / "events.jsonl"
    lines.write_text('{"x": 1, "date": "2026-01-01"}\nnonsense\n{"x": 2}\n')
    untimed = command("spark", "backtest", "true", str(lines))
    assert (untimed.exit_code, "--time names the attribute" in untimed.stderr) == (3, True)
    timed = command("spark", "backtest", "x > 0", str(lines), "--time", "date")
    assert "1 line cannot be read" in timed.stderr
    assert "1 event without a time" in timed.stdout
    for arguments, sentence in (
        (("true", place, "--picture", str(tmp_path / "x.gif")), "neither a .png nor an .svg"),
        (("true", place, "--picture", str(tmp_path / "no" / "x.png")), "There is no folder"),
        (("true", place, "--every", "soon"), "none of 30s, 15m"),
        (("true", str(lines), "--time", "date", "--journals", "sqlite:///x"), "no lake, after which"),
        (("x > 2 and x < 1", place), "x"),
    ):
        wrong = command("spark", "backtest", *arguments)
        assert (wrong.exit_code, sentence in wrong.stderr) == (3, True), wrong.stderr


def test_blocks_show_what_is_more_than_nothing():
    assert standing([0, 1, 50, 100], 100, 2) == ["   █", " ▁██"]
    assert standing([3], 6, 1) == ["▄"]
    assert (lying(0, 9, 10), lying(1, 900, 10), lying(9, 9, 3)) == ("", "▌", "███")
    assert squeezed([1] * 10, 4) == [3, 3, 3, 1]
    assert squeezed([], 4) == []
