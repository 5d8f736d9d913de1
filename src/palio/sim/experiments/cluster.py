"""Runs made by Spark: each is a task, so a cluster of any size makes as many at a time as it has cores.

The numbers of some runs make a small DataFrame, a partition each, which `mapInArrow` turns into one of
outcomes. The scenarios travel with the function and the outcomes as rows, both as JSON. A few such jobs are
under way at once: while the last tasks of one are still running, those of the next fill the cores.

The session is the caller's: classic or Spark Connect, on any cluster. The Python on the executors needs palio.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from palio.sim.experiments.results import Finished
from palio.sim.experiments.simulators import AnyScenario, Simulate, simulator_for
from palio.sim.experiments.sweep import PlannedRun

if TYPE_CHECKING:
    import pyarrow

# Jobs that are under way; each comes to the numbers of runs, and their outcomes as JSON.
Jobs: TypeAlias = set[Future[list[tuple[int, str]]]]
_JOBS_AT_ONCE = 3
# Runs in a job, for each core: enough for a job to be worth its planning, few enough for a bar that moves.
_RUNS_A_CORE = 2


def make_runs_on_spark(
    runs: Sequence[PlannedRun], spark: Any, cores: int, simulate: Simulate
) -> Iterator[Finished]:
    """Give finished runs as the jobs of a `SparkSession`, which has so many cores, end."""
    size = _RUNS_A_CORE * cores
    batches = [range(start, min(start + size, len(runs))) for start in range(0, len(runs), size)]
    tag = f"palio-{uuid.uuid4().hex}"
    with ThreadPoolExecutor(_JOBS_AT_ONCE, initializer=spark.addTag, initargs=(tag,)) as pool:
        under_way: Jobs = set()
        try:
            for batch in batches:
                under_way.add(pool.submit(_job, spark, runs, batch, simulate))
                if len(under_way) >= _JOBS_AT_ONCE:
                    under_way = yield from _finished_ones(runs, under_way)
            while under_way:
                under_way = yield from _finished_ones(runs, under_way)
        except BaseException:
            # The threads of the pool wait for their jobs; these must not run to their end first.
            spark.interruptTag(tag)
            raise


def _finished_ones(runs: Sequence[PlannedRun], under_way: Jobs) -> Generator[Finished, None, Jobs]:
    done, rest = wait(under_way, return_when=FIRST_COMPLETED)
    for future in done:
        for number, outcome in future.result():
            kind = simulator_for(runs[number].scenario).outcome
            yield Finished(runs[number], msgspec.json.decode(outcome, type=kind))
    return rest


def _job(spark: Any, runs: Sequence[PlannedRun], batch: range, simulate: Simulate) -> list[tuple[int, str]]:
    scenarios = {
        number: (type(runs[number].scenario), msgspec.json.encode(runs[number].scenario)) for number in batch
    }
    numbers = spark.range(batch.start, batch.stop, 1, len(batch))
    outcomes = numbers.mapInArrow(_mapper(scenarios, simulate), "number long, outcome string")
    return [(row["number"], row["outcome"]) for row in outcomes.collect()]


def _mapper(
    scenarios: dict[int, tuple[type[AnyScenario], bytes]], simulate: Simulate
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
