"""Functions of strings, and `coalesce`.

`lower` and `upper` are about the letters of ASCII, and leave others as they are: which characters are letters
elsewhere depends on the version of Unicode, and a filter means the same at every broker.
"""

from __future__ import annotations

import string
from typing import Any

from palio.model.formulas.formula import UNKNOWN, Failed
from palio.model.formulas.function import INTEGERS, STRINGS, Function, demanding
from palio.model.values import Kind
from palio.model.valueset import PRESENT

_MEASURED = PRESENT.only(Kind.STRING, Kind.BYTES, Kind.LIST)
_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_UPPER = str.maketrans(string.ascii_lowercase, string.ascii_uppercase)
# As many attributes as anybody would try one after the other.
MAX_CHOICES = 16


def _coalesce(*choices: Any) -> Any:
    """The first one that is a value."""
    return next((one for one in choices if one is not UNKNOWN and type(one) is not Failed), UNKNOWN)


FUNCTIONS = {
    "lower": Function(
        lambda text: text.translate(_LOWER) if type(text) is str else UNKNOWN, 1, 1, STRINGS, demanding(STRINGS)
    ),
    "upper": Function(
        lambda text: text.translate(_UPPER) if type(text) is str else UNKNOWN, 1, 1, STRINGS, demanding(STRINGS)
    ),
    # Characters of a string, bytes of bytes, elements of a list.
    "length": Function(
        lambda value: len(value) if type(value) in (str, bytes, tuple) else UNKNOWN,
        1,
        1,
        INTEGERS,
        demanding(_MEASURED),
    ),
    "coalesce": Function(_coalesce, 1, MAX_CHOICES),
}
