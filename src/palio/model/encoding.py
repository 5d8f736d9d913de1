"""Attributes as bytes, the form in which they travel and are kept: one MessagePack map from names to values.

Bools, ints, strings and bytes are MessagePack's own, floats always have 64 bits, lists are arrays, and times
are its timestamp extension. Names are written in ascending order, so equal attributes give equal bytes (but
for the sign of a zero, which is kept).

Reading trusts nothing: the bytes may come from another program, or from nobody who means well. It takes any
order of names and any width of a number, and holds everything else to the rules of `values`. What it accepts is
also what the compiled match index accepts (`matching/native/payload.h`): whoever changes one changes both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from palio.model.errors import InvalidNotification
from palio.model.values import (
    INT_MAX,
    MAX_ATTRIBUTES,
    MAX_NAME_CHARACTERS,
    MAX_STRING_BYTES,
    Value,
    as_list,
    check_name,
    check_scalar,
    member_path,
)

_encoder = msgspec.msgpack.Encoder(order="sorted")
_decoder = msgspec.msgpack.Decoder(dict[str, Any])
_raw_decoder = msgspec.msgpack.Decoder(dict[str, msgspec.Raw])
_raw_list_decoder = msgspec.msgpack.Decoder(list[msgspec.Raw])

_MICROSECOND = timedelta(microseconds=1)
# Where the content of an extension begins, by the first byte of its header.
_EXTENSION_CONTENT = {0xD6: 2, 0xD7: 2, 0xC7: 3, 0xC8: 4, 0xC9: 6}


def encode(attributes: Mapping[str, Value]) -> bytes:
    """The bytes of attributes that are in their one form."""
    return _encoder.encode(dict(attributes))


def decode(data: bytes) -> dict[str, Value]:
    """The attributes that the bytes say, or `InvalidNotification` with the path of what is wrong."""
    try:
        content = _decoder.decode(data)
    except RecursionError:
        raise InvalidNotification("$", "Lists or maps are nested too deep.") from None
    except (msgspec.DecodeError, ValueError) as problem:  # ValueError: wrong UTF-8, a time after the year 9999
        raise InvalidNotification("$", f"This is no MessagePack map of attributes: {problem}.") from None
    count = _announced(data)
    if count > MAX_ATTRIBUTES:
        raise InvalidNotification("$", f"There are more than {MAX_ATTRIBUTES:,} attributes.")
    if count != len(content):
        raise InvalidNotification("$", "An attribute is there twice.")
    attributes: dict[str, Value] = {}
    raws: dict[str, msgspec.Raw] | None = None
    for name, value in content.items():
        if 0 < len(name) <= MAX_NAME_CHARACTERS and _is_plain(value):
            attributes[name] = value
            continue
        checked = attributes[name] = _checked(name, value)
        if type(checked[0] if type(checked) is tuple and checked else checked) is datetime:
            raws = _raw_decoder.decode(data) if raws is None else raws
            attributes[name] = _cut(checked, bytes(raws[name]))
    return attributes


def _is_plain(value: Any) -> bool:
    """Whether this is clearly a value in its one form; for the others the checks of `values` decide."""
    kind = type(value)
    if kind is str:
        return len(value) <= MAX_STRING_BYTES // 4
    if kind is float:
        return math.isfinite(value)
    if kind is int:
        return bool(value <= INT_MAX)
    return kind is bool


def _checked(name: str, value: Any) -> Value:
    path = member_path("$", name)
    check_name(name, path)
    if type(value) is not list:
        return check_scalar(value, path)
    checked = as_list(value, path)
    if checked is None:
        raise InvalidNotification(path, "A list must hold values of one kind, and no objects or lists.")
    return checked


def _announced(data: bytes) -> int:
    """How many pairs the header of a map announces."""
    if data[0] == 0xDE:
        return int.from_bytes(data[1:3])
    return int.from_bytes(data[1:5]) if data[0] == 0xDF else data[0] & 0x0F


def _cut(value: Any, raw: bytes) -> Value:
    """Times without what is finer than microseconds: msgspec rounds it, and we cut it everywhere."""
    if type(value) is tuple:
        elements = _raw_list_decoder.decode(raw)
        return tuple(_cut(one, bytes(element)) for one, element in zip(value, elements, strict=True))  # type: ignore[misc]
    content = raw[_EXTENSION_CONTENT[raw[0]] :]
    nanoseconds = 0
    if len(content) == 8:
        nanoseconds = int.from_bytes(content) >> 34
    elif len(content) == 12:
        nanoseconds = int.from_bytes(content[:4])
    moment: datetime = value
    return moment - _MICROSECOND if nanoseconds % 1_000 >= 500 else moment
