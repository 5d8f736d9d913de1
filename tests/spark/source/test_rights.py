"""Tasks over `palios://` read what their principal may see, and write what it may publish."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import palio
import palio.spark
import palio.sync
from palio.client.environment import AUTHORITY, TOKEN_FILE
from palio.model.errors import NotAllowed, NotAuthenticated
from palio.spark.source.journals import Span, WantedEvents, open_journals
from tests.security.papers import Papers, secured
from tests.security.world import World

pytest.importorskip("pyspark", reason="pyspark is not installed")

from pyspark.errors import PySparkException

from palio.spark.source.sink import WriteOptions, publish_all


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[tuple[World, Papers, str]]:
    """A broker that speaks TLS and asks who comes; what is of level 0 to 7 has been published there."""
    world, papers = World(tmp_path / "access"), Papers(tmp_path / "papers")
    world.add("report", "result > 0", "level > 3")
    world.add("stranger", None, None)
    with secured(world, papers, journal=True, name="siena") as address:
        url = address.replace("palio://", "palios://")
        with palio.sync.connect(url, token=world.tokens["admin"], tls=papers.ca) as admin:
            admin.publish([{"level": level} for level in range(8)])
        yield world, papers, url


@pytest.fixture
def show(guarded, tmp_path, monkeypatch) -> Callable[[str | None], dict[str, str]]:
    """Let this process have the environment of a principal, or of nobody."""
    world, papers, _ = guarded

    def show(who: str | None) -> dict[str, str]:
        token = tmp_path / f"{who}.token"
        token.write_text(f"{world.tokens[who]}\n" if who else "")
        said = {TOKEN_FILE: str(token) if who else "", AUTHORITY: papers.ca}
        for name, value in said.items():
            monkeypatch.setenv(name, value)
        return said

    return show


@pytest.fixture
def shown(spark, show, monkeypatch) -> Callable[[str | None], None]:
    """The same for driver and workers."""
    # What workers are started with; there are others for each environment.
    environment = dict(spark.sparkContext.environment)
    monkeypatch.setattr(spark.sparkContext, "environment", environment)
    return lambda who: environment.update(show(who))


def rows_of(url: str, filter: str = "true") -> list[int]:
    """What the process that plans a read, and each task, would see with the environment that there is now."""
    with open_journals(url) as journals:
        (standing,) = journals.standings()
        wanted = WantedEvents(palio.Filter.parse(filter))
        batches = list(journals.read(Span(standing.journal, standing.trimmed, standing.head), wanted))
    payloads = [row for batch in batches for row in batch.column("payload").to_pylist()]
    return sorted(palio.Notification.decode(one)["level"] for one in payloads)


def publish(url: str, *results: int) -> None:
    """What a task of the sink does with its rows."""
    batch = pa.RecordBatch.from_pydict({"result": list(results), "id": [f"r{one}" for one in results]})
    assert publish_all(iter([batch]), WriteOptions(url, "results", "id")).events == len(results)


def test_the_environment_says_who_reads_and_who_writes(guarded, show):
    _, _, url = guarded
    show("report")
    assert rows_of(url) == [4, 5, 6, 7]
    assert rows_of(url, "level < 6") == [4, 5]
    with pytest.raises(NotAllowed):
        rows_of(url, "level < 2")
    publish(url, 1, 2)
    with pytest.raises(NotAllowed):
        publish(url, -1)
    show("stranger")
    with pytest.raises(NotAllowed):
        publish(url, 3)
    show(None)
    with pytest.raises(NotAuthenticated):
        rows_of(url)
    show("admin")
    assert rows_of(url, "level >= 0") == [*range(8)]


@pytest.mark.slow
def test_tasks_read_what_their_principal_may_see(spark, guarded, shown):
    _, _, url = guarded

    def levels(**options: str) -> list[int]:
        rows = palio.spark.read(spark, url, schema="level int", **options).collect()
        return sorted(row["level"] for row in rows)

    shown("admin")
    assert levels() == [*range(8)]
    shown("report")
    assert levels() == [4, 5, 6, 7]
    assert levels(filter="level < 6") == [4, 5]
    for who, filter, refusal in (
        ("report", "level < 2", "NotAllowed"),
        ("stranger", "true", "NotAllowed"),
        (None, "true", "NotAuthenticated"),
    ):
        shown(who)
        with pytest.raises(PySparkException, match=refusal):
            levels(filter=filter)


@pytest.mark.slow
def test_tasks_write_what_their_principal_may_publish(spark, guarded, shown, tmp_path):
    _, _, url = guarded

    def results() -> list[int]:
        shown("admin")
        read = palio.spark.read(spark, url, schema="result int", filter="exists(result)")
        return sorted(row["result"] for row in read.collect())

    rows = spark.range(1, 4).selectExpr("cast(id as int) as result")
    for who, refusal in (("stranger", "NotAllowed"), (None, "NotAuthenticated")):
        shown(who)
        with pytest.raises(PySparkException, match=refusal):
            palio.spark.write(rows, url, sink="results")
    assert results() == []
    shown("report")
    palio.spark.write(rows, url, sink="results")
    assert results() == [1, 2, 3]
    shown("report")
    with pytest.raises(PySparkException, match="NotAllowed"):
        palio.spark.write(rows.selectExpr("-result as result"), url, sink="results")
    assert results() == [1, 2, 3]
    rows.selectExpr("result + 10 as result").write.parquet(str(tmp_path / "rows"))
    shown("report")
    stream = spark.readStream.schema("result int").parquet(str(tmp_path / "rows"))
    palio.spark.write_stream(
        stream, url, sink="stream", checkpoint=str(tmp_path / "state"), availableNow=True
    ).awaitTermination()
    assert results() == [1, 2, 3, 11, 12, 13]


@pytest.mark.slow
def test_a_command_hands_on_what_it_is_told(java, guarded, tmp_path):
    """`palio --token-file FILE --authority FILE spark …`, in a process of its own."""
    world, papers, url = guarded
    (tmp_path / "token").write_text(world.tokens["report"])
    (tmp_path / "filters.jsonl").write_text('{"id": "high", "filter": "level > 0"}\n')
    program = [sys.executable, "-m", "palio.cli.main"]
    credentials = ["--token-file", "token", "--authority", papers.ca]
    job = ["spark", "match", "--master", "local[1]", "-e", url, "-f", "filters.jsonl"]

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*program, *words], cwd=tmp_path, capture_output=True, text=True, check=False)

    done = run(*credentials, *job)
    assert (done.returncode, done.stderr) == (0, "")
    found = {json.loads(line)["event_id"] for line in done.stdout.splitlines()}
    assert found == {f"siena/{sequence}" for sequence in (5, 6, 7, 8)}
    refused = run("--authority", papers.ca, *job)
    assert refused.returncode == 5
    assert refused.stderr.startswith("The job failed: ")
    assert len(refused.stderr.splitlines()) == 1
