"""Regular expressions as RFC 9485 has them (I-Regexp), from text to the shape of a language.

    i-regexp   = branch { "|" branch }
    branch     = { piece }
    piece      = atom [ "*" | "+" | "?" | "{" count [ "," [ count ] ] "}" ]
    atom       = character | "." | "\\" escaped | "[" [ "^" ] items "]" | "(" i-regexp ")"

An expression is about the whole text; `.` is any character but the ends of lines. There are no anchors (`^` and
`$` are characters, as the RFC has them), no groups that remember and no looking around, so each is a regular
language. Categories such as `\\p{L}` are refused: which characters they have depends on the version of Unicode,
and a filter means the same at every broker. Whatever else is not in the grammar is refused at its character.
"""

from __future__ import annotations

from typing import NoReturn

from palio.model.codes import character_of, code_of
from palio.model.regular import Chain, Letter, OneOf, Ranges, Repeated, Shape, letter, others, ranges_of
from palio.model.texts import TextMistake

MAX_REGEX_CHARACTERS = 1_024
# Deeper ones are nobody's wish; reading goes one call deeper with each.
MAX_PARENTHESES = 32
_MAX_DIGITS = 4

_ESCAPED = {**{one: one for one in "()*+-.?[\\]^{|}"}, "n": "\n", "r": "\r", "t": "\t"}
_CATEGORIES = (
    "Categories such as \\p{L} depend on the version of Unicode, and are not supported; "
    "write the characters, as in [a-zA-Z]."
)
_DIGITS = "Write [0-9] for digits, [a-zA-Z0-9_] for characters of words and [ \\t\\n\\r] for white space."
_QUANTIFIERS = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_LINE_ENDS: Ranges = ranges_of((code_of(one), code_of(one) + 1) for one in "\n\r")
_ANY = Letter(others(_LINE_ENDS))


def shape_of(pattern: str) -> Shape:
    """What a regular expression means. Raises `TextMistake`."""
    if len(pattern) > MAX_REGEX_CHARACTERS:
        raise TextMistake(0, f"A regular expression has at most {MAX_REGEX_CHARACTERS:,} characters.")
    reader = _ExpressionText(pattern)
    shape = reader.branches(0)
    if reader.at < len(pattern):
        reader.fail("A `)` needs a `(` before it; the character is written `\\)`.")
    return shape


def literal_of(shape: Shape) -> str | None:
    """The one text of a language that has but one, if it is written as such; or None."""
    parts = shape.parts if isinstance(shape, Chain) else (shape,)
    text = ""
    for part in parts:
        if not isinstance(part, Letter) or len(part.ranges) != 1 or part.ranges[0][1] != part.ranges[0][0] + 1:
            return None
        text += character_of(part.ranges[0][0])
    return text


class _ExpressionText:
    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0

    @property
    def next(self) -> str:
        """The character here; empty at the end."""
        return self.pattern[self.at : self.at + 1]

    def fail(self, message: str, at: int | None = None) -> NoReturn:
        raise TextMistake(self.at if at is None else at, message)

    def branches(self, depth: int) -> Shape:
        if depth > MAX_PARENTHESES:
            self.fail(f"Parentheses are nested more than {MAX_PARENTHESES} deep.")
        branches = [self._branch(depth)]
        while self.next == "|":
            self.at += 1
            branches.append(self._branch(depth))
        return branches[0] if len(branches) == 1 else OneOf(tuple(branches))

    def _branch(self, depth: int) -> Shape:
        pieces: list[Shape] = []
        while self.next not in ("", "|", ")"):
            pieces.append(self._quantified(self._atom(depth)))
        return pieces[0] if len(pieces) == 1 else Chain(tuple(pieces))

    def _atom(self, depth: int) -> Shape:
        character = self.next
        if character == "(":
            start = self.at
            self.at += 1
            if self.next == "?":
                self.fail("Groups with a `?` are not supported: parentheses only group.")
            inner = self.branches(depth + 1)
            if self.next != ")":
                self.fail("This `(` is never closed; the character is written `\\(`.", start)
            self.at += 1
            return inner
        if character == "[":
            return self._class()
        if character == "\\":
            return letter(self._escaped())
        if character in "*+?{":
            itself = f"the character is written `\\{character}`."
            self.fail(f"Before `{character}` stands what is repeated; {itself}")
        if character in "]}":
            self.fail(f"The character `{character}` is written `\\{character}`.")
        self.at += 1
        return _ANY if character == "." else letter(character)

    def _escaped(self) -> str:
        character = self.pattern[self.at + 1 : self.at + 2]
        if character in ("p", "P"):
            self.fail(_CATEGORIES)
        if character not in _ESCAPED:
            advice = f" {_DIGITS}" if character and character in "dDwWsS" else ""
            self.fail(f"The escape `\\{character}` is not known.{advice}")
        self.at += 2
        return _ESCAPED[character]

    def _quantified(self, part: Shape) -> Shape:
        start, sign = self.at, self.next
        if sign in _QUANTIFIERS:
            self.at += 1
            least, most = _QUANTIFIERS[sign]
        elif sign == "{":
            self.at += 1
            least, most = self._counts(start)
        else:
            return part
        if self.next in _QUANTIFIERS or self.next == "{":
            self.fail("What is repeated already is repeated again only in parentheses; matches are never lazy.")
        return Repeated(part, least, most)

    def _counts(self, start: int) -> tuple[int, int | None]:
        least = self._count()
        most: int | None = least
        if self.next == ",":
            self.at += 1
            most = None if self.next == "}" else self._count()
        if self.next != "}":
            self.fail("Expected `}` behind the counts of a repetition, such as {2,5}.")
        self.at += 1
        if most is not None and most < least:
            self.fail("The second count of a repetition is not less than the first.", start)
        return least, most

    def _count(self) -> int:
        start = self.at
        while self.next and self.next in "0123456789":
            self.at += 1
        digits = self.pattern[start : self.at]
        if not digits:
            self.fail("Expected a count, such as in {3} or {2,5}; the character is written `\\{`.", start)
        if len(digits) > _MAX_DIGITS:
            self.fail(f"A count has at most {_MAX_DIGITS} digits.", start)
        return int(digits)

    def _class(self) -> Shape:
        start = self.at
        self.at += 1
        negated = self.next == "^"
        if negated:
            self.at += 1
        found: list[tuple[int, int]] = []
        first = self.at
        while self.next != "]":
            if not self.next:
                self.fail("This `[` is never closed; the character is written `\\[`.", start)
            found.append(self._item(is_first=self.at == first))
        if self.at == first:
            self.fail("A set of characters has at least one.", start)
        self.at += 1
        ranges = ranges_of(found)
        return Letter(others(ranges) if negated else ranges)

    def _item(self, *, is_first: bool) -> tuple[int, int]:
        if self.next == "-":
            if not is_first and self.pattern[self.at + 1 : self.at + 2] != "]":
                self.fail("A `-` stands first or last in a set of characters, between two, or as `\\-`.")
            self.at += 1
            return code_of("-"), code_of("-") + 1
        start = self.at
        low = self._class_character()
        if self.next != "-" or self.pattern[self.at + 1 : self.at + 2] in ("]", ""):
            return code_of(low), code_of(low) + 1
        self.at += 1
        high = self._class_character()
        if high < low:
            self.fail(f"The range `{self.pattern[start : self.at]}` goes backwards.", start)
        return code_of(low), code_of(high) + 1

    def _class_character(self) -> str:
        character = self.next
        if character == "\\":
            return self._escaped()
        if character in "[-":
            self.fail(f"The character `{character}` is written `\\{character}` in a set of characters.")
        self.at += 1
        return character
