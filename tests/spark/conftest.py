"""A session for the whole run: a JVM takes seconds to start, and many more to be quick, so tests share one.

It is tuned for tests: what runs for a moment is not worth the optimising compiler, and a garbage collector
with threads of its own takes the cores from the tests. Spark's Pythons are forked with their imports done.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from palio.spark.errors import JavaMissing
from palio.spark.runtime.java import java_version
from tests.cli.conftest import command, environment  # noqa: F401 - the program is the same in this folder
from tests.client.conftest import pytest_pyfunc_call  # noqa: F401 - and so are tests that are coroutines

STREAMING = "org.apache.spark.sql.execution.streaming.checkpointing"
SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.driver.maxResultSize": "8m",  # what grows with the data has no business on the driver
    "spark.sql.shuffle.partitions": "1",  # each is a task, and for a stream a process of Python and a state
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.adaptive.enabled": "false",  # plans of a few rows are not worth a second thought
    "spark.sql.codegen.wholeStage": "false",  # nor worth a compiler, which takes longer than they do
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.pollingDelay": "1ms",
    # Nor are files with checksums, and links that are followed by starting `readlink`.
    "spark.sql.streaming.checkpointFileManagerClass": f"{STREAMING}.FileSystemBasedCheckpointFileManager",
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",  # a file for each batch
    # What was done is told to nobody.
    "spark.sql.ui.explainMode": "simple",
    # Where in the program an error comes from is asked for at every step of a plan.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}


PRELOADING = Path(__file__).parent / "preloading"
JAVA = (
    *("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
    # Room from the start: a heap, or the room for classes, that has to grow is looked through each time.
    *("-Xms1g", "-Xmn500m", "-XX:MetaspaceSize=400m"),
    # And room for what is compiled: where it is full, methods are thrown out and compiled again, over and over.
    "-XX:ReservedCodeCacheSize=240m",
    # Spark's own classes are what they were when they were last looked at.
    *("-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote"),
    # Hadoop starts a `chmod` for every file and folder that it makes, Java by default with a helper before it.
    "-Djdk.lang.Process.launchMechanism=VFORK",
)
os.environ.setdefault("SPARK_SUBMIT_OPTS", " ".join(JAVA))


@pytest.fixture(scope="session")
def java() -> str:
    """The version of Java; without one the test is left out, saying so."""
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    try:
        return java_version()
    except JavaMissing as problem:
        pytest.skip(str(problem))


@pytest.fixture(scope="session")
def origin(java) -> Iterator[str]:
    """The socket of the process from which Spark's Pythons are forked."""
    with tempfile.TemporaryDirectory(prefix="palio-") as folder:  # the name of a socket has to be short
        place = f"{folder}/origin"
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(place)
            listener.listen(64)
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.spark.preloading.origin", str(listener.fileno())],
                cwd=Path(__file__).parents[2],
                pass_fds=[listener.fileno()],
                stdin=subprocess.PIPE,
            )
        with process:
            yield place


@pytest.fixture(scope="session")
def spark(origin, tmp_path_factory):
    """A classic session on two cores."""
    from palio.spark.runtime.session import session

    folder = tmp_path_factory.mktemp("spark")
    settings = SETTINGS | {
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    with ExitStack() as kept:
        with pytest.MonkeyPatch.context() as patch:  # Java keeps both for the Pythons that it starts
            patch.setenv("PYTHONPATH", str(PRELOADING), prepend=os.pathsep)
            patch.setenv("PALIO_ORIGIN", origin)
            found = kept.enter_context(session("local[2]", name="tests", settings=settings))
        without_checksums(found)
        few = kept.enter_context(pytest.MonkeyPatch.context())
        few.setattr("palio.spark.matching.bulk.PARTITIONS_A_CORE", 1)  # of a few rows, each is still a task
        yield found


def without_checksums(spark) -> None:
    """A file with its checksum beside it is two, and two times a `chmod`."""
    files = getattr(spark._jvm, "org.apache.hadoop.fs.FileSystem")
    files.getLocal(spark._jsc.hadoopConfiguration()).setWriteChecksum(False)


@pytest.fixture(scope="module")
def several_parts(spark) -> Iterator[None]:
    """Tables are in two parts, before and after they are shuffled: for tests of what is done with them."""
    names = ("spark.sql.shuffle.partitions", "spark.sql.leafNodeDefaultParallelism")
    for name in names:
        spark.conf.set(name, "2")
    yield
    for name in names:
        spark.conf.set(name, SETTINGS[name])


@pytest.fixture(scope="session")
def small_files(spark, tmp_path_factory) -> Path:
    """A folder with a journal and a lake of many small files, to be copied by whoever changes it."""
    from tests.spark.lakes import fill_with_small_files

    folder = tmp_path_factory.mktemp("small-files")
    fill_with_small_files(spark, folder)
    return folder


@pytest.fixture
def not_synced(monkeypatch):
    """Says what lies below a folder and was not synced from here on."""
    fsync, done = os.fsync, set()

    def noted(handle):
        done.add(os.fstat(handle).st_ino)
        fsync(handle)

    monkeypatch.setattr(os, "fsync", noted)

    def missing(folder: Path) -> list[str]:
        return [str(path) for path in folder.rglob("*") if path.stat().st_ino not in done]

    return missing
