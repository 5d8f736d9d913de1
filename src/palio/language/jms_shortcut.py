"""The short way from a selector to an expression, for what most selectors are.

    symbol = 'IBM' AND price BETWEEN 10 AND 20.5 AND venue LIKE 'XET%'

Plain names compared with plain strings and numbers, joined by AND, as `model.shortcut` reads them in our own
language: one regular expression for a whole condition. Anything else, every mistake included, is left to `jms`,
where all means the same.
"""

from __future__ import annotations

import math
import re

from palio.model.constraint import Constraint
from palio.model.expression import And, Condition, Expression
from palio.model.values import MAX_NAME_CHARACTERS

# So short a text reaches none of the reader's bounds on conditions and values, nor a string its bound on bytes.
MAX_CHARACTERS = 2_048
# Of at most 18 digits, which surely fit into 64 bits; a zero before others would make it octal.
_NUMBER = r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]+)?"
_BLANK = r"[ \t\f\r\n]"
_CONDITION = re.compile(
    rf"""{_BLANK}*([a-z_]\w*(?:\.\w+)*)
    (?: {_BLANK}*(=|<=|>=|<|>){_BLANK}* (?: '([^']*)' | ({_NUMBER}) )
      | {_BLANK}+between{_BLANK}+ ({_NUMBER}) {_BLANK}+and{_BLANK}+ ({_NUMBER})
      | {_BLANK}+like{_BLANK}+ '(%?)([^'%_]{{1,1000}})(%?)' )
    (?: ({_BLANK}+and{_BLANK}+) | {_BLANK}*\Z )""",
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)
_LIKE = {("", "%"): "starts with", ("%", ""): "ends with", ("%", "%"): "contains"}


def plain(text: str, keywords: frozenset[str]) -> Expression | None:
    """What a selector means, if it is of the plain shape; None if that is for `jms` to say."""
    if len(text) > MAX_CHARACTERS or not text.isascii():
        return None
    conditions: list[Expression] = []
    at = 0
    while True:
        found = _CONDITION.match(text, at)
        if found is None:
            return None
        name, operator, string, number, low, high, before, part, behind, more = found.groups()
        if name.upper() in keywords or len(name) > MAX_NAME_CHARACTERS:
            return None
        if string is not None:
            constraint = Constraint(operator, string)
        elif part is not None:
            constraint = Constraint(_LIKE.get((before, behind), "="), part)
        else:
            values = [_value(one) for one in ((number,) if number is not None else (low, high))]
            if math.inf in values or values[0] > values[-1]:  # the reader says why
                return None
            constraint = Constraint(operator, values[0]) if operator else Constraint("between", tuple(values))
        conditions.append(Condition(name, constraint))
        if more is None:
            return conditions[0] if len(conditions) == 1 else And(tuple(conditions))
        at = found.end()


def _value(digits: str) -> int | float:
    return float(digits) + 0.0 if "." in digits else int(digits)
