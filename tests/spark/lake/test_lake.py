"""The lake: everything that was published, exactly once, whatever happens on the way."""

import signal
import sqlite3
import subprocess
import sys
import textwrap
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import palio
import palio.spark
from palio.routing.durable.effects import SaveFact, Trim
from palio.routing.durable.facts import FactKind
from palio.spark.errors import DataLoss
from palio.spark.lake.archiving import archive, reader_of, write_spans
from palio.spark.lake.rewriting import forget, sweep
from palio.spark.source.journals import Span
from palio.store import Journal
from palio.store.lake.errors import LakeChanged, LakeDamaged, LakeTooNew, NoLake, WrongLake
from palio.store.lake.manifests import Lake, LakeChange, LakeFile
from tests.slices import sliced
from tests.spark.filling import MIDNIGHT, a_day_passes, fill
from tests.spark.lakes import Killed, content, events, journal
from tests.store.driving import Driven

pytest.importorskip("pyspark", reason="pyspark is not installed")


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/store/palio.db"


@pytest.fixture
def place(tmp_path):
    return str(tmp_path / "lake")


def files_of(place):
    return sorted(path for path in Path(place).rglob("*.parquet"))


def test_an_archive_has_what_the_journal_has_and_goes_on_from_there(spark, url, place):
    fill(url, events(300), step=600.0)  # about two days
    done = archive(spark, url, place, rows_per_task=100)
    assert (done.events, done.waiting) == (300, 0)
    state = Lake(place).state()
    assert state.positions == {"b": 300}
    assert content(palio.spark.read_lake(spark, place)) == content(palio.spark.read(spark, url)) == journal(url)
    for file in state.files.values():
        assert file.path.startswith(f"day={file.day}/class {file.kind}/b-{file.first}-{file.last}-")
        assert pq.read_metadata(Path(place) / file.path).num_rows == file.rows
    fill(url, events(5, 300))
    assert archive(spark, url, place).events == 5
    assert archive(spark, url, place).events == 0
    assert content(palio.spark.read_lake(spark, place)) == journal(url)


@pytest.mark.parametrize("where", sliced(["written", "committed", "held", "wrote a file", "told"], 2))
def test_a_death_between_two_steps_changes_nothing(spark, url, place, where):
    fill(url, events(120))

    def die(step):
        if step == where:
            raise Killed(step)

    with pytest.raises(Exception, match=where):
        archive(spark, url, place, rows_per_task=15, step=die, task_step=die)
    state = Lake(place).state()
    assert content(palio.spark.read_lake(spark, place)) == journal(url)[: state.positions.get("b", 0)]
    archive(spark, url, place, rows_per_task=15)
    assert content(palio.spark.read_lake(spark, place)) == journal(url)
    assert set(Lake(place).absolute(Lake(place).state().files.values())) <= {
        str(path) for path in files_of(place)
    }
    a_day_passes(place)
    sweep(place, grace=0.0)
    assert {str(path) for path in files_of(place)} == set(
        Lake(place).absolute(Lake(place).state().files.values())
    )


def test_of_two_archives_at_the_same_time_each_event_is_there_once(spark, url, place):
    fill(url, events(40))
    others = []

    def meddle(step):
        if step == "written" and not others:
            others.append(1)
            archive(spark, url, place)

    archive(spark, url, place, step=meddle)
    assert content(palio.spark.read_lake(spark, place)) == journal(url)


def test_lake_and_journal_are_one_table_cut_where_the_lake_ends(spark, url, place):
    fill(url, events(50), broker="b")
    archive(spark, url, place)
    whole = journal(url)
    fill(url, events(30, 50), trim=45)
    kept = journal(url)
    assert kept[0][1] == 46
    assert content(palio.spark.history(spark, place, url)) == whole + kept[5:]
    schema = "x bigint, symbol string"
    rows = palio.spark.history(spark, place, url, schema=schema, filter="x >= 40 and x < 60").collect()
    assert sorted(row.x for row in rows) == list(range(40, 60))
    late = palio.spark.history(spark, place, url, schema=schema, since=MIDNIGHT + 45)
    assert sorted(row.x for row in late.where("x < 60").collect()) == [*range(45, 60)][:5]


def test_a_journal_that_was_trimmed_too_early_is_an_error_and_not_a_gap(spark, url, place):
    fill(url, events(10))
    archive(spark, url, place)
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        connection.execute("DELETE FROM palio_facts")
    fill(url, events(10, 10), trim=15)
    with pytest.raises(DataLoss, match="from 11 on, but begins with 16"):
        archive(spark, url, place)
    with pytest.raises(Exception, match="from 11 on, but begins with 16"):
        palio.spark.history(spark, place, url).count()
    assert archive(spark, url, place, lossy=True).events == 5


def test_the_journal_is_kept_until_the_lake_has_it(spark, url, place):
    fill(url, events(10))
    state = Lake(place).create()
    archive(spark, url, place)
    fill(url, events(10, 10))
    with Driven(url) as driven, Journal(url) as kept:
        driven.store.submit((Trim(20),))
        driven.do(SaveFact(1, FactKind.READER.of("x"), 1))
        assert kept.range().first == 11
    assert reader_of(state) == f"lake {state.lake}"


@pytest.mark.parametrize(
    "kinds",
    sliced([("double", "string", "array<int>"), ("tinyint", "float", "bigint", "boolean", "binary")], 1),
)
def test_an_int_today_and_a_text_tomorrow(spark, url, place, kinds):
    values = [1, "one", 2.5, True, 2**53 + 1, b"raw", [1, 2], 7]
    fill(url, [{"x": value, "n": number} for number, value in enumerate(values)])
    archive(spark, url, place)
    whole = journal(url)
    assert content(palio.spark.read_lake(spark, place)) == whole
    for kind in kinds:
        schema = f"n int, x {kind}"
        old = palio.spark.history(spark, place, schema=schema).collect()
        new = palio.spark.read(spark, url, schema=schema).collect()
        assert sorted(old, key=lambda row: row.n) == sorted(new, key=lambda row: row.n)


def test_names_that_differ_only_in_case_are_two_attributes(spark, url, place):
    fill(url, [{"x": 1, "X": 10}, {"x": 2}, {"x": 3, "X": 30}])
    archive(spark, url, place)
    fill(url, [{"X": 40}])
    archive(spark, url, place)
    for schema, expected in (("x int", [1, 2, 3]), ("X int", [10, 30, 40])):
        rows = palio.spark.history(spark, place, schema=schema).collect()
        assert sorted(row[0] for row in rows if row[0] is not None) == expected


def test_where_reaches_the_statistics_of_the_files(spark, url, place):
    fill(url, [{"class": "a", "price": n * 1.0} for n in range(100)])
    archive(spark, url, place)
    frame = palio.spark.history(spark, place, schema="price double").where("price > 90")
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert "PushedFilters: [IsNotNull(`price:float`), GreaterThan(`price:float`,90.0)]" in plan
    assert frame.count() == 9


def test_properties_are_kept(spark, url, place):
    from palio.matching.projection import body_of

    said = palio.Notification({"a": 1, "rest": [{"b": 2}]}, id="i", priority=9, lifetime=60.0)
    fill(url, [said])
    archive(spark, url, place)
    (file,) = Lake(place).state().events()
    row = pq.read_table(Path(place) / file.path, partitioning=None).to_pylist()[0]
    assert body_of(row["payload"], row["id"], row["properties"]) == said.body


def test_what_cannot_be_read_is_set_aside_with_the_reason(spark, url, place):
    fill(url, events(5))
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        connection.execute("UPDATE palio_journal SET body = x'93c402ffff', checksum = NULL WHERE sequence = 3")
        connection.execute("UPDATE palio_journal SET body = CAST(body || x'00' AS BLOB) WHERE sequence = 4")
    done = archive(spark, url, place)
    assert (done.events, done.quarantined) == (3, 2)
    row, other = palio.spark.read_quarantine(spark, place).orderBy("sequence").collect()
    assert (row.sequence, row.publisher, bytes(row.body)) == (3, "publisher", b"\x93\xc4\x02\xff\xff")
    assert "no encoded notification" in row.reason
    assert (other.sequence, other.reason) == (4, "Its checksum is not the one that it was written with.")
    assert [one[1] for one in content(palio.spark.history(spark, place, url))] == [1, 2, 5]
    assert [row.sequence for row in palio.spark.read(spark, url).orderBy("sequence").collect()] == [1, 2, 5]


def test_many_classes_share_files_and_many_columns_are_in_the_payload(spark, url, place, monkeypatch):
    from palio.spark.lake import files

    monkeypatch.setattr(files, "MAX_CLASSES", 2)
    monkeypatch.setattr(files, "MAX_COLUMNS", 3)
    rows = [{"class": f"k{n % 5}/.." + "ä" * 200, "x": n, f"y{n}": n} for n in range(10)]
    table = pa.Table.from_batches([_batch(rows)])
    written = list(files.write_events(Path(place), table))
    assert sum(file.rows for file in written) == 10
    assert {Path(file.path).parent.name[:13] for file in written} == {"class k0%2F..", "class k1%2F..", "+"}
    assert not any(file.complete for file in written)
    lake = Lake(place)
    lake.commit(lake.create(), LakeChange("archive", tuple(written), (), {"b": 10}))
    rows = palio.spark.history(spark, place, schema="y7 int").where("y7 is not null").collect()
    assert [row.y7 for row in rows] == [7]


def _batch(rows):
    from palio.spark.source.rows import events_of
    from palio.store.records import encode_body

    stored = [
        (n + 1, MIDNIGHT, "p", None, encode_body(palio.Notification(row).body), None)
        for n, row in enumerate(rows)
    ]
    return events_of("b", stored)


def test_forgetting_rewrites_the_lake_through_a_new_manifest(spark, url, place):
    fill(url, events(60))
    archive(spark, url, place)
    before = Lake(place).state()
    done = forget(spark, place, palio.Filter.parse('symbol = "S3"'))
    assert done.events == 9
    assert content(palio.spark.read_lake(spark, place)) == content(
        palio.spark.read(spark, url, filter='symbol != "S3"')
    )
    old = palio.spark.read_lake(spark, place, state=before)
    assert old.count() == 60
    assert sweep(place) == 0  # somebody may be reading it
    sweep(place, grace=0.0)
    assert not any(b"S3" in path.read_bytes() for path in files_of(place))
    assert Lake(place).state().positions == {"b": 60}
    assert forget(spark, place, palio.Filter.parse("true"), before=MIDNIGHT + 30).events == 26
    assert forget(spark, place, palio.Filter.parse('symbol = "S3"')).events == 0


def test_sweeping_leaves_alone_what_a_running_job_has_written_and_not_yet_committed(spark, url, place):
    fill(url, events(40))
    archive(spark, url, place)
    fill(url, events(20, 40))

    def sweep_meanwhile(step):
        if step == "written":
            assert sweep(place, grace=0.0) == 0

    archive(spark, url, place, step=sweep_meanwhile)
    assert content(palio.spark.history(spark, place)) == journal(url)
    forget(spark, place, palio.Filter.parse('symbol = "S3"'), step=sweep_meanwhile)
    assert palio.spark.history(spark, place).count() == 51
    assert sweep(place, grace=0.0) > 0, "what was forgotten is gone at once all the same"
    assert not any(b"S3" in path.read_bytes() for path in files_of(place))


def test_a_version_names_only_files_that_are_there(spark, url, place):
    fill(url, events(40))

    def lose(step):
        if step == "written":
            files_of(place)[0].unlink()

    with pytest.raises(LakeDamaged, match=r"The file day=.*\.parquet is missing\. Nothing was committed"):
        archive(spark, url, place, step=lose)
    assert Lake(place).state().positions == {}, "positions did not move on"
    archive(spark, url, place)
    assert content(palio.spark.history(spark, place)) == journal(url)


def test_a_file_that_is_missing_is_named_to_whoever_reads(spark, url, place):
    fill(url, events(40))
    archive(spark, url, place)
    gone = files_of(place)[0]
    gone.unlink()
    with pytest.raises(LakeDamaged, match="is missing") as caught:
        palio.spark.history(spark, place)
    assert caught.value.file == gone.relative_to(place).as_posix()


def test_compaction_is_a_new_version_with_the_same_events(spark, url, place):
    for first in range(0, 40, 10):
        fill(url, events(10, first))
        archive(spark, url, place)
    before = content(palio.spark.read_lake(spark, place))
    files = len(Lake(place).state().files)
    assert files == 12
    assert palio.spark.compact(spark, place) == 9
    assert len(Lake(place).state().files) == 3
    assert content(palio.spark.read_lake(spark, place)) == before


def test_versions_are_created_once(tmp_path):
    lake = Lake(tmp_path)
    with pytest.raises(NoLake):
        lake.state()
    base = lake.create()
    assert lake.create() == base
    lake.commit(base, LakeChange("archive", (), (), {"b": 7}))
    with pytest.raises(LakeChanged):
        lake.commit(base, LakeChange("archive", (), (), {"b": 9}))
    assert lake.state().positions == {"b": 7}
    file = LakeFile("day=2026-01-01/-/x.parquet", "b", 1, 2, 2, 10, "2026-01-01", 0.0, 1.0)
    for number in range(70):
        state = lake.state()
        gone = tuple(state.files)
        (tmp_path / f"{number}.parquet").touch()
        lake.commit(
            state,
            LakeChange(
                "archive", (msgspec.structs.replace(file, path=f"{number}.parquet"),), gone, {"b": number}
            ),
        )
    assert list(lake.state().files) == ["69.parquet"]
    assert list(lake.state(40).files) == ["37.parquet"]
    assert not list(Path(tmp_path).rglob("*.draft"))


def test_lakes_that_cannot_be_used(tmp_path):
    with pytest.raises(WrongLake, match="s3"):
        Lake("s3://bucket/lake")
    lake = Lake(f"file://{tmp_path}")
    lake.create()
    manifest = tmp_path / "_palio" / f"{1:020}.json"
    manifest.write_text('{"format": 7, "new": true}')
    with pytest.raises(LakeTooNew, match="format 7"):
        lake.state()
    manifest.write_text('{"format": 1')
    with pytest.raises(LakeDamaged, match="version 1 cannot be read"):
        lake.state()


def test_a_damaged_file_is_named(spark, url, place):
    fill(url, events(3))
    archive(spark, url, place)
    file = files_of(place)[0]
    file.write_bytes(b"nothing")
    with pytest.raises(Exception, match=file.name):
        palio.spark.read_lake(spark, place, schema=None).collect()
    with pytest.raises(Exception, match=file.name):
        forget(spark, place, palio.Filter.parse("x = 1"))


def test_what_a_task_writes_is_no_part_of_the_lake(spark, url, place):
    fill(url, events(10))
    lake = Lake(place)
    lake.create()
    assert len(write_spans(spark, url, lake, [Span("b", 0, 10)])) == 3
    assert palio.spark.read_lake(spark, place).count() == 0


KILLED = """
    import os, signal, sys
    import palio.spark
    from palio.spark.lake.archiving import archive

    def main():
        url, place, where = sys.argv[1:]

        def die(step):
            if step == where:
                os.kill(os.getpid(), signal.SIGKILL)

        archive(palio.spark.start("local[2]"), url, place, rows_per_task=40, step=die)

    main()
"""


@pytest.mark.slow
@pytest.mark.parametrize("where", ["held", "written", "committed", "told"])
def test_a_job_that_is_killed_leaves_nothing_half_done(spark, url, place, tmp_path, where):
    fill(url, events(400))
    script = tmp_path / "killed.py"
    script.write_text(textwrap.dedent(KILLED))
    done = subprocess.run(
        [sys.executable, str(script), url, place, where], capture_output=True, timeout=300, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr[-2_000:]
    kept = Lake(place).state().positions.get("b", 0)
    assert kept == (0 if where in ("held", "written") else 320)
    assert content(palio.spark.read_lake(spark, place)) == journal(url)[:kept]
    archive(spark, url, place)
    assert content(palio.spark.read_lake(spark, place)) == journal(url)
