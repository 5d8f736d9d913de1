"""The numbers of characters: code points, with surrogates left out of the count, since no text holds them.

So all characters between two numbers exist, and they order as the UTF-8 bytes of the characters do.
"""

from __future__ import annotations

from collections.abc import Iterable

_SURROGATES_START, _SURROGATES = 0xD800, 0x800
# How many characters there are.
ALPHABET = 0x110000 - _SURROGATES


def code_of(character: str) -> int:
    code = ord(character)
    return code if code < _SURROGATES_START else code - _SURROGATES


def point_of(code: int) -> int:
    """The code point of a number."""
    return code if code < _SURROGATES_START else code + _SURROGATES


def character_of(code: int) -> str:
    return chr(point_of(code))


def cuts_around(characters: Iterable[str]) -> set[int]:
    """Where the alphabet is to be cut so that each of these characters stands alone."""
    codes = {code_of(character) for character in characters}
    return codes | {code + 1 for code in codes}
