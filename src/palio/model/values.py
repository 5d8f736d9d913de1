"""What a value is: its kind, its limits, and the one way in which input becomes a value.

A value is a `bool`, an `int` of 64 bits, a finite `float`, a `str` without lone surrogates, a `datetime` in
UTC, `bytes`, or a tuple of values of one of these kinds. Nothing is coerced: `"10"` is not `10`, and `True`
is not `1` although Python thinks so. There is no null; what is null is absent.

Numbers are of two kinds but on one line: a comparison that demands no type compares ints and floats exactly.
"""

from __future__ import annotations

import enum
import math
import numbers
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from palio.model.errors import InvalidNotification

Scalar: TypeAlias = "bool | int | float | str | datetime | bytes"
Value: TypeAlias = "Scalar | tuple[Scalar, ...]"


class Kind(enum.IntEnum):
    """The kinds of values; the number is the place of a kind's part in a `ValueSet`."""

    BOOL = 0
    INT = 1
    FLOAT = 2
    STRING = 3
    TIME = 4
    BYTES = 5
    LIST = 6


KIND_NAMES = {kind: kind.name.lower() for kind in Kind}
KINDS_BY_NAME = {name: kind for kind, name in KIND_NAMES.items()}

# Plain ints as values: looked up once for each value of each notification that is matched.
KIND_OF_TYPE: dict[type, int] = {bool: 0, int: 1, float: 2, str: 3, datetime: 4, bytes: 5, tuple: 6}

INT_MIN, INT_MAX = -(2**63), 2**63 - 1
FLOAT_MAX = math.nextafter(math.inf, 0.0)
TIME_MIN = datetime.min.replace(tzinfo=UTC)
TIME_MAX = datetime.max.replace(tzinfo=UTC)

# The limits keep a single notification from hurting a broker; each is far beyond what events in use carry.
MAX_NAME_CHARACTERS = 255
MAX_ATTRIBUTES = 1_024
MAX_STRING_BYTES = 65_536
MAX_LIST_ELEMENTS = 1_024
MAX_PAYLOAD_BYTES = 1_048_576
MAX_NESTING = 32


def member_path(path: str, name: object) -> str:
    """The path of a member. Of a long name, which is no attribute's, only the beginning is repeated."""
    text = str(name)
    return f"{path}.{text}" if len(text) <= 64 else f"{path}.{text[:64]}…"


def check_name(name: object, path: str) -> str:
    """An attribute's name, or `InvalidNotification`."""
    if not isinstance(name, str):
        raise InvalidNotification(path, f"An attribute's name is a string, not {type(name).__name__}.")
    if not name:
        raise InvalidNotification(path, "An attribute's name cannot be empty.")
    if len(name) > MAX_NAME_CHARACTERS:
        raise InvalidNotification(
            path, f"This name has {len(name):,} characters; the limit is {MAX_NAME_CHARACTERS}."
        )
    check_text(name, path)
    return name


def check_text(text: str, path: str) -> None:
    """Refuse what UTF-8 cannot hold and what is too long."""
    if text.isascii():
        size = len(text)
    else:
        try:
            size = len(text.encode())
        except UnicodeEncodeError:
            raise InvalidNotification(path, "A string cannot hold a lone surrogate.") from None
    if size > MAX_STRING_BYTES:
        raise InvalidNotification(path, f"This string has {size:,} bytes; the limit is {MAX_STRING_BYTES:,}.")


def check_scalar(value: Any, path: str) -> Scalar:
    """The value in its one form (times in UTC, subclasses made plain), or `InvalidNotification`."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        check_text(value, path)
        return str.__str__(value)
    if isinstance(value, numbers.Integral):
        if not INT_MIN <= (number := int(value)) <= INT_MAX:
            raise InvalidNotification(path, "This integer does not fit into 64 bits.")
        return number
    if isinstance(value, numbers.Real):
        if not math.isfinite(real := float(value)):
            raise InvalidNotification(path, f"A float must be finite; this is {real}.")
        if real != value:
            raise InvalidNotification(path, f"No float is equal to this {type(value).__name__}.")
        return real
    if isinstance(value, datetime):
        return check_time(value, path)
    if isinstance(value, (bytes, bytearray, memoryview)):
        if len(raw := bytes(value)) > MAX_STRING_BYTES:
            raise InvalidNotification(
                path, f"These bytes are {len(raw):,} long; the limit is {MAX_STRING_BYTES:,}."
            )
        return raw
    raise InvalidNotification(
        path,
        f"A value of type {type(value).__name__} is none of bool, int, float, string, time, bytes or a list.",
    )


def check_time(value: datetime, path: str) -> datetime:
    """The same moment in UTC; a time without a zone names no moment and is refused."""
    if type(value) is datetime and value.tzinfo is UTC:
        return value
    offset = value.utcoffset()
    if offset is None:
        raise InvalidNotification(path, "A time needs a zone, such as Z or +02:00.")
    try:
        day = datetime(value.year, value.month, value.day, tzinfo=UTC)
        clock = timedelta(0, value.second, value.microsecond, 0, value.minute, value.hour)
        return day + (clock - offset)
    except OverflowError:
        raise InvalidNotification(path, "This time lies outside the years 1 to 9999.") from None


def as_list(values: list[Any] | tuple[Any, ...], path: str) -> tuple[Scalar, ...] | None:
    """A list of values of one kind, or None if attributes cannot hold it (nested or mixed).

    Ints among floats become floats where that loses nothing: writers of JSON drop the point of `1.0`.
    """
    if len(values) > MAX_LIST_ELEMENTS:
        raise InvalidNotification(
            path, f"This list has {len(values):,} elements; the limit is {MAX_LIST_ELEMENTS:,}."
        )
    if any(value is None or isinstance(value, (list, tuple, dict)) for value in values):
        return None
    scalars = [check_scalar(value, f"{path}[{index}]") for index, value in enumerate(values)]
    kinds = {type(scalar) for scalar in scalars}
    if kinds == {int, float}:
        floats = [float(scalar) for scalar in scalars if isinstance(scalar, (int, float))]
        return tuple(floats) if floats == scalars else None
    return tuple(scalars) if len(kinds) <= 1 else None
