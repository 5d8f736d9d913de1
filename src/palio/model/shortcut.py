"""The short way from text to expression, for the filters that most subscribers write.

`symbol = "ACME" and price between 10 and 20.5`: plain names compared with plain strings and numbers, joined by
`and`. One regular expression reads a whole condition of that shape, which is twice as fast as reading its
tokens one by one. Anything else, every mistake included, is left to `parser`, where all means the same.
"""

from __future__ import annotations

import math
import re

from palio.model.constraint import Constraint
from palio.model.expression import KEYWORDS, And, Condition, Expression
from palio.model.values import KINDS_BY_NAME, MAX_NAME_CHARACTERS

# So short a text reaches none of the parser's bounds on conditions and values, nor a string its bound on bytes.
MAX_CHARACTERS = 2_048
# The longest integer that surely fits into 64 bits, sign included.
_MAX_DIGITS = 18

# Words that mean something else than an attribute of that name.
_TAKEN = KEYWORDS | {word.upper() for word in KEYWORDS} | set(KINDS_BY_NAME)
NUMBER = r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"
_CONDITION = re.compile(
    rf"""\s*([^\W\d]\w*(?:\.\w+)*)
    (?: \s*(=|<=|>=|<|>)\s* (?: "([^"\\]*)" | ({NUMBER}) )
      | \s+between\s+ ({NUMBER}) \s+and\s+ ({NUMBER}) )
    (?: (\s+and\s) | \s*\Z )""",
    re.VERBOSE,
)


def plain(text: str) -> Expression | None:
    """What the text means, if it is of the plain shape; None if that is for the parser to say."""
    if len(text) > MAX_CHARACTERS or not text.isascii():
        return None
    conditions = []
    at = 0
    while True:
        found = _CONDITION.match(text, at)
        if found is None:
            return None
        name, operator, string, number, low, high, more = found.groups()
        if name in _TAKEN or len(name) > MAX_NAME_CHARACTERS:
            return None
        if string is not None:
            constraint = Constraint(operator, string)
        elif number is not None:
            value = _value(number)
            if value is None:
                return None
            constraint = Constraint(operator, value)
        else:
            first, last = _value(low), _value(high)
            if first is None or last is None:
                return None
            constraint = Constraint("between", (first, last))
        conditions.append(Condition(name, constraint))
        if more is None:
            return conditions[0] if len(conditions) == 1 else And(tuple(conditions))
        at = found.end()


def _value(digits: str) -> int | float | None:
    if "." in digits or "e" in digits or "E" in digits:
        real = float(digits) + 0.0
        return real if math.isfinite(real) else None
    return int(digits) if len(digits) <= _MAX_DIGITS else None
