"""Whether an experiment can be run and evaluated as it stands: every name is known, every value allowed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any

import msgspec

from palio.model.errors import PalioError
from palio.sim.experiments.definition import (
    LEAST_SEEDS,
    AtMost,
    Claim,
    Crossover,
    Experiment,
    Falls,
    Fit,
    Plot,
    Similar,
    Sweep,
)
from palio.sim.experiments.errors import InvalidExperiment
from palio.sim.experiments.formula import Formula, InvalidFormula
from palio.sim.experiments.simulators import simulator_of
from palio.sim.experiments.sweep import ONLY, points

Complain = Callable[[str, str], InvalidExperiment]
# The fields of claims that name variants.
_NAMING = ("variant", "than", "of", "to", "later", "variants")


def _numbers(experiment: Experiment) -> frozenset[str]:
    """The fields of a scenario that formulas can use."""
    fields = simulator_of(experiment).scenario_fields
    return frozenset(field.name for field in fields if field.type in (int, float, bool))


def check(experiment: Experiment, file: str) -> None:
    """Raise `InvalidExperiment` for the first thing that is wrong."""

    def complain(path: str, reason: str) -> InvalidExperiment:
        return InvalidExperiment(file, path, reason)

    if experiment.seeds < LEAST_SEEDS:
        raise complain(
            "$.seeds", f"A point needs at least {LEAST_SEEDS} seeds to decide anything, not {experiment.seeds}."
        )
    if experiment.quick.seeds < 1:
        raise complain("$.quick.seeds", "At least one seed is needed.")
    if not experiment.sweeps:
        raise complain("$.sweeps", "There is nothing to run.")
    _check_settings(experiment, experiment.base, "$.base", complain)
    _check_settings(experiment, experiment.quick.base, "$.quick.base", complain)
    names: set[str] = set()
    for number, sweep in enumerate(experiment.sweeps):
        path = f"$.sweeps[{number}]"
        if sweep.name in names:
            raise complain(f"{path}.name", f"There are two sweeps called {sweep.name!r}.")
        names.add(sweep.name)
        _check_sweep(experiment, sweep, path, complain)
    known = _check_measures(experiment, complain)
    for number, plot in enumerate(experiment.plots):
        _check_view(experiment, plot, known, f"$.plots[{number}]", complain)
    for number, fit in enumerate(experiment.fits):
        _check_view(experiment, fit, known, f"$.fits[{number}]", complain)
    for number, claim in enumerate(experiment.claims):
        _check_claim(experiment, claim, known, f"$.claims[{number}]", complain)


def _check_settings(experiment: Experiment, settings: Iterable[str], path: str, complain: Complain) -> None:
    fields = simulator_of(experiment).scenario.__struct_fields__
    for name in settings:
        _check_name(name, fields, "field of a scenario", f"{path}.{name}", complain)
        if name == "seed":
            raise complain(f"{path}.seed", "Seeds are counted by themselves; `seeds` says how many.")


def _check_name(name: str, known: Iterable[str], what: str, path: str, complain: Complain) -> None:
    choices = sorted(known)
    if name in choices:
        return
    close = get_close_matches(name, choices, n=1)
    advice = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(choices)}."
    raise complain(path, f"{name!r} is no {what}; {advice}")


def _check_sweep(experiment: Experiment, sweep: Sweep, path: str, complain: Complain) -> None:
    _check_settings(experiment, sweep.base, f"{path}.base", complain)
    for label, settings in sweep.variants.items():
        _check_settings(experiment, settings, f"{path}.variants.{label}", complain)
        for name in settings:
            if name in sweep.over:
                raise complain(
                    f"{path}.variants.{label}.{name}", "This field is swept; a variant cannot set it."
                )
    _check_settings(experiment, sweep.over, f"{path}.over", complain)
    for name, values in sweep.over.items():
        if not values or len(set(map(repr, values))) < len(values):
            raise complain(f"{path}.over.{name}", "A swept field needs values, each of them once.")
    for name, values in sweep.quick.items():
        _check_name(name, sweep.over, "swept field", f"{path}.quick.{name}", complain)
        if not values:
            raise complain(f"{path}.quick.{name}", "A swept field needs values.")
    _check_settings(experiment, sweep.follow, f"{path}.follow", complain)
    for name, text in sweep.follow.items():
        if name in sweep.over:
            raise complain(f"{path}.follow.{name}", "This field is swept; it cannot follow from others.")
        _check_formula(text, _numbers(experiment), f"{path}.follow.{name}", complain)
    for quick in (False, True):
        for variant, settings in points(experiment, sweep, quick=quick):
            try:
                msgspec.convert(settings, simulator_of(experiment).scenario)
            except (msgspec.ValidationError, PalioError) as problem:
                reason, _, place = str(problem).rstrip(".").partition(" - at ")
                at = f" at {place.strip('`').removeprefix('$.')}" if place else ""
                raise complain(path, f"{reason}{at} (with the variant {variant!r}).") from None


def _check_measures(experiment: Experiment, complain: Complain) -> frozenset[str]:
    simulator = simulator_of(experiment)
    known = {*_numbers(experiment), *map(simulator.column, simulator.outcome.__struct_fields__)}
    for name, measure in experiment.measures.items():
        if name in known or name in simulator.scenario.__struct_fields__:
            raise complain(f"$.measures.{name}", "A field has that name already.")
        _check_formula(measure.formula, known, f"$.measures.{name}.formula", complain)
        known.add(name)
    return frozenset(known)


def _check_formula(text: str, known: Iterable[str], path: str, complain: Complain) -> None:
    try:
        names = Formula(text).names
    except InvalidFormula as problem:
        raise complain(path, str(problem)) from None
    for name in sorted(names):
        _check_name(name, known, "known number", path, complain)


def _check_where(sweep: Sweep, where: dict[str, Any], path: str, complain: Complain) -> None:
    for name in where:
        _check_name(name, sweep.over, "swept field", f"{path}.where.{name}", complain)


def _check_place(experiment: Experiment, name: str, path: str, complain: Complain) -> Sweep:
    _check_name(name, [sweep.name for sweep in experiment.sweeps], "sweep", f"{path}.sweep", complain)
    return experiment.sweep(name)


def _check_view(
    experiment: Experiment, view: Plot | Fit, known: frozenset[str], path: str, complain: Complain
) -> None:
    sweep = _check_place(experiment, view.sweep, path, complain)
    _check_name(view.along, sweep.over, "swept field", f"{path}.along", complain)
    _check_name(view.y, known, "measure", f"{path}.y", complain)
    variants = list(sweep.variants or {ONLY: {}})
    for variant in view.variants:
        _check_name(variant, variants, "variant", f"{path}.variants", complain)
    _check_where(sweep, view.where, path, complain)
    if isinstance(view, Plot):
        if view.x:
            _check_name(view.x, known, "measure", f"{path}.x", complain)
        if view.panels:
            _check_name(view.panels, sweep.over, "swept field", f"{path}.panels", complain)
    else:
        for name in view.proportional:
            _check_name(name, _numbers(experiment), "number of a scenario", f"{path}.proportional", complain)
        for variant, text in view.paper.items():
            _check_name(variant, variants, "variant", f"{path}.paper.{variant}", complain)
            _check_formula(text, _numbers(experiment), f"{path}.paper.{variant}", complain)


def _check_claim(
    experiment: Experiment, claim: Claim, known: frozenset[str], path: str, complain: Complain
) -> None:
    sweep = _check_place(experiment, claim.sweep, path, complain)
    _check_name(claim.measure, known, "measure", f"{path}.measure", complain)
    _check_where(sweep, claim.where, path, complain)
    variants = list(sweep.variants or {ONLY: {}})
    if isinstance(claim, AtMost) and claim.factor <= 0:
        raise complain(f"{path}.factor", "It is a factor above 0.")
    if isinstance(claim, Similar) and claim.within <= 0:
        raise complain(f"{path}.within", "It is a share above 0.")
    for key in _NAMING:
        labels = getattr(claim, key, [])
        for label in [labels] if isinstance(labels, str) else labels:
            _check_name(label, variants, "variant", f"{path}.{key}", complain)
    if isinstance(claim, Falls | Crossover):
        _check_name(claim.along, sweep.over, "swept field", f"{path}.along", complain)
    if isinstance(claim, Crossover) and claim.x:
        _check_name(claim.x, known, "measure", f"{path}.x", complain)
