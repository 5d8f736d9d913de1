"""Messages that are well-formed and wrong: drawn from the types of the protocol, with names and numbers that
mean something to the receiver now and then, and others that mean nothing anywhere.
"""

from __future__ import annotations

import enum
import random
import types
import typing
from typing import Any, get_args, get_origin, get_type_hints

import msgspec

from palio import Advertisement, Filter, Notification
from palio.protocol.vocabulary import BrokerMessage, ClientMessage

OF_PEERS = get_args(BrokerMessage)
OF_CLIENTS = tuple({*get_args(ClientMessage)})
NUMBERS = (0, 1, 1, 2, 3, 4, 5, 7, 100, -1, -(2**63), 2**31, 2**62, 2**63 - 1, 2**63, 2**64 - 1)
MOMENTS = (0.0, 1.0, 2.5, -1.0, 1e9, 1e300, float("inf"), float("-inf"), float("nan"))
FILTERS = ("true", "n >= 0", "n > 2 and kind = 1", 'name starts with "a"', "n != 3 or exists(x)")
ADVERTISEMENTS = ("n *", "kind *, n > 0")
BYTES = (b"", b"\0", b"v" * 8, b"x" * 256, b"x" * 5_000)
MOST = 3  # items in a list


class Liar:
    """Draws messages. `names` are those that the receiver knows."""

    def __init__(self, seed: object, names: tuple[str, ...]) -> None:
        self._random = random.Random(str(seed))
        self._names = (*names, "", "nobody", "now", "all", "nan", "x" * 300, "a\0b")

    def message(self, kinds: tuple[type, ...]) -> Any:
        """A message of one of these types."""
        return self.draw(self._random.choice(sorted(kinds, key=lambda kind: kind.__name__)))

    def draw(self, kind: Any, depth: int = 0) -> Any:
        """A value of a type; some types hold others of their own."""
        choose = self._random.choice
        origin, arguments = get_origin(kind), get_args(kind)
        if kind is str or kind is Any:
            return choose(self._names)
        if kind is bool:
            return choose((True, False))
        if kind is int:
            return choose(NUMBERS)
        if kind is float:
            return choose(MOMENTS)
        if kind is bytes:
            return choose(BYTES)
        if kind is type(None) or kind is None:
            return None
        if kind is Filter:
            return Filter.parse(choose(FILTERS))
        if kind is Notification:
            return Notification({"n": choose((1, 2, 3)), "kind": 1}, lifetime=choose((None, 0.5, 1e6)))
        if kind is Advertisement:
            return Advertisement.parse(choose(ADVERTISEMENTS))
        if origin is typing.Annotated:
            return self.draw(arguments[0], depth)
        if origin is typing.Literal:
            return choose(arguments)
        if origin in (typing.Union, types.UnionType):
            return self.draw(choose(arguments), depth)
        if origin is tuple:
            if len(arguments) == 2 and arguments[1] is Ellipsis:
                return tuple(
                    [
                        self.draw(arguments[0], depth)
                        for _ in range(self._random.randint(0, max(0, MOST - depth)))
                    ]
                )
            return tuple([self.draw(one, depth) for one in arguments])
        if origin is dict:
            return {
                self.draw(arguments[0], depth): self.draw(arguments[1], depth)
                for _ in range(self._random.randint(0, 2))
            }
        if isinstance(kind, type) and issubclass(kind, enum.Enum):
            return choose(list(kind))
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            hints = get_type_hints(kind, include_extras=True)
            return kind(**{field: self.draw(hints[field], depth + 1) for field in kind.__struct_fields__})
        raise AssertionError(f"How is a {kind} drawn?")
