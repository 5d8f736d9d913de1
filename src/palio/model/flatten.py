"""From nested data to flat attributes: the one way in which mappings, JSON and CloudEvents come in.

Mappings flatten to dotted names, None means absent, `{"$time": "…"}` is a time and `{"$bytes": "…"}` bytes in
base64. Lists of values of one kind are values; what attributes cannot hold (lists of mappings, mixed or
nested lists) is left aside, to be kept in the payload, or refused in strict mode.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

import msgspec

from palio.model.errors import InvalidNotification
from palio.model.moments import parse_time
from palio.model.values import (
    MAX_ATTRIBUTES,
    MAX_NESTING,
    Scalar,
    Value,
    as_list,
    check_name,
    check_scalar,
    check_time,
)

# Mappings with one of these and nothing else are values.
MARKS = ("$time", "$bytes")


class Flat(msgspec.Struct):
    """The attributes, and by dotted name what they cannot hold, in the order of these names."""

    attributes: dict[str, Any]
    unindexed: dict[str, Any]


def flatten(
    data: Mapping[str, Any], *, prefix: str = "", keep_null: bool = False, strict: bool = False
) -> Flat:
    """Flatten nested data. Raises `InvalidNotification` with the path of what is wrong."""
    if not isinstance(data, Mapping):
        raise InvalidNotification("$", _no_mapping(data))
    flat = Flat({}, {})
    _Flattener(flat, keep_null, strict).mapping(data, prefix, "$" + (f".{prefix[:-1]}" if prefix else ""), 0)
    # Members of an object have no order, but the bytes of the payload do: the same content is the same bytes.
    if len(flat.unindexed) > 1:
        flat.unindexed = dict(sorted(flat.unindexed.items()))
    return flat


def _no_mapping(data: object) -> str:
    other = ""
    if isinstance(data, str | bytes | bytearray | memoryview):
        other = " For the text of a JSON object there is Notification.from_json, for bytes the payload."
    return (
        'A notification is made of names and their values, such as {"symbol": "ACME", "price": 101.5}; '
        f"this is of type {type(data).__name__}.{other}"
    )


def nest(flat: Mapping[str, Any]) -> dict[str, Any]:
    """The other way: dotted names as nested mappings, wherever two names do not stand in each other's way.

    What it gives flattens to the same again: no mapping that it makes can be taken for a time or for bytes.
    """
    nested: dict[str, Any] = {}
    for name in sorted(flat):
        *way, last = name.split(".", MAX_NESTING)
        place = nested
        for at, part in enumerate(way):
            inner = place.setdefault(part, {})
            if type(inner) is not dict or ".".join(way[: at + 1]) in flat:
                last = ".".join([*way[at:], last])
                break
            place = inner
        place[last] = flat[name]
    if any(f".{mark}" in name for name in flat for mark in MARKS):
        _join_marks(nested, "", flat)
    return nested


def _join_marks(place: dict[str, Any], prefix: str, flat: Mapping[str, Any]) -> None:
    """Join a name with a mark behind it, where the mark is all that there is: such a mapping is special."""
    for key, inner in list(place.items()):
        name = prefix + key
        if type(inner) is dict and name not in flat:  # otherwise it is a value, and may well be marked
            _join_marks(inner, name + ".", flat)
            if len(inner) == 1 and (mark := next(iter(inner))) in MARKS:
                del place[key]
                place[f"{key}.{mark}"] = inner[mark]


class _Flattener(msgspec.Struct):
    flat: Flat
    keep_null: bool
    strict: bool

    def mapping(self, data: Mapping[str, Any], prefix: str, path: str, depth: int) -> None:
        if depth > MAX_NESTING:
            raise InvalidNotification(path, f"Objects are nested more than {MAX_NESTING} deep.")
        for key, value in data.items():
            here = f"{path}.{key}" if len(str(key)) <= 64 else f"{path}.{str(key)[:64]}…"
            if not isinstance(key, str):
                check_name(key, here)
            name = prefix + key
            if isinstance(value, Mapping):
                special = _special(value, here)
                if special is None:
                    check_name(name, here)
                    self.mapping(value, name + ".", here, depth + 1)
                    continue
                value = special
            self.value(name, value, here)

    def value(self, name: str, value: Any, path: str) -> None:
        check_name(name, path)
        if value is None and not self.keep_null:
            return
        target: dict[str, Any] = self.flat.attributes
        kept: Value | None = None
        if isinstance(value, (list, tuple)):
            marked = [_special(one, f"{path}[{index}]") for index, one in enumerate(value)]
            kept = as_list(
                [one if mark is None else mark for one, mark in zip(value, marked, strict=True)], path
            )
            if kept is None:
                if self.strict:
                    raise InvalidNotification(
                        path, "A list must hold values of one kind, and no objects or lists."
                    )
                target, kept = self.flat.unindexed, value  # type: ignore[assignment]
        elif value is not None:
            kept = check_scalar(value, path)
        if name in self.flat.attributes or name in self.flat.unindexed:
            raise InvalidNotification(
                path, f"The attribute {name!r} is there twice once objects are flattened."
            )
        target[name] = kept
        if len(self.flat.attributes) > MAX_ATTRIBUTES:
            raise InvalidNotification("$", f"There are more than {MAX_ATTRIBUTES:,} attributes.")


def _special(value: Any, path: str) -> Scalar | None:
    """The time or bytes that a marked object means; None if it is an ordinary one."""
    if not isinstance(value, Mapping) or len(value) != 1:
        return None
    ((key, text),) = value.items()
    if key not in MARKS:
        return None
    if not isinstance(text, str):
        raise InvalidNotification(path, f"{key} takes a string.")
    if key == "$time":
        try:
            return check_time(parse_time(text), path)
        except ValueError as problem:
            raise InvalidNotification(path, str(problem)) from None
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise InvalidNotification(path, "$bytes takes base64.") from None
