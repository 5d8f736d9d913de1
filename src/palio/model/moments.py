"""Moments and spans of time as they are written: here all text becomes a time, by one rule.

1. A date is its beginning in UTC: `2026-01-01`.
2. A time needs a zone: `2026-01-01T09:30:00Z`, `2026-01-01 09:30+02:00`.
3. A span is so long ago: `90s`, `1h30m`, `7d`; `now` is no span ago. This is for options; in data it would
   mean something else whenever it is read.
4. Seconds since 1970 are written with an @: `@1767225600`.
5. Nothing else is a time. `20260101` could be a date, seconds since 1970, or seconds ago: an option is refused
   (`parse_moment` raises), and in data it has no time (`read_moment` gives None), which whoever reads counts.

A *value* that is a time (`{"$time": …}`, a literal of a filter, CloudEvents' `time`) is written as RFC 3339
says, in full: that is `parse_time`, and what it reads means the same by the rule. Nothing here asks a clock.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Literal

from palio.model.errors import WrongTime

_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:\.(\d+))?(?:([Zz])|([+-])(\d\d):(\d\d))", re.ASCII)
# The same with what people leave out; the groups are the same.
_WRITTEN = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d(?::\d\d)?)(?:(?<=:\d\d:\d\d)\.(\d+))? ?(?:([Zz])|([+-])(\d\d):?(\d\d))",
    re.ASCII,
)
_WITHOUT_ZONE = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_SECONDS = re.compile(r"@(-?\d{0,12}\.?\d+)", re.ASCII)
_DIGITS_OF_A_DATE = re.compile(r"(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])", re.ASCII)
_NUMBER = re.compile(r"\d*\.?\d+", re.ASCII)

_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_SPAN = re.compile(r"(\d*\.?\d+)(ms|s|m|h|d|w)", re.ASCII)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOMENTS = (
    "a date (2026-03-28), a time with its zone (2026-03-28T10:00:00Z), how long ago (90s, 7d), or seconds "
    "since 1970 (@1767225600)"
)


def parse_moment(text: str, *, now: float) -> float:
    """Seconds since 1970 of an option; `now` is what a span is counted back from. Raises `WrongTime`."""
    if text == "now":
        return now
    if (found := read_moment(text)) is not None:
        return float(text[1:]) if text.startswith("@") else found.timestamp()
    if (ago := _span(text)) is not None:
        return now - ago
    raise WrongTime(text, *_refused(text))


def parse_since(text: str, *, now: float) -> float | Literal["all"]:
    """`all`, or what `parse_moment` reads. Raises `WrongTime`."""
    return "all" if text == "all" else parse_moment(text, now=now)


def read_moment(text: str) -> datetime | None:
    """The moment (UTC) that a text in data names by itself; None if it names none."""
    try:
        if (parts := _WRITTEN.fullmatch(text)) is not None:
            return _moment(parts)
        if _DATE.fullmatch(text):
            return datetime.fromisoformat(text).replace(tzinfo=UTC)
        if (seconds := _SECONDS.fullmatch(text)) is not None:
            return _EPOCH + timedelta(microseconds=int(Decimal(seconds[1]) * 1_000_000))
    except (ValueError, OverflowError):  # a day or an hour that there is not
        pass
    return None


def written_moment(seconds: float) -> str:
    """The text that `parse_moment` reads back as exactly these seconds since 1970."""
    return f"@{Decimal(repr(seconds)):f}"


def parse_time(text: str) -> datetime:
    """A moment written as RFC 3339 (ISO 8601 with seconds and a zone); digits past microseconds are cut.

    Raises ValueError with a finished sentence.
    """
    parts = _TIME.fullmatch(text)
    if parts is None:
        raise ValueError(f"{text[:40]!r} is not a time such as 2026-07-02T10:45:00Z; the zone is needed.")
    return _moment(parts)


def format_time(moment: datetime) -> str:
    """The text that `parse_time` reads back to the same moment."""
    return moment.isoformat().replace("+00:00", "Z")


def parse_span(text: str) -> float:
    """Seconds: `90s`, `1h30m`, `7d`, or a bare number of seconds. Raises `WrongTime`."""
    seconds = _span(f"{text}s" if _NUMBER.fullmatch(text) else text)
    if seconds is None:
        raise WrongTime(text, "it is no span", "one such as 90s, 15m, 1h30m or 7d")
    return seconds


def _moment(parts: re.Match[str]) -> datetime:
    day, clock, fraction, _, sign, hours, minutes = parts.groups()
    offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    if int(hours or 0) > 23 or int(minutes or 0) > 59:
        raise ValueError(f"{parts[0]!r} has a zone offset that does not exist.")
    micros = timedelta(microseconds=int((fraction or "")[:6].ljust(6, "0")))
    zone = timezone(-offset if sign == "-" else offset)
    try:
        return (datetime.fromisoformat(f"{day}T{clock}").replace(tzinfo=zone) + micros).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(f"{parts[0]!r} is not a time that exists.") from None


def _span(text: str) -> float | None:
    """Seconds of a span that names its units."""
    parts = _SPAN.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    seconds = float(sum(float(number) * _UNITS[unit] for number, unit in parts))
    return seconds if math.isfinite(seconds) else None


def _refused(text: str) -> tuple[str, str]:
    """Why a text is no moment, and what is to be written."""
    if _WITHOUT_ZONE.fullmatch(text):
        return "a time needs a zone", f"{text}Z for UTC, or another zone such as {text}+02:00"
    if _NUMBER.fullmatch(text):
        date = f"{text[:4]}-{text[4:6]}-{text[6:]} for a day, " if _DIGITS_OF_A_DATE.fullmatch(text) else ""
        return "a bare number is no time", f"{date}@{text} for seconds since 1970, or {text}s for so long ago"
    return "it is no time", _MOMENTS
