"""What is published, and what else is registered at our broker: events of 200 bytes, background filters.

A background filter wants one of 100 thousand keys and a range of values. No two have the same key, so an event
satisfies at most one of them; `share` is how much of the values each range takes, and so how many events do if
all keys are registered. The ranges follow from the keys alone: whoever knows an event knows what it matches.

Systems that do not look into events are given 200 bytes in which the key and a time lie in front at fixed
places, made before the clock starts; or, if that is asked for, JSON which they make and read as ours does.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from palio.model.filter import Filter

EVENT_BYTES = 200
SUBJECT = "bench"
WANTED = f'subject = "{SUBJECT}"'
KEYS = 100_000
VALUES = 1_000.0
SHARE = 0.1
# Different events. Each publisher begins at another one, and again after so many.
POOL = 10_000
SEED = 20240601
FIXED = struct.Struct("<qd")  # the key, and when it was sent

Content = dict[str, Any]


def events() -> list[Content]:
    """Events with a key and a value, by chance."""
    drawn = random.Random(SEED)
    return [
        padded(
            {
                "subject": SUBJECT,
                "key": drawn.randrange(KEYS),
                "value": drawn.uniform(0.0, VALUES),
                "sent": 0.0,
            }
        )
        for _ in range(POOL)
    ]


def stock_events() -> list[Content]:
    """Events of the stock workload, with what subscribers select and read."""
    from benchmarks.workloads import WORKLOADS  # noqa: PLC0415 (it needs numpy)
    from benchmarks.workloads import events as draw  # noqa: PLC0415

    workload = WORKLOADS["stock"]
    names = [one.name for one in workload.attributes]
    rows = draw(workload, POOL).tolist()
    return [
        padded(
            {
                "subject": SUBJECT,
                "key": number,
                "sent": 0.0,
                **{
                    name: one.decode(level)
                    for name, one, level in zip(names, workload.attributes, row, strict=True)
                },
            }
        )
        for number, row in enumerate(rows)
    ]


def padded(content: Content) -> Content:
    """With a text that makes it 200 bytes of MessagePack."""
    missing = EVENT_BYTES - len(msgspec.msgpack.encode(content | {"text": "x" * 32})) + 32
    return content | {"text": "x" * missing}


def fixed(content: Content) -> bytes:
    """The 200 bytes for those that do not look into them."""
    return FIXED.pack(content["key"], content["sent"]).ljust(EVENT_BYTES, b"x")


def as_json(content: Content) -> bytes:
    return msgspec.json.encode(content)


def bounds(key: int, share: float) -> tuple[float, float]:
    """The range of values that the background filter of a key wants."""
    low = (key * 7_919 % 1_000) / 1_000 * (1.0 - share) * VALUES
    return low, low + share * VALUES


class Background:
    """Filters of one further client, and what they select."""

    name = "keys"

    def __init__(self, count: int, share: float = SHARE) -> None:
        if not 0 <= count <= KEYS:
            raise ValueError(f"There are {KEYS:,} different background filters; {count:,} were asked for.")
        self.count = count
        self._step = KEYS // count if count else KEYS + 1
        self._share = share

    def filters(self) -> Iterator[Filter]:
        for number in range(self.count):
            key = number * self._step
            low, high = bounds(key, self._share)
            yield Filter.parse(f"key = {key} and value between {low!r} and {high!r}")

    def matches(self, contents: Sequence[Content]) -> list[int]:
        """How many of them each event satisfies."""
        return [self._wants(content) for content in contents]

    def _wants(self, content: Content) -> int:
        key = content["key"]
        low, high = bounds(key, self._share)
        registered = key % self._step == 0 and key // self._step < self.count
        return int(registered and low <= content["value"] <= high)

    def events(self) -> list[Content]:
        return events()


class StockBackground(Background):
    """Filters of the stock workload: many may want the same event."""

    name = "stock"

    def filters(self) -> Iterator[Filter]:
        from benchmarks.workloads import WORKLOADS, FilterMaker, subscriptions  # noqa: PLC0415 (it needs numpy)

        drawn = subscriptions(WORKLOADS["stock"], self.count)
        maker = FilterMaker(WORKLOADS["stock"])
        for number in range(self.count):
            yield maker.make(drawn, number)

    def matches(self, contents: Sequence[Content]) -> list[int]:
        from palio.matching import MatchIndex  # noqa: PLC0415 (slow to import, rarely wanted)
        from palio.model.notification import Notification  # noqa: PLC0415

        index = MatchIndex()
        for number, filter in enumerate(self.filters()):
            index.add(str(number), filter)
        return [len(index.match(Notification(content))) for content in contents]

    def events(self) -> list[Content]:
        return stock_events()


def rotated(pool: list[Any], publisher: int) -> list[Any]:
    """The events of one publisher, or what belongs to them, in their order."""
    start = publisher * 997 % len(pool)
    return pool[start:] + pool[:start]


def total(counts: Sequence[int], published: int) -> int:
    """The sum over so many events of a publisher that goes through its events again and again."""
    rounds, rest = divmod(published, len(counts))
    return rounds * sum(counts) + sum(counts[:rest])
