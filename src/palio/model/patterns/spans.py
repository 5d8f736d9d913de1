"""Spans of time as a pattern says them: `5 min`, `1 h 30 min`, `250 ms`; inside they are whole microseconds."""

from __future__ import annotations

from decimal import Decimal

_UNITS = {"us": 1, "ms": 1_000, "s": 1_000_000, "min": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}
_SPELLINGS = {
    "us": ("us", "µs", "microsecond", "microseconds"),
    "ms": ("ms", "millisecond", "milliseconds"),
    "s": ("s", "sec", "second", "seconds"),
    "min": ("min", "m", "minute", "minutes"),
    "h": ("h", "hour", "hours"),
    "d": ("d", "day", "days"),
}
_MICROSECONDS = {spelling: _UNITS[unit] for unit, several in _SPELLINGS.items() for spelling in several} | {
    "week": 7 * _UNITS["d"],
    "weeks": 7 * _UNITS["d"],
}
# For a regular expression, longest first, so that no unit hides a longer one.
UNITS = "|".join(sorted(_MICROSECONDS, key=len, reverse=True))


def microseconds(number: str, unit: str) -> int | None:
    """So many microseconds; None if that is not a whole number of them."""
    exact = Decimal(number) * _MICROSECONDS[unit]
    return int(exact) if exact == int(exact) else None


def span_text(span: int) -> str:
    """The span in the largest units that hold it exactly."""
    parts = []
    for unit, size in sorted(_UNITS.items(), key=lambda one: -one[1]):
        count, span = divmod(span, size)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts)
