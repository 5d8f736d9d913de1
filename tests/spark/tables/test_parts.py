"""`--checkpoint`: a job that was interrupted, however, goes on with the same command and comes to the same."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from palio.spark.errors import SourceChanged, WrongCheckpoint, WrongOption
from palio.spark.lake.archiving import archive
from palio.spark.lake.rewriting import compact, sweep
from palio.spark.source.options import read_options
from palio.spark.source.reading import read
from palio.spark.tables import parts, pieces
from palio.spark.tables.pieces import TablePieces, cut, grouped
from tests.slices import sliced
from tests.spark.filling import MIDNIGHT, fill

pytest.importorskip("pyspark", reason="pyspark is not installed")

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
COLUMNS = "event_id long, symbol string, price long, date string"


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """So that a few events are several parts."""
    monkeypatch.setattr(pieces, "LEAST_EVENTS", 100)
    monkeypatch.setattr(pieces, "LEAST_BYTES", 1)


def quotes(count):
    return [
        {"symbol": f"S{n % 5}", "price": n % 100, "date": (BEGIN + timedelta(days=n // 50)).date().isoformat()}
        for n in range(count)
    ]


class World:
    """The same 360 events, wherever they may come from; and more of them, later."""

    def __init__(self, spark, folder: Path):
        self.spark, self.folder = spark, folder
        self.url, self.lake = f"sqlite:///{folder}/palio.db", str(folder / "lake")
        self.at = MIDNIGHT

    def publish(self, count: int, *, trim: int = 0) -> None:
        fill(self.url, quotes(count), at=self.at, step=60.0, trim=trim)
        self.at += count * 60

    def archive(self) -> None:
        archive(self.spark, self.url, self.lake, rows_per_task=60)

    def write(self, count: int) -> str:
        place = str(self.folder / "events")
        rows = [(n, *one.values()) for n, one in enumerate(quotes(count))]
        table = self.spark.createDataFrame(rows, COLUMNS).coalesce(1)
        table.write.mode("append").partitionBy("symbol").parquet(place)
        return place

    def source(self, kind: str) -> tuple[str, ...]:
        if kind == "parquet":
            return self.write(360), "--time", "date"
        if kind == "lines":
            place = self.folder / "events.jsonl"
            lines = [json.dumps(one) for one in quotes(360)]
            place.write_text("\n".join([*lines[:7], "nonsense", *lines[7:]]))
            return str(place), "--time", "date"
        if kind == "journal":
            self.publish(360)
            return (self.url,)
        self.publish(240)
        self.archive()
        self.publish(120)
        return self.lake, "--journals", self.url

    def goes_on(self, kind: str) -> None:
        """What happens between two runs, and is no business of the second one."""
        if kind == "parquet":
            self.write(50)
        elif kind != "lines":
            self.publish(50)
            self.archive()
        if kind == "lake":
            self.publish(0, trim=300)


class Reading:
    """Counts the pieces that are read, and interrupts before one of them."""

    def __init__(self, monkeypatch):
        self.count = 0
        self.stop: int | None = None
        reading, original = self, TablePieces.read

        def read(self, spark, piece, **options):
            if reading.count == reading.stop:
                raise KeyboardInterrupt
            reading.count += 1
            return original(self, spark, piece, **options)

        monkeypatch.setattr(TablePieces, "read", read)


@pytest.fixture
def reading(monkeypatch):
    return Reading(monkeypatch)


@pytest.fixture
def world(spark, tmp_path):
    return World(spark, tmp_path)


# Going on

COMPARED = ("--against", 'symbol = "S1"', "--samples", "4", "--json")


@pytest.mark.parametrize(
    "case",
    sliced([("journal", 2, 4), ("lake", 6, 8), ("parquet", 3, 5), ("lines", 1, 2)], 1),
)
def test_a_backtest_goes_on_with_what_there_was(*, command, world, reading, tmp_path, case):
    """Of a lake in two looks, the first of which says how long parts of time are; else in one."""
    kind, stop, total = case
    every = () if kind == "lake" else ("--every", "1h" if kind == "journal" else "1d")
    asked = ("spark", "backtest", "price < 10", *world.source(kind), *every, *COMPARED)
    one_pass = json.loads(command(*asked).stdout)
    assert (one_pass["events"], len(one_pass["samples"])) == (360, 12)
    state = tmp_path / "state"
    reading.stop = stop
    stopped = command(*asked, "--checkpoint", str(state))
    assert (stopped.exit_code, stopped.stdout) == (130, ""), stopped.output
    told = f"Interrupted: {stop} of {total} parts are done, and the same command goes on from there."
    assert told in stopped.stderr

    world.goes_on(kind)
    reading.stop = None
    resumed = command(*asked, "--checkpoint", str(state))
    assert json.loads(resumed.stdout) == one_pass, resumed.stderr
    assert reading.count == total, "no piece was read twice for a look"
    if kind == "journal":
        again = command(*asked, "--checkpoint", str(state))
        assert json.loads(again.stdout) == one_pass
        assert "This was found before" in again.stderr
        assert reading.count == total


@pytest.mark.slow
def test_patterns_in_a_lake_go_on_with_what_there_was(command, world, reading, tmp_path):
    """A match may have events of several parts, and only some of its steps are in those that are done."""
    world.publish(360)
    world.archive()
    patterns = tmp_path / "patterns.txt"
    crossing, absent = (
        "A[price = 15] then B[price = 25] within 1 h by symbol",
        "A[price = 7] then not B[price = 99]",
    )
    patterns.write_text(f"{crossing}\n{absent} within 1 min\n")
    asked = ("spark", "patterns", world.lake, "-p", str(patterns))
    alone = command(*asked)
    one_pass = sorted(alone.stdout.splitlines())
    assert len(one_pass) > 3, alone.output
    state = ("--checkpoint", str(tmp_path / "state"))
    reading.stop = 4
    stopped = command(*asked, *state)
    assert (stopped.exit_code, stopped.stdout) == (130, ""), stopped.output
    assert "Interrupted: 4 of 6 parts are done" in stopped.stderr
    world.goes_on("lake")
    reading.stop = None
    resumed = command(*asked, *state)
    assert sorted(resumed.stdout.splitlines()) == one_pass, resumed.stderr
    assert reading.count == 6, "no piece was read twice for a look"
    patterns.write_text("A[price = 15] then B[price = 26] within 1 h\n")
    assert "its run was begun with patterns" in command(*asked, *state).stderr
    assert command(*asked, *state, "--follow").exit_code == 2


@pytest.mark.slow
def test_statistics_go_on_with_what_there_was(command, world, reading, tmp_path):
    world.source("lake")
    filters = tmp_path / "filters.jsonl"
    filters.write_text(
        '{"id": "low", "filter": "price < 10"}\n{"id": "one", "filter": "symbol = \\"S1\\""}\nno\n'
    )

    def numbers(name, *more):
        place = tmp_path / f"{name}.json"
        words = (
            world.url,
            "--lake",
            world.lake,
            "-f",
            str(filters),
            "--filter",
            "price < 90",
            "--by",
            "symbol",
        )
        result = command(
            "spark", "stats", *words, "--json", str(place), "-o", str(tmp_path / "report.html"), *more
        )
        return result, rounded(json.loads(place.read_text())) if place.exists() else None

    one_pass = numbers("one")[1]
    assert one_pass["traffic"]["events"] == 330
    kept = ("--checkpoint", str(tmp_path / "state"))
    reading.stop = 9  # in the midst of the third look
    stopped, nothing = numbers("parts", *kept)
    assert (stopped.exit_code, nothing) == (130, None), stopped.output
    assert "Interrupted: 9 of 12 parts are done" in stopped.stderr
    world.goes_on("lake")
    reading.stop = None
    assert numbers("parts", *kept)[1] == one_pass
    assert reading.count == 12
    filters.write_text('{"id": "low", "filter": "price < 20"}\n')
    changed, _ = numbers("parts", *kept)
    assert (changed.exit_code, "filters.jsonl has changed" in changed.stderr) == (3, True)


def rounded(value):
    """Without the moment, and without the last bits of numbers: sums depend on their order."""
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items() if name != "made"}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return float(f"{value:.9g}") if isinstance(value, float) else value


PROGRAM = """
from palio.spark.tables import pieces
pieces.LEAST_EVENTS = 4_000
from palio.cli.main import main
main()
"""


def started(root, environment, *arguments):
    """The program, in a session of its own, as in a terminal of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments],
        cwd=root, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip


def wait_for(process, folder: Path, pattern: str) -> None:
    patience = time.monotonic() + 200
    while not list(folder.glob(pattern)):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < patience
        time.sleep(0.005)


@pytest.mark.slow
def test_a_process_that_is_interrupted_and_one_that_is_killed(
    *, command, world, reading, environment, root, tmp_path
):
    world.publish(20_000)
    asked = ("spark", "backtest", "price < 10", world.url, "--every", "1d", "--json")
    one_pass = json.loads(command(*asked).stdout)
    state = tmp_path / "state"
    kept = (*asked, "--checkpoint", str(state), "--master", "local[2]")
    process = started(root, environment, *kept)
    wait_for(process, state, "counts/000000.json")
    os.killpg(process.pid, signal.SIGINT)  # what Ctrl-C does: Spark hears it as well
    said, told = process.communicate(timeout=120)
    assert (process.returncode, said) == (130, "")
    [line] = told.splitlines()
    assert line.startswith("Interrupted: ")
    assert line.endswith(" of 5 parts are done, and the same command goes on from there.")

    done = len(list((state / "counts").glob("*.json")))
    assert 1 <= done < 5
    process = started(root, environment, *kept)
    wait_for(process, state, f"counts/{done:06}.json")  # between two parts, or soon after,
    wait_for(process, state, f"counts/{done + 1:06}-*/_temporary")  # and within the next one
    process.kill()
    process.communicate()
    done = len(list((state / "counts").glob("*.json")))
    assert json.loads(command(*kept).stdout) == one_pass
    assert reading.count == 5 - done


@pytest.mark.slow
def test_two_runs_at_once_come_to_the_same(command, world, monkeypatch, tmp_path):
    asked = ("spark", "backtest", "price < 10", *world.source("journal"), *COMPARED)
    one_pass = json.loads(command(*asked).stdout)
    kept = (*asked, "--checkpoint", str(tmp_path / "state"))
    create_once, others = parts.create_once, []

    def overtaken(path, data):
        """Before anything is created, another run has created everything."""
        monkeypatch.setattr(parts, "create_once", create_once)
        others.append(command(*kept))
        create_once(path, data)

    monkeypatch.setattr(parts, "create_once", overtaken)
    found = command(*kept)
    monkeypatch.setattr(parts, "create_once", overtaken)
    (tmp_path / "state" / "counts" / "000001.json").unlink()  # as if a run were at work upon this one
    assert json.loads(command(*kept).stdout) == one_pass
    assert [json.loads(one.stdout) for one in (found, *others)] == 3 * [one_pass]


def test_what_a_part_names_is_on_the_disk_before_it(command, world, not_synced, monkeypatch, tmp_path):
    create_once, missing = parts.create_once, []

    def committed(path, data):
        missing.append(not_synced(path.parent))
        create_once(path, data)

    monkeypatch.setattr(parts, "create_once", committed)
    asked = ("spark", "backtest", "price < 10", *world.source("journal"), "--every", "1h", *COMPARED)
    command(*asked, "--checkpoint", str(tmp_path / "state"))
    after_the_plan = missing[1:]
    assert len(after_the_plan) > 2
    assert not any(after_the_plan)


def test_who_interrupts_one_pass_is_told_of_checkpoints(command, world, monkeypatch, tmp_path):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    place = world.source("lines")
    monkeypatch.setattr("palio.spark.jobs.backtest_job.gather", interrupted)
    monkeypatch.setattr("palio.spark.jobs.stats_job.gather", interrupted)
    for words in (("backtest", "true", *place), ("stats", place[0], "-o", str(tmp_path / "report.html"))):
        result = command("spark", *words)
        assert result.exit_code == 130
        assert "nothing was kept: with --checkpoint FOLDER the same command would go on" in result.stderr


# What cannot go on


def test_a_folder_goes_with_what_was_asked_and_with_what_it_was_asked_of(command, world, reading, tmp_path):
    place, *axis = world.source("lines")
    state = str(tmp_path / "state")

    def refused(text, *more):
        result = command("spark", "backtest", text, place, *axis, *more, "--checkpoint", state)
        assert result.exit_code in (3, 130), result.output
        return result.stderr

    reading.stop = 1
    assert "1 of 3 parts are done" in refused("price < 10")
    told = refused("price < 20")
    assert "its run was begun with filter price < 10, and this one has price < 20." in told
    assert "Name another folder, or remove this one to begin anew." in told
    assert "begun with every not given, and this one has 1d." in refused("price < 10", "--every", "1d")
    reading.stop = None
    Path(place).write_text('{"price": 1, "date": "2026-01-01"}\n')
    assert "events.jsonl has changed. Remove the checkpoint to begin anew." in refused("price < 10")
    Path(place).unlink()
    assert "there is no such file" in refused("price < 10")


def test_a_folder_of_others_and_a_damaged_one_are_refused(spark, world, tmp_path):
    world.publish(5)

    def opened(place):
        return parts.open_parts(spark, place, {}, lambda: cut(spark, world.url), stages=["counts"])

    other = tmp_path / "other"
    other.mkdir()
    (other / "metadata").touch()
    with pytest.raises(WrongCheckpoint, match="holds something else, metadata for one"):
        opened(other)
    with pytest.raises(WrongCheckpoint, match="is no folder"):
        opened(other / "metadata")
    with pytest.raises(WrongCheckpoint, match="reach under the same path"):
        opened("s3://bucket/state")
    found = opened(tmp_path / "state")
    assert found.look("counts", lambda some: some.groupBy().count()).first()["count"] == 5
    [folder] = found.folders("counts")
    Path(folder).rename(tmp_path / "elsewhere")
    with pytest.raises(WrongCheckpoint, match=r"counts/000000-\w+ is missing"):
        opened(tmp_path / "state").look("counts", lambda some: some)
    plan = tmp_path / "state" / "plan.json"
    plan.write_text(plan.read_text().replace('"format":1', '"format":2'))
    with pytest.raises(WrongCheckpoint, match="another version"):
        opened(tmp_path / "state")
    plan.write_text("{")
    with pytest.raises(WrongCheckpoint, match=r"plan\.json cannot be read"):
        opened(tmp_path / "state")


def test_a_lake_may_be_compacted_meanwhile_but_not_swept(spark, world):
    world.publish(240)
    world.archive()
    found = cut(spark, world.lake)
    compact(spark, world.lake)
    assert sum(found.read(spark, piece).count() for piece in found.pieces) == 240
    sweep(world.lake, grace=0.0)
    with pytest.raises(SourceChanged, match="has been swept away"):
        found.read(spark, found.pieces[0])


def test_files_that_come_later_are_in_no_piece(spark, world, monkeypatch):
    monkeypatch.setattr(pieces, "LEAST_BYTES", 1 << 30)
    found = cut(spark, world.write(50))
    world.write(20)
    [piece] = found.pieces
    assert found.read(spark, piece).count() == 50
    [first, *_] = piece.files
    alone = cut(spark, first.path.removeprefix("file:"))
    assert alone.read(spark, alone.pieces[0]).columns == ["event_id", "price", "date"]
    Path(first.path.removeprefix("file:")).unlink()
    with pytest.raises(SourceChanged, match="is gone"):
        found.read(spark, piece)


# Pieces


def test_pieces_are_neither_small_nor_many(monkeypatch):
    monkeypatch.setattr(pieces, "MOST_PIECES", 4)
    assert grouped([], int, 5) == []
    assert grouped([1, 1, 3, 9, 1, 1], int, 5) == [[1, 1, 3], [9], [1, 1]]
    assert len(grouped([1] * 100, int, 5)) == 4


def test_a_journal_is_read_up_to_an_end(spark, world):
    world.publish(30)
    ends = {"startingOffsets": '{"b": 5}', "endingOffsets": '{"b": 12}'}
    assert [row.sequence for row in read(spark, world.url, **ends).collect()] == list(range(6, 13))
    assert read(spark, world.url, endingOffsets="{}").count() == 0
    with pytest.raises(Exception, match="ends with 30, before 31"):
        read(spark, world.url, endingOffsets='{"b": 31}').count()
    with pytest.raises(WrongOption, match="endingOffsets"):
        read_options({"url": world.url, "endingOffsets": "latest"})
