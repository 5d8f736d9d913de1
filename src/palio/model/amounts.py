"""How long and how much: as people read it, and as settings may say it. `moments` reads spans of time."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

# What a setting may be at the most: what JSON keeps exactly, and a hundred years. Beyond are mistakes, and
# numbers that files, sockets and databases have no room for.
LARGEST = 2**53 - 1
LONGEST = 100 * 31_556_952.0

Positive = Annotated[int, Meta(ge=1, le=LARGEST)]
Seconds = Annotated[float, Meta(gt=0, le=LONGEST)]
Rate = Annotated[float, Meta(ge=0, le=LARGEST)]  # a second
SecondsOrNone = Annotated[float, Meta(ge=0, le=LONGEST)]

_UNITS = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))
_WORDS = ((31_556_952, "year"), (86_400, "day"), (3_600, "hour"), (60, "minute"))


def brief_span(seconds: float) -> str:
    """How long, with the two largest units that matter: `1h30m`, as spans are typed."""
    seconds = max(0, int(seconds))
    parts: list[str] = []
    for unit, length in _UNITS:
        count, seconds = divmod(seconds, length)
        if count or parts:
            parts.append(f"{count}{unit}")
    return "".join(parts[:2]) or "0s"


def span_in_words(seconds: float) -> str:
    """How long, in a sentence: `2.5 hours`."""
    for length, name in _WORDS:
        if seconds >= 2 * length:
            return f"{seconds / length:,.3g} {name}s"
    if seconds >= 1:
        return f"{seconds:.3g} s"
    return f"{seconds * 1000:.3g} ms"


def size_text(count: float) -> str:
    """A number of bytes: `999 B`, `1.5 kB`."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:,.1f} TB"
