"""What a backtest on Spark came to, as the driver knows it: counts in parts of time without holes, samples."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
from pyspark.sql import DataFrame

from palio.model import jsontext
from palio.model.moments import format_time
from palio.model.notification import Notification
from palio.spark.errors import WrongOption
from palio.spark.lookback.backtesting import MAX_PARTS, SIDES
from palio.spark.lookback.buckets import Every

_EPOCH = datetime.fromtimestamp(0, UTC)


class TimePart(msgspec.Struct, frozen=True):
    """A part of time: when it begins, all events, and how many are of each side."""

    begin: datetime
    events: int = 0
    only_first: int = 0
    only_second: int = 0
    both: int = 0

    def side(self, name: str) -> int:
        """How many are of a side."""
        count: int = getattr(self, name)
        return count


class Sample(msgspec.Struct, frozen=True):
    """An event, and of which side it is."""

    side: str
    time: datetime | None
    origin: str
    event: Notification

    def document(self) -> dict[str, Any]:
        """As plain data."""
        time, event = None if self.time is None else format_time(self.time), self.event.to_json()
        return {"side": self.side, "time": time, "origin": self.origin, "event": jsontext.read(event)}


class LookedBack(msgspec.Struct, frozen=True):
    """All of it. `untimed` are events of which nobody knows when they were."""

    first: str
    second: str | None
    every: Every
    parts: tuple[TimePart, ...]
    untimed: TimePart | None
    samples: tuple[Sample, ...]
    unreadable: int = 0  # lines that are no events, and left out

    @property
    def sides(self) -> tuple[str, ...]:
        """Those that there can be."""
        return SIDES if self.second is not None else SIDES[:1]

    def total(self, side: str) -> int:
        """How many are of a side, or `events`, with those of which nobody knows when."""
        return sum(part.side(side) for part in (*self.parts, self.untimed) if part is not None)

    @property
    def found(self) -> int:
        """How many are of any side."""
        return sum(self.total(side) for side in self.sides)

    @property
    def end(self) -> datetime | None:
        """When the last part ends."""
        return self.every.after(self.parts[-1].begin) if self.parts else None

    def document(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "filter": self.first,
            "against": self.second,
            "every": f"{self.every.count}{self.every.unit}",
            "events": self.total("events"),
            **{side: self.total(side) for side in self.sides},
            "untimed": 0 if self.untimed is None else self.untimed.events,
            "when": [
                {"from": format_time(part.begin)} | {name: part.side(name) for name in ("events", *self.sides)}
                for part in self.parts
            ],
            "samples": [one.document() for one in self.samples],
        }


def gather(found: DataFrame, filters: tuple[str, str | None], every: Every, samples: int) -> LookedBack:
    """What `palio.spark.backtest` found: as large as the picture. Raises `WrongOption` if that is too large."""
    counts = found.selectExpr("unix_micros(begin) AS begin", "events", *SIDES)
    rows = counts.limit(MAX_PARTS + 1).collect()
    if len(rows) > MAX_PARTS:
        raise WrongOption("every", f"There are more than {MAX_PARTS:,} parts of time; make them longer.")
    known = {_moment(row["begin"]): row for row in rows}
    untimed = known.pop(None, None)
    parts = [_part(begin, row) for begin, row in known.items() if begin is not None]
    return LookedBack(
        *filters,
        every,
        tuple(without_holes(sorted(parts, key=lambda part: part.begin), every)),
        None if untimed is None else _part(_EPOCH, untimed),
        tuple(_samples(found, samples)) if samples else (),
    )


def _part(begin: datetime, row: Any) -> TimePart:
    return TimePart(begin, row["events"], *[row[side] for side in SIDES])


def without_holes(parts: list[TimePart], every: Every) -> list[TimePart]:
    """All parts from the first to the last, also empty ones; as long as there are not too many."""
    if not parts or every.parts(parts[0].begin, parts[-1].begin) > MAX_PARTS:
        return parts
    known = {part.begin: part for part in parts}
    whole, begin = [], parts[0].begin
    while begin <= parts[-1].begin:
        whole.append(known.get(begin, TimePart(begin)))
        begin = every.after(begin)
    return whole


def _samples(found: DataFrame, count: int) -> list[Sample]:
    """The newest few of each side."""
    several = found.selectExpr("inline(samples)")
    samples: list[Sample] = []
    order = ("time", "journal", "sequence", "id", "payload")
    for side in SIDES:
        newest = several.where(f"which = '{side}'").orderBy(*order, ascending=False).limit(count)
        for row in newest.selectExpr("unix_micros(time) AS time", *order[1:]).collect():
            position = f"{row['journal']}/{row['sequence']}" if row["journal"] is not None else row["id"] or "-"
            said = Notification.decode(bytes(row["payload"]))
            samples.append(Sample(side, _moment(row["time"]), position, said))
    return samples


def _moment(micros: int | None) -> datetime | None:
    return None if micros is None else datetime.fromtimestamp(micros / 1e6, UTC)
