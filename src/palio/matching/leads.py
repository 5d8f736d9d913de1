"""Leads: texts that whatever satisfies a question has to have, so that an index can find the question by them.

A glob is a row of literal texts with wildcards between. Each literal has to be somewhere in a text that
matches, the first at its beginning and the last at its end, unless a wildcard stands there. One of them is
enough to find the glob by, and the text is then asked about the whole. The same goes for `like` and `regex`,
where it may be one of several texts (`required`), and for networks, whose addresses begin alike.
"""

from __future__ import annotations

import functools
import math
from typing import Literal, TypeAlias

import msgspec

from palio.matching import required
from palio.model import networks, texts
from palio.model.folding import folded_ascii
from palio.model.questions import IgnoringCase, InNetwork, Like, RegexMatches, TableQuestion

# Bytes of a literal somewhere in a text that are worth looking for: shorter ones are in most texts.
LEAST_FACTOR = required.LEAST_WITHIN
# That a text is one of several, and has it not only somewhere, is worth so many bytes.
_WORTH_OF_WHOLE = 3


Place: TypeAlias = Literal["whole", "begins", "ends", "within"]


class Literals(msgspec.Struct, frozen=True):
    """How a text begins and ends that satisfies a question, and what else is in it, as far as that is known.

    `exact` is whether each text satisfies it that has all this, and has not `without`, if that is a text.
    `folded` is what the text is once its letters of ASCII are small. Where all else is empty, a text is, begins
    with, ends with or has in it, as `place` says, `one_of` these.
    """

    prefix: str = ""
    suffix: str = ""
    factors: tuple[str, ...] = ()
    exact: bool = False
    without: str = ""
    folded: str = ""
    place: Place = "within"
    one_of: tuple[str, ...] = ()


class GlobBlock(msgspec.Struct, frozen=True):
    """Segments of a glob between two `**`, each as the runs of characters between its stars."""

    segments: tuple[tuple[str, ...], ...]

    @property
    def pieces(self) -> list[str]:
        """The runs, those of neighbouring segments joined."""
        found = [""]
        for number, (first, *others) in enumerate(self.segments):
            found[-1] += ("/" if number else "") + first
            found += others
        return found


class GlobBlocks(msgspec.Struct, frozen=True):
    """A glob as the blocks between its `**`, and whether it begins and ends with one."""

    open_begin: bool
    open_end: bool
    blocks: tuple[GlobBlock, ...]


@functools.lru_cache(maxsize=64)  # an index asks twice in a row: what to find it by, and how to ask it
def glob_blocks(pattern: str) -> GlobBlocks:
    """The blocks of a pattern that has been checked."""
    if "\\" in pattern:
        segments = [None if one is None else _runs(one) for one in texts.glob_segments(pattern)]
    else:
        segments = [None if one == "**" else tuple(one.split("*")) for one in pattern.split("/")]
    blocks: list[list[tuple[str, ...]]] = [[]]
    for segment in segments:
        if segment is None:
            blocks.append([])
        else:
            blocks[-1].append(segment)
    return GlobBlocks(
        segments[0] is None, segments[-1] is None, tuple([GlobBlock(tuple(block)) for block in blocks if block])
    )


def _runs(segment: list[str | None]) -> tuple[str, ...]:
    """A segment as the runs of characters between its stars."""
    runs = [""]
    for character in segment:
        if character is None:
            runs.append("")
        else:
            runs[-1] += character
    return tuple(runs)


def literals(atom: texts.EndsWith | texts.GlobMatches | TableQuestion) -> Literals:
    """What a text has to have to satisfy a question; nothing is known of a question of another kind."""
    match atom:
        case texts.Contains(text):
            return Literals(factors=(text,), exact=True)
        case texts.EndsWith(text):
            return Literals(suffix=text, exact=True)
        case texts.GlobMatches(pattern):
            return _of_glob(glob_blocks(pattern))
        case IgnoringCase(variants) if (folded := folded_ascii(variants)) is not None:
            return Literals(folded=folded, exact=True)
        case IgnoringCase() | Like() | RegexMatches():
            return _of_pattern(required.required(atom.shape))
        case InNetwork(network):
            begins = networks.beginnings(network)
            return Literals(prefix=begins[0]) if len(begins) == 1 else Literals(place="begins", one_of=begins)
        case _:
            return Literals()


def _of_pattern(known: required.Required) -> Literals:
    """The texts that all have, or one of several where these say more."""
    prefix, suffix = _only(known.begins), _only(known.ends)
    alone = [one for (one, *more) in known.within if not more and required.bytes_of((one,)) >= LEAST_FACTOR]
    factors = tuple([one for one in alone if one not in prefix and one not in suffix])
    several: list[tuple[Place, tuple[str, ...]]] = [("begins", known.begins), ("ends", known.ends)]
    if known.texts is not None:
        several = [("whole", known.texts)]
    several += [("within", one) for one in known.within if required.bytes_of(one) >= LEAST_FACTOR]
    several = [(place, one) for place, one in several if len(one) > 1 and all(one)]
    place, best = max(several, key=_gain, default=("within", ()))
    single = max([required.score((one,)) for one in (prefix, suffix, *factors) if one], default=-math.inf)
    if best and _gain((place, best)) > single:
        return Literals(place=place, one_of=best)
    return Literals(prefix, suffix, factors)


def _gain(entry: tuple[Place, tuple[str, ...]]) -> float:
    place, found = entry
    return required.score(found) + (_WORTH_OF_WHOLE if place == "whole" else 0)


def _only(found: tuple[str, ...]) -> str:
    return found[0] if len(found) == 1 else ""


def _of_glob(glob: GlobBlocks) -> Literals:
    prefix = suffix = ""
    factors: list[str] = []
    last = len(glob.blocks) - 1
    for number, block in enumerate(glob.blocks):
        pieces = block.pieces
        if number:  # between two blocks is a slash, whatever else is there
            pieces[0] = "/" + pieces[0]
        if number < last:
            pieces[-1] += "/"
        if number == 0 and not glob.open_begin:
            prefix = pieces.pop(0)
        if number == last and not glob.open_end and pieces:
            suffix = pieces.pop()
        factors += pieces
    found = tuple([factor for factor in factors if factor])
    # One literal and stars in one segment, `*.log`: all is said by it and by there being no slash.
    is_closed = not glob.open_begin and not glob.open_end
    in_one = is_closed and len(glob.blocks) == 1 and len(glob.blocks[0].segments) == 1
    is_plain = in_one and bool(prefix) + bool(suffix) + len(found) == 1
    return Literals(prefix, suffix, found, is_plain, "/" if is_plain else "")
