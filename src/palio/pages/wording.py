"""Numbers, times and texts as the report shows them. Whatever comes from events leaves here escaped."""

from __future__ import annotations

import html
import math
from datetime import UTC, datetime

_LONGEST = 72
_LENGTHS = ((31_536_000, "year"), (604_800, "week"), (86_400, "day"), (3_600, "hour"), (60, "minute"))
_UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def text(given: object, longest: int = _LONGEST) -> str:
    """A text of somebody else: without what could steer a page or a reader's eye, cut and escaped."""
    some = str(given)[: longest + 1]
    plain = "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in some)
    if len(plain) > longest:
        plain = plain[: longest - 1] + "…"
    return f"<bdi>{html.escape(plain)}</bdi>"


def plain(given: object, longest: int = _LONGEST) -> str:
    """The same for an attribute of an element, where no element can be."""
    return text(given, longest).removeprefix("<bdi>").removesuffix("</bdi>")


def value(given: object) -> str:
    """A value of an attribute."""
    if isinstance(given, bool):
        return "true" if given else "false"
    if isinstance(given, int):
        return f"{given:,}"
    if isinstance(given, float):
        return number(given)
    return text(given) if given != "" else '<span class="quiet">(empty)</span>'


def count(given: float) -> str:
    """A whole number, every digit of it."""
    return f"{round(given):,}"


def short(given: float) -> str:
    """A number in the space of an axis."""
    size = abs(given)
    for unit, letter in _UNITS:
        if size >= unit:
            return f"{given / unit:.3g} {letter}"
    return f"{given:.4g}" if size >= 1 or size == 0 else f"{given:.2g}"


def number(given: float | None) -> str:
    """A number as people write it."""
    if given is None or not math.isfinite(given):
        return "–"
    size = abs(given)
    if size and (size >= 1e15 or size < 1e-4):
        return f"{given:.3e}"
    if given == int(given):
        return f"{int(given):,}"
    return f"{given:,.4g}" if size < 1000 else f"{given:,.0f}"


def fitting(given: float | None) -> str:
    """A number in little space."""
    return number(given) if given is None or abs(given) < 1e7 else short(given)


def share(given: float) -> str:
    """A part of all, in per cent."""
    if given <= 0:
        return "0 %"
    if given >= 1:
        return "100 %"
    per_cent = given * 100
    if per_cent < 0.01:
        return "< 0.01 %"
    if per_cent > 99.9:
        return "> 99.9 %"
    return f"{per_cent:.2f} %" if per_cent < 1 else f"{per_cent:.1f} %"


def step(seconds: float) -> str:
    """A step of time, as one says "events a …"."""
    for length, name in _LENGTHS:
        if seconds >= length and seconds % length == 0:
            times = int(seconds / length)
            return name if times == 1 else f"{times:,} {name}s"
    return "second" if seconds == 1 else f"{seconds:.3g} seconds"


def moment(seconds: float, around: float) -> str:
    """A time (UTC), as exact as the span around it asks for."""
    try:
        when = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        return number(seconds)
    if around >= 5 * 365 * 86_400:
        return when.strftime("%Y")
    if around >= 2 * 86_400:
        return when.strftime("%Y-%m-%d")
    if around >= 600:
        return when.strftime("%H:%M")
    return when.strftime("%H:%M:%S") if around >= 2 else when.strftime("%H:%M:%S.%f")[:-3]


def full_moment(seconds: float) -> str:
    """A time (UTC), to the second."""
    try:
        when = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        return number(seconds)
    return when.strftime("%Y-%m-%d") if seconds % 86_400 == 0 else when.strftime("%Y-%m-%d %H:%M:%S")
