"""The same job gives the same here, over Spark Connect, and on a cluster of Pythons without palio."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import time

import pytest

from tests.spark.job import BEGUN, RESULT, expected, run


def started(folder, root, *arguments, environment=None, command=(sys.executable, "-m", "tests.spark.job")):
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            [*command, str(folder), *arguments],
            cwd=root, env={**os.environ, **(environment or {})}, stdout=log, stderr=log,
        )  # fmt: skip


def finished(process, folder) -> dict:
    code = process.wait(timeout=600)
    assert code == 0, (folder / "log").read_text(errors="replace")[-4000:]
    found = json.loads((folder / RESULT).read_text())
    found.pop("seconds")
    return found


@pytest.fixture(scope="module")
def here(spark, tmp_path_factory):
    """What a classic session on this machine finds, which is what the index finds."""
    found = run(spark, tmp_path_factory.mktemp("here"), 0.0)
    wanted = expected()
    assert found["pairs"] == wanted["pairs"]
    assert found["shards"] == wanted["shards"]
    assert found["hits"]["pairs"] == wanted["pairs"]
    assert found["distinct"] == {"level": 97, "symbol": 13}
    assert [bad[0] for bad in found["unreadable"]] == ["sub-7"]
    assert [row[1:] for row in found["in_parts"]] == wanted["in_parts"]
    assert found["backtest"] == wanted["backtest"]
    assert [len(part) for part in found["reached_back"]] == wanted["reached_back"]
    assert found["patterns"]["table"]
    assert found["patterns"]["stream"] == found["patterns"]["table"]
    return json.loads(json.dumps(found))


@pytest.mark.slow
def test_over_spark_connect(here, root, tmp_path):
    pytest.importorskip("grpc", reason="Spark Connect needs grpcio: pip install 'palio[connect]'")
    process = started(
        tmp_path / "connect", root, "--remote", "local[2]", environment={"SPARK_LOCAL_IP": "127.0.0.1"}
    )
    assert finished(process, tmp_path / "connect") == here


@pytest.fixture(scope="module")
def cluster(java, tmp_path_factory):
    from tests.spark.standalone import standalone

    with standalone(tmp_path_factory.mktemp("cluster")) as found:
        yield found


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    from palio.spark.runtime.packing import build_package

    return build_package(tmp_path_factory.mktemp("package") / "palio-spark.tar.gz")


@pytest.fixture(scope="module")
def on_cluster(cluster, built):
    """How a driver is told about the cluster and the archive."""
    settings = built.settings() | {
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "700m",
        "spark.task.maxFailures": "8",
    }
    options = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    return ["--master", cluster.master, *options], {
        "PYSPARK_PYTHON": str(cluster.python),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


@pytest.mark.slow
def test_on_a_standalone_cluster_of_bare_pythons(here, cluster, on_cluster, root, tmp_path):
    options, environment = on_cluster
    process = started(tmp_path / "two", root, *options, environment=environment)
    assert finished(process, tmp_path / "two") == here


@pytest.fixture
def submitting(cluster, on_cluster, built, root, tmp_path):
    """A command and its environment, with a bare Python on the driver as well."""
    from tests.spark.standalone import SPARK_HOME

    options, environment = on_cluster
    packages = tmp_path / "palio_pkgs"
    with tarfile.open(built.path) as archive:
        archive.extractall(packages, filter="data")
    command = (SPARK_HOME / "bin" / "spark-submit", *options, root / "tests" / "spark" / "job.py")
    return command, {**cluster.environment, **environment, "PYTHONPATH": str(packages)}


@pytest.mark.slow
def test_by_spark_submit(here, submitting, root, tmp_path):
    command, environment = submitting
    process = started(tmp_path / "submitted", root, environment=environment, command=command)
    assert finished(process, tmp_path / "submitted") == here


@pytest.mark.slow
def test_a_worker_that_is_killed_changes_nothing(here, cluster, on_cluster, root, tmp_path):
    options, environment = on_cluster
    folder = tmp_path / "killed"
    process = started(folder, root, *options, "--pause", "0.3", environment=environment)
    patience = time.monotonic() + 300
    while len(list((folder / BEGUN).glob("*"))) < 6:
        assert process.poll() is None, (folder / "log").read_text(errors="replace")[-4000:]
        assert time.monotonic() < patience
        time.sleep(0.05)
    cluster.kill_last_worker()
    assert process.poll() is None, "the worker was killed too late"
    assert finished(process, folder) == here
