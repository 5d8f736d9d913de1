"""From an experiment to the list of its runs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, TypeAlias

import msgspec

from palio.sim.experiments.definition import Experiment, Settings, Sweep
from palio.sim.experiments.formula import Formula
from palio.sim.experiments.simulators import AnyScenario, Simulator, simulator_of

# What a sweep without variants calls its only line.
ONLY = "all"

Key: TypeAlias = tuple[str, str, AnyScenario]


class PlannedRun(msgspec.Struct, frozen=True):
    """A run to be made: its place in an experiment, and all that decides it."""

    sweep: str
    variant: str
    scenario: AnyScenario

    @property
    def key(self) -> Key:
        """What tells it from all other runs."""
        return self.sweep, self.variant, self.scenario


def expand(experiment: Experiment, *, quick: bool = False, first_seed: int = 1) -> list[PlannedRun]:
    """All runs: sweep by sweep, the seeds of a point in a row; the same list each time."""
    seeds = experiment.quick.seeds if quick else experiment.seeds
    kind = simulator_of(experiment).scenario
    return [
        PlannedRun(sweep.name, variant, msgspec.convert({**settings, "seed": seed}, kind))
        for sweep in experiment.sweeps
        for variant, settings in points(experiment, sweep, quick=quick)
        for seed in range(first_seed, first_seed + seeds)
    ]


def points(experiment: Experiment, sweep: Sweep, *, quick: bool = False) -> Iterator[tuple[str, Settings]]:
    """The variants and settings of a sweep, all but the seed."""
    simulator = simulator_of(experiment)
    shared = {**experiment.base, **sweep.base, **(experiment.quick.base if quick else {})}
    over = {**sweep.over, **(sweep.quick if quick else {})}
    for values in product(*over.values()):
        for variant, own in (sweep.variants or {ONLY: {}}).items():
            settings = {**shared, **dict(zip(over, values, strict=True)), **own}
            yield variant, with_followers(settings, sweep.follow, simulator)


def with_followers(settings: Settings, follow: dict[str, str], simulator: Simulator) -> Settings:
    """The settings together with the fields that follow from them; later ones may use earlier ones."""
    fields: dict[str, Any] = {field.name: field.default for field in simulator.scenario_fields}
    integers = {field.name for field in simulator.scenario_fields if field.type is int}
    fields |= settings
    result = dict(settings)
    for name, text in follow.items():
        value = Formula(text)(fields)
        result[name] = fields[name] = max(0, round(value)) if name in integers else value
    return result
