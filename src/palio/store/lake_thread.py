"""The lake thread: what a broker reads in its lake, beside all else, so that nothing else waits for it.

The writer hands over what lies below where its journal was trimmed. The same page is often asked for again
while it is being read, by somebody who waits for longer than expected: it is read once, and all who asked are
told. What cannot be read is told, too (`Failed`), and logged when the reason is new; whoever asked asks again,
so a lake that is away for a while costs time and nothing else.
"""

from __future__ import annotations

import logging
import threading
from typing import TypeAlias

import msgspec

from palio.model.errors import PalioError
from palio.protocol.envelope import Envelope
from palio.routing.durable.effects import Read
from palio.routing.occurrences import Failed, Found, StoreMessage
from palio.store.contract import Completed, LakeStatistics
from palio.store.lake.reading import Archive
from palio.store.reading import MAX_FOUND_BYTES

# Seconds without a question after which files are closed.
IDLE = 10.0

log = logging.getLogger("palio.store")

_Question: TypeAlias = tuple[bytes, int, int, int, float]  # filter, after, upto, limit, since


class LakeThread:
    """Reads pages of the lake. `completed` is called in its thread, which is the only one to touch the lake."""

    def __init__(self, archive: Archive, broker: str, completed: Completed) -> None:
        self._archive = archive
        self._broker = broker
        self._completed = completed
        self._changed = threading.Condition()
        self._waiting: dict[_Question, tuple[Read, int, list[int]]] = {}  # what, trimmed, and the tokens
        self._closed = False
        self._pages = self._events = self._failures = 0
        self._problem: str | None = None  # that was told last, until something can be read
        self._last_error: str | None = None
        self._thread = threading.Thread(target=self._run, name=f"palio lake {broker}", daemon=True)
        self._thread.start()

    def read(self, effect: Read, trimmed: int) -> None:
        """Submit a read of a page, of a journal that begins after `trimmed`. Never waits."""
        question = effect.filter.form, effect.after, effect.upto, effect.limit, effect.since
        with self._changed:
            if question in self._waiting:
                self._waiting[question][2].append(effect.token)
            else:
                self._waiting[question] = effect, trimmed, [effect.token]
                self._changed.notify()

    def statistics(self) -> LakeStatistics:
        return LakeStatistics(self._pages, self._events, self._failures, self._last_error)

    def close(self) -> None:
        """End the thread; nobody is told of what was not read by then."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        try:
            self._archive.position()
        except PalioError as problem:  # it may be there when it is needed
            log.warning("What was trimmed cannot be read now: %s", problem)
        while (question := self._next()) is not None:
            effect, trimmed, tokens = self._waiting[question]
            try:
                answer = self._read(effect, trimmed)
            except PalioError as problem:
                answer = self._failed(str(problem))
            except Exception as problem:  # a lake that is broken in a new way is not the end of its broker
                log.exception("A page of the lake could not be read.")
                answer = self._failed(f"The lake in {self._archive.place} cannot be read: {problem!r}.")
            with self._changed:
                del self._waiting[question]  # who asks from now on asks anew
            self._completed([msgspec.structs.replace(answer, token=token) for token in tokens])
        self._archive.forget_places()

    def _next(self) -> _Question | None:
        with self._changed:
            while not self._waiting and not self._closed:
                if not self._changed.wait(IDLE):
                    self._archive.forget_places()
            return None if self._closed else next(iter(self._waiting))

    def _read(self, effect: Read, trimmed: int) -> StoreMessage:
        page = self._archive.page(
            effect.filter,
            after=effect.after,
            upto=effect.upto,
            trimmed=trimmed,
            limit=effect.limit,
            limit_bytes=MAX_FOUND_BYTES,
            since=effect.since,
        )
        name = self._broker
        found = [Envelope(name, sequence, time, 0, name, what) for sequence, time, _, what in page.rows]
        self._pages += 1
        self._events += len(found)
        if self._problem is not None:
            log.info("The lake in %s can be read again.", self._archive.place)
            self._problem = None
        return Found(0, page.upto, tuple(found))

    def _failed(self, reason: str) -> StoreMessage:
        self._failures += 1
        self._last_error = reason
        if reason != self._problem:
            log.error("What was asked for from the lake cannot be read: %s", reason)
            self._problem = reason
        return Failed(0, reason)
