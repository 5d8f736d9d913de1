"""`Detection`: matches of patterns, as they happen.

One subscription brings the events that any step of any pattern selects, and a `Detector` looks at them here, in
the client. How far time has come is told by the events themselves: to the newest of them, less the delay that
others are given to arrive. While nothing comes, our own clock goes on from there, so that the end of a window
is noticed, but never closer than `LAG` to what may be on its way. So clocks that differ do no harm as long as
those of the publishers agree.

What is open is remembered here and nowhere else: it is gone with the client, and with it what was published
while a connection was lost. `palio spark patterns` is for those who need more.
"""

from __future__ import annotations

import time as clock
from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import Self

from palio.client.errors import RequestTimeout, SubscriptionEnded
from palio.client.event import Event
from palio.client.subscription import Subscription
from palio.matching.patterns import Detector, DetectorStatistics, Match, PatternSet, watermark_for
from palio.matching.patterns.match import Constituent
from palio.matching.patterns.recent import Recent
from palio.model.errors import FilterTooLarge
from palio.model.filter import Filter
from palio.model.naming import event_name
from palio.model.notification import Notification
from palio.model.patterns.pattern import Pattern

# How much longer than the newest an event may be on its way here, in seconds.
LAG = 2.0

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_LAG = round(LAG * 1_000_000)
_TOGETHER = 1_024
# While something is open, time is looked at as often as this.
_TICK = 0.1


def pattern_set(patterns: Mapping[str, Pattern | str]) -> PatternSet:
    """Raises what `Pattern.parse` raises, and `ValueError` if there are none."""
    if not patterns:
        raise ValueError("There is no pattern to look for.")
    return PatternSet(patterns)


def selected_by(patterns: PatternSet) -> Filter:
    """What some step of some pattern selects; everything, where that is too much for one filter."""
    try:
        return reduce(Filter.union, (one for automaton in patterns for one in automaton.selections))
    except FilterTooLarge:
        return Filter.parse("true")


class Detection:
    """Matches of patterns: `async for match in detection`."""

    def __init__(
        self, subscription: Subscription, patterns: PatternSet, delay: float, time: str | None
    ) -> None:
        self.subscription = subscription
        self.untimed = 0  # events that had no time in the attribute that was to have one; they are dropped
        self._time = time
        self._detector = Detector(patterns)
        self._delay = round(delay * 1_000_000)
        self._position = 0
        self._newest: int | None = None
        self._came = 0.0  # when the newest did, by a clock that nobody sets
        self._found: deque[Match] = deque()
        self._recent = Recent()

    def statistics(self) -> DetectorStatistics:
        """What is remembered, and what was counted, drops by their reason."""
        return self._detector.statistics()

    def content(self, constituent: Constituent) -> Notification | None:
        """What an event of a match says; None if it came too long ago to be kept still."""
        return self._recent.get(constituent.position)

    async def stop(self) -> None:
        """End the detection. Iterating over it ends."""
        await self.subscription.unsubscribe()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *problem: object) -> None:
        await self.stop()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Match:
        while not self._found:
            timeout = _TICK if self._detector.statistics().remembered else None
            try:
                for event in await self.subscription.take_all(_TOGETHER, timeout):
                    self._take(event)
            except RequestTimeout:
                pass  # but time has passed
            except SubscriptionEnded:
                raise StopAsyncIteration from None
            self._found.extend(self._detector.advance(self._watermark()))
        return self._found.popleft()

    def _take(self, event: Event) -> None:
        self._position += 1
        moment = event.taken if self._time is None else event.get(self._time)
        if not isinstance(moment, datetime):
            self.untimed += 1
            return
        time = (moment - _EPOCH) // _MICROSECOND
        name = event.id or event_name(event.origin, event.sequence)
        self._recent.keep(self._position, event.notification)
        self._detector.take(event.notification, time=time, position=self._position, id=name)
        if self._newest is None or time > self._newest:
            self._newest = time
            self._came = clock.monotonic()

    def _watermark(self) -> int:
        if self._newest is None:
            return self._detector.watermark
        passed = round((clock.monotonic() - self._came) * 1_000_000)
        by_events = watermark_for(self._newest, self._delay)
        return max(by_events, watermark_for(self._newest + passed, max(self._delay, _LAG)))
