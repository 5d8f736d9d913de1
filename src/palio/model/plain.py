"""A short way to the bytes of attributes, for the mappings that most publishers use.

A dict from names to bools, ints, floats and short strings is in its one form already, so it need not be
flattened and rebuilt. Whatever is not clearly so is left to `Notification`, which also says what is wrong with
it: what is accepted here, it accepts too, and gives the same bytes. The plainest of all are written by compiled
code (`quick.pyx`), where there is any.

`has_part` looks into the attributes of notifications without reading them.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from typing import Any

import msgspec

from palio.model.values import INT_MAX, INT_MIN, MAX_ATTRIBUTES, MAX_NAME_CHARACTERS, MAX_STRING_BYTES

__all__ = ["encode_plain", "has_part"]

# So many characters are never too many bytes.
_SHORT = MAX_STRING_BYTES // 4

_encode = msgspec.msgpack.Encoder(order="sorted").encode


try:
    from palio.model.quick import encode as _quick
    from palio.model.quick import has_part
except ImportError:  # without a compiler

    def _quick(attributes: dict[str, Any]) -> bytes | None:
        return None

    def has_part(several: Iterable[Any], part: bytes) -> bool:
        return any(part in one.body.attributes for one in several)


def encode_plain(attributes: dict[str, Any]) -> bytes | None:
    """What `Notification(attributes).encode()` gives, or None where this way is not clearly right."""
    encoded = _quick(attributes)
    if encoded is not None or len(attributes) > MAX_ATTRIBUTES:
        return encoded
    for name, value in attributes.items():
        kind = type(value)
        if kind is str:
            if len(value) > _SHORT:
                return None
        elif kind is float:
            if not isfinite(value):
                return None
        elif kind is int:
            if not INT_MIN <= value <= INT_MAX:
                return None
        elif kind is not bool:
            return None
        if type(name) is not str or not 0 < len(name) <= MAX_NAME_CHARACTERS:
            return None
    try:
        return _encode(attributes)
    except UnicodeEncodeError:  # a lone surrogate
        return None
