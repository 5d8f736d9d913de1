"""A made-up stock market: events whose prices wander, and the filters of people who watch it.

Everything comes from one seed, so that a demonstration or a measurement can be repeated.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from palio.model.notification import Notification

EXCHANGES = ("NYSE", "LSE", "XETRA", "TSE")
TAGS = ("tech", "energy", "health", "bank", "dividend", "volatile", "index", "esg")
_KNOWN = ("ACME", "PALI", "SIEN", "HERM", "GRYP", "ELVN", "REBC", "JEDI")
_SYMBOLS = 50
_HALTED_SHARE = 0.02
_HALT_KNOWN_SHARE = 0.7
_TAGGED_SHARE = 0.4


class Market:
    """Symbols, and an endless stream of their trades. The same seed tells the same story."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(f"market {seed}")
        letters = "ABCDEFGHIKLMNOPRSTUVWZ"
        symbols = dict.fromkeys(_KNOWN)
        while len(symbols) < _SYMBOLS:
            symbols["".join(self._random.choices(letters, k=4))] = None
        self.symbols = tuple(symbols)
        self._opening = {symbol: round(self._random.uniform(10, 400), 2) for symbol in self.symbols}
        self._prices = dict(self._opening)
        self._exchanges = {symbol: self._random.choice(EXCHANGES) for symbol in self.symbols}
        self._tags = {symbol: self._random.sample(TAGS, self._random.randint(1, 3)) for symbol in self.symbols}

    def events(self) -> Iterator[Notification]:
        """Trades, one after the other, without end."""
        while True:
            yield Notification(self._trade())

    def _trade(self) -> dict[str, Any]:
        chance = self._random
        symbol = chance.choice(self.symbols)
        price = round(max(1.0, self._prices[symbol] * (1 + chance.gauss(0, 0.01))), 2)
        self._prices[symbol] = price
        event: dict[str, Any] = {
            "symbol": symbol,
            "exchange": self._exchanges[symbol],
            "price": price,
            "change": round(100 * (price / self._opening[symbol] - 1), 2),
            "volume": int(chance.paretovariate(1.2) * 100),
        }
        if chance.random() < _HALT_KNOWN_SHARE:
            event["halted"] = chance.random() < _HALTED_SHARE
        if chance.random() < _TAGGED_SHARE:
            event["tags"] = self._tags[symbol]
        return event


def filter_texts(count: int, market: Market, seed: int) -> Iterator[str]:
    """The texts of filters that subscribers of this market could have, of several shapes."""
    chance = random.Random(f"filters {seed}")
    for _ in range(count):
        yield _filter_text(chance, market.symbols)


def _filter_text(chance: random.Random, symbols: tuple[str, ...]) -> str:
    symbol = chance.choice(symbols)
    exchange = chance.choice(EXCHANGES)
    price = chance.randrange(10, 400, 5)
    change = chance.randint(1, 9)
    volume = chance.choice((150, 200, 300, 500, 1000))
    match chance.choices(range(8), weights=(25, 20, 10, 10, 10, 10, 10, 5))[0]:
        case 0:
            return f'symbol = "{symbol}" and price > {price}'
        case 1:
            return f'symbol = "{symbol}" and price between {price} and {price + chance.randrange(5, 80, 5)}'
        case 2:
            return f'symbol starts with "{symbol[: chance.randint(1, 2)]}" and change < -{change}'
        case 3:
            chosen = ", ".join(f'"{one}"' for one in sorted(chance.sample(symbols, chance.randint(2, 3))))
            return f"symbol in ({chosen}) and volume >= {volume}"
        case 4:
            return f'symbol = "{symbol}" and (change > {change} or change < -{change})'
        case 5:
            return f'tags has "{chance.choice(TAGS)}" and exchange = "{exchange}" and volume > {volume}'
        case 6:
            return f'exchange = "{exchange}" and change > {change + 4} and volume > {volume} and not halted'
        case _:
            return f'halted and symbol != "{symbol}"'
