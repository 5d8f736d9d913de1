"""What comes out of a job that looks for patterns: a row a match, and rows that count what was dropped."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from palio.matching.patterns import Match
from palio.matching.patterns.detector import DetectorCounts
from palio.spark.arrow import arrow_schema

_MATCH_DDL = "pattern string, id string, time timestamp"
_EVENT_DDL = "step string, id string, time timestamp, position bigint"
_TOLD_DDL = "payload binary, timed_out boolean"
FOUND = pa.schema(
    [
        *arrow_schema(_MATCH_DDL),
        ("events", pa.list_(pa.struct(arrow_schema(_EVENT_DDL)))),
        *arrow_schema(_TOLD_DDL),
        ("dropped", pa.map_(pa.string(), pa.int64())),
    ]
)
FOUND_DDL = f"{_MATCH_DDL}, events array<struct<{_EVENT_DDL}>>, {_TOLD_DDL}, dropped map<string, bigint>"
DROPS = ("late", "disordered", "unkeyed", "overflow", "abandoned")


def dropped(counts: DetectorCounts, before: DetectorCounts | None = None) -> dict[str, int]:
    """What was dropped, by the reason; only what is more than before."""
    found = {reason: getattr(counts, reason) - (getattr(before, reason) if before else 0) for reason in DROPS}
    return {reason: count for reason, count in found.items() if count}


def found_rows(matches: Iterable[Match], drops: dict[str, int]) -> list[dict[str, Any]]:
    """Rows of `FOUND`; the notification about a match is in its payload, encoded."""
    rows: list[dict[str, Any]] = [
        {
            "pattern": match.pattern,
            "id": match.id,
            "time": match.moment,
            "events": [
                {"step": one.step, "id": one.id, "time": one.moment, "position": one.position}
                for one in match.constituents
            ],
            "payload": match.notification().encode(),
            "timed_out": match.timed_out,
            "dropped": None,
        }
        for match in matches
    ]
    if drops:
        rows.append(dict.fromkeys(FOUND.names) | {"dropped": drops})
    return rows


def found_batch(matches: Iterable[Match], drops: dict[str, int]) -> pa.RecordBatch:
    rows = found_rows(matches, drops)
    for row in rows:
        row["dropped"] = row["dropped"] and list(row["dropped"].items())
    return pa.RecordBatch.from_pylist(rows, FOUND)
