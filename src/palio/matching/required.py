"""What every text has to have that a pattern accepts: how it begins and ends, and what is somewhere in it.

A pattern is a `regular.Shape`. From its leaves upwards each part is known by its texts, if these are few, and
otherwise by *sets* of texts of which one has to be there: one with which it begins, one with which it ends, one
somewhere within. What stands next to each other is joined: where `[Ee]rror` is followed by anything, each text
begins with one of two.

Nothing here is exact: whoever finds a text by it asks the whole pattern. Sets have at most `MOST_TEXTS` texts,
and a part has at most `_MOST_SETS` sets, so the work is bounded by the size of the pattern, which its reader
bounds.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import msgspec

from palio.model.codes import character_of
from palio.model.regular import Chain, Letter, OneOf, Repeated, Shape

# An index files what is found by one of several texts at each of them.
MOST_TEXTS = 16
# Somewhere within a text fewer bytes are in most texts, and are not worth looking for.
LEAST_WITHIN = 3
# More bytes make a text hardly rarer; twice as many texts are to make it rarer by so many bytes.
_ENOUGH, _BYTES_A_DOUBLING = 8, 2
_MOST_SETS = 8
_MOST_COPIES = 4  # of what is repeated: as many are looked at side by side
_MOST_CHARACTERS = 64  # of a text: longer ones are not looked up as a whole

_Texts: TypeAlias = "tuple[str, ...]"
_UNKNOWN: _Texts = ("",)


class Required(msgspec.Struct, frozen=True):
    """Sets of texts: each text of the pattern is one of `texts`, begins with one of `begins`, ends with one of
    `ends`, and has one of each of `within`. `texts` is None if they are many; "" in a set says nothing.
    """

    texts: _Texts | None
    begins: _Texts
    ends: _Texts
    within: tuple[_Texts, ...] = ()


def bytes_of(texts: _Texts) -> int:
    """How many the shortest has."""
    return min(len(one.encode("utf-8", "surrogatepass")) for one in texts)


def score(texts: _Texts) -> float:
    """How much is gained by looking for these: they should be long and few."""
    return min(bytes_of(texts), _ENOUGH) - _BYTES_A_DOUBLING * math.log2(len(texts))


_ANYTHING = Required(None, _UNKNOWN, _UNKNOWN)
_EMPTY = Required(_UNKNOWN, _UNKNOWN, _UNKNOWN)


def required(shape: Shape) -> Required:
    """What is known of a pattern's texts."""
    match shape:
        case Letter(ranges):
            if not 0 < sum(high - low for low, high in ranges) <= MOST_TEXTS:
                return _ANYTHING
            return _exactly(tuple([character_of(code) for low, high in ranges for code in range(low, high)]))
        case Chain(parts):
            return _chain([required(part) for part in parts])
        case OneOf(parts):
            return _one_of([required(part) for part in parts])
        case Repeated(part, least, most):
            return _repeated(required(part), least, most)


def _exactly(texts: _Texts) -> Required:
    return Required(texts, texts, texts)


def _chain(parts: list[Required]) -> Required:
    """One behind the other; those of one text are put together first, so that they stay as long as they are."""
    known, literal = _EMPTY, _EMPTY
    for part in parts:
        if part.texts is not None and len(part.texts) == 1:
            longer = _joined(literal, part)
            if longer.texts is not None:
                literal = longer
                continue
        known = _joined(known, literal)
        literal = _EMPTY
        if part.texts is not None and len(part.texts) == 1:
            literal = part
        else:
            known = _joined(known, part)
    return _joined(known, literal)


def _repeated(part: Required, least: int, most: int | None) -> Required:
    if most == 0:
        return _EMPTY
    if least == 0:
        return _one_of([_EMPTY, part]) if most == 1 else _ANYTHING
    known = part
    for _ in range(min(least, _MOST_COPIES) - 1):
        known = _joined(known, part)
    if most == least <= _MOST_COPIES:
        return known
    # The first copies are at its beginning, and the last ones at its end.
    return Required(None, known.begins, known.ends, _kept(known.within, known.texts))


def _joined(left: Required, right: Required) -> Required:
    """One behind the other."""
    if left.texts == _UNKNOWN:
        return right
    if right.texts == _UNKNOWN:
        return left
    texts = None if left.texts is None or right.texts is None else _product(left.texts, right.texts)
    if texts is not None:
        # What grew more numerous may be better to look for as it was.
        shorter = [one for one in (left.texts, right.texts) if one is not None and len(one) < len(texts)]
        return Required(texts, texts, texts, _kept((*left.within, *right.within), *shorter))
    begins = left.begins if left.texts is None else _product(left.texts, right.begins) or left.texts
    ends = right.ends if right.texts is None else _product(left.ends, right.texts) or right.texts
    middle = _product(left.ends, right.begins)
    return Required(
        None,
        begins,
        ends,
        _kept((*left.within, *right.within), middle, left.ends, right.begins, left.texts, right.texts),
    )


def _one_of(parts: list[Required]) -> Required:
    texts = _union([part.texts for part in parts])
    if texts is not None:
        return _exactly(texts)
    begins, ends = (_union([part.begins for part in parts]), _union([part.ends for part in parts]))
    within = _union([_best(part) for part in parts])
    return Required(None, begins or _UNKNOWN, ends or _UNKNOWN, _kept((), within))


def _best(part: Required) -> _Texts | None:
    """Of all sets the one that is best looked for somewhere within."""
    sets = [one for one in (part.texts, part.begins, part.ends, *part.within) if one is not None and all(one)]
    return max(sets, key=score, default=None)


def _product(left: _Texts, right: _Texts) -> _Texts | None:
    """Each of the one followed by each of the other, or None if these are too many or too long."""
    if len(left) * len(right) > MOST_TEXTS or len(left[0]) + len(right[0]) > _MOST_CHARACTERS:
        return None
    return tuple(dict.fromkeys([one + other for one in left for other in right]))


def _union(several: list[_Texts | None]) -> _Texts | None:
    found: dict[str, None] = {}
    for one in several:
        if one is None:
            return None
        found.update(dict.fromkeys(one))
        if len(found) > MOST_TEXTS:
            return None
    return tuple(found)


def _kept(sets: tuple[_Texts, ...], *more: _Texts | None) -> tuple[_Texts, ...]:
    """The best of these sets."""
    found = dict.fromkeys([*sets, *(one for one in more if one is not None and all(one))])
    if len(found) <= _MOST_SETS:
        return tuple(found)
    return tuple(sorted(found, key=score, reverse=True)[:_MOST_SETS])
