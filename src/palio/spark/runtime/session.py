"""Sessions: everything runs on `local[*]` unless somebody says otherwise, and where is the only difference.

A job takes the session that is active, so that it can be called from a notebook or under `spark-submit`; only
where there is none it starts one, and only what it started it stops.

The workers of a local master are to be this Python, in which palio is installed. Those of a cluster have a
Python of their own, whose path nobody here knows: there `PYSPARK_PYTHON` stays what it is.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import palio
from palio.model.errors import MissingDependency
from palio.spark.errors import SparkUnavailable
from palio.spark.frames import travels_by_artifacts
from palio.spark.runtime.java import java_version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL = "local[*]"
# `local[4]`, and also `local[4,2]`, where the second number says how often a task may fail.
_LOCAL_CORES = re.compile(r"local\[(\d+|\*)(?:,|\])")
_MASTERS = ("local", "spark://", "yarn", "k8s://")
_PATH = "PYTHONPATH"
# Rows enough for a partition on each core of any cluster.
_MANY_ROWS = 1 << 16
# What we would set anyway; whoever asks for something else gets it.
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
}


def start(
    master: str | None = None,
    *,
    remote: str | None = None,
    name: str = "palio",
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """The active session, or a new one.

    `master` is one of Spark's (`local[4]`, `spark://…`, `yarn`, `k8s://…`); without it, what the environment
    or `spark-submit` says, or else `local[*]`. `remote` is an address of Spark Connect (`sc://…`, or `local[2]`
    for a server of our own); the first kind is also understood as a master.

    Raises `JavaMissing`, `SparkUnavailable` or `MissingDependency`.
    """
    return _started(master, remote, name, settings)[0]


@contextmanager
def session(
    master: str | None = None,
    *,
    remote: str | None = None,
    name: str = "palio",
    settings: Mapping[str, str] | None = None,
) -> Iterator[SparkSession]:
    """The same for a while: at the end it is stopped, if it was started here."""
    found, ours = _started(master, remote, name, settings)
    try:
        yield found
    finally:
        if ours:
            with suppress(ConnectionError):  # its Java has ended already
                found.stop()


def cores_of(spark: SparkSession) -> int:
    """How many tasks can run at a time.

    The name of a local master says it. Elsewhere, on classic and Connect alike, one small job asks: a range has
    a partition for each core.
    """
    if not travels_by_artifacts(spark):
        named = _LOCAL_CORES.match(str(spark.conf.get("spark.master")))
        if named is not None:
            return (os.cpu_count() or 1) if named[1] == "*" else int(named[1])
    from pyspark.sql import functions  # noqa: PLC0415

    partitions = spark.range(_MANY_ROWS).select(functions.spark_partition_id().alias("number"))
    row = partitions.agg(functions.max("number")).first()
    return 1 if row is None or row[0] is None else int(row[0]) + 1


def _started(
    master: str | None, remote: str | None, name: str, settings: Mapping[str, str] | None
) -> tuple[SparkSession, bool]:
    sessions = _sessions()
    if (existing := sessions.getActiveSession()) is not None:
        return existing, False
    if master is not None and master.startswith("sc://"):
        master, remote = None, master
    given = "PYSPARK_GATEWAY_PORT" in os.environ or "SPARK_REMOTE" in os.environ
    if master is None and remote is None and not given:
        master = LOCAL
    where = remote or master or "the one that the environment names"
    if master is not None and not master.startswith(_MASTERS):
        raise SparkUnavailable(master, "a master is local[4], spark://host:port, yarn or k8s://….")
    if not given and not where.startswith("sc://"):
        java_version()
    if where.startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = sessions.builder.appName(name)
    if remote is not None:
        builder = builder.remote(remote)
    elif master is not None:
        builder = builder.master(master)
    for key, value in {**_SETTINGS, **(settings or {})}.items():
        builder = builder.config(key, value)
    try:
        with _modules_to_be_found(where), warnings.catch_warnings():
            # A server of Spark Connect has its own mind about these; nobody has asked for them.
            warnings.filterwarnings("ignore", message=r"Failed to set spark\.(ui|log)\.")
            return builder.getOrCreate(), True
    except ImportError as problem:
        raise MissingDependency(_package(problem), "connect" if remote else "spark") from None
    except Exception as problem:  # noqa: BLE001 - Spark's errors have no common type
        raise SparkUnavailable(where, _reason(problem)) from None


@contextmanager
def _modules_to_be_found(where: str) -> Iterator[None]:
    """What Java starts on this machine later, if Java is started meanwhile, finds palio and what it needs.

    A cluster's workers have a Python of their own, and Spark plans `format("palio")` with that Python as well,
    but here, where no archive is unpacked. Java keeps the path that it was started with, we do not.
    """
    if where.startswith(("local", "sc://")):
        yield
        return
    before = os.environ.get(_PATH)
    installed = (one for one in sys.path if one.endswith(("site-packages", "dist-packages")))
    ours = [str(Path(palio.__file__).parents[1]), *installed]
    os.environ[_PATH] = os.pathsep.join(([before] if before else []) + ours)
    try:
        yield
    finally:
        if before is None:
            del os.environ[_PATH]
        else:
            os.environ[_PATH] = before


def _sessions() -> Any:
    try:
        import pandas  # noqa: F401, PLC0415 - mapInArrow needs it and says so only in a worker's stack trace
        from pyspark.sql import SparkSession  # noqa: PLC0415
    except ImportError as problem:
        raise MissingDependency(_package(problem), "spark") from None
    return SparkSession


def _reason(problem: Exception) -> str:
    """What went wrong, of all that Spark says: the last cause of Java, or else the first line."""
    text = str(problem)
    causes = re.findall(r"^(?:Caused by|: ?)[\s:]*[\w.$]+(?:Exception|Error): (.+)$", text, re.MULTILINE)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    said = (causes[-1:] or lines or [type(problem).__name__])[0]
    return re.sub(r"^\[[A-Z_.]+\] ", "", said)


def _package(problem: ImportError) -> str:
    return (problem.name or "pyspark").partition(".")[0]
