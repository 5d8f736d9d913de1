"""From an event to an object of a type of the user's: `client.subscribe(…, into=Quote)`.

The type may be a dataclass, a `msgspec.Struct`, a `TypedDict`, or a model of pydantic, which need not be
installed otherwise. Dotted names become nested objects, and what filters cannot see (lists of objects) is there
as well. Nothing is guessed: a string that looks like a number is a string. What does not fit is an
`UndecodableEvent`, which names the path.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar, is_typeddict

import msgspec

from palio.client.errors import UndecodableEvent, WrongType
from palio.model.flatten import nest

if TYPE_CHECKING:
    from palio.client.event import Event

T = TypeVar("T")

_AT = re.compile(r" - at `([^`]*)`$")


class Decoding(Generic[T]):
    """How events become objects of one type. Raises `WrongType` if it is none that can be made."""

    def __init__(self, into: type[T]) -> None:
        self._name = getattr(into, "__name__", str(into))
        self._make: Callable[[dict[str, Any]], T]
        if is_model(into):
            self._make = into.model_validate  # type: ignore[attr-defined]
        elif is_record(into):
            self._make = partial(msgspec.convert, type=into)
        else:
            raise WrongType(self._name)

    def decode(self, event: Event[Any]) -> T:
        """The object. Raises `UndecodableEvent`, whatever the type's own checks raise."""
        try:
            return self._make(content_of(event))
        except msgspec.ValidationError as problem:
            text = str(problem)
            at = _AT.search(text)
            path, reason = (at[1], text[: at.start()]) if at else ("$", text)
        except Exception as problem:  # noqa: BLE001 (of pydantic, or of the user's own checks)
            path, reason = _located(problem)
        raise UndecodableEvent(self._name, path, reason, event.origin, event.sequence)


def is_record(kind: Any) -> bool:
    """A type of which `msgspec` can make objects from mappings."""
    if is_typeddict(kind):
        return True
    return isinstance(kind, type) and (is_dataclass(kind) or issubclass(kind, msgspec.Struct))


def is_model(kind: Any) -> bool:
    """A model of pydantic, which whoever has made one has loaded."""
    pydantic: Any = sys.modules.get("pydantic")
    return pydantic is not None and isinstance(kind, type) and issubclass(kind, pydantic.BaseModel)


def content_of(event: Event[Any]) -> dict[str, Any]:
    """All content as it was published: nested, and with what attributes cannot hold."""
    notification = event.notification
    flat: Mapping[str, Any] = notification.attributes
    if notification.unindexed and notification.payload is not None:
        flat = {**flat, **json.loads(notification.payload)}
    return nest(flat)


def _located(problem: Exception) -> tuple[str, str]:
    """Where something is wrong, and what: of an error of pydantic its first, of any other what it says."""
    errors = getattr(problem, "errors", None)
    if callable(errors) and (found := errors()) and "loc" in found[0]:
        path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in found[0]["loc"])
        return f"${path}", str(found[0]["msg"])
    return "$", f"{type(problem).__name__}: {problem}"
