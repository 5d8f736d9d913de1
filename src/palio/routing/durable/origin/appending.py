"""Appending: what is published here is journaled, and when it is on disk it is confirmed and forwarded.

1. What was published by several at the same time comes on disk together, write after write. It is confirmed and
   forwarded together, too, as far as nothing else of the store comes in between: in the order of its sequences,
   so many events at a time, and before whatever handles it is over (`settle`).
2. A write that fails, or of anything else, is handled when all before it are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from palio.protocol.envelope import Envelope
from palio.protocol.requests import Published, Refused
from palio.routing.durable.alarm import Alarm
from palio.routing.durable.desk import Desk
from palio.routing.durable.origin.journal import OriginJournal, PublishedInVain
from palio.routing.occurrences import Failed, PublishPart, Stored

# Events that are matched and forwarded together: more saves no more, and others wait meanwhile.
TOGETHER: Final = 64


@dataclass(eq=False, repr=False)
class Appending:
    """Publishes on their way to the disk. `send_on` forwards them into the network from there."""

    _desk: Desk
    _journal: OriginJournal
    _tick: Alarm
    _send_on: Callable[[tuple[Envelope, ...]], None]
    _arrived: list[Envelope] = field(default_factory=list, init=False)  # on disk, and not forwarded yet

    def publish(self, session: str, message: PublishPart) -> None:
        """Journals notifications that were published here."""
        publisher, token = message.publisher or session, self._desk.token()
        try:
            append = self._journal.publish(session, message, self._desk.now, token, publisher)
        except PublishedInVain as problem:
            self._refuse(session, message.number, str(problem))
            return
        if append is not None:
            self._desk.effects.append(append)
        self._confirm()

    def session_closed(self, session: str) -> None:
        """Forgets a request of which not all parts have come."""
        self._journal.parts.pop(session, None)

    def stored(self, message: Stored) -> None:
        """Handles a completed write; what was published here is confirmed and forwarded by `settle`."""
        if self._journal.is_appending(message.token):
            envelopes = self._journal.appended(message.token)
            if len(self._arrived) + len(envelopes) > TOGETHER:
                self.settle()
            self._arrived += envelopes
        else:
            self.settle()
        self._desk.completed(message.token)

    def settle(self) -> None:
        """Confirms and forwards what has come on disk."""
        if self._arrived:
            envelopes, self._arrived = tuple(self._arrived), []
            self._confirm()
            self._send_on(envelopes)
            if self._journal.readers or self._desk.settings.keep:
                self._tick.set()

    def failed(self, message: Failed) -> None:
        """Handles a failed write; if it is of something published here, refuses it."""
        self.settle()
        if self._journal.is_appending(message.token):
            for request in self._journal.failed(message.token, message.reason):
                self._refuse(request.session, request.number, message.reason)
            self._confirm()
        self._desk.failed(message.token, message.reason)

    def _refuse(self, session: str, number: int, reason: str) -> None:
        self._desk.answer(session, Refused(f"publish {number}", "NotStored", reason, number=number))

    def _confirm(self) -> None:
        for request in self._journal.confirmed():
            if request.number:
                answer = Published(request.number, self._desk.broker, request.first, request.sequences)
                self._desk.answer(request.session, answer)
