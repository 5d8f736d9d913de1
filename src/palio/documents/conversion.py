"""Texts of a document become values of an attribute, as XML Schema writes them.

Whatever a schema calls an integer is written in one way, and so is every other kind; what a schema allows and a
value cannot be (an integer of 70 bits, a time without a zone, a number that is infinite) is refused, with the
line. An element without a value, as `xsi:nil` says, has none.
"""

from __future__ import annotations

import math
import re
from datetime import datetime
from typing import Any, Final

from palio.documents.errors import DocumentRefused
from palio.documents.family import PathKind
from palio.model.moments import parse_time
from palio.model.values import INT_MAX, INT_MIN, MAX_STRING_BYTES, Scalar

SPACE: Final = " \t\r\n"
NIL: Final = "{http://www.w3.org/2001/XMLSchema-instance}nil"
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,40}")
_FLOAT: Final = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_BOOLEANS: Final = {"true": True, "1": True, "false": False, "0": False}
_NO_TIME: Final = "is no time with a zone, such as 2026-03-28T10:00:00Z"


def value_of(text: str, kind: PathKind, node: Any, path: str) -> Scalar | None:
    """The value that a text is; None for an element that is nil. Raises `DocumentRefused`."""
    if kind == "string":
        if len(text) * 4 > MAX_STRING_BYTES and len(text.encode()) > MAX_STRING_BYTES:
            raise refused(
                node, path, f"has {len(text):,} characters; a string has at most {MAX_STRING_BYTES:,} bytes"
            )
        return text
    said = text.strip(SPACE)
    if not said and hasattr(node, "get") and node.get(NIL, "").strip(SPACE) in ("true", "1"):
        return None
    if kind == "int":
        if _INTEGER.fullmatch(said) is None:
            raise refused(node, path, f"is {_quoted(said)}, and no integer")
        return _integer(int(said), node, path)
    if kind == "float":
        if _FLOAT.fullmatch(said) is None or not math.isfinite(float(said)):
            raise refused(node, path, f"is {_quoted(said)}, and no finite number")
        return float(said)
    if kind == "bool":
        if (boolean := _BOOLEANS.get(said)) is None:
            raise refused(node, path, f"is {_quoted(said)}, and neither true nor false")
        return boolean
    return _time(said, node, path)


def computed_value(result: str | float | bool, kind: PathKind, path: str) -> Scalar | None:
    """The value of an expression that comes to no nodes; None if it is no number. Raises `DocumentRefused`."""
    if isinstance(result, str):
        return value_of(result, kind, None, path)
    if isinstance(result, bool):
        return result if kind == "bool" else value_of(str(result).lower(), kind, None, path)
    if math.isnan(result):
        return None
    if math.isinf(result):
        raise refused(None, path, "is infinite")
    if kind == "float":
        return result
    if kind == "int":
        if not result.is_integer():
            raise refused(None, path, f"is {result}, and no integer")
        return _integer(int(result), None, path)
    return value_of(str(int(result)) if result.is_integer() else repr(result), kind, None, path)


def refused(node: Any, path: str, problem: str) -> DocumentRefused:
    return DocumentRefused(f"{path} {problem}.", getattr(node, "sourceline", None))


def _integer(number: int, node: Any, path: str) -> int:
    if not INT_MIN <= number <= INT_MAX:
        raise refused(node, path, f"is {number}, which does not fit into 64 bits")
    return number


def _time(said: str, node: Any, path: str) -> datetime:
    try:
        return parse_time(said)
    except ValueError:
        raise refused(node, path, f"is {_quoted(said)}, which {_NO_TIME}") from None


def _quoted(said: str) -> str:
    return repr(said if len(said) <= 60 else f"{said[:60]}…")
