"""Rows of runs, put in order: for each point of a sweep and each variant, the values of a measure by seed.

A *point* is a choice of values for the swept fields. Seeds that one variant has and another has not (after an
interrupt, say) are left out where the two are compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from palio.sim.experiments.definition import Sweep
from palio.sim.experiments.results import Row

Point: TypeAlias = tuple[tuple[str, Any], ...]
Values: TypeAlias = dict[int, float]  # by seed


class MeasureSeries:
    """The values of one measure over one sweep."""

    def __init__(
        self, sweep: Sweep, rows: Sequence[Row], measure: str, where: Mapping[str, Any] | None = None
    ) -> None:
        self.sweep = sweep
        self.measure = measure
        self._values: dict[Point, dict[str, Values]] = {}
        for row in rows:
            if row["sweep"] == sweep.name and _selected(row, where or {}):
                point = tuple((name, row[name]) for name in sweep.over)
                by_variant = self._values.setdefault(point, {})
                by_variant.setdefault(row["variant"], {})[row["seed"]] = float(row[measure])

    @property
    def points(self) -> list[Point]:
        """All points, in the order in which they were run."""
        return list(self._values)

    @property
    def variants(self) -> list[str]:
        """All variants that there is anything of."""
        return list(dict.fromkeys(variant for point in self._values.values() for variant in point))

    def values(self, point: Point, variant: str) -> list[float]:
        """The values at a point, by seed."""
        return [value for _, value in sorted(self._values.get(point, {}).get(variant, {}).items())]

    def pairs(self, left: tuple[Point, str], right: tuple[Point, str]) -> tuple[list[float], list[float]]:
        """The values at two places, of the seeds that both have."""
        first = self._values.get(left[0], {}).get(left[1], {})
        second = self._values.get(right[0], {}).get(right[1], {})
        seeds = sorted(first.keys() & second.keys())
        return [first[seed] for seed in seeds], [second[seed] for seed in seeds]

    def lines(self, along: str) -> dict[Point, list[Point]]:
        """The points in groups that differ in `along` only, each group by its value; the key leaves it out."""
        groups: dict[Point, list[Point]] = {}
        for point in self._values:
            key = tuple((name, value) for name, value in point if name != along)
            groups.setdefault(key, []).append(point)
        return {key: sorted(points, key=lambda one: value_of(one, along)) for key, points in groups.items()}


def value_of(point: Point, name: str) -> Any:
    return dict(point)[name]


def _selected(row: Row, where: Mapping[str, Any]) -> bool:
    return all(
        row[name] in wanted if isinstance(wanted, list) else row[name] == wanted
        for name, wanted in where.items()
    )
