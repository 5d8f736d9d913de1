"""Runs made by Spark: each is a task, so a cluster of any size makes as many at a time as it has cores.

The numbers of some runs make a small DataFrame, a partition each, which `mapInArrow` turns into one of
outcomes. The scenarios travel with the function and the outcomes as rows, both as JSON. A few such jobs are
under way at once: while the last tasks of one are still running, those of the next fill the cores.

The Python on the executors needs Palio installed; with a local master it is this one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any

import msgspec

from palio.model.errors import MissingDependency, PalioError
from palio.sim.experiments.results import Finished
from palio.sim.experiments.simulators import AnyOutcome, AnyScenario, simulator_for
from palio.sim.experiments.sweep import Run

if TYPE_CHECKING:
    import pyarrow

_JOBS_AT_ONCE = 3
# Runs in a job, for each core: enough for a job to be worth its planning, few enough for a bar that moves.
_RUNS_A_CORE = 2
# What is assumed of a cluster that does not say how many cores it has.
_UNKNOWN_CORES = 16


class SparkUnavailable(PalioError):
    """Spark could not be started or reached."""

    master: str

    def __init__(self, master: str, reason: str) -> None:
        super().__init__(f"Spark at {master!r} cannot be used: {reason}", master=master)


def make_runs_on_spark(
    runs: Sequence[Run], master: str, simulate: Callable[[Any], AnyOutcome]
) -> Iterator[Finished]:
    """Give finished runs as the jobs that they are in end."""
    session, ours = _session(master)
    try:
        size = _RUNS_A_CORE * _cores(session)
        batches = [range(start, min(start + size, len(runs))) for start in range(0, len(runs), size)]
        with ThreadPoolExecutor(_JOBS_AT_ONCE) as pool:
            under_way: set[Future[list[tuple[int, str]]]] = set()
            try:
                for batch in batches:
                    under_way.add(pool.submit(_job, session, runs, batch, simulate))
                    if len(under_way) >= _JOBS_AT_ONCE:
                        under_way = yield from _finished_ones(runs, under_way)
                while under_way:
                    under_way = yield from _finished_ones(runs, under_way)
            except BaseException:
                # The threads of the pool wait for their jobs; these must not run to their end first.
                if hasattr(session, "sparkContext") and ours:
                    session.sparkContext.cancelAllJobs()
                raise
    finally:
        if ours:
            session.stop()


def _finished_ones(
    runs: Sequence[Run], under_way: set[Future[list[tuple[int, str]]]]
) -> Generator[Finished, None, set[Future[list[tuple[int, str]]]]]:
    done, rest = wait(under_way, return_when=FIRST_COMPLETED)
    for future in done:
        for number, outcome in future.result():
            kind = simulator_for(runs[number].scenario).outcome
            yield Finished(runs[number], msgspec.json.decode(outcome, type=kind))
    return rest


def _job(
    session: Any, runs: Sequence[Run], batch: range, simulate: Callable[[Any], AnyOutcome]
) -> list[tuple[int, str]]:
    scenarios = {
        number: (type(runs[number].scenario), msgspec.json.encode(runs[number].scenario)) for number in batch
    }
    numbers = session.range(batch.start, batch.stop, 1, len(batch))
    outcomes = numbers.mapInArrow(_mapper(scenarios, simulate), "number long, outcome string")
    return [(row["number"], row["outcome"]) for row in outcomes.collect()]


def _mapper(
    scenarios: dict[int, tuple[type[AnyScenario], bytes]], simulate: Callable[[Any], AnyOutcome]
) -> Callable[[Iterator[pyarrow.RecordBatch]], Iterator[pyarrow.RecordBatch]]:
    def outcomes(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow  # noqa: PLC0415

        for batch in batches:
            texts = []
            for number in batch.column(0).to_pylist():
                kind, text = scenarios[number]
                scenario = msgspec.json.decode(text, type=kind)
                texts.append(msgspec.json.encode(simulate(scenario)).decode())
            yield pyarrow.RecordBatch.from_arrays(
                [batch.column(0), pyarrow.array(texts, pyarrow.string())], ["number", "outcome"]
            )

    return outcomes


def _session(master: str) -> tuple[Any, bool]:
    """A session, and whether it is ours to stop."""
    try:
        from pyspark.sql import SparkSession  # noqa: PLC0415
    except ImportError:
        raise MissingDependency("pyspark", "spark") from None
    existing = SparkSession.getActiveSession()
    if existing is not None:
        return existing, False
    if master.startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.appName("palio sim")
    builder = builder.remote(master) if master.startswith("sc://") else builder.master(master)
    try:
        session = (
            builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
        ).getOrCreate()
    except Exception as problem:  # noqa: BLE001 - Spark's errors have no common type, and Java's absence is one
        reason = str(problem).strip().splitlines()[0] if str(problem).strip() else type(problem).__name__
        raise SparkUnavailable(master, f"{reason} (Spark needs Java 17 or later.)") from None
    if hasattr(session, "sparkContext") and not master.startswith("sc://"):
        session.sparkContext.setLogLevel("ERROR")
    return session, True


def _cores(session: Any) -> int:
    try:
        return max(1, int(session.sparkContext.defaultParallelism))
    except Exception:  # noqa: BLE001 - a session over Spark Connect has no context and says so by its own error
        return _UNKNOWN_CORES
