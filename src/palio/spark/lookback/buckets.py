"""`Every`: equal parts of time, in UTC: seconds to weeks by the clock, months and years by the calendar.

Parts begin where people expect them to: an hour at its full hour, a week on Monday, a quarter in January,
April, July and October.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any, Self

import msgspec
import pyarrow.compute as pc

from palio.spark.errors import WrongOption

# Units as they are typed, and as they are read out and Arrow calls them.
_UNITS = {"s": "second", "m": "minute", "h": "hour", "d": "day", "w": "week", "mo": "month", "y": "year"}
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800, "mo": 2_629_800, "y": 31_557_600}
_TEXT = re.compile(r"([1-9]\d{0,5})(s|m|h|d|w|mo|y)")
# What is chosen from, if nobody says how long a part shall be.
_USUAL = (
    *("1s", "5s", "15s", "30s", "1m", "5m", "15m", "30m", "1h", "3h", "6h", "12h"),
    *("1d", "1w", "1mo", "3mo", "1y", "5y", "10y", "50y", "100y"),
)


class Every(msgspec.Struct, frozen=True):
    """A length of time: so many of a unit."""

    count: int
    unit: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """`30s`, `15m`, `1h`, `1d`, `1w`, `1mo`, `1y`. Raises `WrongOption`."""
        found = _TEXT.fullmatch(text)
        if found is None:
            raise WrongOption("every", f"{text!r} is none of 30s, 15m, 1h, 1d, 1w, 1mo, 3mo, 1y.")
        return cls(int(found[1]), found[2])

    @classmethod
    def fitting(cls, begin: datetime, end: datetime, most: int) -> Self:
        """The shortest usual length of which a time has at most so many parts."""
        several = [cls.parse(text) for text in _USUAL]
        return next((one for one in several if one.parts(begin, end) <= most), several[-1])

    def parts(self, begin: datetime, end: datetime) -> int:
        """Of how many parts a time has something, about."""
        return int((end - begin).total_seconds() / (self.count * _SECONDS[self.unit])) + 1

    def floor(self, times: Any) -> Any:
        """Where the parts begin that times are in: an Arrow array of times in UTC."""
        return pc.floor_temporal(times, self.count, _UNITS[self.unit])

    def after(self, begin: datetime) -> datetime:
        """Where the part after one begins."""
        if self.unit in ("mo", "y"):
            months = begin.year * 12 + begin.month - 1 + self.count * (12 if self.unit == "y" else 1)
            return datetime(months // 12, months % 12 + 1, 1, tzinfo=UTC)
        return begin + timedelta(seconds=self.count * _SECONDS[self.unit])

    def __str__(self) -> str:
        noun = _UNITS[self.unit]
        return noun if self.count == 1 else f"{self.count} {noun}s"
