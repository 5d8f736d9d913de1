"""`Attributes`: what events and notifications have in common for whoever reads their content.

They are mappings from names to values: `event["price"]`, `dict(event)`, `"price" in event`. A value may be of
any kind, so a type checker does not let `event["price"] > 100` pass; `event.number("price") > 100` says which
kind is meant, and raises an error that names the attribute where it is of another. Nothing is converted, with
one exception that is none: an integer is a number.
"""

from __future__ import annotations

import difflib
from collections.abc import ItemsView, Iterator, KeysView, Mapping, ValuesView
from datetime import datetime
from enum import Enum
from typing import Any, Final, Literal, TypeVar, overload

from palio.model.errors import NoSuchAttribute, WrongKind
from palio.model.values import KIND_NAMES, KIND_OF_TYPE, Kind, Value

Default = TypeVar("Default")
Element = TypeVar("Element", bool, int, float, str, datetime, bytes)


class _Missing(Enum):
    MISSING = 0


# No default was given. None is one.
MISSING: Final = _Missing.MISSING
Missing = Literal[_Missing.MISSING]


class Attributes:
    """Named values, to be read one by one."""

    __slots__ = ()

    @property
    def attributes(self) -> Mapping[str, Value]:
        """All attributes."""
        raise NotImplementedError

    # As a mapping

    def __getitem__(self, name: str) -> Value:
        return self.attributes[name]

    def get(self, name: str, default: Any = None) -> Any:
        """An attribute, or the default if there is none of that name."""
        try:
            return self[name]
        except KeyError:
            return default

    def __contains__(self, name: object) -> bool:
        return name in self.attributes

    def __iter__(self) -> Iterator[str]:
        return iter(self.attributes)

    def __len__(self) -> int:
        return len(self.attributes)

    def __bool__(self) -> bool:
        return True  # also without attributes: it says that something happened

    def keys(self) -> KeysView[str]:
        """The names of all attributes."""
        return self.attributes.keys()

    def values(self) -> ValuesView[Value]:
        """The values of all attributes."""
        return self.attributes.values()

    def items(self) -> ItemsView[str, Value]:
        """All attributes, each with its value."""
        return self.attributes.items()

    # By kind. Each raises `NoSuchAttribute`, unless there is a default, and `WrongKind`.

    @overload
    def number(self, name: str) -> float: ...
    @overload
    def number(self, name: str, default: Default) -> float | Default: ...
    def number(self, name: str, default: Any = MISSING) -> Any:
        """A number; an integer stays one. Raises `NoSuchAttribute` (without a default) or `WrongKind`."""
        return self._of_kind(name, default, "number", float, int)

    @overload
    def integer(self, name: str) -> int: ...
    @overload
    def integer(self, name: str, default: Default) -> int | Default: ...
    def integer(self, name: str, default: Any = MISSING) -> Any:
        """An integer. Raises `NoSuchAttribute` (without a default) or `WrongKind`."""
        return self._of_kind(name, default, "int", int)

    @overload
    def text(self, name: str) -> str: ...
    @overload
    def text(self, name: str, default: Default) -> str | Default: ...
    def text(self, name: str, default: Any = MISSING) -> Any:
        """A string. Raises `NoSuchAttribute` (without a default) or `WrongKind`."""
        return self._of_kind(name, default, "string", str)

    @overload
    def boolean(self, name: str) -> bool: ...
    @overload
    def boolean(self, name: str, default: Default) -> bool | Default: ...
    def boolean(self, name: str, default: Any = MISSING) -> Any:
        """True or false. Raises `NoSuchAttribute` (without a default) or `WrongKind`."""
        return self._of_kind(name, default, "bool", bool)

    @overload
    def moment(self, name: str) -> datetime: ...
    @overload
    def moment(self, name: str, default: Default) -> datetime | Default: ...
    def moment(self, name: str, default: Any = MISSING) -> Any:
        """A time, in UTC. Raises `NoSuchAttribute` (without a default) or `WrongKind`."""
        return self._of_kind(name, default, "time", datetime)

    @overload
    def binary(self, name: str) -> bytes: ...
    @overload
    def binary(self, name: str, default: Default) -> bytes | Default: ...
    def binary(self, name: str, default: Any = MISSING) -> Any:
        """Bytes. Raises `NoSuchAttribute` (without a default) or `WrongKind`."""
        return self._of_kind(name, default, "bytes", bytes)

    @overload
    def elements(self, name: str, kind: type[Element]) -> tuple[Element, ...]: ...
    @overload
    def elements(self, name: str, kind: type[Element], default: Default) -> tuple[Element, ...] | Default: ...
    def elements(self, name: str, kind: type[Any], default: Any = MISSING) -> Any:
        """A list of one kind: `event.elements("tags", str)`; that of floats may hold integers.

        Raises `NoSuchAttribute` (without a default) or `WrongKind`.
        """
        asked = f"list of {KIND_NAMES[Kind(KIND_OF_TYPE[kind])]}"
        found = self._of_kind(name, default, asked, tuple)
        allowed = (float, int) if kind is float else (kind,)
        if type(found) is tuple and found is not default and found and type(found[0]) not in allowed:
            raise WrongKind(name, _described(found), asked)
        return found

    def _of_kind(self, name: str, default: Any, asked: str, *types: type) -> Any:
        try:
            value = self[name]
        except KeyError:
            if default is not MISSING:
                return default
            raise NoSuchAttribute(name, asked, self._likely(name)) from None
        if type(value) in types:
            return value
        raise WrongKind(name, _described(value), asked)

    def _likely(self, name: str) -> tuple[str, ...]:
        """The names that may have been meant: those below it, or else similar ones."""
        below = [one for one in self if one.startswith(f"{name}.")]
        return tuple(below[:3] or difflib.get_close_matches(name, list(self), 1))


def _described(value: Value) -> str:
    kind = KIND_NAMES[Kind(KIND_OF_TYPE[type(value)])]
    if isinstance(value, tuple) and value:
        return f"{kind} of {KIND_NAMES[Kind(KIND_OF_TYPE[type(value[0])])]}"
    return kind
