"""The jobs as functions: all that the commands can do, with checkpoints and quarantine, without a terminal."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

import palio.spark
from palio.cli.main import Commands
from palio.matching.hints import Hints
from palio.spark import jobs
from palio.spark.errors import BadEvent, SourceChanged, UnknownInput, WrongCheckpoint, WrongOption
from palio.spark.tables import pieces
from tests.spark.filling import MIDNIGHT, fill

pytest.importorskip("pyspark", reason="pyspark is not installed")

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
TEXTS = {"low": "price < 10", "bad": "price <", "one": 'symbol = "S1"'}
FILTERS = "".join(json.dumps({"id": id, "filter": text}) + "\n" for id, text in TEXTS.items())


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """So that a few events are several parts."""
    monkeypatch.setattr(pieces, "LEAST_EVENTS", 100)
    monkeypatch.setattr(pieces, "LEAST_BYTES", 1)


def quotes(count):
    return [{"symbol": f"S{n % 5}", "price": n % 100} for n in range(count)]


@pytest.fixture
def url(tmp_path):
    place = f"sqlite:///{tmp_path}/palio.db"
    fill(place, quotes(300), at=MIDNIGHT, step=60.0)
    return place


@pytest.fixture
def filters(tmp_path):
    place = tmp_path / "filters.jsonl"
    place.write_text(FILTERS)
    return str(place)


class Stopping:
    """Hears how far a job is, and interrupts it when so many parts are done."""

    def __init__(self, stop: int | None = None):
        self.stop = stop
        self.heard: list[jobs.PartsDone] = []

    def __call__(self, now: jobs.PartsDone) -> None:
        self.heard.append(now)
        if now.done == self.stop:
            raise KeyboardInterrupt


def test_a_backtest_goes_on_in_its_checkpoint(spark, url, tmp_path):
    state, output = str(tmp_path / "state"), tmp_path / "counts"
    begin = datetime.fromtimestamp(MIDNIGHT + 6_000, UTC)

    def backtest(**more):
        return jobs.backtest(
            spark, "price < 10", url, against='symbol = "S1"', since=begin, every="1h", samples=2, **more
        )

    whole = backtest()
    assert (whole.total("events"), whole.found, whole.unreadable) == (200, 56, 0)
    assert whole.parts[0].begin == begin.replace(minute=0)
    stopping = Stopping(2)
    with pytest.raises(KeyboardInterrupt):
        backtest(checkpoint=state, progress=stopping)
    assert [(now.done, now.of) for now in stopping.heard] == [(0, 3), (1, 3), (2, 3)]
    fill(url, quotes(50), at=MIDNIGHT + 90_000)  # no business of the second run
    going = Stopping()
    assert backtest(checkpoint=state, progress=going, output=output).document() == whole.document()
    assert (going.heard[0].done, going.heard[-1].done) == (2, 3)
    assert going.heard[0].began == stopping.heard[0].began
    assert spark.read.parquet(str(output)).selectExpr("sum(events)").first()[0] == 200
    with pytest.raises(WrongCheckpoint, match="begun with against"):
        jobs.backtest(spark, "price < 10", url, since=begin, every="1h", samples=2, checkpoint=state)
    with pytest.raises(WrongOption, match="'20260101' cannot be read: a bare number is no time"):
        jobs.backtest(spark, "true", url, since="20260101")


def test_lines_that_are_no_events_are_counted(spark, tmp_path):
    place = tmp_path / "events.jsonl"
    dates = [(BEGIN + timedelta(days=n)).date().isoformat() for n in range(3)]
    place.write_text("".join(f'{{"at": "{date}"}}\n' for date in (*dates, "20260101")) + "nonsense\n")
    looked = jobs.backtest(spark, "true", str(place), time="at")
    assert (looked.unreadable, looked.total("events")) == (1, 4)
    assert looked.untimed is not None
    assert looked.untimed.events == 1  # 20260101 is no time
    with pytest.raises(UnknownInput, match="do not say when"):
        jobs.backtest(spark, "true", str(place))


def test_a_match_with_quarantine_and_checkpoint(spark, filters, tmp_path):
    events, state, aside, output = (
        str(tmp_path / name) for name in ("events.jsonl", "state", "aside", "pairs")
    )
    lines = [json.dumps(one) for one in quotes(50)]
    Path(events).write_text("\n".join([*lines[:7], "nonsense", *lines[7:]]))
    with pytest.raises(BadEvent, match="Event 8 cannot be read"):
        jobs.match(spark, events, filters)
    stopping = Stopping(1)
    options = {"quarantine": aside, "checkpoint": state}
    with pytest.raises(KeyboardInterrupt):
        jobs.match(spark, events, filters, progress=stopping, **options)
    assert stopping.heard[-1].of == 2
    matched = jobs.match(spark, events, filters, output=output, **options)
    assert matched.output == output
    wanted = {(str(n + 1 + (n >= 7)), id) for n, one in enumerate(quotes(50))
              for id, fits in (("low", one["price"] < 10), ("one", one["symbol"] == "S1")) if fits}  # fmt: skip
    assert {(row.event_id, row.subscription_id) for row in matched.pairs.collect()} == wanted
    assert [row.event_id for row in spark.read.parquet(f"{aside}/events").collect()] == ["8"]
    assert [row.subscription_id for row in spark.read.parquet(f"{aside}/subscriptions").collect()] == ["bad"]
    Path(filters).write_text(FILTERS + "price > 1\n")
    with pytest.raises(SourceChanged, match=r"filters\.jsonl has changed"):
        jobs.match(spark, events, filters, **options)


def test_what_is_new_is_matched_from_call_to_call(spark, url, filters, tmp_path):
    output = str(tmp_path / "out")
    heard = []
    first = jobs.match_new(
        spark, url, filters, output, quarantine=str(tmp_path / "aside"), told=lambda *one: heard.append(one)
    )
    assert (first.found, [run.number for run in first.runs]) == (84 + 6, [1])
    assert [(done, of) for _, done, of in heard] == [(300, 300)]
    fill(url, [{"price": 1}], at=MIDNIGHT + 90_000)
    second = jobs.match_new(spark, url, filters, output, quarantine=str(tmp_path / "aside"))
    assert (second.found, [run.number for run in second.runs]) == (1, [2])
    assert palio.spark.matches(spark, output).count() == 91
    with pytest.raises(UnknownInput, match="have positions"):
        jobs.match_new(spark, "examples/events.jsonl", filters, output)


def test_statistics_go_on_and_are_written(*, spark, url, filters, tmp_path, monkeypatch):
    monkeypatch.setattr(pieces, "LEAST_EVENTS", 150)
    whole = jobs.stats(spark, url, subscriptions=filters, filter="price < 50", since="2023-11-15")
    assert (whole.traffic.events, whole.filter, whole.hits.unreadable) == (150, "price < 50", 1)
    files = {name: tmp_path / "written" / name for name in ("report", "numbers", "hints")}
    options = {"subscriptions": filters, "filter": "price < 50", "since": "2023-11-15"}
    state = str(tmp_path / "state")
    with pytest.raises(KeyboardInterrupt):
        jobs.stats(spark, url, checkpoint=state, progress=Stopping(4), **options)
    going = Stopping()
    kept = jobs.stats(spark, url, checkpoint=state, progress=going, title="Quotes", **options, **files)
    assert (going.heard[0].done, going.heard[-1].done) == (4, going.heard[-1].of)
    assert msgspec.structs.replace(kept, made=0.0).traffic == whole.traffic
    assert kept.hits == whole.hits
    assert "<title>Quotes</title>" in files["report"].read_text()
    assert json.loads(files["numbers"].read_bytes())["traffic"]["events"] == 150
    assert Hints.decode(files["hints"].read_bytes()).events == 150


def test_statistics_of_lines_leave_nothing_in_the_memory_of_spark(spark, tmp_path):
    lines = tmp_path / "quotes.jsonl"
    lines.write_text('{"price": 1}\nnonsense\n{"price": 2}\n')
    kept = spark.sparkContext._jsc.getPersistentRDDs
    before = set(kept())
    figures = jobs.stats(spark, str(lines))
    assert (figures.traffic.events, figures.traffic.unreadable) == (2, 1)
    assert set(kept()) == before


def test_patterns_in_a_lake_go_on_in_their_checkpoint(spark, url, tmp_path):
    texts = {"drop": "A[price = 99] then B[price = 0] within 5 min"}
    lake, heard, rows = str(tmp_path / "lake"), [], []
    jobs.archive(spark, url, lake)
    state = str(tmp_path / "state")
    with pytest.raises(KeyboardInterrupt):
        jobs.patterns(spark, lake, texts, checkpoint=state, progress=Stopping(1))
    found = jobs.patterns(
        spark,
        lake,
        texts,
        checkpoint=state,
        output=str(tmp_path / "found"),
        each=rows.append,
        told=heard.append,
    )
    assert found == jobs.PatternsFound(matches=2) == heard[-1]
    assert [[one["step"] for one in row["events"]] for row in rows] == [["A", "B"]] * 2
    assert spark.read.parquet(str(tmp_path / "found")).count() == 2
    for wrong in ({"follow": True}, {"close": True, "checkpoint": str(tmp_path / "stream")}):
        with pytest.raises(WrongOption, match=next(iter(wrong))):
            jobs.patterns(spark, url, texts, **wrong)


def test_a_lake_is_filled_put_in_order_and_erased(spark, url, tmp_path):
    lake, told, merging = str(tmp_path / "lake"), [], []
    done = jobs.archive(spark, url, lake, told=told.append)
    assert (done.events, done.quarantined, done.merged) == (300, 0, 0)
    assert [(now.events, now.waiting) for now in told] == [(0, 300), (300, 0)]
    fill(url, quotes(10), at=MIDNIGHT + 3_600)
    more = jobs.archive(spark, url, lake, compact=True, grace=0.0, merging=lambda *one: merging.append(one))
    assert (more.events, more.merged > 0, more.swept > 0) == (10, True, True)
    assert merging[-1][0] == merging[-1][1]
    assert jobs.compact(spark, lake) == jobs.Compacted(0, 0)
    forgotten = []
    erased = jobs.forget(
        spark,
        lake,
        "price < 10",
        before=datetime.fromtimestamp(MIDNIGHT + 600, UTC),
        grace=0.0,
        told=forgotten.append,
    )
    assert (erased.events, erased.swept > 0, forgotten[-1].events) == (10, True, 10)
    assert palio.spark.read_lake(spark, lake).count() == 300
    with pytest.raises(WrongOption, match="before"):
        jobs.forget(spark, lake, "true", before="soon")


# What jobs are


def test_every_command_has_its_job_which_needs_no_terminal():
    """But for building an archive, and for the simulator's experiments, which are functions of other rooms."""
    without = {"package", "experiments"}
    wanted = {name.replace("-", "_") for name in Commands()["spark"].commands if name not in without}
    assert wanted <= set(jobs.__all__)
    assert all(callable(getattr(jobs, name)) for name in jobs.__all__)
    folder = Path(jobs.__file__).parent
    assert not {path.stem for path in folder.glob("*.py")} & set(jobs.__all__)
    program = (
        "import sys; from palio.spark import jobs; [getattr(jobs, name) for name in jobs.__all__]; "
        "sys.exit(', '.join({'typer', 'rich', 'click', 'palio.cli'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert not [path.name for path in folder.glob("*.py") if "print(" in path.read_text()]
