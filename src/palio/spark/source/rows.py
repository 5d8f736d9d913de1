"""Events as rows: what is in a journal as Arrow batches, and typed columns of it.

An event has the columns of `EVENT`. `payload` is the truth, as `Notification.encode` gives it; `id`, `time` and
`publisher` say how it came, and `properties` has what else was said with it (priority, lifetime, content that
filters do not see), null where there is nothing of that. Typed columns are projections: see `columns`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from palio.matching import MatchIndex
from palio.matching.projection import attributes_of_bodies, project
from palio.model.filter import Filter
from palio.model.naming import event_name
from palio.spark.arrow import UTC_MICROSECONDS, arrow_schema, batch_of
from palio.store.checksums import WRONG_CHECKSUM, is_intact
from palio.store.reading import StoredRow
from palio.store.records import from_column

# What a table of events has if nobody says otherwise, and all that an event has.
GENERIC_SCHEMA = "journal string, sequence bigint, id string, time timestamp, publisher string, payload binary"
EVENT_SCHEMA = f"{GENERIC_SCHEMA}, properties binary"
EVENT = arrow_schema(EVENT_SCHEMA)
GENERIC = EVENT.names[:-1]

# Beside these, where a journal came back older and its numbers were given again: for an event whose number had
# been given, the incarnation of the journal with which it went on; else null. With it, a name is one event's.
BRANCH = "branch"

NO_NOTIFICATION = "These bytes are no encoded notification."

log = logging.getLogger("palio.spark")

# Rows that are no events: sequence, time, publisher, id, the bytes, and why.
Damage: TypeAlias = list[tuple[int, float, str | None, str | None, bytes, str]]


def times_of(seconds: Sequence[float]) -> Any:
    """Seconds since 1970 as an Arrow array of times."""
    micros = pc.round(pc.multiply(pa.array(seconds, pa.float64()), 1e6))
    return micros.cast(pa.int64()).cast(UTC_MICROSECONDS)


def events_of(journal: str, rows: Sequence[StoredRow], damage: Damage | None = None) -> pa.RecordBatch:
    """Rows of a store as events. What is damaged is left out and logged, and goes to `damage`."""
    sequences, times, publishers, ids, bodies, sums = zip(*rows, strict=True)
    payload, properties, unreadable = attributes_of_bodies(pa.array(bodies, pa.binary()))
    wrong = dict.fromkeys([*unreadable, *project(payload, []).wrong], NO_NOTIFICATION)
    if not all(intact := list(map(is_intact, sequences, bodies, sums))):
        wrong |= {row: WRONG_CHECKSUM for row, well in enumerate(intact) if not well}
    for row, reason in sorted(wrong.items()):
        log.error("The event %r is left out: %s", event_name(journal, sequences[row]), reason)
        if damage is not None:
            damage.append((*rows[row][:2], *map(_text, rows[row][2:4]), bodies[row], reason))
    journals = pa.repeat(journal, len(rows))
    batch = batch_of(
        EVENT, journals, sequences, _texts(ids), times_of(times), _texts(publishers), payload, properties
    )
    if not wrong:
        return batch
    return batch.take(pa.array(sorted({*range(len(rows))}.difference(wrong)), pa.int64()))


def _texts(values: Sequence[str | None]) -> Any:
    texts = pa.array(values, pa.string())
    if pc.any(pc.match_substring(texts, "\\")).as_py():
        return pa.array([_text(value) for value in values], pa.string())
    return texts


def _text(value: str | None) -> str | None:
    return None if value is None else from_column(value)


class RowSelection:
    """What a filter selects of events."""

    def __init__(self, filter: Filter | None) -> None:
        self._index: MatchIndex | None = None
        if filter is not None and str(filter) != "true":
            self._index = MatchIndex()
            self._index.add(0, filter)

    def select(self, events: pa.RecordBatch) -> pa.RecordBatch:
        """The events that are selected, in their order."""
        if self._index is None:
            return events
        rows, _ = self._index.match_batch(events.select(["payload"]))
        return events if len(rows) == events.num_rows else events.take(rows)
