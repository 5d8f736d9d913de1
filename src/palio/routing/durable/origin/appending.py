"""Appending: what is published here is journaled, and when it is on disk it is confirmed and forwarded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from palio.protocol.envelope import Envelope
from palio.protocol.requests import Publish, Published, Refused
from palio.routing.durable.alarm import Alarm
from palio.routing.durable.desk import Desk
from palio.routing.durable.origin.journal import OriginJournal
from palio.routing.occurrences import Failed, Stored


@dataclass(eq=False, repr=False)
class Appending:
    """Publishes on their way to the disk. `send_on` forwards them into the network from there."""

    _desk: Desk
    _journal: OriginJournal
    _tick: Alarm
    _send_on: Callable[[tuple[Envelope, ...]], None]

    def publish(self, session: str, message: Publish) -> None:
        """Journals notifications that were published here."""
        publisher, token = message.publisher or session, self._desk.token()
        append = self._journal.publish(
            session, message.number, message.notifications, self._desk.now, token, publisher=publisher
        )
        if append is not None:
            self._desk.effects.append(append)
        self._confirm()

    def stored(self, message: Stored) -> None:
        """Handles a completed write; if it is of something published here, confirms it and forwards it."""
        if self._journal.is_appending(message.token):
            envelopes = self._journal.appended(message.token)
            self._confirm()
            self._send_on(envelopes)
            if self._journal.readers or self._desk.settings.keep:
                self._tick.set()
        self._desk.completed(message.token)

    def failed(self, message: Failed) -> None:
        """Handles a failed write; if it is of something published here, refuses it."""
        if self._journal.is_appending(message.token):
            for request in self._journal.failed(message.token):
                number = request.number
                refused = Refused(f"publish {number}", "NotStored", message.reason, number=number)
                self._desk.answer(request.session, refused)
            self._confirm()
        self._desk.failed(message.token, message.reason)

    def _confirm(self) -> None:
        for request in self._journal.confirmed():
            if request.number:
                answer = Published(request.number, self._desk.broker, request.first, request.sequences)
                self._desk.answer(request.session, answer)
