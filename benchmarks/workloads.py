"""The three workloads of the matching benchmark: stock, ranges and equality.

Every attribute is a grid of integer levels, a string's level being its Zipf rank; filters and events are drawn
in chunks with a seed each, so that the first n are the same however many are asked for. The numbers drawn are
those of the neutral generator that other matchers are measured with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from palio.model.conjunction import Conjunction
from palio.model.constraint import Constraint
from palio.model.filter import Filter
from palio.model.valueset import ValueSet

CHUNK = 10_000
SEED = 20240601


@dataclass(frozen=True)
class Attribute:
    """A string with Zipf-distributed values, or a number on a grid, uniform."""

    name: str
    cardinality: int = 0
    prefix: str = "v"
    low: float = 0.0
    high: float = 1.0
    decimals: int = 6

    @property
    def is_string(self) -> bool:
        return self.cardinality > 0

    @property
    def levels(self) -> int:
        return self.cardinality or round((self.high - self.low) * 10**self.decimals) + 1

    def decode(self, level: int) -> str | int | float:
        if self.is_string:
            return f"{self.prefix}{level:0{len(str(self.cardinality - 1))}d}"
        value = self.low + level / 10**self.decimals
        return round(value) if self.decimals == 0 else round(value, self.decimals)

    def sample(self, random: np.random.Generator, size: int) -> Any:
        if not self.is_string:
            return random.integers(0, self.levels, size=size, dtype=np.int32)
        weights = np.arange(1, self.cardinality + 1, dtype=float) ** -1.0
        shares = np.cumsum(weights / weights.sum())
        ranks = np.searchsorted(shares, random.random(size), side="right")
        return np.minimum(ranks, self.cardinality - 1).astype(np.int32)


@dataclass(frozen=True)
class Workload:
    """Attributes, and how filters use them: `fixed` ones always, and between `least` and `most` others."""

    name: str
    attributes: tuple[Attribute, ...]
    fixed: tuple[int, ...]
    least: int
    most: int
    width: tuple[float, float]

    @property
    def pool(self) -> list[int]:
        if self.fixed:
            return [i for i, attribute in enumerate(self.attributes) if not attribute.is_string]
        return list(range(len(self.attributes)))


_STOCK_NUMBERS = (
    ("price", 0, 1000, 2),
    ("change", -50, 50, 3),
    ("volume", 0, 1_000_000, 0),
    ("open", 0, 1000, 2),
    ("high", 0, 1000, 2),
    ("low", 0, 1000, 2),
    ("pe", 0, 200, 3),
    ("yield", 0, 20, 4),
)
WORKLOADS = {
    "stock": Workload(
        "stock",
        (
            Attribute("symbol", cardinality=500, prefix="S"),
            Attribute("exchange", cardinality=5, prefix="X"),
            *(
                Attribute(name, low=low, high=high, decimals=digits)
                for name, low, high, digits in _STOCK_NUMBERS
            ),
        ),
        (0,),
        1,
        3,
        (0.1, 0.5),
    ),
    "ranges": Workload("ranges", tuple(Attribute(f"a{i:02d}") for i in range(20)), (), 5, 5, (0.3, 0.6)),
    "equality": Workload(
        "equality", tuple(Attribute(f"s{i:02d}", cardinality=100) for i in range(30)), (), 3, 5, (0.3, 0.6)
    ),
}


@dataclass
class Subscriptions:
    """Constraint j of subscription i is at starts[i] + j; its levels are low to high, both included."""

    starts: Any
    attributes: Any
    low: Any
    high: Any

    def __len__(self) -> int:
        return len(self.starts) - 1


def subscriptions(workload: Workload, count: int) -> Subscriptions:
    parts = [_chunk(workload, chunk) for chunk in range(-(-count // CHUNK))]
    counts, attributes, low, high = (np.concatenate(column) for column in zip(*parts, strict=True))
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)[: count + 1]
    end = starts[-1]
    return Subscriptions(starts, attributes[:end], low[:end], high[:end])


def _chunk(workload: Workload, chunk: int) -> tuple[Any, Any, Any, Any]:
    random = np.random.default_rng([SEED, 0, chunk])
    pool = np.array(workload.pool, dtype=np.int32)
    order = np.argsort(random.random((CHUNK, len(pool))), axis=1)[:, : workload.most]
    picked = np.sort(pool[order], axis=1) if workload.least == workload.most else pool[order]
    fixed = np.tile(np.array(workload.fixed, dtype=np.int32), (CHUNK, 1))
    attributes = np.concatenate([fixed, picked], axis=1).astype(np.int32)
    counts = random.integers(workload.least, workload.most + 1, size=CHUNK) + len(workload.fixed)
    low, high = np.zeros_like(attributes), np.zeros_like(attributes)
    for index, attribute in enumerate(workload.attributes):
        where = np.nonzero(attributes == index)
        size = len(where[0])
        if attribute.is_string:
            low[where] = high[where] = attribute.sample(random, size)
        else:
            span = attribute.levels - 1
            width = random.uniform(*workload.width, size) * span
            start = random.random(size) * (span - width)
            low[where] = start.astype(np.int32)
            high[where] = np.minimum((start + width).astype(np.int32), span)
    keep = np.arange(attributes.shape[1])[None, :] < counts[:, None]
    return counts, attributes[keep], low[keep], high[keep]


def events(workload: Workload, count: int) -> Any:
    """Levels, a row for each event and a column for each attribute."""
    found = []
    for chunk in range(-(-count // CHUNK)):
        random = np.random.default_rng([SEED, 1, chunk])
        found.append(np.stack([one.sample(random, CHUNK) for one in workload.attributes], axis=1))
    return np.ascontiguousarray(np.concatenate(found)[:count])


def filter_text(workload: Workload, drawn: Subscriptions, index: int) -> str:
    """A subscription as people write it."""
    conditions = []
    for at in range(drawn.starts[index], drawn.starts[index + 1]):
        attribute = workload.attributes[drawn.attributes[at]]
        low, high = attribute.decode(int(drawn.low[at])), attribute.decode(int(drawn.high[at]))
        if attribute.is_string:
            conditions.append(f'{attribute.name} = "{low}"')
        else:
            conditions.append(f"{attribute.name} between {low} and {high}")
    return " and ".join(conditions)


class FilterMaker:
    """Filters straight from values, past the parser, which would take minutes for a million."""

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self._equalities: dict[tuple[int, int], ValueSet] = {}

    def make(self, drawn: Subscriptions, index: int) -> Filter:
        sides = {}
        for at in range(drawn.starts[index], drawn.starts[index + 1]):
            number = int(drawn.attributes[at])
            sides[self._workload.attributes[number].name] = self._side(
                number, int(drawn.low[at]), int(drawn.high[at])
            )
        return Filter((Conjunction({name: sides[name] for name in sorted(sides)}),))

    def _side(self, number: int, low: int, high: int) -> ValueSet:
        attribute = self._workload.attributes[number]
        if not attribute.is_string:
            return Constraint("between", (attribute.decode(low), attribute.decode(high))).values()
        key = (number, low)
        if key not in self._equalities:
            self._equalities[key] = Constraint("=", attribute.decode(low)).values()
        return self._equalities[key]


def table(workload: Workload, levels: Any) -> Any:
    """Events as an Arrow table, a column for each attribute."""
    import pyarrow  # noqa: PLC0415  (optional, and slow to import)

    found = {}
    for index, attribute in enumerate(workload.attributes):
        distinct, places = np.unique(levels[:, index], return_inverse=True)
        values = pyarrow.array([attribute.decode(level) for level in distinct.tolist()])
        found[attribute.name] = values.take(pyarrow.array(places))
    return pyarrow.table(found)
