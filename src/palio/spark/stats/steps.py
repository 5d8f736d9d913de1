"""Steps that people like: of time for an axis, and of numbers for bins."""

from __future__ import annotations

import math
from collections.abc import Sequence

# Steps of time in seconds; from a day on they are whole weeks and years only about.
_DAY = 86_400
TIME_STEPS: tuple[float, ...] = (
    *(1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0),
    *map(float, (60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200)),
    *(float(days * _DAY) for days in (1, 2, 7, 14, 28, 91, 182, 365, 730, 1_826, 3_652)),
)

MOST_STEPS = 96
BINS = 40
# Where the greatest is so many times the least, bins of equal width would show one column and nothing else.
_LOGARITHMIC_FROM = 200.0
_LOGARITHMIC_MOST = 1e8


def time_steps(first: float, last: float) -> tuple[float, float, int]:
    """From when, how long and how many: steps that a calendar has, at most `MOST_STEPS` of them."""
    span = max(last - first, 0.0)
    wanted = span / (MOST_STEPS - 1)
    longest = TIME_STEPS[-1]
    step = next((one for one in TIME_STEPS if one >= wanted), longest * math.ceil(wanted / longest))
    calendar = min(step, float(_DAY))  # from a day on, steps begin with the first day
    start = math.floor(first / calendar) * calendar
    return start, step, int((last - start) / step) + 1


def bin_edges(quantiles: Sequence[float]) -> tuple[tuple[float, ...], bool]:
    """Ends of bins for numbers with these quantiles, and whether their widths grow with the numbers.

    The first and the last bin take in all that is further out, so that a few wild numbers do not push all
    others into one column.
    """
    least, most = quantiles[0], quantiles[-1]
    low, high = _inner(quantiles)
    smallest = next((one for one in quantiles if one > 0), 0.0)
    middle = quantiles[len(quantiles) // 2]
    if least >= 0 and smallest > 0 and high / smallest > _LOGARITHMIC_FROM and high > 10 * middle:
        smallest = max(smallest, high / _LOGARITHMIC_MOST)
        grown = [smallest * (high / smallest) ** (number / BINS) for number in range(BINS + 1)]
        return _closed(least, [_rounded(one) for one in grown], most), True
    step = _nice((high - low) / BINS)
    first = math.floor(low / step) if step else 0
    count = math.ceil(high / step) - first if step else 0
    if not 0 < count <= 2 * BINS:  # all but equal, or further apart than doubles can say
        return (least, math.nextafter(most, math.inf)), False
    return _closed(least, [(first + number) * step for number in range(count + 1)], most), False


def _closed(least: float, inner: list[float], most: float) -> tuple[float, ...]:
    """Ends such that everything is within."""
    return tuple(sorted({min(least, inner[0]), *inner[1:-1], max(most, inner[-1])}))


def _inner(quantiles: Sequence[float]) -> tuple[float, float]:
    """The part of the line that is worth showing: all of it, or without the outermost hundredths."""
    least, most = quantiles[0], quantiles[-1]
    if len(quantiles) < 5:
        return least, most
    low, high = quantiles[1], quantiles[-2]
    spread = high - low
    if spread <= 0:
        return least, most
    return (least if low - least < spread else low), (most if most - high < spread else high)


def _nice(step: float) -> float:
    """The next larger of 1, 2, 2.5 and 5 times a power of ten."""
    if not 0 < step < math.inf:
        return 0.0
    power = 10.0 ** math.floor(math.log10(step))
    return next((factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= step), 10 * power)


def _rounded(number: float) -> float:
    return float(f"{number:.4g}")
