"""Patterns by their names, made ready: one index over the filters of all their steps, and an automaton each.

It does not change, and can be shared by any number of detectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import msgspec

from palio.matching import MatchIndex
from palio.matching.patterns.automaton import Automaton
from palio.matching.patterns.hit import Hit
from palio.matching.patterns.match import PATTERN_NAME
from palio.model.notification import Notification
from palio.model.patterns.pattern import Pattern
from palio.model.values import Value

_key_encoder = msgspec.msgpack.Encoder()
_key_decoder = msgspec.msgpack.Decoder(list[Any])


class PatternSet:
    """Raises what `Pattern.parse` raises, for the first text that is none."""

    def __init__(self, patterns: Mapping[str, Pattern | str]) -> None:
        self.automata = [
            Automaton(name, Pattern.parse(given) if isinstance(given, str) else given)
            for name, given in patterns.items()
        ]
        # By the id that a step has in the index: the number of its pattern, and its bit in it.
        self.steps = [
            (number, 1 << place)
            for number, automaton in enumerate(self.automata)
            for place in range(len(automaton.selections))
        ]

    @cached_property
    def index(self) -> MatchIndex:
        """What selects the events of all steps, by the place of each in `steps`."""
        return MatchIndex(enumerate(one for automaton in self.automata for one in automaton.selections))

    def hits(self, notification: Notification) -> list[tuple[int, int]]:
        """The numbers of the patterns that the notification is for, each with the bits of its steps."""
        found = self.index.match(notification)
        if not found:
            return []
        steps: dict[int, int] = {}
        for number in found:
            pattern, bit = self.steps[number]
            steps[pattern] = steps.get(pattern, 0) | bit
        about = notification.attributes.get(PATTERN_NAME)
        if about is not None:  # a pattern never reads its own results
            return [one for one in steps.items() if self.automata[one[0]].name != about]
        return list(steps.items())

    def hit(
        self, pattern: int, steps: int, attributes: Mapping[str, Value], *, time: int, position: int, id: str
    ) -> tuple[bytes, Hit] | None:
        """The key of the partition that a hit belongs to, and what is remembered of it; None without a key."""
        automaton = self.automata[pattern]
        key = partition_key(automaton.by, attributes)
        if key is None:
            return None
        wanted = automaton.remembered
        values = {name: attributes[name] for name in wanted if name in attributes} if wanted else None
        return key, Hit(time, position, steps, id, values)

    def __len__(self) -> int:
        return len(self.automata)

    def __iter__(self) -> Iterator[Automaton]:
        return iter(self.automata)


def partition_key(by: tuple[str, ...], attributes: Mapping[str, Value]) -> bytes | None:
    """The values that a partition has in common, as bytes; numbers that are equal are the same."""
    values = []
    for name in by:
        value = attributes.get(name)
        if value is None:
            return None
        values.append(int(value) if type(value) is float and value.is_integer() else value)
    return _key_encoder.encode(values)


def key_values(by: tuple[str, ...], key: bytes) -> dict[str, Value]:
    """What `partition_key` was made from."""
    return {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in zip(by, _key_decoder.decode(key), strict=True)
    }
