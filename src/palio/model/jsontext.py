"""JSON texts, read strictly: no key twice, every number exact, errors that say where.

What no value can be (NaN, too large an integer) is read as such, for whoever knows its path to refuse it.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from palio.model.errors import InvalidNotification
from palio.model.values import INT_MAX, MAX_NESTING

# The document as a whole; single values have their own limits.
MAX_JSON_BYTES = 16 * 1_048_576
# Three bytes of text make an object of sixty-four: without a bound, much more is read than was sent.
MAX_CONTAINERS = 500_000
_LONGEST_INTEGER = 20


def read(text: str | bytes) -> Any:
    """The document. Raises `InvalidNotification`."""
    if len(text) > MAX_JSON_BYTES:
        raise InvalidNotification("$", f"This JSON has more than {MAX_JSON_BYTES:,} bytes.")
    try:
        decoded = text.decode("utf-8-sig") if isinstance(text, bytes) else text
        if decoded.count("{") + decoded.count("[") > MAX_CONTAINERS:
            raise InvalidNotification("$", f"This JSON has more than {MAX_CONTAINERS:,} objects and arrays.")
        if decoded.startswith("\ufeff"):
            raise InvalidNotification("$", "This is not JSON: it begins with a byte order mark.")
        return _DECODER.decode(decoded)
    except json.JSONDecodeError as problem:
        raise InvalidNotification("$", f"This is not JSON: {problem}.") from None
    except UnicodeDecodeError:
        raise InvalidNotification("$", "This is not JSON: its bytes are not UTF-8.") from None
    except RecursionError:
        raise InvalidNotification("$", f"Objects are nested more than {MAX_NESTING} deep.") from None


def write(document: Any) -> bytes:
    """The text of a document. Raises `InvalidNotification` for what JSON cannot hold."""
    try:
        return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as problem:
        raise InvalidNotification("$", f"This content cannot be kept as JSON: {problem}.") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice, _ = Counter([key for key, _ in pairs]).most_common(1)[0]
        raise InvalidNotification(f"$.….{twice[:64]}", "This key is there twice in one object.")
    return found


def _integer(digits: str) -> int:
    # Reading thousands of digits takes quadratic time; what does not fit is refused with its path later.
    return int(digits) if len(digits) <= _LONGEST_INTEGER else INT_MAX + 1


# One for all: to make a decoder takes longer than it takes to read a short text.
_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_int=_integer)
