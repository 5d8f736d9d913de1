"""Times and spans of time as people type them."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime

from palio.model.errors import PalioError
from palio.model.values import parse_time

_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_SPAN = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")


# Journals may be long, and who looks through one does not hurry.
LOOK_BACK_WITHIN = 600.0


class WrongTime(PalioError):
    """A text that names no time, or no span of time."""

    text: str

    def __init__(self, text: str, what: str) -> None:
        super().__init__(f"{text!r} cannot be read; write {what}.", text=text)


def parse_span(text: str) -> float:
    """Seconds: `90s`, `1h30m`, `7d`, or a bare number of seconds. Raises `WrongTime`."""
    parts = _SPAN.findall(text)
    if parts and "".join(number + unit for number, unit in parts) == text:
        return float(sum(float(number) * _UNITS[unit] for number, unit in parts))
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise WrongTime(text, "a span such as 90s, 15m, 1h30m or 7d")
    return seconds


def parse_moment(text: str) -> float:
    """Seconds since 1970: a span means so long ago, a date its beginning (UTC), a time needs a zone.

    Raises `WrongTime`.
    """
    if text == "now":
        return time.time()
    try:
        if _DATE.fullmatch(text):
            return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
        if ":" in text:
            return parse_time(text).timestamp()
        return time.time() - parse_span(text)
    except (ValueError, PalioError):
        what = "how long ago (1h, 7d), a date, or a time with its zone (2026-03-28T10:00:00Z)"
        raise WrongTime(text, what) from None


def parse_since(text: str) -> float | str:
    """`all`, or what `parse_moment` reads."""
    return text if text == "all" else parse_moment(text)
