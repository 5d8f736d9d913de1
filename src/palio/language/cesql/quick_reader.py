"""The formula of a plain expression, read by one regular expression for a whole condition.

    type = 'shop.order' AND hop < 5 AND subject LIKE 'news.%'

Attributes compared with plain strings and integers, joined by AND alone or by OR alone. What it gives is, part
by part, what `reader` gives, which reads anything else, every mistake included.
"""

from __future__ import annotations

import re

from palio.language.cesql.reader import BINARY, CONTENT, KEYWORDS, READING
from palio.model.effort import spend
from palio.model.formulas.formula import Call, Constant, Formula, Variable
from palio.model.values import MAX_NAME_CHARACTERS

# So short a text reaches none of the reader's bounds on calls and operands, nor a string its bound on bytes.
MAX_CHARACTERS = 2_048
# What is no attribute's name.
_TAKEN = frozenset((CONTENT, *map(str.lower, KEYWORDS)))
_BLANK = r"[ \t\r\n]"
# Integers of at most 9 digits surely fit into 32 bits. What else than `%` at the ends is special in a pattern
# is left to the reader.
_CONDITION = re.compile(
    rf"""{_BLANK}*([a-z][a-z0-9]*)
    (?: {_BLANK}*(=|!=|<>|<=|>=|<|>){_BLANK}* (?: '([^'\\]*)' | (-?[0-9]{{1,9}}) )
      | {_BLANK}+like{_BLANK}+ '(%?[^'\\%_!]{{1,1000}}%?)' )
    (?: {_BLANK}+(and|or){_BLANK}+ | {_BLANK}*\Z )""",
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)


def plain(text: str) -> Formula | None:
    """The formula of an expression of the plain shape; None if that is for `reader` to say."""
    if len(text) > MAX_CHARACTERS or not text.isascii():
        return None
    conditions: list[Formula] = []
    joint = None
    at = 0
    while True:
        found = _CONDITION.match(text, at)
        if found is None:
            return None
        name, sign, string, number, pattern, more = found.groups()
        name = name.lower()
        if name in _TAKEN or len(name) > MAX_NAME_CHARACTERS:
            return None
        if pattern is not None:
            conditions.append(Call("cesql.like", (Variable(name), Constant(pattern))))
        else:
            constant = Constant(int(number) if string is None else string)
            conditions.append(Call(BINARY[sign][1], (Variable(name), constant)))
        if more is None:
            break
        if joint is not None and more.upper() != joint:
            return None
        joint = more.upper()
        at = found.end()
    spend(READING * (2 * len(conditions) - 1))
    return conditions[0] if joint is None else Call(BINARY[joint][1], tuple(conditions))
