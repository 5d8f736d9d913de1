"""Conditions joined by AND and OR, as languages of others write them: with parentheses where the two meet."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec


class Wording(msgspec.Struct, frozen=True):
    """A condition in words, and the word that joins its parts, if it has any."""

    text: str
    joint: str = ""


def both(parts: Iterable[Wording]) -> Wording:
    """All of them, of which there is at least one."""
    return _joined("AND", list(parts))


def either(parts: Iterable[Wording]) -> Wording:
    """One of them, of which there is at least one."""
    return _joined("OR", list(parts))


def _joined(joint: str, parts: list[Wording]) -> Wording:
    if len(parts) == 1:
        return parts[0]
    texts = [f"({part.text})" if part.joint not in ("", joint) else part.text for part in parts]
    return Wording(f" {joint} ".join(texts), joint)
