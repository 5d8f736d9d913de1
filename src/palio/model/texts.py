"""The questions about texts that are no intervals: suffix, substring and path glob. (More are in `questions`.)

Each is also a small deterministic machine that reads one character at a time (`start`, `step`, `accepts`);
`cuts` says between which characters it makes a difference.
`automaton` runs several of them side by side to decide covering and overlap; `holds` answers directly.

A glob speaks of paths whose segments are separated by `/`: `*` is any run of characters other than `/`, and
`**` as a whole segment is any number of whole segments, none included, so `shop/**` is `shop` and all below
it. It is matched by its non-deterministic machine, all of whose states advance together as the bits of one
integer: linear in the text, whatever the pattern.
"""

from __future__ import annotations

import functools
from typing import ClassVar, TypeAlias

import msgspec

from palio.model.codes import cuts_around

MAX_GLOB_CHARACTERS = 1_024

# What a step of a machine costs, in look-ups of a step that was made before.
STEP_COST = 10


class EndsWith(msgspec.Struct, frozen=True):
    text: str
    start: ClassVar[int] = 0
    cost: ClassVar[int] = STEP_COST

    @property
    def order(self) -> tuple[int, str]:
        return (1, self.text)

    def holds(self, value: str) -> bool:
        return value.endswith(self.text)

    def step(self, state: int, character: str) -> int:
        return _longest_border(self.text, state, character)

    def accepts(self, state: int) -> bool:
        return state == len(self.text)

    @property
    def cuts(self) -> set[int]:
        return cuts_around(self.text)


class Contains(EndsWith, frozen=True):
    @property
    def order(self) -> tuple[int, str]:
        return (2, self.text)

    def holds(self, value: str) -> bool:
        return self.text in value

    def step(self, state: int, character: str) -> int:
        return state if state == len(self.text) else _longest_border(self.text, state, character)


def implies(one: EndsWith, other: EndsWith) -> bool:
    """Whether each text that satisfies the one satisfies the other: for "ends with" and "contains"."""
    if isinstance(other, Contains):
        return other.text in one.text
    return not isinstance(one, Contains) and one.text.endswith(other.text)


@functools.lru_cache(maxsize=256)
def _failures(text: str) -> tuple[int, ...]:
    """For each length, that of the longest proper border (the table of Knuth, Morris and Pratt)."""
    table = [0, 0]
    length = 0
    for character in text[1:]:
        while length and text[length] != character:
            length = table[length]
        length += text[length] == character
        table.append(length)
    return tuple(table)


@functools.lru_cache(maxsize=256)
def _retreats(text: str) -> tuple[int, ...]:
    """As `_failures`, but passing over borders that go on with the same character, and so fail again.

    The way back has then at most as many steps as the logarithm of the length, whatever the text.
    """
    failures = _failures(text)
    table = [0]
    for length in range(1, len(text)):
        border = failures[length]
        table.append(border if text[border] != text[length] else table[border] if border else 0)
    table.append(failures[len(text)])
    return tuple(table)


def _longest_border(text: str, matched: int, character: str) -> int:
    """How much of the text's beginning is read after one more character."""
    retreats = _retreats(text)
    if matched == len(text):
        matched = retreats[matched]
    while matched and text[matched] != character:
        matched = retreats[matched]
    return matched + (text[matched] == character)


class GlobMatches(msgspec.Struct, frozen=True):
    """A path glob; `pattern` has been checked by `check_glob`."""

    pattern: str

    @property
    def order(self) -> tuple[int, str]:
        return (3, self.pattern)

    @property
    def start(self) -> int:
        return machine(self.pattern).first

    def holds(self, value: str) -> bool:
        glob = machine(self.pattern)
        state = glob.first
        for character in value:
            state = glob.step(state, character)
            if not state:
                return False
        return state & glob.last != 0

    def step(self, state: int, character: str) -> int:
        return machine(self.pattern).step(state, character)

    def accepts(self, state: int) -> bool:
        return state & machine(self.pattern).last != 0

    @property
    def cuts(self) -> set[int]:
        return cuts_around({"/", *machine(self.pattern).literals})

    @property
    def cost(self) -> int:
        return STEP_COST + len(self.pattern) // 4

    @property
    def is_endless(self) -> bool:
        """Whether it is seen at once that neither the texts that match nor the others are points and ranges."""
        return _is_endless(self.pattern)


class TextMistake(ValueError):
    """A pattern that means nothing; `at` counts characters from 0."""

    def __init__(self, at: int, message: str) -> None:
        super().__init__(message)
        self.at = at


# A segment of a glob: None is `**`; otherwise its characters, with None for `*`.
_Segment: TypeAlias = "list[str | None] | None"


def glob_segments(pattern: str) -> list[_Segment]:
    """The segments of a pattern that has been checked."""
    return _segments(pattern)


def check_glob(pattern: str) -> None:
    """Raise `TextMistake` if the pattern means nothing."""
    _segments(pattern)


def literal_glob(pattern: str) -> str | None:
    """The one text that a pattern without wildcards matches, or None."""
    segments = _segments(pattern)
    if any(segment is None or None in segment for segment in segments):
        return None
    return "/".join("".join(map(str, segment or ())) for segment in segments)


@functools.lru_cache(maxsize=1024)
def _is_endless(pattern: str) -> bool:
    """Whether no number of first characters decides about all texts, as points and ranges do.

    Read what stands before the first wildcard, then as many characters for it as you like, which the pattern
    does not have. If a literal other than a slash stands behind the wildcard, what follows decides: the rest of
    the pattern, or only more of those characters, for then there is one literal too few. And if there is no
    `**`, it is the rest of the pattern, or more slashes than that has.
    """
    segments = _segments(pattern)
    if None not in segments:
        return any(segment is not None and None in segment for segment in segments)
    met = False
    for segment in segments:
        for character in (None,) if segment is None else segment:
            if met and character is not None:
                return True
            met |= character is None
    return False


def below_of(pattern: str) -> str | None:
    """The text of a pattern `text/**`, without wildcards else, or None."""
    *above, last = _segments(pattern)
    if last is not None or not above or any(segment is None or None in segment for segment in above):
        return None
    return "/".join("".join(map(str, segment or ())) for segment in above)


def _segments(pattern: str) -> list[_Segment]:
    if len(pattern) > MAX_GLOB_CHARACTERS:
        raise TextMistake(0, f"A path pattern has at most {MAX_GLOB_CHARACTERS:,} characters.")
    segments: list[_Segment] = []
    start = 0
    for text in pattern.split("/"):
        if text != "**":
            segments.append(_segment(text, start))
        elif segments[-1:] != [None]:
            segments.append(None)
        start += len(text) + 1
    return segments


def _segment(text: str, start: int) -> list[str | None]:
    characters: list[str | None] = []
    at = 0
    while at < len(text):
        if text[at] == "*":
            if characters and characters[-1] is None:
                raise TextMistake(start + at, "`**` stands for whole segments; put a `/` before and after it.")
            characters.append(None)
        elif text[at] != "\\":
            characters.append(text[at])
        elif text[at + 1 : at + 2] in ("*", "\\"):
            at += 1
            characters.append(text[at])
        else:
            raise TextMistake(start + at, "A backslash stands before `*` or another backslash.")
        at += 1
    return characters


class Machine:
    """The states of a glob are the bits of an integer; bit i is "what stands before place i has been read".

    A `*` is one place that stays where it is on all but a slash. A `**/` is two: at the beginning of a
    segment, and inside one. A `/**` at the end is two: before the slash, and behind it. Places that may
    match nothing hand their bit on at once (`_skip`); the order of the four lines there is the order in
    which such places can follow each other, so that one pass suffices.
    """

    def __init__(self, pattern: str) -> None:
        self.literals: dict[str, int] = {}
        self.stars = self.borders = self.tails = self.anything = 0
        self._place = 0
        segments = _segments(pattern)
        for index, segment in enumerate(segments):
            last = index == len(segments) - 1
            if segment is not None:
                for character in segment:
                    self._add(character)
                if not last and not (index + 2 == len(segments) and segments[-1] is None):
                    self._add("/")
            elif not last:
                self.borders |= self._next(2)
            elif index:
                self.tails |= (before := self._next(2))
                self.literals["/"] = self.literals.get("/", 0) | before
            else:
                self.anything |= self._next(1)
        self.anything |= self.tails << 1
        self.last = 1 << self._place
        self.first = self._skip(1)

    def _next(self, places: int) -> int:
        bit = 1 << self._place
        self._place += places
        return bit

    def _add(self, character: str | None) -> None:
        if character is None:
            self.stars |= self._next(1)
        else:
            self.literals[character] = self.literals.get(character, 0) | self._next(1)

    def _skip(self, state: int) -> int:
        state |= (state & self.borders) << 2
        state |= (state & self.stars) << 1
        state |= (state & self.tails) << 2
        return state | (state & self.anything) << 1

    def step(self, state: int, character: str) -> int:
        moved = (state & self.literals.get(character, 0)) << 1 | state & self.anything
        inside = self.borders << 1
        if character == "/":
            moved |= (state & inside) >> 1 | state & self.borders
        else:
            moved |= state & (self.stars | inside) | (state & self.borders) << 1
        return self._skip(moved)


machine = functools.lru_cache(maxsize=1024)(Machine)
