"""Sets of ordered values, as the sorted values at which membership flips.

Walk up a totally ordered domain from its least element and write down each value at which one enters or
leaves the set: `5 <= x <= 8` over the integers is `(5, 9)`, `x > 8` is `(9,)`, everything is `(least,)`,
nothing is `()`. A value is a member iff an odd number of flips lies at or below it.

This needs no open and closed ends, because each of our domains has, for every value, a least greater one:
integers and times count on, floats have `nextafter`, and for strings and bytes it is the same text with a
zero character behind. So each set has exactly one representation, complement is adding or removing one
flip, and `>= 51` equals `> 50` over integers while it does not over floats.

A prefix is such a set too: `starts with "ab"` is `("ab", "ac")`.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any, TypeAlias

from palio.model.values import FLOAT_MAX, INT_MAX, INT_MIN, TIME_MAX, TIME_MIN, Kind

Flips: TypeAlias = tuple[Any, ...]

NOTHING: Flips = ()

# The least value of each kind, in the order of the kinds. Bytes are kept as text of the same code points, so
# that all reasoning about texts serves both. Lists have no order: their "flips" say everything or nothing.
LEAST: tuple[Any, ...] = (False, INT_MIN, -FLOAT_MAX, "", TIME_MIN, "", "")
EVERYTHING: tuple[Flips, ...] = tuple((least,) for least in LEAST)

_INT, _FLOAT, _STRING = int(Kind.INT), int(Kind.FLOAT), int(Kind.STRING)
_TIME, _BYTES = int(Kind.TIME), int(Kind.BYTES)
_MICROSECOND = timedelta(microseconds=1)


def successor(kind: int, value: Any) -> Any | None:
    """The least greater value of the kind, or None where there is none."""
    if kind in (_STRING, _BYTES):
        return value + "\0"
    if kind == _INT:
        return value + 1 if value < INT_MAX else None
    if kind == _FLOAT:
        return math.nextafter(value, math.inf) + 0.0 if value < FLOAT_MAX else None
    if kind == _TIME:
        return value + _MICROSECOND if value < TIME_MAX else None
    return None if value else True


def point(kind: int, value: Any) -> Flips:
    after = successor(kind, value)
    return (value,) if after is None else (value, after)


def points(kind: int, values: Iterable[Any]) -> Flips:
    """The set of these values."""
    flips: list[Any] = []
    for value in sorted(set(values)):
        if flips and flips[-1] == value:
            flips.pop()
        else:
            flips.append(value)
        if (after := successor(kind, value)) is not None:
            flips.append(after)
    return tuple(flips)


def at_least(value: Any) -> Flips:
    return (value,)


def below(kind: int, value: Any) -> Flips:
    return () if value == LEAST[kind] else (LEAST[kind], value)


def contains(flips: Flips, value: Any) -> bool:
    return bisect_right(flips, value) & 1 == 1


def complement(kind: int, flips: Flips) -> Flips:
    least = LEAST[kind]
    return flips[1:] if flips and flips[0] == least else (least, *flips)


def combine(left: Flips, right: Flips, needed: int) -> Flips:
    """What lies in at least `needed` of the two sets: 1 is their union, 2 their intersection."""
    if left is right or left == right:
        return left
    if not left:
        return right if needed == 1 else left
    if not right:
        return left if needed == 1 else right
    if needed == 2 and len(left) == len(right) == 2:  # two intervals, as most filters have them
        low, high = max(left[0], right[0]), min(left[1], right[1])
        return (low, high) if low < high else NOTHING
    result: list[Any] = []
    i = j = 0
    inside = False
    while i < len(left) or j < len(right):
        if j == len(right) or (i < len(left) and left[i] < right[j]):
            at = left[i]
            i += 1
        else:
            at = right[j]
            if i < len(left) and left[i] == at:
                i += 1
            j += 1
        now_inside = (i & 1) + (j & 1) >= needed
        if now_inside != inside:
            result.append(at)
            inside = now_inside
    return tuple(result)


def intervals(flips: Flips) -> list[tuple[Any, Any | None]]:
    """The half-open intervals [low, high) of the set; the last `high` is None if it has no end."""
    ends: Sequence[Any | None] = (*flips, None)
    return [(flips[index], ends[index + 1]) for index in range(0, len(flips), 2)]


def predecessor(kind: int, value: Any) -> Any | None:
    """The greatest lesser value of the kind, or None where there is none or no greatest one."""
    if kind in (_STRING, _BYTES):
        return value[:-1] if value.endswith("\0") else None
    if kind == _INT:
        return value - 1 if value > INT_MIN else None
    if kind == _FLOAT:
        return math.nextafter(value, -math.inf) + 0.0 if value > -FLOAT_MAX else None
    if kind == _TIME:
        return value - _MICROSECOND if value > TIME_MIN else None
    return False if value else None
