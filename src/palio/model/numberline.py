"""Ints and floats on one line: which stretches of it a set of numbers takes up.

A set of numbers is kept as two sets of flips, one over the 64-bit integers and one over the floats. A person
would rather read `price > 100` than both. So cut the line wherever either set flips; between two cuts each
kind is wholly in, wholly out, or has no value there at all. Neighbouring pieces in which no value is out are
one stretch without a type; what is left is of one type only.
"""

from __future__ import annotations

import math
from itertools import groupby
from typing import Any

import msgspec

from palio.model import flips
from palio.model.flips import Flips
from palio.model.values import FLOAT_MAX, INT_MAX, INT_MIN, Kind


class ValueRange(msgspec.Struct, frozen=True):
    """A range between two ends, each in the two ways to write it: with and without its own value.

    None means that the end cannot be written so; both None, that the range has no end there.
    """

    at_least: Any
    above: Any
    at_most: Any
    below: Any
    demanded: Kind | None = None

    @property
    def is_single(self) -> bool:
        """Whether it is one value alone."""
        return self.at_least is not None and bool(self.at_least == self.at_most)


class _Piece(msgspec.Struct, frozen=True):
    """Between two cuts: for each kind its least and greatest value there, or None; and whether it is in."""

    integers: tuple[int, int] | None
    floats: tuple[float, float] | None
    integers_in: bool
    floats_in: bool


def stretches(integers: Flips, floats: Flips) -> list[ValueRange]:
    runs = groupby(_pieces(integers, floats), _kinds_in)
    return [_stretch(list(pieces), kinds) for kinds, pieces in runs if kinds]


def _kinds_in(piece: _Piece) -> set[Kind]:
    """The kinds that a stretch with this piece allows; a kind without a value here goes with the other."""
    integers = piece.integers_in if piece.integers else piece.floats_in
    floats = piece.floats_in if piece.floats else piece.integers_in
    return {kind for kind, inside in ((Kind.INT, integers), (Kind.FLOAT, floats)) if inside}


def _pieces(integers: Flips, floats: Flips) -> list[_Piece]:
    cuts = sorted({-math.inf, *integers, *floats})
    ends: list[Any] = [*cuts[1:], math.inf]
    pieces = []
    for low, high in zip(cuts, ends, strict=True):
        first_integer = INT_MIN if low < INT_MIN else math.ceil(low)
        last_integer = INT_MAX if high > INT_MAX else math.ceil(high) - 1
        first_float = -FLOAT_MAX if low == -math.inf else _float_from(low)
        last_float = FLOAT_MAX if high == math.inf else math.nextafter(_float_from(high), -math.inf) + 0.0
        pieces.append(
            _Piece(
                (first_integer, last_integer) if first_integer <= last_integer else None,
                (first_float, last_float) if first_float <= last_float else None,
                first_integer <= last_integer and flips.contains(integers, first_integer),
                first_float <= last_float and flips.contains(floats, first_float),
            )
        )
    return [piece for piece in pieces if piece.integers or piece.floats]


def _float_from(number: Any) -> float:
    """The least float that is at least the number."""
    real = float(number)
    return (math.nextafter(real, math.inf) if real < number else real) + 0.0


def _stretch(run: list[_Piece], kinds: set[Kind]) -> ValueRange:
    integers = [piece.integers for piece in run if piece.integers and Kind.INT in kinds]
    floats = [piece.floats for piece in run if piece.floats and Kind.FLOAT in kinds]
    lows: list[Any] = [span[0] for span in (*integers[:1], *floats[:1])]
    highs: list[Any] = [span[1] for span in (*integers[-1:], *floats[-1:])]
    low, high = min(lows), max(highs)
    demanded = None if len(kinds) == 2 else next(iter(kinds))
    below = [_before(low, kind) for kind in kinds]
    above = [_after(high, kind) for kind in kinds]
    unbounded_below = None in below if len(kinds) == 1 else below == [None, None] or low == -FLOAT_MAX
    unbounded_above = None in above if len(kinds) == 1 else above == [None, None] or high == FLOAT_MAX
    lower = (None, None) if unbounded_below else (low, max(b for b in below if b is not None))
    upper = (None, None) if unbounded_above else (high, min(a for a in above if a is not None))
    return ValueRange(_plain(lower[0]), _plain(lower[1]), _plain(upper[0]), _plain(upper[1]), demanded)


def _before(number: Any, kind: Kind) -> Any | None:
    """The greatest value of the kind below a number."""
    if kind is Kind.INT:
        value = min(math.ceil(number) - 1, INT_MAX)
        return value if value >= INT_MIN else None
    real = math.nextafter(_float_from(number), -math.inf)
    return real + 0.0 if real >= -FLOAT_MAX else None


def _after(number: Any, kind: Kind) -> Any | None:
    """The least value of the kind above a number."""
    if kind is Kind.INT:
        value = max(math.floor(number) + 1, INT_MIN)
        return value if value <= INT_MAX else None
    real = _float_from(number)
    if real == number:
        real = math.nextafter(real, math.inf)
    return real + 0.0 if real <= FLOAT_MAX else None


def _plain(number: Any) -> Any:
    """Without a type an int and a float of the same value mean the same; the int is shorter."""
    return int(number) if isinstance(number, float) and number.is_integer() and abs(number) < 1e16 else number
