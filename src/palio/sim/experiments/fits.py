"""How a number grows with the network: a power law through the means, and what it says beyond the measured.

Beside the fitted law stands a formula thought out on paper, where the experiment has one. Where the two agree
on what was measured, both are worth something beyond it; where they do not, neither is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from palio.sim.experiments.definition import Experiment, Fit
from palio.sim.experiments.formula import Formula
from palio.sim.experiments.results import Row
from palio.sim.experiments.series import MeasureSeries, value_of
from palio.sim.experiments.statistics import PowerLaw, Summary, power_law, summary


class Growth(msgspec.Struct, frozen=True):
    """What was found for one variant: the means that were measured, the law, and both predictions."""

    fit: Fit
    variant: str
    measured: tuple[tuple[float, Summary], ...]
    law: PowerLaw | None
    on_paper: tuple[tuple[float, float], ...]  # the formula at the measured places and beyond

    def paper(self, x: float) -> float:
        """What the formula on paper says, if there is one and it was asked."""
        return dict(self.on_paper).get(x, math.nan)

    @property
    def paper_error(self) -> float:
        """The largest factor by which the formula on paper misses what was measured, either way."""
        ratios = [
            self.paper(x) / found.mean for x, found in self.measured if found.mean > 0 and self.paper(x) > 0
        ]
        return max((max(ratio, 1 / ratio) for ratio in ratios), default=math.nan)


def evaluate_fits(experiment: Experiment, rows: Sequence[Row]) -> list[Growth]:
    """The growth of each variant of each fit."""
    return [
        _growth(fit, series, variant, rows)
        for fit in experiment.fits
        for series in [MeasureSeries(experiment.sweep(fit.sweep), rows, fit.y, fit.where)]
        for variant in fit.variants or series.variants
    ]


def _growth(fit: Fit, series: MeasureSeries, variant: str, rows: Sequence[Row]) -> Growth:
    measured: list[tuple[float, Summary]] = []
    for point in sorted(series.points, key=lambda one: float(value_of(one, fit.along))):
        measured.append((float(value_of(point, fit.along)), summary(series.values(point, variant))))
    law = power_law([(x, found.mean) for x, found in measured])
    return Growth(fit, variant, tuple(measured), law, tuple(_on_paper(fit, variant, rows)))


def _on_paper(fit: Fit, variant: str, rows: Sequence[Row]) -> list[tuple[float, float]]:
    text = fit.paper.get(variant)
    if text is None:
        return []
    formula = Formula(text)
    # One row a place is enough: a formula on paper speaks of scenarios, and those of a place differ in seeds.
    places = {
        float(row[fit.along]): row for row in rows if row["sweep"] == fit.sweep and row["variant"] == variant
    }
    if not places:
        return []
    largest = places[max(places)]
    beyond = {x: _scaled(largest, fit, x) for x in fit.extrapolate}
    return [(x, formula(row)) for x, row in sorted({**places, **beyond}.items())]


def _scaled(row: Row, fit: Fit, x: float) -> Row:
    """A row as it would be at a larger place: what grew in proportion so far goes on doing so."""
    share = x / float(row[fit.along])
    return {**row, fit.along: x, **{name: float(row[name]) * share for name in fit.proportional}}
