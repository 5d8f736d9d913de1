"""Whether what Spark needs is there, on this machine and on executors; for each that is not, what to do."""

from __future__ import annotations

import os
import platform
import re
import shutil
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import msgspec

from palio.spark.errors import JavaMissing
from palio.spark.runtime.java import java_version

if TYPE_CHECKING:
    import pyarrow

# From, and below; another one fails in its own way, mostly in the stack trace of a worker.
_NEEDED = {
    "pyspark": ((4, 1), None),
    "pandas": ((2, 2), (3,)),
    "pyarrow": ((18,), None),
    "protobuf": ((5,), None),
}
_ADVICE = "pip install 'palio[spark]'"


class Check(msgspec.Struct, frozen=True):
    """One thing that was looked at. `advice` is what to do, if it is not well."""

    where: str
    name: str
    well: bool
    found: str
    advice: str = ""


def java_check(where: str) -> Check:
    try:
        return Check(where, "Java", True, java_version())
    except JavaMissing as problem:
        advice = "install Java 17 or later (on Debian: apt-get install default-jre-headless), or set JAVA_HOME"
        return Check(where, "Java", False, problem.found or "none", advice)


def python_checks(where: str) -> Iterator[Check]:
    """What the Python that this runs in has: the compiled index, and packages in versions that work."""
    yield Check(where, "Python", True, platform.python_version())
    try:
        import palio.matching.core  # noqa: PLC0415
    except ImportError:
        compiler = shutil.which(os.environ.get("CC", "cc")) or shutil.which("gcc")
        needed = "install a C compiler (on Debian: apt-get install gcc) and Python's headers, then "
        advice = f"{'' if compiler else needed}install palio again, so that its core is built"
        yield Check(where, "compiled index", False, f"not built; compiler: {compiler or 'none'}", advice)
    else:
        yield Check(where, "compiled index", True, f"palio {version('palio')}")
        del palio
    for name, (least, below) in _NEEDED.items():
        yield _package_check(where, name, least, below)


def _package_check(where: str, name: str, least: tuple[int, ...], below: tuple[int, ...] | None) -> Check:
    wanted = f"{'.'.join(map(str, least))} or later"
    if below is not None:
        wanted += f", below {'.'.join(map(str, below))}"
    try:
        found = version(name)
    except PackageNotFoundError:
        return Check(where, name, False, "not installed", _ADVICE)
    numbers = tuple(int(part) for part in re.findall(r"\d+", found)[:3])
    if numbers < least or (below is not None and numbers >= below):
        return Check(where, name, False, f"{found}, but {wanted} is needed", _ADVICE)
    return Check(where, name, True, found)


def executor_checks(spark: Any, tasks: int) -> list[Check]:
    """What the executors' Pythons have, each machine once, as far as so many tasks reach them."""
    from pyspark.errors import PySparkException  # noqa: PLC0415

    try:
        rows = spark.range(0, tasks, 1, tasks).mapInArrow(_on_executor, "checks binary").distinct().collect()
    except PySparkException as problem:
        if "No module named 'palio'" in str(problem):
            advice = "bring palio to them: `palio spark package` says how"
            return [Check("executors", "palio", False, "not installed", advice)]
        reason = str(problem).strip().splitlines()[0]
        return [Check("executors", "a job", False, reason, "look at the logs of the executors")]
    found: dict[tuple[str, str], Check] = {}
    for row in rows:
        for one in msgspec.json.decode(bytes(row["checks"]), type=list[Check]):
            found.setdefault((one.where, one.name), one)
    return list(found.values())


def _on_executor(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    import pyarrow  # noqa: PLC0415

    for _ in batches:
        checks = list(python_checks(f"executor on {platform.node()}"))
        yield pyarrow.RecordBatch.from_pydict({"checks": [msgspec.json.encode(checks)]})
