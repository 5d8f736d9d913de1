"""Where an axis has its marks: at times that a calendar has, and at numbers that people say."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from palio.pages import wording
from palio.spark.stats.figures import Bin

Tick = tuple[float, str]  # a place from 0 to 1, and what stands there

MOST_TICKS = 6
_HOUR, _DAY = 3_600, 86_400
_SECONDS = (0.1, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800)
_LENGTHS = (*_SECONDS, _HOUR, 2 * _HOUR, 3 * _HOUR, 6 * _HOUR, 12 * _HOUR, _DAY, 2 * _DAY, 7 * _DAY, 14 * _DAY)
_MONTHS = (1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1_200)
_MONTH = 30.44 * _DAY


def time_ticks(start: float, end: float) -> list[Tick]:
    """Marks for the time from `start` to `end`, in seconds since 1970, UTC."""
    length = end - start
    step = next((one for one in _LENGTHS if length / one <= MOST_TICKS), None)
    try:
        if step is not None:
            first = math.ceil(start / step)
            moments: list[float] = [number * step for number in range(first, math.floor(end / step) + 1)]
        else:
            months = next((one for one in _MONTHS if length / (one * _MONTH) <= MOST_TICKS), _MONTHS[-1])
            moments = list(_beginnings(start, end, months))
    except (OverflowError, OSError, ValueError):
        moments = []
    shown = [((one - start) / length, wording.moment(one, length)) for one in moments if length > 0]
    return shown or [(0.0, wording.moment(start, length))]


def _beginnings(start: float, end: float, months: int) -> Iterator[float]:
    """The beginnings of every so many months."""
    here = datetime.fromtimestamp(start, UTC)
    number = (here.year * 12 + here.month - 1) // months * months
    while True:
        moment = datetime(number // 12, number % 12 + 1, 1, tzinfo=UTC).timestamp()
        if moment > end:
            return
        if moment >= start:
            yield moment
        number += months


def bin_ticks(bins: Sequence[Bin], *, logarithmic: bool) -> list[Tick]:
    """Marks for bins that are equally wide in the picture, however wide they are."""
    count = len(bins)
    if logarithmic:
        low, high = max(bins[0].high, 1e-300), bins[-1].low
        powers = range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1) if high > 0 else range(0)
        every = max(1, math.ceil(len(powers) / MOST_TICKS))
        marks = [(10.0**power, wording.short(10.0**power)) for power in powers if power % every == 0]
        return [(_place(bins, number) / count, label) for number, label in marks]
    places = sorted({0, *(round(part * count) for part in (0.25, 0.5, 0.75)), count})
    ends = [bins[0].low, *(one.high for one in bins)]
    return [(place / count, wording.short(ends[place])) for place in places]


def _place(bins: Sequence[Bin], number: float) -> float:
    """How many bins lie before a number, with parts of the one that it lies in."""
    for place, one in enumerate(bins):
        if one.low <= number < one.high:
            within = math.log(number / one.low) / math.log(one.high / one.low) if one.low > 0 else 0.5
            return place + within
    return float(len(bins))
