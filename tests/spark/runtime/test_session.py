"""A session is there, or one sentence says what to do."""

from __future__ import annotations

import os
import stat
import subprocess
import sys

import pytest

from palio.model.errors import MissingDependency
from palio.spark.errors import JavaMissing
from palio.spark.runtime import session as sessions
from palio.spark.runtime.java import java_version


def test_the_active_session_is_taken_and_left_running(spark):
    assert sessions.start() is spark
    with sessions.session("local[7]") as found:
        assert found is spark
    assert spark.range(3).count() == 3


def test_cores_are_counted_without_a_context(spark):
    assert sessions.cores_of(spark) == 2


def test_workers_of_a_local_master_are_this_python(spark):
    def executable(batches):
        import pyarrow

        for _ in batches:
            yield pyarrow.RecordBatch.from_pydict({"python": [sys.executable]})

    found = spark.range(1).mapInArrow(executable, "python string").first()
    assert found["python"] == os.environ["PYSPARK_PYTHON"]


@pytest.fixture
def alone(monkeypatch):
    """As if no session were active."""
    from pyspark.sql import SparkSession

    monkeypatch.setattr(SparkSession, "getActiveSession", classmethod(lambda cls: None))
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)


@pytest.mark.parametrize("before", [None, "elsewhere"])
def test_a_bare_python_that_is_started_by_the_java_of_a_cluster_finds_palio(alone, monkeypatch, before):
    from pyspark.sql import SparkSession

    def started(builder):
        bare = [sys.executable, "-S", "-c", "import sys, palio.spark.source.format; print(sys.path)"]
        return subprocess.run(bare, capture_output=True, text=True, check=False)

    if before is None:
        monkeypatch.delenv("PYTHONPATH", raising=False)
    else:
        monkeypatch.setenv("PYTHONPATH", before)
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", started)
    found = sessions.start("spark://127.0.0.1:1")
    assert found.returncode == 0, found.stderr
    assert before is None or before in found.stdout
    assert os.environ.get("PYTHONPATH") == before


def test_without_java_one_sentence_says_what_to_do(alone, monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaMissing, match="there is none here: install one") as caught:
        sessions.start()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("version", "fits"),
    [("1.8.0_402", False), ("11.0.2", False), ("17", True), ("21-ea", True), ("25.0.1", True)],
)
def test_an_old_java_is_not_enough(monkeypatch, tmp_path, version, fits):
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2026-01-20' >&2\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    if fits:
        assert java_version() == version
    else:
        with pytest.raises(JavaMissing, match=f"the one here is Java {version}"):
            java_version()


@pytest.mark.parametrize("package", ["pyspark", "pandas"])
def test_what_is_not_installed_is_named(monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setitem(sys.modules, "pyspark.sql" if package == "pyspark" else package, None)
    with pytest.raises(MissingDependency, match=r"pip install 'palio\[spark\]'") as caught:
        sessions.start()
    assert caught.value.package == package


def test_a_job_without_java_ends_in_that_sentence(environment, tmp_path, root):
    done = subprocess.run(
        [sys.executable, "-m", "palio.cli.main", "spark", "experiments", "examples/experiment.toml"],
        cwd=root, env=environment | {"JAVA_HOME": str(tmp_path)},
        capture_output=True, encoding="utf-8", timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 6
    assert done.stdout == ""
    assert done.stderr.startswith("Spark needs Java 17 or later, and there is none here")
    assert len(done.stderr.splitlines()) == 1
