"""`--checkpoint`: a job that was interrupted, however, goes on with the same command and comes to the same."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from palio.spark import parts, pieces
from palio.spark.archiving import archive
from palio.spark.pieces import Cut
from tests.spark.filling import MIDNIGHT, fill

pytest.importorskip("pyspark", reason="pyspark is not installed")

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """So that a few events are several parts."""
    monkeypatch.setattr(pieces, "LEAST_EVENTS", 60)
    monkeypatch.setattr(pieces, "LEAST_BYTES", 1)


def quotes(count, first=0):
    return [
        {"symbol": f"S{n % 5}", "price": n % 100, "date": (BEGIN + timedelta(days=n // 50)).date().isoformat()}
        for n in range(first, first + count)
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
        archive(self.spark, self.url, self.lake, rows_per_task=50)

    def source(self, kind: str) -> tuple[str, ...]:
        if kind == "parquet":
            place = str(self.folder / "events")
            rows = [(n, *one.values()) for n, one in enumerate(quotes(360))]
            table = self.spark.createDataFrame(rows, "event_id long, symbol string, price long, date string")
            table.repartition(4).write.partitionBy("symbol").parquet(place)
            return place, "--time", "date"
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
        if kind in ("lake", "journal"):
            self.publish(50, trim=300 if kind == "lake" else 0)
            self.archive()
        elif kind == "parquet":
            rows = [(n, *one.values()) for n, one in enumerate(quotes(50))]
            table = self.spark.createDataFrame(rows, "event_id long, symbol string, price long, date string")
            table.write.mode("append").partitionBy("symbol").parquet(str(self.folder / "events"))


class Reading:
    """Counts the pieces that are read, and interrupts before one of them."""

    def __init__(self, monkeypatch):
        self.read: list[pieces.Piece] = []
        self.stop: int | None = None
        reading, original = self, Cut.read

        def read(self, spark, piece, **options):
            if reading.stop is not None and len(reading.read) >= reading.stop:
                raise KeyboardInterrupt
            reading.read.append(piece)
            return original(self, spark, piece, **options)

        monkeypatch.setattr(Cut, "read", read)


@pytest.fixture
def reading(monkeypatch):
    return Reading(monkeypatch)


@pytest.fixture
def world(spark, tmp_path):
    return World(spark, tmp_path)


ASKED = ("price < 10", "--against", 'symbol = "S1"', "--samples", "4", "--json")


@pytest.mark.parametrize("kind", ["lake", "journal", "parquet", "lines"])
def test_a_backtest_goes_on_with_what_there_was(command, world, reading, tmp_path, kind):
    asked = ("spark", "backtest", *ASKED[:1], *world.source(kind), *ASKED[1:])
    one_pass = json.loads(command(*asked).stdout)
    assert one_pass["events"] == 360
    folder = ("--checkpoint", str(tmp_path / "state"))
    reading.stop = 1 if kind == "lines" else 5
    stopped = command(*asked, *folder)
    assert stopped.exit_code == 130, stopped.output
    before = list(reading.read)
    assert f"Interrupted: {len(before)} of " in stopped.stderr
    assert "the same command goes on" in stopped.stderr
    assert stopped.stdout == ""

    world.goes_on(kind)
    reading.stop = None
    resumed = command(*asked, *folder)
    assert resumed.exit_code == 0, resumed.output
    assert json.loads(resumed.stdout) == one_pass
    plan = parts.Plan
    cut = parts.msgspec.json.decode((tmp_path / "state" / "plan.json").read_bytes(), type=plan).cut
    looks = 3 if kind == "lines" else 2
    assert len(cut.pieces) == 1 if kind == "lines" else len(cut.pieces) > 3
    assert len(reading.read) == looks * len(cut.pieces), "no piece was read twice for a look"

    again = command(*asked, *folder)
    assert json.loads(again.stdout) == one_pass
    assert "found before" in again.stderr
    assert len(reading.read) == looks * len(cut.pieces), "nor anything at all in the end"
