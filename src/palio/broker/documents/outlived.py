"""`OutlivedDocuments`: what a journal has trimmed, read from the current documents that have outlived it.

Of the journal up to where it was trimmed there are, besides what may lie in a lake, the versions that are still
the latest ones of their documents here. Whoever asks for such a span (`Read` with `documents`) is given these,
as the events that they were: with their sequences, in their order, page by page.

1. A version that has been superseded is not among them: its successor is in the journal, or is found later.
2. Which documents there are in a span is looked up once, and remembered as long as somebody reads it.
"""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_right
from collections.abc import Callable
from operator import itemgetter
from time import monotonic
from typing import TYPE_CHECKING, Final

import msgspec

from palio.model.errors import PalioError
from palio.protocol.envelope import Envelope
from palio.routing.documents.current import PUBLISHED, CurrentDocument
from palio.routing.documents.pulling import prefix_of
from palio.routing.durable.effects import Read
from palio.routing.occurrences import Failed, Found, StoreMessage

if TYPE_CHECKING:
    from palio.store import Store

_PAGE: Final = 256
_BYTES: Final = 4 << 20  # of one answer, as of one page of the journal
_KEPT_FOR: Final = 30.0  # seconds without a question after which it is looked up again
_BROKEN: Final = "Current documents could not be read; this is the broker's mistake."


class _Span(msgspec.Struct):
    """The documents of a span, by their sequences; and when it was asked for last."""

    question: tuple[bytes, int]  # the filter, and up to where
    places: list[tuple[int, str]]
    asked: float


class OutlivedDocuments:
    """Answers for a journal what was trimmed. `found` hears of the answers, in the event loop."""

    def __init__(
        self,
        store: Callable[[], Store | None],
        complete: Callable[[Envelope], Envelope],
        found: Callable[[list[StoreMessage]], None],
        log: logging.Logger,
    ) -> None:
        """`complete` adds what an earlier state of its family has not read of a document."""
        self._store = store
        self._complete = complete
        self._found = found
        self.log = log
        self._span: _Span | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._turn = asyncio.Lock()  # a span is looked up once, and nobody needs to have it faster

    def take(self, effect: Read) -> bool:
        """Whether a span is answered here: all of it was trimmed, and is nowhere else."""
        store = self._store()
        if not effect.documents or store is None or store.lake_statistics() is not None:
            return False
        if not effect.after < effect.upto <= store.statistics().trimmed:
            return False
        task = asyncio.get_running_loop().create_task(self._answer(effect, store))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return True

    async def _answer(self, effect: Read, store: Store) -> None:
        answer: StoreMessage
        try:
            async with self._turn:
                answer = await asyncio.to_thread(self._read, effect, store)
        except PalioError as problem:
            answer = Failed(effect.token, str(problem))
        except Exception:
            self.log.exception("Current documents could not be read.")
            answer = Failed(effect.token, _BROKEN)
        self._found([answer])

    def _read(self, effect: Read, store: Store) -> Found:
        span = self._looked_up(effect, store)
        found: list[Envelope] = []
        size = 0
        begin = bisect_right(span.places, effect.after, key=itemgetter(0))
        for sequence, key in span.places[begin:]:
            value = store.record(PUBLISHED, key)
            if value is None or (document := CurrentDocument.of(value)).envelope.sequence != sequence:
                continue  # (1)
            envelope = self._complete(document.envelope)
            if envelope.time < effect.since or not effect.filter.matches(envelope.notification):
                continue
            found.append(envelope)
            size += len(value)
            if len(found) >= effect.limit or size >= _BYTES:
                return Found(effect.token, sequence, tuple(found))
        return Found(effect.token, effect.upto, tuple(found))

    def _looked_up(self, effect: Read, store: Store) -> _Span:
        """The documents of a span, of all families that are asked for."""
        question, now = (effect.filter.form, effect.upto), monotonic()
        span = self._span
        if span is None or span.question != question or now > span.asked + _KEPT_FOR or not effect.after:
            prefix, after, places = prefix_of(effect.filter), None, []
            while page := store.records(PUBLISHED, prefix=prefix, after=after, limit=_PAGE):
                for one in page:
                    assert one.value is not None
                    sequence = CurrentDocument.of(one.value).envelope.sequence
                    if sequence <= effect.upto:
                        places.append((sequence, one.key))
                after = page[-1].key
            span = self._span = _Span(question, sorted(places), now)
        span.asked = now
        return span
