"""Times that a job is given, and times that its data say: what they mean, `palio.model.moments` says.

A text is read on the driver, once, so that a span means the same time at every executor.
"""

from __future__ import annotations

import math
import time
from datetime import datetime
from typing import Any, TypeAlias

import pyarrow as pa

from palio.model.errors import WrongTime
from palio.model.moments import parse_moment, read_moment
from palio.spark.arrow import UTC_MICROSECONDS
from palio.spark.errors import WrongOption

# A time that is given: seconds since 1970, a datetime with a zone, or a text.
Moment: TypeAlias = "str | float | datetime | None"
# Texts whose times are remembered; then they are forgotten.
_MOST_KNOWN = 20_000


def moment(option: str, given: Moment, default: float) -> float:
    """Seconds since 1970 of a time that is given as an option. Raises `WrongOption`."""
    if given is None or given == "":
        return default
    if isinstance(given, str):
        try:
            return parse_moment(given, now=time.time())
        except WrongTime as problem:
            raise WrongOption(option, str(problem)) from None
    if isinstance(given, datetime):
        if given.tzinfo is None:
            raise WrongOption(option, "A time needs a zone, such as 2026-11-16T09:30:00Z.")
        return given.timestamp()
    return float(given)


def moment_or_none(option: str, given: Moment) -> float | None:
    """The same, and None if there is none. Raises `WrongOption`."""
    found = moment(option, given, math.nan)
    return None if math.isnan(found) else found


class TimeTexts:
    """Reads texts of data as times; what is none has none. A text that comes again is not read again."""

    def __init__(self) -> None:
        self._known: dict[str, datetime | None] = {}

    def read(self, texts: Any) -> Any:
        """The times (UTC, microseconds) of an Arrow array of texts, null where one is no time."""
        encoded = texts.dictionary_encode()
        values = pa.array([self._moment(text) for text in encoded.dictionary.to_pylist()], UTC_MICROSECONDS)
        return values.take(encoded.indices)

    def _moment(self, text: str) -> datetime | None:
        if text not in self._known:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[text] = read_moment(text)
        return self._known[text]
