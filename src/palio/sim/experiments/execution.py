"""How runs are made: in this process, in several, or by Spark. The results are the same whatever the way.

A run is decided by its scenario alone, and a scenario holds its seed, so neither the order nor the place
matters. Each way is a generator that gives finished runs as they come; closing it ends what is under way.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from typing import Any

from palio.sim.experiments.results import Finished
from palio.sim.experiments.simulators import AnyOutcome, Simulate, simulate
from palio.sim.experiments.sweep import PlannedRun

# Each worker finds its next run waiting, and an interrupt has little to throw away.
_AHEAD = 2


def available_cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def make_runs(
    runs: Sequence[PlannedRun], *, workers: int = 1, spark: Any = None, simulate: Simulate = simulate
) -> Iterator[Finished]:
    """Make all runs, so many at a time, and give each as soon as it is finished, in any order.

    With a `SparkSession` its executors make them; `workers` is then the number of their cores.
    """
    if spark is not None:
        from palio.sim.experiments.cluster import make_runs_on_spark  # noqa: PLC0415

        yield from make_runs_on_spark(runs, spark, workers, simulate)
    elif workers <= 1 or len(runs) <= 1:
        for run in runs:
            yield Finished(run, simulate(run.scenario))
    else:
        yield from _in_processes(runs, workers, simulate)


def _in_processes(runs: Sequence[PlannedRun], workers: int, simulate: Simulate) -> Iterator[Finished]:
    # Fresh processes rather than forked ones: a progress bar has a thread, which a fork would cut in half.
    pool = ProcessPoolExecutor(
        min(workers, len(runs)), multiprocessing.get_context("spawn"), initializer=_prepare_worker
    )
    waiting = iter(runs)
    under_way: dict[Future[AnyOutcome], PlannedRun] = {}
    try:
        while True:
            for run in waiting:
                under_way[pool.submit(simulate, run.scenario)] = run
                if len(under_way) >= workers * _AHEAD:
                    break
            if not under_way:
                return
            done, _ = wait(under_way, return_when=FIRST_COMPLETED)
            for future in done:
                yield Finished(under_way.pop(future), future.result())
    finally:
        _end(pool)


def _end(pool: ProcessPoolExecutor) -> None:
    """End the workers, at once if they are in the middle of something: nobody waits for it any more."""
    processes = list((pool._processes or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.terminate()
    for process in processes:
        process.join()


def _prepare_worker() -> None:
    # Ctrl-C reaches all processes of a terminal; the first one ends the others in order.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Whoever ends the first process, in whatever way, shall not find the others still at work."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
