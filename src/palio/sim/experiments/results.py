"""Finished runs: rows of plain numbers and words, kept on disk as they come and as Parquet in the end.

While an experiment runs, each finished run is a line of a journal, so that an interrupt loses nothing but what
was under way. When all are there, they become one Parquet file in the order of the experiment, whatever the
order in which they were finished, and the journal goes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

import msgspec

from palio.model.errors import MissingDependency
from palio.sim.experiments.definition import Experiment
from palio.sim.experiments.errors import UnusableRuns
from palio.sim.experiments.formula import Formula
from palio.sim.experiments.simulators import ROUTING, AnyOutcome, Simulator, simulator_for
from palio.sim.experiments.sweep import Key, PlannedRun

RUNS = "runs.parquet"
JOURNAL = "runs-so-far.jsonl"

Row: TypeAlias = dict[str, Any]


class Finished(msgspec.Struct, frozen=True):
    """A run and what came of it."""

    run: PlannedRun
    outcome: AnyOutcome

    def row(self) -> Row:
        """One row: place, scenario, outcome. What both of the latter have is the scenario's."""
        scenario = msgspec.structs.asdict(self.run.scenario)
        simulator = simulator_for(self.run.scenario)
        outcome = {
            simulator.column(name): value for name, value in msgspec.structs.asdict(self.outcome).items()
        }
        return {"sweep": self.run.sweep, "variant": self.run.variant, **scenario, **outcome}


def with_measures(experiment: Experiment, row: Row) -> Row:
    """The row with the experiment's measures added, in their order: later ones may use earlier ones."""
    result = dict(row)
    for name, measure in experiment.measures.items():
        result[name] = Formula(measure.formula)(result)
    return result


class Folder:
    """The output folder of an experiment, whose runs a simulator made."""

    def __init__(self, path: Path, simulator: Simulator = ROUTING) -> None:
        self.path = path
        self._simulator = simulator
        self._journal = path / JOURNAL
        self._parquet = path / RUNS

    def prepare(self, *, keep: bool) -> dict[Key, Finished]:
        """Make the folder, and give the runs that are finished already, or with `keep` unset forget them."""
        self.path.mkdir(parents=True, exist_ok=True)
        if not keep:
            self._journal.unlink(missing_ok=True)
            self._parquet.unlink(missing_ok=True)
            return {}
        return {one.run.key: one for one in [*self._read_parquet(), *self._read_journal()]}

    def append(self, finished: Iterable[Finished]) -> None:
        """Keep these runs, whatever happens next."""
        with self._journal.open("ab") as file:
            file.write(b"".join(msgspec.json.encode(one) + b"\n" for one in finished))

    def complete(self, finished: Iterable[Finished]) -> None:
        """Write all runs as Parquet, and then forget the journal."""
        pyarrow = _pyarrow()
        rows = [one.row() for one in finished]
        table = pyarrow.table({name: [row[name] for row in rows] for name in rows[0]})
        # Written beside and moved, so that there is never half a file under the final name.
        beside = self._parquet.with_suffix(".part")
        pyarrow.parquet.write_table(table, beside)
        os.replace(beside, self._parquet)
        self._journal.unlink(missing_ok=True)

    def _read_journal(self) -> list[Finished]:
        if not self._journal.exists():
            return []
        # An interrupt may have cut the last line; that run is made again.
        *complete, rest = self._journal.read_bytes().split(b"\n")
        if rest:
            self._journal.write_bytes(b"".join(line + b"\n" for line in complete))
        try:
            return [self._from_line(line) for line in complete if line]
        except (msgspec.DecodeError, msgspec.ValidationError, KeyError, TypeError) as problem:
            raise _unusable(self._journal, problem) from None

    def _read_parquet(self) -> list[Finished]:
        if not self._parquet.exists():
            return []
        pyarrow = _pyarrow()
        try:
            return [self._from_row(row) for row in pyarrow.parquet.read_table(self._parquet).to_pylist()]
        except (pyarrow.ArrowInvalid, msgspec.ValidationError, KeyError) as problem:
            raise _unusable(self._parquet, problem) from None

    def _from_line(self, line: bytes) -> Finished:
        found = msgspec.json.decode(line)
        run = found["run"]
        return self._finished(run["sweep"], run["variant"], run["scenario"], found["outcome"])

    def _from_row(self, row: Row) -> Finished:
        simulator = self._simulator
        scenario = {name: row[name] for name in simulator.scenario.__struct_fields__}
        outcome = {name: row[simulator.column(name)] for name in simulator.outcome.__struct_fields__}
        return self._finished(row["sweep"], row["variant"], scenario, outcome)

    def _finished(self, sweep: str, variant: str, scenario: Row, outcome: Row) -> Finished:
        return Finished(
            PlannedRun(sweep, variant, msgspec.convert(scenario, self._simulator.scenario)),
            msgspec.convert(outcome, self._simulator.outcome),
        )


def _unusable(path: Path, problem: Exception) -> UnusableRuns:
    return UnusableRuns(str(path), f"it was not written by this version ({problem}); start without --resume.")


def _pyarrow() -> ModuleType:
    try:
        import pyarrow  # noqa: PLC0415
        import pyarrow.parquet  # noqa: PLC0415
    except ImportError:
        raise MissingDependency("pyarrow", "sim") from None
    return pyarrow  # type: ignore[no-any-return]


def needs_pyarrow() -> None:
    """Raise `MissingDependency` at the beginning rather than when the first hour of runs is over."""
    _pyarrow()
