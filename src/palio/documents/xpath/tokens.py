"""The words of an XPath 1.0 expression.

`*`, `and`, `or`, `div` and `mod` are operators or names, and which of the two is decided by what stands before
them (section 3.7 of the recommendation): behind something that can be an operand they are operators. What a
name is (a function, an axis, a type of node, an element) is decided by what follows it, which the reader sees.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from palio.documents.xpath.errors import XPathSyntaxError

# Far longer than a name of an attribute can be: spelt in full, with white space, an expression has more.
MAX_CHARACTERS = 4_096

_START = (
    "A-Z_a-zÀ-ÖØ-öø-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d\u2070-\u218f\u2c00-\u2fef\u3001-\ud7ff"
    "\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_NAME = f"[{_START}][-.0-9·\u0300-\u036f\u203f-\u2040{_START}]*"
_TOKEN = re.compile(
    rf"""(?P<space>[ \t\r\n]+)
    |(?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)
    |(?P<string>"[^"]*"|'[^']*')
    |(?P<name>{_NAME}(?::(?:{_NAME}|\*))?)
    |(?P<symbol>::|//|\.\.|!=|<=|>=|[()\[\]@,./|+\-=<>*])""",
    re.VERBOSE,
)
_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_EITHER = frozenset(("and", "or", "div", "mod", "*"))
_OPERATOR_SYMBOLS = frozenset(("|", "+", "-", "=", "!=", "<", "<=", ">", ">="))
_NO_OPERAND = frozenset(("@", "::", "(", "[", ",", "/", "//"))


class XPathWord(NamedTuple):
    """Its `kind` is `number`, `string`, `name`, `operator`, `symbol` or `end`; `column` counts from 1."""

    kind: str
    text: str
    column: int


def tokens(text: str) -> list[XPathWord]:
    """The words of an expression, and one for its end. Raises `XPathSyntaxError`."""
    if len(text) > MAX_CHARACTERS:
        problem = f"the expression has {len(text):,} characters; the limit is {MAX_CHARACTERS:,}."
        raise XPathSyntaxError(text[:MAX_CHARACTERS], MAX_CHARACTERS, problem)
    if (strange := _NO_XML.search(text)) is not None:
        problem = f"XML has no character U+{ord(strange[0]):04X}."
        raise XPathSyntaxError(text, strange.start() + 1, problem, "Leave it out: no document has it.")
    found: list[XPathWord] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise XPathSyntaxError(text, at + 1, *_unreadable(text, at))
        kind, word = str(match.lastgroup), match.group()
        if kind != "space":
            if word in _OPERATOR_SYMBOLS or (word in _EITHER and _operand_before(found)):
                kind = "operator"
            found.append(XPathWord(kind, word, at + 1))
        at = match.end()
    return [*found, XPathWord("end", "", len(text) + 1)]


def _operand_before(found: list[XPathWord]) -> bool:
    return bool(found) and found[-1].kind != "operator" and found[-1].text not in _NO_OPERAND


def _unreadable(text: str, at: int) -> tuple[str, str]:
    character = text[at]
    if character in "\"'":
        return f"the string that begins with {character} has no end.", f"Write {character} behind it."
    if character == "$":
        return "there are no variables.", "Write the value itself."
    if character == "!":
        return "`!` alone is no operator.", "Write `!=`, or `not(…)`."
    return f"{character!r} has no meaning in XPath 1.0.", "Compare with the grammar of XPath 1.0."
