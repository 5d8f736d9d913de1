"""A lookout in `palio demo`: it finds a pattern in the trades as they come, and publishes each match."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import datetime

import palio
from palio.client import Client, Detection, Subscription
from palio.matching.patterns import Detector, Match
from palio.matching.programs import microseconds
from palio.model.notification import Notification

# All of one broker, so that the order in which they arrive is the same for everybody.
PLACE = "torre"
NAME = "rise"
PATTERN = (
    f'low[ward = "{PLACE}"] then high[ward = "{PLACE}" and price > low.price * 1.05] within 1 min by symbol '
    "consume none"
)
# The attribute that says when a trade was made, and how many seconds longer than others one may be on its way.
TIME = "at"
_DELAY = 4.0


class Lookout:
    """Watches, publishes what it finds, and hears of it where others do."""

    def __init__(self, detection: Detection, teller: Client, heard: Subscription) -> None:
        self.found: set[tuple[str, ...]] = set()
        self.heard: set[tuple[str, ...]] = set()
        self._tasks = [
            asyncio.create_task(self._watch(detection, teller)),
            asyncio.create_task(self._hear(heard)),
        ]

    @classmethod
    async def at(cls, watching: Client, telling: Client, hearing: Client) -> Lookout:
        """One that watches at one broker and publishes at another; somebody hears of it at a third."""
        heard = await hearing.subscribe(f'`pattern.name` = "{NAME}"', ready="network", timeout=30.0)
        detection = await watching.detect(
            {NAME: PATTERN}, time=TIME, delay=_DELAY, ready="network", timeout=30.0
        )
        return cls(detection, telling, heard)

    async def _watch(self, detection: Detection, teller: Client) -> None:
        async for match in detection:
            self.found.add(events_of(match))
            await teller.publish(match.notification())

    async def _hear(self, heard: Subscription) -> None:
        async for event in heard:
            self.heard.add(event["pattern.events"])  # type: ignore[arg-type]

    async def complete(self, expected: set[tuple[str, ...]], within: float) -> bool:
        """Wait until all of these were found and heard of; whether it is exactly these."""
        try:
            async with asyncio.timeout(within):
                while not expected <= self.found & self.heard:
                    await asyncio.sleep(0.02)
        except TimeoutError:
            return False
        return self.found == self.heard == expected

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()


def events_of(match: Match) -> tuple[str, ...]:
    """What names a match wherever it was found: the events that it consists of."""
    return tuple(one.id for one in match.constituents)


def expected_matches(trades: Iterable[Notification]) -> set[tuple[str, ...]]:
    """What is in these trades, when one looks at all of them afterwards."""
    detector = Detector({NAME: palio.Pattern.parse(PATTERN)})
    for position, trade in enumerate(trades):
        moment = trade[TIME]
        assert isinstance(moment, datetime)
        detector.take(trade, time=microseconds(moment), position=position, id=trade.id)
    return {events_of(match) for match in detector.close()}
