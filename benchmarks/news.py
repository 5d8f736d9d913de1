"""The fourth workload of the matching benchmark, `texts`: news, and who wants to read what.

An event has a title of some 70 characters, a body of 200, up to five tags, a source path and an author. Words
are made of two to five syllables and drawn by Zipf's law, tags and authors too. Filters, in these shares:

| share | filter |
|---|---|
| 30 % | `body contains "two words"`, or a piece of them |
| 15 % | `title contains "word" and tags has "tag"` |
| 15 % | `source ends with "/word-word.html"` |
| 15 % | `title matches "*word*word*"` |
| 10 % | `author in ("…", "…", "…") and body contains "word"` |
| 15 % | `title contains "word" or tags has "tag"`, a tag that one event in thousands has |

The yardstick is the counting matcher in plain C: equalities are looked up, and each condition about a text is
asked by the C library's `memmem`.
"""

from __future__ import annotations

import ctypes
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.counting import compiled
from palio.model.conjunction import Conjunction
from palio.model.constraint import Constraint
from palio.model.expression import And, Condition, Or, text_of
from palio.model.filter import Filter

SEED = 20_260_101
VOCABULARY = 50_000
TAGS = 20_000
AUTHORS = 5_000
BODY = 200
TITLE_WORDS = 9
SHARES = {
    "contains": 0.30,
    "contains and has": 0.15,
    "ends with": 0.15,
    "matches": 0.15,
    "in": 0.10,
    "or": 0.15,
}
ATTRIBUTES = ("author", "body", "source", "tags", "title")
_SYLLABLES = (
    "ba", "ko", "ri", "te", "mu", "sa", "ne", "lo", "vi", "du",
    "gra", "ster", "pol", "in", "er", "an", "on", "es", "al", "tion",
)  # fmt: skip
_SOURCE = Path(__file__).with_name("asking.c")
_ASKED = {"contains": 0, "ends with": 1, "matches": 2, "=": 3, "in": 3, "has": 3}  # as asking.c numbers them


class Draw:
    """Words, tags and authors, each drawn by Zipf's law, in an order that depends on the seed alone."""

    def __init__(self, *seed: int) -> None:
        self._random = np.random.default_rng([SEED, *seed])
        self._words = vocabulary()
        self._shares = {count: _zipf(count) for count in (VOCABULARY, TAGS, AUTHORS)}

    def _ranks(self, count: int, size: int) -> Any:
        ranks = np.searchsorted(self._shares[count], self._random.random(size), side="right")
        return np.minimum(ranks, count - 1).tolist()

    def words(self, size: int) -> list[str]:
        return [self._words[rank] for rank in self._ranks(VOCABULARY, size)]

    def tags(self, size: int) -> list[str]:
        return [f"tag-{rank}" for rank in self._ranks(TAGS, size)]

    def authors(self, size: int) -> list[str]:
        return [f"author {rank}" for rank in self._ranks(AUTHORS, size)]

    def numbers(self, high: int, size: int) -> list[int]:
        found: list[int] = self._random.integers(0, high, size).tolist()
        return found


def vocabulary() -> list[str]:
    random = np.random.default_rng([SEED, 9])
    words: dict[str, None] = {}
    while len(words) < VOCABULARY:
        picked = random.integers(0, len(_SYLLABLES), (10_000, 5))
        lengths = random.integers(2, 6, 10_000)
        for row, length in zip(picked.tolist(), lengths.tolist(), strict=True):
            words["".join(_SYLLABLES[one] for one in row[:length])] = None
    return list(words)[:VOCABULARY]


def _zipf(count: int) -> Any:
    weights = np.arange(1, count + 1, dtype=float) ** -1.0
    return np.cumsum(weights / weights.sum())


# A subscription is conjunctions of conditions, each an attribute, an operator and what it compares with.
Asked = tuple[str, str, Any]
CHUNK = 10_000


def subscriptions(count: int) -> Iterator[list[list[Asked]]]:
    """The first so many, the same however many are asked for."""
    for chunk in range(-(-count // CHUNK)):
        draw = Draw(0, chunk)
        words = iter(draw.words(4 * CHUNK))
        tags, authors = iter(draw.tags(CHUNK)), iter(draw.authors(3 * CHUNK))
        numbers = iter(draw.numbers(TAGS, CHUNK))
        kinds = draw.numbers(100, CHUNK)
        for kind in kinds[: count - chunk * CHUNK]:
            yield _subscription(kind / 100, words, tags, authors, numbers)


def _subscription(
    kind: float, words: Iterator[str], tags: Iterator[str], authors: Iterator[str], numbers: Iterator[int]
) -> list[list[Asked]]:
    for name, share in SHARES.items():
        chosen = name
        if kind < share:
            break
        kind -= share
    match chosen:
        case "contains":
            both = f"{next(words)} {next(words)}"
            return [[("body", "contains", both[: max(5, len(both) - 2)])]]
        case "contains and has":
            return [[("tags", "has", next(tags)), ("title", "contains", f"{next(words)} ")]]
        case "ends with":
            return [[("source", "ends with", f"/{next(words)}-{next(words)}.html")]]
        case "matches":
            return [[("title", "matches", f"*{next(words)}*{next(words)}*")]]
        case "in":
            wanted = tuple(sorted({next(authors) for _ in range(3)}))
            return [[("author", "in", wanted), ("body", "contains", f" {next(words)} ")]]
        case _:
            word, tag = next(words), f"tag-{next(numbers)}"
            return [[("title", "contains", f"{word} {next(words)}")], [("tags", "has", tag)]]


def filter_text(subscription: list[list[Asked]]) -> str:
    """A subscription as people write it."""
    boxes = [And(tuple(Condition(name, _constraint(*rest)) for name, *rest in box)) for box in subscription]
    return text_of(Or(tuple(boxes)) if len(boxes) > 1 else boxes[0])


def _constraint(operator: str, operand: Any) -> Constraint:
    return Constraint("has", Constraint("=", operand)) if operator == "has" else Constraint(operator, operand)


def make(subscription: list[list[Asked]]) -> Filter:
    """A filter straight from values, past the parser."""
    boxes = []
    for box in subscription:
        sides = {name: _constraint(operator, operand).values() for name, operator, operand in sorted(box)}
        boxes.append(Conjunction(sides))
    return Filter(tuple(boxes))


def events(count: int) -> dict[str, list[Any]]:
    """Columns of so many events."""
    draw = Draw(1)
    found: dict[str, list[Any]] = {name: [] for name in ATTRIBUTES}
    for many in draw.numbers(6, count):
        body = " ".join(draw.words(50))[:BODY]
        slug = "-".join(draw.words(2))
        found["title"].append(" ".join(draw.words(TITLE_WORDS)))
        found["body"].append(body)
        found["tags"].append(list(dict.fromkeys(draw.tags(many))))
        found["source"].append(f"news/{draw.numbers(12, 1)[0] + 1}/{slug}.html")
        found["author"].append(draw.authors(1)[0])
    return found


def table(columns: dict[str, list[Any]]) -> Any:
    import pyarrow  # noqa: PLC0415  (optional, and slow to import)

    return pyarrow.table({name: columns[name] for name in ATTRIBUTES})


@dataclass
class _Texts:
    """Texts one after the other, and where each begins."""

    data: bytearray
    starts: list[int]

    def add(self, text: str) -> None:
        self.data += text.encode()
        self.starts.append(len(self.data))

    @property
    def arrays(self) -> tuple[Any, Any]:
        return np.frombuffer(bytes(self.data), np.uint8), np.array(self.starts, np.int64)


class AskingYardstick:
    """Subscriptions in the counting matcher of `asking.c`."""

    def __init__(self, drawn: list[list[list[Asked]]], columns: dict[str, list[Any]]) -> None:
        """Raises FileNotFoundError where there is no C compiler."""
        with tempfile.TemporaryDirectory(prefix="palio-asking-") as directory:
            self._library = ctypes.CDLL(str(compiled(_SOURCE, Path(directory))))
        texts, asked, boxes = _Texts(bytearray(), [0]), [], []
        for number, subscription in enumerate(drawn):
            for box in subscription:
                for name, operator, operand in box:
                    for one in operand if operator == "in" else (operand,):
                        asked.append((ATTRIBUTES.index(name), _ASKED[operator], len(boxes)))
                        texts.add(one.strip("*").replace("*", "\0") if operator == "matches" else one)
                boxes.append((number, len(box)))
        self._kept = [*texts.arrays, np.array(asked, np.int32), np.array(boxes, np.int32)]
        values, owners = _Texts(bytearray(), [0]), [0]
        for row in zip(*(columns[name] for name in ATTRIBUTES), strict=True):
            for value in row:
                for one in value if isinstance(value, list) else [value]:
                    values.add(one)
                owners.append(len(values.starts) - 1)
        self._events = [*values.arrays, np.array(owners, np.int64)]
        build = self._library.asking_build
        build.restype = ctypes.c_void_p
        self._built = build(
            ctypes.c_int64(len(asked)), ctypes.c_int64(len(boxes)), ctypes.c_int64(len(drawn)),
            ctypes.c_int32(len(ATTRIBUTES)), *map(_address, self._kept),
        )  # fmt: skip

    def match(self, rows: int) -> tuple[int, float]:
        """Matches of the first rows in all, and seconds."""
        match = self._library.asking_match
        match.restype = ctypes.c_int64
        start = time.perf_counter()
        found = match(ctypes.c_void_p(self._built), ctypes.c_int64(rows), *map(_address, self._events))
        return int(found), time.perf_counter() - start


def _address(array: Any) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)
