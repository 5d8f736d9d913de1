"""`Sketch`: what can be said of many values in little memory, and put together from parts.

Every task sketches what it sees and sends the sketch, not the values. Two sketches merge into that of all
their values, in any order. Each part of it is bounded:

- *counts*: how many, the least, the greatest, mean and variance: exact (up to rounding);
- *frequent values*: a table of at most `MOST_VALUES`. When it is cut, the largest count that was dropped is
  added to `missed`: a count is never too large, and too small by at most `missed`;
- *distinct values*: the `MOST_MARKS` least of their hashes. As long as there are fewer, the number is exact;
  then the place of the last one says how dense they lie, with an error of about three per cent;
- *quantiles*: a uniform sample of `MOST_SAMPLED` values, those with the least of random numbers.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from palio.spark.stats.content import BOOL, LIST, NUMBER, STRING, TIME, AttributePart

MOST_VALUES = 1_024
MOST_MARKS = 1_024
MOST_SAMPLED = 4_096
# Longer texts are counted, but not listed: a report is no place for them.
LONGEST_LISTED = 128
# Quantiles are told at each of so many equal steps.
QUANTILE_STEPS = 100

_HASHES = 2.0**64
_MIXING = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class _Encoded(msgspec.Struct, frozen=True, array_like=True):
    count: int
    kinds: dict[str, int]
    numbers: int
    mean: float
    spread: float
    least: float
    most: float
    values: list[tuple[Any, int]]
    missed: int
    marks: bytes
    priorities: bytes
    sample: bytes


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Encoded)


class Sketch:
    """Of the values that one attribute has of one family."""

    def __init__(self) -> None:
        self.count = 0
        self.kinds: Counter[str] = Counter()
        self.numbers = 0
        self.mean = 0.0
        self.spread = 0.0  # the sum of squared distances from the mean
        self.least = math.inf
        self.most = -math.inf
        self.values: dict[Any, int] = {}
        self.missed = 0
        self._marks = np.empty(0, np.uint64)
        self._priorities = np.empty(0, np.float64)
        self._sample = np.empty(0, np.float64)

    # Filling

    def add(self, part: AttributePart, random: np.random.Generator) -> None:
        """Values of a batch."""
        self.count += part.count
        self.kinds[part.kind] += part.count
        if part.values is None or part.family == LIST or not part.count:
            return
        values = part.values.drop_null() if part.values.null_count else part.values
        if part.family == TIME:
            values = values.cast(pa.int64())
        counted = pc.value_counts(values)
        unique, counts = counted.field("values"), np.asarray(counted.field("counts"))
        self._marks = _fewest(np.concatenate([self._marks, _hashes(part.family, unique)]))
        if part.family in (NUMBER, TIME):
            numbers = np.asarray(values).astype(np.float64)
            self._add_numbers(numbers / 1e6 if part.family == TIME else numbers, random)
        if part.family in (NUMBER, STRING, BOOL):
            self._add_values(part.family, unique, counts)

    def _add_numbers(self, numbers: Any, random: np.random.Generator) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            mean = float(numbers.mean())
            spread = float(((numbers - mean) ** 2).sum())
        self._add_moments(len(numbers), mean, spread, float(numbers.min()), float(numbers.max()))
        self._add_sample(random.random(len(numbers)), numbers)

    def _add_moments(self, count: int, mean: float, spread: float, least: float, most: float) -> None:
        if not count:
            return
        both = self.numbers + count
        apart = mean - self.mean
        with np.errstate(over="ignore", invalid="ignore"):
            self.spread += spread + float(np.float64(apart) ** 2) * self.numbers * count / both
        self.mean += apart * count / both
        self.numbers = both
        self.least, self.most = min(self.least, least), max(self.most, most)

    def _add_sample(self, priorities: Any, numbers: Any) -> None:
        if len(self._sample) == MOST_SAMPLED:
            kept = priorities < self._priorities.max()
            priorities, numbers = priorities[kept], numbers[kept]
        priorities = np.concatenate([self._priorities, priorities])
        numbers = np.concatenate([self._sample, numbers])
        if len(numbers) > MOST_SAMPLED:
            chosen = np.argpartition(priorities, MOST_SAMPLED)[:MOST_SAMPLED]
            priorities, numbers = priorities[chosen], numbers[chosen]
        self._priorities, self._sample = priorities, numbers

    def _add_values(self, family: str, unique: Any, counts: Any) -> None:
        if len(counts) > MOST_VALUES:
            order = np.argpartition(counts, len(counts) - MOST_VALUES)
            self.missed += int(counts[order[: len(counts) - MOST_VALUES]].max())
            chosen = order[len(counts) - MOST_VALUES :]
            unique, counts = unique.take(pa.array(chosen)), counts[chosen]
        self._add_counts(
            (value, count)
            for value, count in zip(unique.to_pylist(), counts.tolist(), strict=True)
            if family != STRING or len(value) <= LONGEST_LISTED
        )

    def _add_counts(self, counted: Any) -> None:
        for value, count in counted:
            self.values[value] = self.values.get(value, 0) + count
        if len(self.values) > 2 * MOST_VALUES:
            self._cut()

    def _cut(self) -> None:
        if len(self.values) <= MOST_VALUES:
            return
        ranked = self.frequent()
        self.missed += ranked[MOST_VALUES][1]
        self.values = dict(ranked[:MOST_VALUES])

    def merge(self, other: Sketch) -> None:
        """Take in what another one has seen."""
        self.count += other.count
        self.kinds.update(other.kinds)
        self._add_moments(other.numbers, other.mean, other.spread, other.least, other.most)
        self._add_sample(other._priorities, other._sample)
        self._marks = _fewest(np.concatenate([self._marks, other._marks]))
        self.missed += other.missed
        self._add_counts(other.values.items())

    # Asking

    def frequent(self) -> list[tuple[Any, int]]:
        """Values with their counts, the most frequent first."""
        return sorted(self.values.items(), key=lambda one: (-one[1], str(one[0])))

    @property
    def distinct(self) -> int:
        """How many different values there were, about."""
        if self.distinct_is_exact:
            return len(self._marks)
        return min(self.count, round((MOST_MARKS - 1) * _HASHES / (float(self._marks[-1]) + 1)))

    @property
    def distinct_is_exact(self) -> bool:
        return len(self._marks) < MOST_MARKS

    @property
    def deviation(self) -> float:
        """The standard deviation of the numbers."""
        return math.sqrt(self.spread / self.numbers) if self.numbers else 0.0

    def quantiles(self) -> list[float]:
        """From the least to the greatest, in `QUANTILE_STEPS` equal steps; the inner ones from the sample."""
        if not self.numbers:
            return []
        inner = np.quantile(self._sample, np.linspace(0, 1, QUANTILE_STEPS + 1)[1:-1], method="inverted_cdf")
        return [self.least, *inner.tolist(), self.most]

    # Travelling

    def encode(self) -> bytes:
        self._cut()
        return _encoder.encode(
            _Encoded(
                self.count,
                self.kinds,
                self.numbers,
                self.mean,
                self.spread,
                self.least,
                self.most,
                list(self.values.items()),
                self.missed,
                self._marks.tobytes(),
                self._priorities.tobytes(),
                self._sample.tobytes(),
            )
        )

    @classmethod
    def decode(cls, data: bytes) -> Sketch:
        given = _decoder.decode(data)
        sketch = cls()
        sketch.count, sketch.kinds, sketch.numbers = given.count, Counter(given.kinds), given.numbers
        # MessagePack of a number that is not finite comes back as it was; of none, as none.
        sketch.mean, sketch.spread = given.mean, given.spread
        sketch.least, sketch.most = given.least, given.most
        sketch.values, sketch.missed = dict(given.values), given.missed
        sketch._marks = np.frombuffer(given.marks, np.uint64)
        sketch._priorities = np.frombuffer(given.priorities, np.float64)
        sketch._sample = np.frombuffer(given.sample, np.float64)
        return sketch


def _fewest(hashes: Any) -> Any:
    """The least of them, each once, ascending."""
    return np.unique(hashes)[:MOST_MARKS]


def _hashes(family: str, unique: Any) -> Any:
    """A number of 64 bits for each value, the same in every process."""
    if family in (NUMBER, TIME):
        # As doubles, so that 3 and 3.0 are one value; adding zero makes -0.0 the other zero.
        return _mixed((np.asarray(unique).astype(np.float64) + 0.0).view(np.uint64))
    values = np.array([str(value) for value in unique.to_pylist()], dtype=object)
    return pd.util.hash_array(values, categorize=False)


def _mixed(bits: Any) -> Any:
    """The finalizer of SplitMix64: bits that are alike become numbers that are not."""
    mixed = bits + _GOLDEN
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _MIXING[0]
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _MIXING[1]
    return mixed ^ (mixed >> np.uint64(31))
