"""The few statistics that experiments need, over values of independent seeds.

Intervals are 95 % intervals of a mean by Student's t. A comparison of two variants is paired: both ran with the
same seeds, so the differences per seed are what is averaged, and what the seeds have in common drops out.
Values that are not numbers are left out before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

# The 97.5 % points of Student's t for 1, 2, … 30 degrees of freedom.
_STUDENT = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
_NORMAL = 1.959964


def student(degrees: int) -> float:
    """How many standard errors make a 95 % interval."""
    if degrees < 1:
        return math.inf
    if degrees <= len(_STUDENT):
        return _STUDENT[degrees - 1]
    # The first term of the expansion around the normal distribution: right to three digits from 30 on.
    return _NORMAL + (_NORMAL**3 + _NORMAL) / (4 * degrees)


class Summary(msgspec.Struct, frozen=True):
    """A mean with its 95 % interval. One value alone has no interval that could decide anything."""

    count: int
    mean: float
    standard_error: float

    @property
    def half_width(self) -> float:
        """Half of the 95 % interval."""
        if self.count < 2:
            return math.inf
        return student(self.count - 1) * self.standard_error

    @property
    def low(self) -> float:
        return self.mean - self.half_width

    @property
    def high(self) -> float:
        return self.mean + self.half_width


def summary(values: Sequence[float]) -> Summary:
    """Mean and standard error; of nothing, not a number."""
    numbers = [value for value in values if not math.isnan(value)]
    count = len(numbers)
    if count == 0:
        return Summary(0, math.nan, math.nan)
    mean = math.fsum(numbers) / count
    if count == 1:
        return Summary(1, mean, math.nan)
    variance = math.fsum((value - mean) ** 2 for value in numbers) / (count - 1)
    return Summary(count, mean, math.sqrt(variance / count))


def paired_difference(left: Sequence[float], right: Sequence[float]) -> Summary:
    """Left minus right, seed by seed."""
    return summary([a - b for a, b in zip(left, right, strict=True)])


def paired_ratio(left: Sequence[float], right: Sequence[float]) -> Summary:
    """The ratio of the two means, with the error that the pairing leaves (the delta method).

    Two means of zero are as equal as can be; a mean of zero below anything else gives an infinite ratio.
    """
    pairs = [(a, b) for a, b in zip(left, right, strict=True) if not (math.isnan(a) or math.isnan(b))]
    over, under = summary([a for a, _ in pairs]), summary([b for _, b in pairs])
    if under.mean == 0.0:
        return Summary(len(pairs), 1.0 if over.mean == 0.0 else math.inf, 0.0)
    ratio = over.mean / under.mean
    error = summary([a - ratio * b for a, b in pairs]).standard_error / abs(under.mean)
    return Summary(len(pairs), ratio, error)


class PowerLaw(msgspec.Struct, frozen=True):
    """`y = factor · x ^ exponent`, fitted by least squares to the logarithms; `error` is the exponent's."""

    factor: float
    exponent: float
    error: float
    points: int

    def __call__(self, x: float) -> float:
        return self.factor * math.pow(x, self.exponent)

    @property
    def half_width(self) -> float:
        """Half of the exponent's 95 % interval."""
        return student(self.points - 2) * self.error if self.points > 2 else math.inf


def power_law(points: Sequence[tuple[float, float]]) -> PowerLaw | None:
    """Fit the points with x and y above zero; of fewer than two different x there is no fit."""
    logs = [(math.log(x), math.log(y)) for x, y in points if x > 0 and y > 0]
    count = len(logs)
    if len({x for x, _ in logs}) < 2:
        return None
    mean_x = math.fsum(x for x, _ in logs) / count
    mean_y = math.fsum(y for _, y in logs) / count
    spread = math.fsum((x - mean_x) ** 2 for x, _ in logs)
    exponent = math.fsum((x - mean_x) * (y - mean_y) for x, y in logs) / spread
    offset = mean_y - exponent * mean_x
    if count == 2:
        return PowerLaw(math.exp(offset), exponent, math.nan, count)
    rest = math.fsum((y - offset - exponent * x) ** 2 for x, y in logs)
    return PowerLaw(math.exp(offset), exponent, math.sqrt(rest / (count - 2) / spread), count)
