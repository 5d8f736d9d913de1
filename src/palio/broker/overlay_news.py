"""`OverlayNews`: what has happened to the links of this broker, and how it is told.

Each change is logged and counted, and remembered for a while: who follows it (`palio peers --watch`) asks this
broker, and hears of it whatever has become of the network. Where `overlay.events` is on, it is also published
(`notices`), so that it can be subscribed to anywhere.

1. What is remembered and published is bounded, however often links come and go.
2. A refusal, or silence, of somebody is published again only when something else has changed since.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable
from typing import Annotated, Any

import msgspec

from palio.broker.access.principal import Principal
from palio.broker.access.rights import Allowance
from palio.broker.extension import Extension, ExtensionRequest
from palio.model.errors import PalioError
from palio.routing.overlay.effects import NOT_REACHED, REFUSED, SENTENCES, OverlayEvent
from palio.routing.pace import Pace

# How many changes are remembered (a guess: those of a large repair, several times over).
MOST_REMEMBERED = 1_024
# So many are published at once, and then one in so many seconds (guesses: what follows from an inner broker
# that dies is told; links that come and go all the time are told of now and then).
AT_ONCE = 64
EVERY = 1.0
# Seconds that somebody may wait for the next change.
LONGEST_WAIT = 10.0
_OF_OTHERS = frozenset((REFUSED, NOT_REACHED))


class WrongNewsQuestion(PalioError):
    """A question about the changes of a broker's links that cannot be answered."""

    reason: str
    sentence = "The changes of links cannot be asked for like that: {reason}"


class NewsQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Changes after this number, all that are remembered by default; with `wait`, so long for the next."""

    after: Annotated[int, msgspec.Meta(ge=0, le=2**62)] | None = None
    wait: Annotated[float, msgspec.Meta(ge=0, le=LONGEST_WAIT)] = 0.0


class OverlayNews:
    """The changes of one broker's links. `publish` takes what is to be known everywhere, if anything is."""

    def __init__(
        self,
        log: logging.Logger,
        now: Callable[[], float],
        publish: Callable[[OverlayEvent, float], None] | None,
    ) -> None:
        self._log = log
        self._now = now
        self._publish = publish
        self._pace = Pace(AT_ONCE, EVERY)
        self._repeated: set[OverlayEvent] = set()
        self._number = 0
        self._changes: deque[dict[str, Any]] = deque(maxlen=MOST_REMEMBERED)
        self._changed: asyncio.Event | None = None
        self.counts: Counter[str] = Counter()

    def tell(self, event: OverlayEvent) -> None:
        """Handles that something has happened."""
        now = self._now()
        self.counts[event.what] += 1
        said = {name: value for name, value in msgspec.structs.asdict(event).items() if value not in ("", None)}
        seconds = {} if event.seconds is None else {"seconds": round(event.seconds, 3)}
        self._log.info(SENTENCES[event.what], extra=said | seconds)
        self._number += 1
        self._changes.append({"number": self._number, "time": now} | said)
        if self._changed is not None:
            self._changed.set()
            self._changed = None
        if self._publish is not None and self._is_worth_it(event) and self._pace.takes(now):
            self._publish(event, now)

    def _is_worth_it(self, event: OverlayEvent) -> bool:
        if event.what not in _OF_OTHERS:
            self._repeated.clear()
            return True
        known = event in self._repeated
        if len(self._repeated) < MOST_REMEMBERED:
            self._repeated.add(event)
        return not known

    def extension(self) -> Extension:
        """What answers who asks for the changes."""
        request = ExtensionRequest("overlay.changes", self._read, Allowance.INSPECT, reads=True)
        return Extension(name="overlay", requests=(request,))

    async def _read(self, argument: dict[str, Any], principal: Principal, session: str) -> dict[str, Any]:
        """Raises `WrongNewsQuestion`."""
        try:
            question = msgspec.convert(argument, NewsQuestion)
        except msgspec.ValidationError as problem:
            raise WrongNewsQuestion(f"{problem}.") from None
        after = 0 if question.after is None or question.after > self._number else question.after
        if after == self._number and question.wait:
            changed = self._changed = self._changed or asyncio.Event()
            try:
                async with asyncio.timeout(question.wait):
                    await changed.wait()
            except TimeoutError:
                pass
        return {
            "changes": [one for one in self._changes if one["number"] > after],
            "onward": self._number,
        }
