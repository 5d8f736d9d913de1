"""From a table of events to the hits of patterns: one `MatchIndex` over all their steps, on Arrow batches.

Only events that some step selects go on, each with what its pattern has to remember: time, position, the bits
of its steps, its id, its key, and the attributes that are compared. Everything is worked out by columns;
values become Python objects only for hits, and only where a comparison or an unusual key needs them.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from palio.matching import columns
from palio.matching.patterns import PatternSet
from palio.matching.patterns.match import PATTERN_NAME
from palio.matching.patterns.patternset import partition_key
from palio.model.patterns.pattern import Pattern
from palio.spark.arrow import arrow_schema
from palio.spark.runtime.workers import keep

TIME, POSITION, ID = "__time", "__position", "__id"
BESIDE = (TIME, POSITION, ID)

HITS_DDL = "pattern int, key binary, time bigint, position bigint, steps bigint, id string, values binary"
HITS = arrow_schema(HITS_DDL)

NO_PATTERN = -1

_encoder = msgspec.msgpack.Encoder()
_SHORT_TEXT = 255  # bytes: a longer key is made the slow way
# What stands before a text of so many bytes in a list of one, in MessagePack.
_HEADERS = pa.array(
    [bytes((0x91, 0xA0 | n)) if n < 32 else bytes((0x91, 0xD9, n)) for n in range(_SHORT_TEXT + 1)], pa.binary()
)


def packed_texts(patterns: Mapping[str, Pattern | str]) -> bytes:
    """Names and texts, as they travel to workers: patterns are much alike, so little is left of them."""
    return zlib.compress(msgspec.msgpack.encode({name: str(given) for name, given in patterns.items()}))


@lru_cache(maxsize=4)
def ready(texts: bytes) -> PatternSet:
    """The patterns of a job, made ready once in each worker."""
    patterns = PatternSet(msgspec.msgpack.decode(zlib.decompress(texts), type=dict[str, str]))
    patterns.index  # noqa: B018 - made now, as it belongs to what stays
    keep()
    return patterns


class HitFinder:
    """Finds the hits of a set of patterns in batches of events, and counts by reason what it drops."""

    def __init__(self, patterns: PatternSet) -> None:
        self.patterns = patterns
        self.drops: Counter[str] = Counter()
        self._pattern_of = np.array([pattern for pattern, _ in patterns.steps], np.int64)
        self._bit_of = np.array([bit for _, bit in patterns.steps], np.int64)
        self._remembering = np.array([bool(one.remembered) for one in patterns])
        self._numbers = {one.name: number for number, one in enumerate(patterns)}

    def timed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The events that have a time and a position."""
        kept = batch.filter(pc.and_(batch.column(TIME).is_valid(), batch.column(POSITION).is_valid()))
        self.drop("untimed", batch.num_rows - kept.num_rows)
        return kept

    def drop(self, reason: str, count: int) -> None:
        if count:
            self.drops[reason] += count

    def hits(self, batch: pa.RecordBatch) -> pa.Table:
        """Of timed events, with the columns of `BESIDE` and attributes or a `payload` beside them."""
        table = pa.Table.from_batches([batch])
        events = table.drop_columns(list(BESIDE))
        rows, ids = self.patterns.index.match_batch(events)
        if not len(rows):
            return HITS.empty_table()
        places = np.asarray(ids)
        row_numbers, numbers = np.asarray(rows), self._pattern_of[places]
        # All steps of a pattern that an event satisfies are one hit.
        order = np.lexsort((numbers, row_numbers))
        row_numbers, numbers, bits = row_numbers[order], numbers[order], self._bit_of[places[order]]
        first = np.ones(len(order), bool)
        first[1:] = (row_numbers[1:] != row_numbers[:-1]) | (numbers[1:] != numbers[:-1])
        starts = np.flatnonzero(first)
        steps = np.bitwise_or.reduceat(bits, starts)
        row_numbers, numbers = row_numbers[starts], numbers[starts]
        content = _Content(events)
        own = self._own(content, row_numbers, numbers)
        if own is not None:
            row_numbers, numbers, steps = row_numbers[~own], numbers[~own], steps[~own]
        keys = self._keys(content, row_numbers, numbers)
        values = self._values(content, row_numbers, numbers)
        taken = pa.array(row_numbers)
        positions = table.column(POSITION).take(taken)
        ids = table.column(ID).take(taken)
        if ids.null_count:
            ids = pc.coalesce(ids, positions.cast(pa.string()))
        patterns, times = pa.array(numbers.astype(np.int32)), table.column(TIME).take(taken)
        found = pa.table([patterns, keys, times, positions, pa.array(steps), ids, values], schema=HITS)
        if not keys.null_count:
            return found
        self.drop("unkeyed", keys.null_count)
        return found.filter(keys.is_valid())

    def drop_rows(self) -> pa.RecordBatch:
        """What was dropped, as rows among the hits: without a pattern, the reason as key, counted as steps."""
        rows = [
            {"pattern": NO_PATTERN, "key": reason.encode(), "time": 0, "position": 0, "steps": count}
            for reason, count in self.drops.items()
        ]
        return pa.RecordBatch.from_pylist(rows, HITS)

    def _own(self, content: _Content, rows: Any, numbers: Any) -> Any:
        """Which hits are a pattern's own results; None if nothing is a result at all."""
        said = content.texts(PATTERN_NAME, rows)
        if said is None:
            return None
        return np.array([self._numbers.get(name) == number for name, number in zip(said, numbers, strict=True)])

    def _keys(self, content: _Content, rows: Any, numbers: Any) -> Any:
        """Each hit's key, null where it has none; worked out for all hits of the same attributes together."""
        by = [one.by for one in self.patterns.automata]
        kinds = {attributes: number for number, attributes in enumerate(dict.fromkeys(by))}
        if len(kinds) == 1:
            return content.keys(by[0], rows)
        kind_of = np.array([kinds[attributes] for attributes in by])[numbers]
        parts, places = [], []
        for attributes, number in kinds.items():
            chosen = np.flatnonzero(kind_of == number)
            if len(chosen):
                parts.append(content.keys(attributes, rows[chosen]))
                places.append(chosen)
        back = np.argsort(np.concatenate(places), kind="stable")
        return pa.concat_arrays(parts).take(pa.array(back))

    def _values(self, content: _Content, rows: Any, numbers: Any) -> Any:
        """What comparisons need, encoded; null for patterns without any."""
        chosen = np.flatnonzero(self._remembering[numbers])
        if not len(chosen):
            return pa.nulls(len(rows), pa.binary())
        found: list[bytes | None] = [None] * len(rows)
        automata = self.patterns.automata
        for place, attributes in zip(chosen.tolist(), content.attributes(rows[chosen]), strict=True):
            names = automata[numbers[place]].remembered
            found[place] = _encoder.encode({name: attributes[name] for name in names if name in attributes})
        return pa.array(found, pa.binary())


class _Content:
    """The attributes of a batch of events, as columns or encoded, as far as somebody asks for them."""

    def __init__(self, events: pa.Table) -> None:
        self._encoded = columns.payloads(events)
        self._table: Any = columns.flat(events)[1] if self._encoded is None else None
        self._decoded: dict[int, Any] = {}

    def texts(self, name: str, rows: Any) -> list[Any] | None:
        """An attribute of these rows; None if none of them has it."""
        if self._encoded is None:
            column = self._column(name)
            if column is None or column.null_count == len(column):
                return None
            return column.take(pa.array(rows)).to_pylist()  # type: ignore[no-any-return]
        found = [one.get(name) for one in self.attributes(rows)]
        return found if any(one is not None for one in found) else None

    def keys(self, by: tuple[str, ...], rows: Any) -> Any:
        """The keys of these rows."""
        if not by:
            return pa.array([partition_key((), {})] * len(rows), pa.binary())
        if len(by) == 1 and self._encoded is None:
            column = self._column(by[0])
            if column is None:
                return pa.nulls(len(rows), pa.binary())
            if pa.types.is_string(column.type):
                quick = _text_keys(column.take(pa.array(rows)))
                if quick is not None:
                    return quick
        return pa.array([partition_key(by, one) for one in self.attributes(rows, by)], pa.binary())

    def attributes(self, rows: Any, names: tuple[str, ...] | None = None) -> Iterator[Any]:
        """The attributes of these rows, or some of them."""
        if self._encoded is not None:
            for row in rows.tolist():
                if row not in self._decoded:
                    self._decoded[row] = columns.decoded(row, self._encoded[row].as_py()).attributes
                yield self._decoded[row]
            return
        table = self._table
        if names is not None:
            table = table.select([name for name in names if name in table.column_names])
        for one in columns.notifications(table.take(pa.array(rows))):
            yield one.attributes

    def _column(self, name: str) -> Any:
        place = self._table.schema.get_field_index(name)
        return None if place < 0 else self._table.column(place)


def _text_keys(texts: Any) -> Any:
    """Keys of one text each; None if one is so long that its header is another one."""
    texts = texts.combine_chunks()
    sizes = pc.binary_length(texts)
    if (pc.max(sizes).as_py() or 0) > _SHORT_TEXT:
        return None
    nothing = pa.scalar(b"", pa.binary())
    return pc.binary_join_element_wise(_HEADERS.take(sizes), texts.cast(pa.binary()), nothing)
