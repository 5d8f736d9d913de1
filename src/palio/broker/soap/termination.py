"""Termination times of subscriptions: durations and moments of XML Schema, as seconds since 1970.

A client says when its subscription shall end unless it is renewed: by a duration from now on (`PT60S`), which
holds whatever its clock says, or by a moment. A moment without a time zone is taken as UTC, as clients mean it.
A duration of years and months has no length of its own; a year is 365 days here, and a month 30.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta, timezone

from palio.model.errors import PalioError, cut

# A subscription that shall last longer names no time (`xsi:nil`) and lasts until it is ended.
LONGEST_TERM = 10 * 365 * 86_400.0
_DURATION = re.compile(
    r"(-)?P(?=.)(?:(\d{1,9})Y)?(?:(\d{1,9})M)?(?:(\d{1,9})D)?"
    r"(?:T(?=.)(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9}(?:\.\d{1,9})?)S)?)?",
    re.ASCII,
)
_MOMENT = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,12}))?(Z|[+-]\d\d:\d\d)?", re.ASCII)
_SECONDS_OF = (365 * 86_400.0, 30 * 86_400.0, 86_400.0, 3_600.0, 60.0, 1.0)


class WrongTerm(PalioError):
    """A termination time that a subscription cannot have."""

    written: str = cut(80)
    reason: str
    sentence = "The termination time {written!r} cannot be granted: {reason}"


def read_duration(written: str) -> float:
    """A duration in seconds; a negative one is less than 0. Raises `WrongTerm`."""
    found = _DURATION.fullmatch(written.strip())
    if found is None:
        raise WrongTerm(written, "A duration is written as in `PT60S`, `PT5M` or `P1DT12H`.")
    sign, *parts = found.groups()
    seconds = math.fsum([float(part) * size for part, size in zip(parts, _SECONDS_OF, strict=True) if part])
    return -seconds if sign else seconds


def read_moment(written: str) -> float:
    """A moment in seconds since 1970. Raises `WrongTerm`."""
    found = _MOMENT.fullmatch(written.strip())
    if found is None:
        raise WrongTerm(written, "A moment is written as in `2026-07-02T10:45:00Z`.")
    *numbers, fraction, zone = found.groups()
    try:
        moment = datetime(*map(int, numbers), tzinfo=_zone(zone))  # type: ignore[misc, arg-type]
        return moment.timestamp() + float(f"0.{fraction or 0}")
    except (ValueError, OverflowError) as problem:
        raise WrongTerm(written, f"There is no such moment ({problem}).") from None


def _zone(written: str | None) -> timezone:
    if written in (None, "Z"):
        return UTC
    assert written is not None
    offset = timedelta(hours=int(written[1:3]), minutes=int(written[4:6]))
    return timezone(-offset if written[0] == "-" else offset)


def read_term(written: str, now: float) -> float:
    """When something ends that is asked for now. Raises `WrongTerm` for what is past, or too far away."""
    text = written.strip()
    end = now + read_duration(text) if text.lstrip("-").startswith("P") else read_moment(text)
    if end <= now:
        raise WrongTerm(
            written, f"It is past; here it is {write_moment(now)}. A duration such as PT60S is safe."
        )
    if end > now + LONGEST_TERM:
        reason = "It is more than ten years away. Name none (xsi:nil) for a subscription that does not end."
        raise WrongTerm(written, reason)
    return end


def write_moment(seconds: float) -> str:
    """A moment as clients of any age read it: in UTC, to the millisecond."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
