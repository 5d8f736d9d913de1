"""`palio bench filters`: what filters cost to read, print, match and reason about."""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Annotated, Any

import msgspec
import typer

from palio import Filter, MatchIndex, Notification
from palio.cli.bench import measuring
from palio.cli.bench.measuring import Measurement, measure
from palio.cli.demo.stocks import Market, filter_texts
from palio.cli.program.dressing import flag
from palio.cli.program.terminal import error_console, help_epilog, output_console, write_json

EPILOG = help_epilog("palio bench filters --seconds 0.02", "palio bench filters --seconds 0.02 --seed 7 --json")
# Enough to be of all shapes and not to fit into one lucky cache line; few enough to be read in no time.
_FILTERS = 400
_EVENTS = 20
_PAIRS = 400
_INDEX_SIZES = (1_000, 10_000)

Predicate = Callable[[Mapping[str, Any]], bool]


class _Range(msgspec.Struct, frozen=True):
    """`symbol = … and price between … and … [and volume >= …]`, in three ways: data, filter and Python."""

    symbol: str
    low: int
    high: int
    volume: int

    @property
    def text(self) -> str:
        return (
            f'symbol = "{self.symbol}" and price between {self.low} and {self.high} and volume >= {self.volume}'
        )

    @property
    def python(self) -> str:
        return f'symbol == "{self.symbol}" and {self.low} <= price <= {self.high} and volume >= {self.volume}'

    def predicate(self) -> Predicate:
        """What somebody would write who has no filters."""
        symbol, low, high, volume = self.symbol, self.low, self.high, self.volume
        return lambda event: (
            event.get("symbol") == symbol
            and low <= event.get("price", low - 1) <= high
            and event.get("volume", volume - 1) >= volume
        )

    def covers(self, other: _Range) -> bool:
        return (
            self.symbol == other.symbol
            and self.low <= other.low
            and other.high <= self.high
            and self.volume <= other.volume
        )

    def overlaps(self, other: _Range) -> bool:
        return self.symbol == other.symbol and self.low <= other.high and other.low <= self.high


def filters(
    seconds: Annotated[
        float, typer.Option(min=0.001, max=60, help="About how long each side of a row may take.")
    ] = 0.5,
    seed: Annotated[int, typer.Option(help="The same seed gives the same filters and events.")] = 1,
    as_json: Annotated[bool, flag("--json", "Everything as one JSON object.")] = False,
) -> None:
    """Measure reading, printing, matching, covering, overlap and hashing.

    Each row has a yardstick: comparable work in plain Python, measured in the
    same run on the same data. A ratio of 3 × means that Palio takes three
    times as long.
    """
    sizes = " and ".join(f"{size:,}" for size in _INDEX_SIZES)
    setup = measuring.machine() | {
        "filters": f"{_FILTERS:,} of several shapes; {_PAIRS:,} pairs; indexes of {sizes}",
        "events": f"{_EVENTS:,} trades",
        "seed": str(seed),
    }
    if not as_json:
        measuring.show_setup(output_console(), setup)
    with error_console().status("measuring"):
        measurements = list(_measurements(seed, seconds))
    if as_json:
        write_json(measuring.document(setup, measurements))
    else:
        measuring.show(output_console(), measurements)


def _measurements(seed: int, seconds: float) -> Iterator[Measurement]:
    market = Market(seed)
    ranges = _ranges(market, max(_INDEX_SIZES), seed)
    events = list(islice(market.events(), _EVENTS))
    yield from _language(market, ranges[:_FILTERS], seed, seconds)
    yield from _matching(ranges, events, seconds)
    yield from _reasoning(ranges, seed, seconds)


def _language(market: Market, ranges: list[_Range], seed: int, seconds: float) -> Iterator[Measurement]:
    texts = [one.text for one in ranges]
    pythons = [one.python for one in ranges]
    trees = [ast.parse(python, mode="eval") for python in pythons]
    parsed = [Filter.parse(text) for text in texts]
    mixed = list(filter_texts(_FILTERS, market, seed))
    compare = partial(measure, pieces=len(ranges), seconds=seconds)
    yield compare(
        "read, 3 conditions",
        lambda: [Filter.parse(text) for text in texts],
        "ast.parse of the same",
        lambda: [ast.parse(python, mode="eval") for python in pythons],
    )
    yield compare(
        "read, mixed shapes",
        lambda: [Filter.parse(text) for text in mixed],
        "ast.parse (as above)",
        lambda: [ast.parse(python, mode="eval") for python in pythons],
    )
    yield compare(
        "print the normal form",
        lambda: [str(filter) for filter in parsed],
        "ast.unparse",
        lambda: [ast.unparse(tree) for tree in trees],
    )
    keys = [(one.symbol, one.low, one.high, one.volume) for one in ranges]
    yield compare(
        "hash, first time",
        # A filter remembers its hash, so each gets a twin that does not know it yet.
        lambda: [hash(Filter(filter.conjunctions)) for filter in parsed],
        "hash of its constants",
        lambda: [hash(key) for key in keys],
    )


def _matching(ranges: list[_Range], events: list[Notification], seconds: float) -> Iterator[Measurement]:
    parsed = [Filter.parse(one.text) for one in ranges]
    predicates = [one.predicate() for one in ranges]
    some = list(zip(parsed[:_FILTERS], predicates[:_FILTERS], strict=True))
    event = events[0]
    attributes = event.attributes
    yield measure(
        "match 1 filter",
        lambda: [filter.matches(event) for filter, _ in some],
        "a lambda by hand",
        lambda: [predicate(attributes) for _, predicate in some],
        pieces=len(some),
        seconds=seconds,
    )
    for size in _INDEX_SIZES:
        index = MatchIndex(enumerate(parsed[:size]))
        first = predicates[:size]
        yield measure(
            f"match {size:,} filters",
            lambda index=index: [index.match(event) for event in events],  # type: ignore[misc]
            "as many lambdas",
            lambda first=first: [  # type: ignore[misc]
                [number for number, predicate in enumerate(first) if predicate(event.attributes)]
                for event in events
            ],
            pieces=len(events),
            seconds=seconds,
        )


def _reasoning(ranges: list[_Range], seed: int, seconds: float) -> Iterator[Measurement]:
    chance = random.Random(f"pairs {seed}")
    compare = partial(measure, pieces=_PAIRS, seconds=seconds)
    # Half of the pairs have the symbol in common: different symbols would be told apart at once.
    pairs = [_pair(chance, ranges) for _ in range(_PAIRS)]
    filters = [(Filter.parse(left.text), Filter.parse(right.text)) for left, right in pairs]
    yield compare(
        "covers, 3 conditions",
        lambda: [left.covers(right) for left, right in filters],
        "ends compared by hand",
        lambda: [left.covers(right) for left, right in pairs],
    )
    words = [(_word(chance, 2), _word(chance, 4)) for _ in range(_PAIRS)]
    texts = [
        (Filter.parse(f'name contains "{short}"'), Filter.parse(f'name starts with "{long}"'))
        for short, long in words
    ]
    yield compare(
        "covers, text",
        lambda: [left.covers(right) for left, right in texts],
        "`in` on the two texts",
        lambda: [short in long for short, long in words],
    )
    yield compare(
        "overlaps, 3 conditions",
        lambda: [left.overlaps(right) for left, right in filters],
        "ends compared by hand",
        lambda: [left.overlaps(right) for left, right in pairs],
    )


def _ranges(market: Market, count: int, seed: int) -> list[_Range]:
    chance = random.Random(f"ranges {seed}")
    found = []
    for _ in range(count):
        low = chance.randrange(10, 400)
        high = low + chance.randrange(1, 100)
        found.append(_Range(chance.choice(market.symbols), low, high, chance.choice((0, 100, 200, 500))))
    return found


def _pair(chance: random.Random, ranges: list[_Range]) -> tuple[_Range, _Range]:
    left, right = chance.choice(ranges), chance.choice(ranges)
    return left, msgspec.structs.replace(right, symbol=chance.choice((left.symbol, right.symbol)))


def _word(chance: random.Random, length: int) -> str:
    return "".join(chance.choices("ab", k=length))
