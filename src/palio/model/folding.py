"""Which characters are the same if case is ignored: simple case folding, character by character.

Two characters are the same if Unicode's simple case folding (the lines C and S of CaseFolding.txt) takes both
to the same one: `K`, `k` and the Kelvin sign; `σ`, `ς` and `Σ`. No character becomes two, so `ß` is `ẞ` but not
`ss`, and nothing depends on a language: `I` is `i`, also in Turkish. A filter that travels has the characters
themselves (`variants`), not the question which they are: so it means the same at a broker with another Unicode.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable


def fold(character: str) -> str:
    """The simple case folding of a character."""
    folded = character.casefold()
    if len(folded) == 1:
        return folded
    # Where the full folding has several characters, the simple one is the small letter, if that is one.
    lowered = character.lower()
    return lowered if len(lowered) == 1 else character


# The letters of ASCII that have relatives elsewhere, and behind which no character has a case.
_ASCII_FAMILIES = {"k": "Kk\N{KELVIN SIGN}", "s": "Ss\N{LATIN SMALL LETTER LONG S}"}
_LAST_CASED = 0x1FFFF


@functools.cache
def _families() -> dict[str, str]:
    """Of each folding that several characters have: all of them, in their order. Looked up once."""
    families: dict[str, list[str]] = {}
    for character in map(chr, range(_LAST_CASED + 1)):
        if character.casefold() != character and (folded := fold(character)) != character:
            families.setdefault(folded, [folded]).append(character)
    return {folded: "".join(sorted(family)) for folded, family in families.items()}


def variants(character: str) -> str:
    """All characters that are the same as this one, itself among them, in their order."""
    if character.isascii():
        small = character.lower()
        return _ASCII_FAMILIES.get(small) or "".join(sorted({character.upper(), small}))
    folded = fold(character)
    return _families().get(folded, folded)


def folded_ascii(variants: Iterable[str]) -> str | None:
    """The text in small letters, if these are families of ASCII's letters and characters without relatives.

    Then whoever makes a text's letters of ASCII small, and its long s and Kelvin sign `s` and `k`, need only
    compare.
    """
    small: list[str] = []
    for family in variants:
        one = next((one for one in family if "a" <= one <= "z"), family[0])
        if "".join(sorted(family)) != (_family_of_ascii(one) or one) or one in _FOREIGN:
            return None
        small.append(one)
    return "".join(small)


@functools.lru_cache(maxsize=128)
def _family_of_ascii(character: str) -> str | None:
    """All that are the same as this letter of ASCII; None if it is none."""
    return variants(character) if character.isascii() and character.isalpha() else None


_FOREIGN = frozenset("".join(_ASCII_FAMILIES.values())) - frozenset("KkSs")
