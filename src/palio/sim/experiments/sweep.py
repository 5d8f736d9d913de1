"""From an experiment to the list of its runs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, TypeAlias

import msgspec

from palio.sim.experiments.definition import Experiment, Settings, Sweep
from palio.sim.experiments.formula import Formula
from palio.sim.scenario import Scenario

# What a sweep without variants calls its only line.
ONLY = "all"

_INTEGERS = frozenset(field.name for field in msgspec.structs.fields(Scenario) if field.type is int)

Key: TypeAlias = tuple[str, str, Scenario]


class Run(msgspec.Struct, frozen=True):
    """A run to be made: its place in an experiment, and all that decides it."""

    sweep: str
    variant: str
    scenario: Scenario

    @property
    def key(self) -> Key:
        """What tells it from all other runs."""
        return self.sweep, self.variant, self.scenario


def expand(experiment: Experiment, *, quick: bool = False, first_seed: int = 1) -> list[Run]:
    """All runs: sweep by sweep, the seeds of a point in a row; the same list each time."""
    seeds = experiment.quick.seeds if quick else experiment.seeds
    return [
        Run(sweep.name, variant, msgspec.convert({**settings, "seed": seed}, Scenario))
        for sweep in experiment.sweeps
        for variant, settings in points(experiment, sweep, quick=quick)
        for seed in range(first_seed, first_seed + seeds)
    ]


def points(experiment: Experiment, sweep: Sweep, *, quick: bool = False) -> Iterator[tuple[str, Settings]]:
    """The variants and settings of a sweep, all but the seed."""
    shared = {**experiment.base, **sweep.base, **(experiment.quick.base if quick else {})}
    over = {**sweep.over, **(sweep.quick if quick else {})}
    for values in product(*over.values()):
        for variant, own in (sweep.variants or {ONLY: {}}).items():
            settings = {**shared, **dict(zip(over, values, strict=True)), **own}
            yield variant, with_followers(settings, sweep.follow)


def with_followers(settings: Settings, follow: dict[str, str]) -> Settings:
    """The settings together with the fields that follow from them; later ones may use earlier ones."""
    fields: dict[str, Any] = {field.name: field.default for field in msgspec.structs.fields(Scenario)}
    fields |= settings
    result = dict(settings)
    for name, text in follow.items():
        value = Formula(text)(fields)
        result[name] = fields[name] = max(0, round(value)) if name in _INTEGERS else value
    return result
