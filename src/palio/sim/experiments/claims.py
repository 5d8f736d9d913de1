"""Whether the data support a claim. Nothing here knows what the answer should be.

A claim is looked at in *places*: the points of a sweep, or the lines along a swept field. At each place it
holds clearly, fails clearly, or stays open; "clearly" means that the whole 95 % interval over the seeds is on
that side. The verdict follows from the counts:

    supported          it holds clearly at nine of ten places or more, and fails clearly nowhere
    partly supported   it holds clearly at half of the places or more
    not supported      anything else
    undecided          there are too few seeds for an interval, or no data

The intervals are for one place each. Over many places one in twenty may be wrong by chance, which is why one
open place does not cost a claim its support.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Literal, TypeAlias

import msgspec

from palio.sim.experiments.definition import AtMost, Claim, Crossover, Experiment, Falls, Lower, Similar
from palio.sim.experiments.results import Row
from palio.sim.experiments.series import MeasureSeries, Point, value_of
from palio.sim.experiments.statistics import Summary, paired_difference, paired_ratio, summary
from palio.sim.experiments.wording import interval, shown

Seen: TypeAlias = Literal["holds", "fails", "open", "unknown"]
Verdict: TypeAlias = Literal["supported", "partly supported", "not supported", "undecided"]

_SUPPORTED_SHARE = 0.9
_PARTLY_SHARE = 0.5
# Places that are named one by one in the text; where there are more, the rest is counted.
_NAMED_PLACES = 6


class ClaimFinding(msgspec.Struct, frozen=True):
    """What the data say about a claim: the verdict, the sentence that decides it, and the numbers behind it."""

    claim: Claim
    verdict: Verdict
    sentence: str
    details: tuple[str, ...] = ()


class _Place(msgspec.Struct, frozen=True):
    """Where a claim was looked at, and what was seen."""

    name: str
    seen: Seen
    text: str


def evaluate(experiment: Experiment, rows: Sequence[Row]) -> list[ClaimFinding]:
    """The findings for all claims of an experiment; the rows hold its measures."""
    return [evaluate_claim(experiment, claim, rows) for claim in experiment.claims]


def evaluate_claim(experiment: Experiment, claim: Claim, rows: Sequence[Row]) -> ClaimFinding:
    series = MeasureSeries(experiment.sweep(claim.sweep), rows, claim.measure, claim.where)
    if not series.points:
        return ClaimFinding(claim, "undecided", "None of the runs tells anything about it.")
    naming = _Naming(experiment, series)
    match claim:
        case Lower():
            return _lower(claim, series, naming)
        case AtMost():
            return _at_most(claim, series, naming)
        case Similar():
            return _similar(claim, series, naming)
        case Falls():
            return _falls(claim, series, naming)
        case Crossover():
            horizontal = MeasureSeries(series.sweep, rows, claim.x or claim.along, claim.where)
            return _crossover(claim, series, horizontal, naming)


class _Naming:
    """What points are called in texts: by those fields only in which points differ."""

    def __init__(self, experiment: Experiment, series: MeasureSeries) -> None:
        self._experiment = experiment
        values: dict[str, set[object]] = {}
        for point in series.points:
            for name, value in point:
                values.setdefault(name, set()).add(value)
        self._telling = {name for name, found in values.items() if len(found) > 1}
        self.measure = experiment.short_label(series.measure)
        self.at_start = self.measure[:1].upper() + self.measure[1:]

    def __call__(self, point: Point) -> str:
        parts = [f"{self.label(name)} {shown(value)}" for name, value in point if name in self._telling]
        return ", ".join(parts) or "all runs"

    def label(self, name: str) -> str:
        return self._experiment.short_label(name)


def _lower(claim: Lower, series: MeasureSeries, naming: _Naming) -> ClaimFinding:
    places, reductions = [], []
    for point in series.points:
        ours, theirs = series.pairs((point, claim.variant), (point, claim.than))
        difference = paired_difference(ours, theirs)
        over, under = summary(ours).mean, summary(theirs).mean
        text = f"{shown(over)} against {shown(under)}, difference {interval(difference)}"
        places.append(_Place(naming(point), _sign(difference), text))
        if under:
            reductions.append(over / under)
    middle = f"; the ratio {_range(reductions)}" if reductions else ""
    sentence = (
        f"{naming.at_start}: lower with {claim.variant} than with {claim.than} "
        f"{_at(places, 'holds', 'point')}, higher {_at(places, 'fails', 'point')}{middle}."
    )
    return ClaimFinding(claim, _verdict(places), sentence, _details(places))


def _ratios(
    series: MeasureSeries, naming: _Naming, variants: tuple[str, str], low: float, high: float
) -> tuple[list[_Place], list[float]]:
    """At each point, whether the ratio of two variants is between two numbers."""
    places, ratios = [], []
    for point in series.points:
        ratio = paired_ratio(*series.pairs((point, variants[0]), (point, variants[1])))
        seen = _seen(ratio, low < ratio.low and ratio.high < high, ratio.high < low or ratio.low > high)
        places.append(_Place(naming(point), seen, f"ratio {interval(ratio)}"))
        if ratio.count:
            ratios.append(ratio.mean)
    return places, ratios


def _at_most(claim: AtMost, series: MeasureSeries, naming: _Naming) -> ClaimFinding:
    places, ratios = _ratios(series, naming, (claim.variant, claim.of), -math.inf, claim.factor)
    sentence = (
        f"{naming.at_start}: with {claim.variant} at most {shown(claim.factor)} times that with {claim.of} "
        f"{_at(places, 'holds', 'point')}, clearly more {_at(places, 'fails', 'point')}; "
        f"the ratio {_range(ratios)}."
    )
    return ClaimFinding(claim, _verdict(places), sentence, _details(places))


def _similar(claim: Similar, series: MeasureSeries, naming: _Naming) -> ClaimFinding:
    low, high = 1 / (1 + claim.within), 1 + claim.within
    places, ratios = _ratios(series, naming, (claim.variant, claim.to), low, high)
    sentence = (
        f"{naming.at_start}: with {claim.variant} within {claim.within:.0%} of that with {claim.to} "
        f"{_at(places, 'holds', 'point')}, clearly further away {_at(places, 'fails', 'point')}; "
        f"the ratio {_range(ratios)}."
    )
    return ClaimFinding(claim, _verdict(places), sentence, _details(places))


def _falls(claim: Falls, series: MeasureSeries, naming: _Naming) -> ClaimFinding:
    places = [
        _falling_line(claim, series, naming, line, variant)
        for line in series.lines(claim.along).values()
        for variant in claim.variants or series.variants
    ]
    sentence = (
        f"{naming.at_start}: falls along the {naming.label(claim.along)} {_at(places, 'holds', 'line')} "
        f"(lower at the end than at the start, with no step clearly upwards), "
        f"and rises from start to end {_at(places, 'fails', 'line')}."
    )
    return ClaimFinding(claim, _verdict(places), sentence, _details(places, all_of_them=True))


def _falling_line(
    claim: Falls, series: MeasureSeries, naming: _Naming, line: list[Point], variant: str
) -> _Place:
    first, last = line[0], line[-1]
    whole = paired_difference(*series.pairs((last, variant), (first, variant)))
    steps = [
        paired_difference(*series.pairs((after, variant), (before, variant)))
        for before, after in pairwise(line)
    ]
    down = sum(step.high < 0 for step in steps)
    up = sum(step.low > 0 for step in steps)
    seen = _sign(whole)
    if seen == "holds" and up:
        seen = "open"
    name = naming(tuple(one for one in first if one[0] != claim.along))
    start, end = summary(series.values(first, variant)).mean, summary(series.values(last, variant)).mean
    return _Place(
        variant if name == "all runs" else f"{variant}, {name}",
        seen,
        f"from {shown(start)} at {shown(value_of(first, claim.along))} to {shown(end)} at "
        f"{shown(value_of(last, claim.along))}; of {len(steps)} steps {down} clearly down, {up} clearly up",
    )


def _crossover(
    claim: Crossover, series: MeasureSeries, horizontal: MeasureSeries, naming: _Naming
) -> ClaimFinding:
    places = []
    crossings = []
    for key, line in series.lines(claim.along).items():
        differences = [
            paired_difference(*series.pairs((point, claim.variant), (point, claim.later))) for point in line
        ]
        positions = [summary(horizontal.values(point, claim.variant)).mean for point in line]
        signs = list(map(_sign, differences))
        clear = [sign for sign in signs if sign in ("holds", "fails")]
        crossing = _crossing(positions, [one.mean for one in differences])
        seen: Seen
        if "unknown" in signs:
            seen = "unknown"
        elif clear and clear == sorted(clear, reverse=True) and len(set(clear)) == 2:
            seen = "holds"  # first clearly lower, then clearly higher, and never back
        elif clear and (len(set(clear)) == 1 or clear[0] == "fails"):
            seen = "fails"
        else:
            seen = "open"
        if seen == "holds" and crossing is not None:
            crossings.append(crossing)
        places.append(_Place(naming(key), seen, _crossing_text(claim, naming, signs, positions, crossing)))
    axis = naming.label(claim.x or claim.along)
    found = f"; the crossing is {_range(crossings, 'at')} {axis}" if crossings else ""
    sentence = (
        f"Along the {axis}, {claim.variant} has the lower {naming.measure} first "
        f"and {claim.later} in the end {_at(places, 'holds', 'line')}{_without(places)}{found}."
    )
    return ClaimFinding(claim, _verdict(places), sentence, _details(places, all_of_them=True))


def _without(places: Sequence[_Place]) -> str:
    if not any(place.seen == "fails" for place in places):
        return ""
    return f"; within this range there is no crossing {_at(places, 'fails', 'line')}"


def _crossing_text(
    claim: Crossover, naming: _Naming, signs: Sequence[Seen], positions: list[float], crossing: float | None
) -> str:
    lower = [position for sign, position in zip(signs, positions, strict=True) if sign == "holds"]
    higher = [position for sign, position in zip(signs, positions, strict=True) if sign == "fails"]
    parts = []
    if lower:
        parts.append(f"{claim.variant} clearly lower from {shown(min(lower))} to {shown(max(lower))}")
    if higher:
        parts.append(f"{claim.later} clearly lower from {shown(min(higher))} to {shown(max(higher))}")
    if crossing is not None:
        parts.append(f"the means cross at {shown(crossing)} {naming.label(claim.x or claim.along)}")
    return "; ".join(parts) or "no clear difference anywhere"


def _crossing(positions: Sequence[float], differences: Sequence[float]) -> float | None:
    """Where the difference first comes from below zero to above, between two points on a logarithmic line."""
    for (left, before), (right, after) in pairwise(zip(positions, differences, strict=True)):
        if before < 0 <= after:
            share = -before / (after - before)
            if left > 0 and right > 0:
                return math.exp(math.log(left) + share * (math.log(right) - math.log(left)))
            return left + share * (right - left)
    return None


def _seen(found: Summary, holds: bool, fails: bool) -> Seen:
    if found.count < 2:
        return "unknown"
    return "holds" if holds else "fails" if fails else "open"


def _sign(difference: Summary) -> Seen:
    """Whether it is clearly below zero."""
    return _seen(difference, difference.high < 0, difference.low > 0)


def _verdict(places: Sequence[_Place]) -> Verdict:
    known = [place.seen for place in places if place.seen != "unknown"]
    if not known:
        return "undecided"
    holding = known.count("holds") / len(known)
    if holding >= _SUPPORTED_SHARE and "fails" not in known:
        return "supported"
    return "partly supported" if holding >= _PARTLY_SHARE else "not supported"


def _at(places: Sequence[_Place], seen: str, noun: str) -> str:
    """`at 27 of 28 points`."""
    known = [place for place in places if place.seen != "unknown"]
    count = sum(place.seen == seen for place in known)
    return f"at {count or 'none'} of {len(known)} {noun}{'' if len(known) == 1 else 's'}"


def _details(places: Sequence[_Place], *, all_of_them: bool = False) -> tuple[str, ...]:
    """The places that tell most: all lines, or those points at which the claim does not clearly hold."""
    wanted = [place for place in places if all_of_them or place.seen != "holds"]
    heading = {"holds": "holds", "fails": "fails", "open": "open", "unknown": "cannot be decided"}
    limit = len(wanted) if all_of_them else _NAMED_PLACES
    shown_places = [f"{place.name}: {heading[place.seen]} ({place.text})" for place in wanted[:limit]]
    rest = len(wanted) - len(shown_places)
    return (*shown_places, *([f"and {rest} more such points"] if rest > 0 else []))


def _range(values: Iterable[float], before: str = "is") -> str:
    numbers = sorted(value for value in values if not math.isnan(value))
    if not numbers:
        return f"{before} unknown"
    if shown(numbers[0]) == shown(numbers[-1]):
        return f"{before} {shown(numbers[0])}{' everywhere' if len(numbers) > 1 else ''}"
    middle = numbers[len(numbers) // 2]
    return f"{before} {shown(numbers[0])} to {shown(numbers[-1])} (median {shown(middle)})"
