"""Patterns in events that are all there: hits sorted by pattern and key, looked at key by key.

Rows come sorted, so that a key's hits follow each other. Most keys cannot have a match, since some step has
no event at all; these are found by columns, and only the others become Python objects. What is left of them
goes to the same `Partition` that a stream has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from palio.matching.patterns import Match, PatternSet
from palio.matching.patterns.detector import match_of
from palio.matching.patterns.hit import Hit
from palio.matching.patterns.partition import Losses, Partition
from palio.spark.patterns.found import found_batch
from palio.spark.patterns.hits import NO_PATTERN

_values_decoder = msgspec.msgpack.Decoder(dict[str, Any])


class BatchFinder:
    """Takes batches of hits, sorted by pattern and key, and gives batches of matches."""

    def __init__(self, patterns: PatternSet, watermark: int) -> None:
        self._patterns = patterns
        self._watermark = watermark
        self._losses = Losses()
        self._drops: Counter[str] = Counter()
        self._completing: dict[tuple[int, int], bool] = {}

    def find(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rest: pa.Table | None = None
        for batch in batches:
            table = self._hits(pa.Table.from_batches([batch]))
            if rest is not None:
                table = pa.concat_tables([rest, table]).combine_chunks()
            starts = _groups(table)
            last = int(starts[-1]) if len(starts) else 0
            found = self._matches(table.slice(0, last), starts[:-1])
            if found:
                yield found_batch(found, {})
            rest = table.slice(last)
        found = [] if rest is None else self._matches(rest, _groups(rest))
        self._drops.update(msgspec.structs.asdict(self._losses))
        yield found_batch(found, dict(+self._drops))

    def _hits(self, table: pa.Table) -> pa.Table:
        """Without the rows that only count what was dropped."""
        counting = pc.equal(table.column("pattern"), NO_PATTERN)
        if not pc.any(counting).as_py():
            return table
        for row in table.filter(counting).to_pylist():
            self._drops[row["key"].decode()] += row["steps"]
        return table.filter(pc.invert(counting))

    def _matches(self, table: pa.Table, starts: Any) -> list[Match]:
        if not len(starts):
            return []
        numbers = np.asarray(table.column("pattern"))[starts]
        steps = np.bitwise_or.reduceat(np.asarray(table.column("steps")), starts)
        ends = np.append(starts[1:], table.num_rows)
        possible = np.array(
            [self._can_complete(*pair) for pair in zip(numbers.tolist(), steps.tolist(), strict=True)], bool
        )
        chosen = np.flatnonzero(possible)
        if not len(chosen):
            return []
        found: list[Match] = []
        starts, ends, numbers = starts[chosen], ends[chosen], numbers[chosen]
        sizes = ends - starts
        rows = np.repeat(starts - np.concatenate(([0], np.cumsum(sizes)[:-1])), sizes) + np.arange(sizes.sum())
        taken = table.take(pa.array(rows))
        hits = hits_of(taken)
        keys = taken.column("key")
        at = 0
        for number, size in zip(numbers.tolist(), sizes.tolist(), strict=True):
            automaton = self._patterns.automata[number]
            partition = Partition([], hits[at : at + size])
            for finding in partition.look(automaton, self._watermark, self._losses):
                found.append(match_of(automaton, keys[at].as_py(), finding))
            at += size
        return found

    def _can_complete(self, number: int, steps: int) -> bool:
        if (number, steps) not in self._completing:
            self._completing[number, steps] = self._patterns.automata[number].can_complete(steps)
        return self._completing[number, steps]


def hits_of(table: pa.Table) -> list[Hit]:
    """Rows as hits."""
    columns = (table.column(name).to_pylist() for name in ("time", "position", "steps", "id", "values"))
    found = [
        Hit(time, position, steps, id, None if raw is None else _values_decoder.decode(raw))
        for time, position, steps, id, raw in zip(*columns, strict=True)
    ]
    for hit in found:
        hit.restore()
    return found


def _groups(table: pa.Table) -> Any:
    """Where another pattern or key begins."""
    count = table.num_rows
    if not count:
        return np.array([], np.int64)
    first = np.ones(count, bool)
    numbers = np.asarray(table.column("pattern"))
    keys = table.column("key").combine_chunks()
    keys = keys.chunk(0) if isinstance(keys, pa.ChunkedArray) else keys
    first[1:] = (numbers[1:] != numbers[:-1]) | np.asarray(pc.not_equal(keys[1:], keys[:-1]))
    return np.flatnonzero(first)
