"""Looking back: what the journals in reach hold of a filter, counted or read."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from palio.client.event import Event
from palio.client.reading import Counted, Page
from palio.model.filter import Filter
from palio.model.values import check_time
from palio.routing.durable.messages import GoOn, Replay

if TYPE_CHECKING:
    from palio.client.session import Session

# An origin that is counting says so once in a while, and the broker gives one up that does not: no hurry here.
SURVEY_WITHIN = 600.0


class Surveyed(msgspec.Struct, frozen=True):
    """What was counted: how many, the times of the first and the last, and how many in equal parts of `span`.

    `samples` are the newest. `missing` names brokers whose journals could not be counted.
    """

    count: int
    first: float | None
    last: float | None
    histogram: tuple[int, ...]
    span: tuple[float, float]
    samples: list[Event]
    missing: tuple[str, ...]

    @classmethod
    def of(cls, answer: Counted) -> Surveyed:
        fields = cls.__struct_fields__
        return cls(**{name: getattr(answer, name) for name in fields})


class Replayed:
    """Events of the past: `async for event in client.replay(…)`, origin by origin, each in its order.

    When it has ended, `missing` names brokers whose journals could not be read to their end.
    """

    def __init__(self, session: Session, message: Replay) -> None:
        self._session = session
        self._message = message
        self.missing: tuple[str, ...] = ()

    async def __aiter__(self) -> AsyncIterator[Event]:
        number = self._message.number
        message: Any = self._message
        while True:
            page: Page = await self._session.ask(
                message, f"replay {number}", on_loss="fail", timeout=SURVEY_WITHIN
            )
            for event in page.envelopes:
                yield event
            if page.last:
                self.missing = page.missing
                return
            message = GoOn(number)


def moment(when: datetime | float | str) -> float:
    """Seconds since 1970; "all" is the beginning."""
    if isinstance(when, datetime):
        return check_time(when, "since").timestamp()
    return 0.0 if when == "all" else float(when)


def as_filter(filter: str | Filter) -> Filter:
    """A filter, of which the text may be given. Raises `FilterSyntaxError` and `ContradictoryFilter`."""
    wanted = Filter.parse(filter) if isinstance(filter, str) else filter
    wanted.require_satisfiable()
    return wanted
