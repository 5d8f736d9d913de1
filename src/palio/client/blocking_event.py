"""An event for programs without an event loop: all of `palio.Event`, without `await`."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic

from palio.client.blocking import Worker
from palio.client.event import Content_co, Rejection, said_by
from palio.client.event import Event as Awaited
from palio.client.subscription import Subscription
from palio.model.attributes import Attributes
from palio.model.notification import Notification
from palio.model.values import Value

if TYPE_CHECKING:
    from typing import Self


class Event(Attributes, Generic[Content_co]):
    """A notification that has come; everything of `palio.Event`, without `await`."""

    __slots__ = ("_event", "_worker")

    def __init__(self, event: Awaited[Content_co], worker: Worker) -> None:
        self._event = event
        self._worker = worker

    def __repr__(self) -> str:
        return repr(self._event)

    # Content_co

    def __getitem__(self, name: str) -> Value:
        return self._event[name]

    @property
    def attributes(self) -> Mapping[str, Value]:
        """All attributes."""
        return self._event.attributes

    @property
    def value(self) -> Content_co:
        """The content, as its subscription decodes it: `subscribe(…, into=Quote)`; or the notification."""
        return self._event.value

    @property
    def notification(self) -> Notification:
        """What was published."""
        return self._event.notification

    # What it has beside

    @property
    def origin(self) -> str:
        """The broker where it was published."""
        return self._event.origin

    @property
    def sequence(self) -> int:
        """Its number there."""
        return self._event.sequence

    @property
    def position(self) -> dict[str, int]:
        """Where it is in the journal of its origin; `since=event.position` goes on after it."""
        return self._event.position

    @property
    def id(self) -> str | None:
        """The publisher's name for it, if it has one."""
        return self._event.id

    @property
    def payload(self) -> bytes | None:
        """What comes with it and filters do not see."""
        return self._event.payload

    @property
    def priority(self) -> int:
        """0 to 9, 9 first."""
        return self._event.priority

    @property
    def time(self) -> datetime:
        """When it was published: what its publisher says, or else when the first broker took it."""
        return self._event.time

    @property
    def taken(self) -> datetime:
        """When the first broker took it."""
        return self._event.taken

    @property
    def attempt(self) -> int:
        """How often a durable subscription has handed it out."""
        return self._event.attempt

    @property
    def redelivered(self) -> bool:
        """Whether it was, or may have been, handed out before."""
        return self._event.redelivered

    @property
    def is_request(self) -> bool:
        """Whether who published it waits for replies."""
        return self._event.is_request

    @property
    def subscription(self) -> Subscription[Content_co]:
        """The subscription that it came by, as the client in the thread has it."""
        return self._event.subscription

    def copy(self) -> Event[Content_co]:
        """The same for another subscription."""
        return Event(self._event.copy(), self._worker)

    # What becomes of it

    def ack(self, *, confirmed: bool = False) -> None:
        """It is done with."""
        if confirmed:
            self._worker.run(self._event.ack(confirmed=True))
        elif self._event._subscription is not None:
            self._worker.soon(self._event.subscription._acknowledge, self._event)

    def reject(self, *, delay: float | None = None, reason: str = "", dead_letter: bool = False) -> None:
        """It could not be dealt with, and shall come again, or be given up."""
        rejection = Rejection(delay, reason, dead_letter)
        if self._event._subscription is not None:
            self._worker.soon(self._event.subscription._reject, self._event, rejection)

    def reply(self, content: Mapping[str, Any] | Notification | None) -> None:
        """Answer a request. Raises `NoRequest`."""
        self._worker.run(self._event.reply(content))

    @contextlib.contextmanager
    def process(self) -> Generator[Self, None, None]:
        """Acknowledge it at the end, and reject it on an exception."""
        try:
            yield self
        except BaseException as problem:
            self.reject(reason=said_by(problem))
            self._worker.soon(self._event._fail, problem)
            raise
        else:
            self.ack()
            if self._event.is_request:
                self.reply(None)
