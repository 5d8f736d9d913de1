"""The questions about texts that a table answers: `like`, `regex`, equal ignoring case, in a network.

Each is a regular language, given by what a person wrote, and is answered by the table of that language
(`regular`, `networks`), which is made once and remembered. As machines for `automaton` their states are those
of the table.

`like` is kept in one notation: `%` is any run of characters, `_` any one, and behind `!` stands one of these
three that means itself. What is equal ignoring case is kept as the characters that each place may have.
"""

from __future__ import annotations

import functools
from bisect import bisect_right
from typing import ClassVar

import msgspec

from palio.model import folding, networks, regexp, regular
from palio.model.automaton import Language
from palio.model.codes import code_of
from palio.model.regular import Chain, Letter, Repeated, Shape, letter
from palio.model.texts import TextMistake

MAX_LIKE_CHARACTERS = 1_024
MAX_IGNORING_CHARACTERS = 1_024
ESCAPE = "!"
_SPECIAL = "%_" + ESCAPE
# Tables that are kept to be asked again; the largest ones have half a megabyte.
_MAX_REMEMBERED = 256


class TableQuestion(msgspec.Struct, frozen=True):
    """A question whose answer a table gives."""

    start: ClassVar[int] = 0
    cost: ClassVar[int] = 2  # in look-ups of a step that was made before: a search among the cuts

    @property
    def table(self) -> Language:
        raise NotImplementedError

    def holds(self, value: str) -> bool:
        return regular.read_through(self.table, value)

    def step(self, state: int, character: str) -> int:
        table = self.table
        return table.table[state][bisect_right(table.cuts, code_of(character)) - 1]

    def accepts(self, state: int) -> bool:
        return self.table.accepting[state]

    @property
    def cuts(self) -> set[int]:
        return set(self.table.cuts)


class Like(TableQuestion, frozen=True):
    """`pattern` is in the one notation that `like_of` gives."""

    pattern: str

    @property
    def order(self) -> tuple[int, str]:
        return (4, self.pattern)

    @property
    def table(self) -> Language:
        return _like_table(self.pattern)

    @property
    def shape(self) -> Shape:
        shapes: list[Shape] = []
        for part in like_parts(self.pattern):
            one = letter(part) if part else Letter(regular.EVERY)
            shapes.append(Repeated(one, 0, None) if part is None else one)
        return Chain(tuple(shapes))

    @property
    def is_endless(self) -> bool:
        """As of `texts.GlobMatches`: a literal stands behind a `%`."""
        parts = like_parts(self.pattern)
        return None in parts and any(parts[parts.index(None) :])


class RegexMatches(TableQuestion, frozen=True):
    pattern: str

    @property
    def order(self) -> tuple[int, str]:
        return (5, self.pattern)

    @property
    def table(self) -> Language:
        return _regex_table(self.pattern)

    @property
    def shape(self) -> Shape:
        return regexp.shape_of(self.pattern)


class IgnoringCase(TableQuestion, frozen=True):
    """Equal ignoring case; `variants` are the characters of each place, in their order."""

    variants: tuple[str, ...]

    @property
    def order(self) -> tuple[int, tuple[str, ...]]:
        return (6, self.variants)

    @property
    def table(self) -> Language:
        return _ignoring_table(self.variants)

    @property
    def shape(self) -> Shape:
        return Chain(tuple(letter(*one) for one in self.variants))


class InNetwork(TableQuestion, frozen=True):
    """`network` is canonical."""

    network: str

    @property
    def order(self) -> tuple[int, str]:
        return (7, self.network)

    @property
    def table(self) -> Language:
        return networks.addresses(self.network)


# `like`


def like_of(pattern: str, escape: str | None) -> str:
    """A pattern of `like` in the one notation. Raises `TextMistake`."""
    found: list[str] = []
    at = 0
    while at < len(pattern):
        character = pattern[at]
        if escape is not None and character == escape:
            at += 1
            character = pattern[at : at + 1]
            if character not in ("%", "_", escape):
                raise TextMistake(at - 1, f"Behind the escape `{escape}` stands `%`, `_` or itself.")
            found.append(_escaped(character))
        elif character in "%_":
            if found[-1:] != ["%"] or character == "_":
                found.append(character)
        else:
            found.append(_escaped(character))
        at += 1
    return "".join(_runs_in_order(found))


def _escaped(character: str) -> str:
    return ESCAPE + character if character in _SPECIAL else character


def _runs_in_order(parts: list[str]) -> list[str]:
    """`_%_` and `%__` mean the same: the `_` of a run of wildcards come first, then one `%`."""
    ordered: list[str] = []
    singles, several = 0, False
    for part in [*parts, ""]:
        if part == "_":
            singles += 1
        elif part == "%":
            several = True
        else:
            ordered += ["_"] * singles + ["%"] * several + [part]
            singles, several = 0, False
    return ordered


def like_parts(pattern: str) -> list[str | None]:
    """The characters of a pattern, with "" for `_` and None for `%`. Raises `TextMistake`."""
    if len(pattern) > MAX_LIKE_CHARACTERS:
        raise TextMistake(0, f"A pattern of `like` has at most {MAX_LIKE_CHARACTERS:,} characters.")
    parts: list[str | None] = []
    at = 0
    while at < len(pattern):
        character = pattern[at]
        if character == ESCAPE:
            at += 1
            character = pattern[at : at + 1]
            if not character or character not in _SPECIAL:
                raise TextMistake(at - 1, "A `!` stands before `%`, `_` or another one.")
            parts.append(character)
        else:
            parts.append({"%": None, "_": ""}.get(character, character))
        at += 1
    return parts


def like_literal(pattern: str) -> tuple[bool, str, bool] | None:
    """The text of a pattern with no wildcards but `%` at its ends, and whether one stands before and behind it.

    None for any other pattern. Raises `TextMistake`.
    """
    parts = like_parts(pattern)
    if not parts:
        return False, "", False
    begins, ends = parts[0] is None, parts[-1] is None
    inner = parts[begins : len(parts) - (ends and len(parts) > 1)]
    if None in inner or "" in inner:
        return None
    return begins, "".join(map(str, inner)), ends


def like_text(pattern: str) -> tuple[str, str | None]:
    """A pattern as it is written, with the escape that it needs."""
    parts = like_parts(pattern)
    if "%" in parts or "_" in parts:
        return pattern, ESCAPE
    return "".join("%" if part is None else part or "_" for part in parts), None


def across_segments(pattern: str) -> str:
    """A glob whose stars cross slashes, as a pattern of `like`. Raises `TextMistake`."""
    found: list[str] = []
    at = 0
    while at < len(pattern):
        character = pattern[at]
        if character == "*":
            found += [] if found[-1:] == ["%"] else ["%"]
        elif character != "\\":
            found.append(_escaped(character))
        elif pattern[at + 1 : at + 2] in ("*", "\\"):
            at += 1
            found.append(_escaped(pattern[at]))
        else:
            raise TextMistake(at, "A backslash stands before `*` or another backslash.")
        at += 1
    return "".join(found)


@functools.lru_cache(maxsize=_MAX_REMEMBERED)
def _like_table(pattern: str) -> Language:
    return regular.tabulate(Like(pattern).shape, "This pattern")


# `regex`


@functools.lru_cache(maxsize=_MAX_REMEMBERED)
def _regex_table(pattern: str) -> Language:
    return regular.tabulate(RegexMatches(pattern).shape, "This regular expression")


# Equal ignoring case


def variants_of(text: str) -> tuple[str, ...]:
    """For each character all that are the same if case is ignored, itself first."""
    return tuple(one + folding.variants(one).replace(one, "") for one in text)


def check_variants(variants: tuple[str, ...]) -> None:
    """Raise `TextMistake` if these are too many."""
    if len(variants) > MAX_IGNORING_CHARACTERS:
        most = f"{MAX_IGNORING_CHARACTERS:,}"
        raise TextMistake(0, f"A text that is compared ignoring case has at most {most} characters.")


@functools.lru_cache(maxsize=_MAX_REMEMBERED)
def _ignoring_table(variants: tuple[str, ...]) -> Language:
    return regular.tabulate(IgnoringCase(variants).shape, "This text")
