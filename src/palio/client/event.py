"""`Event`: a notification as a subscriber gets it.

It is the envelope of the protocol itself: its first fields are filled straight from the wire, in their order
there, and the attributes stay bytes until somebody reads one. A broker has checked them, so reading is one call
of a plain decoder; lists and times, which it does not give in their one form, are read again by the model.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from palio.client.content import make_body
from palio.client.errors import NoRequest
from palio.model.attributes import Attributes
from palio.model.body import Body
from palio.model.notification import Notification
from palio.model.values import Value
from palio.protocol.durable.attempts import MAX_REASON
from palio.protocol.durable.wishes import require_delay

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    from palio.client.subscription import Subscription

    # What events are decoded into. Who writes `Event` alone does not mind.
    Content_co = TypeVarWithDefault("Content_co", covariant=True, default=Any)
else:
    Content_co = TypeVar("Content_co", covariant=True)

_read = msgspec.msgpack.Decoder(dict).decode
_OF_THE_MODEL = frozenset((list, datetime))


class Rejection(msgspec.Struct, frozen=True, gc=False):
    """What is to become of an event that could not be dealt with. Raises `WrongAttachment`."""

    delay: float | None = None
    reason: str = ""
    dead_letter: bool = False

    def __post_init__(self) -> None:
        require_delay(self.delay)
        # A broker takes no longer ones, nor what no text can hold.
        short = self.reason[:MAX_REASON].encode(errors="replace").decode()
        msgspec.structs.force_setattr(self, "reason", short)


def said_by(problem: BaseException) -> str:
    """An exception as a reason."""
    return f"{type(problem).__name__}: {problem}" if str(problem) else type(problem).__name__


class IncomingRequest:
    """A request that has come, perhaps for several subscriptions of this client, which replies once."""

    __slots__ = ("_left", "_problem", "_say")

    def __init__(self, subscriptions: int, say: Callable[[Notification | None, str | None], object]) -> None:
        self._left = subscriptions
        self._problem: str | None = None
        self._say = say

    def reply(self, content: Notification | None, problem: str | None = None) -> None:
        """The first reply counts; a problem, or that there is nothing to say, only when all have spoken."""
        self._left -= 1
        self._problem = self._problem or problem
        if self._left == 0 or (content is not None and self._left > 0):
            self._left = 0
            self._say(content, None if content is not None else self._problem)


class Event(Attributes, msgspec.Struct, Generic[Content_co], array_like=True, eq=False, gc=False):
    """A notification that has come: `event["price"]`, `event.number("price")`, `"price" in event`.

    `value` is what its subscription decodes events into (`subscribe(…, into=Quote)`), or else the notification.
    (`origin`, `sequence`) names it in the whole network. `attempt` counts how often it was handed out.
    """

    origin: str
    sequence: int
    _taken: float
    _hops: int
    _entry: str
    _body: Body
    _epoch: int = 0
    # Up to here it comes from the wire.
    attempt: int = 1
    _connection: int = 0  # which one of the client it came on
    _question: Any = None
    _subscription: Any = None
    _attributes: dict[str, Any] | None = None
    _notification: Notification | None = None
    _value: Any = None

    # Content_co

    def __getitem__(self, name: str) -> Value:
        attributes = self._attributes
        if attributes is None:
            attributes = self._attributes = _read(self._body.attributes)
        value = attributes[name]
        return self.notification.attributes[name] if type(value) in _OF_THE_MODEL else value

    @property
    def notification(self) -> Notification:
        """What was published."""
        if self._notification is None:
            self._notification = Notification.of_body(self._body)
        return self._notification

    @property
    def value(self) -> Content_co:
        """The content, as its subscription decodes it: `subscribe(…, into=Quote)`; or the notification."""
        return self.notification if self._value is None else self._value  # type: ignore[return-value]

    @property
    def attributes(self) -> Mapping[str, Value]:
        """All attributes."""
        return self.notification.attributes

    @property
    def id(self) -> str | None:
        """The publisher's name for it, if it has one."""
        return self._body.id

    @property
    def payload(self) -> bytes | None:
        """What comes with it and filters do not see."""
        return self._body.payload

    @property
    def priority(self) -> int:
        """0 to 9, 9 first."""
        return self._body.priority

    @property
    def time(self) -> datetime:
        """When it was published: what its publisher says, or else when the first broker took it."""
        return self._body.time or self.taken

    @property
    def taken(self) -> datetime:
        """When the first broker took it."""
        return datetime.fromtimestamp(self._taken, UTC)

    @property
    def position(self) -> dict[str, int]:
        """Where it is in the journal of its origin; `since=event.position` goes on after it."""
        return {self.origin: self.sequence}

    @property
    def redelivered(self) -> bool:
        """Whether it was, or may have been, handed out before."""
        return self.attempt > 1

    @property
    def subscription(self) -> Subscription[Content_co]:
        """The subscription that it came by."""
        return self._subscription  # type: ignore[no-any-return]

    def copy(self) -> Event[Content_co]:
        """The same for another subscription."""
        return Event(self.origin, self.sequence, self._taken, self._hops, self._entry, self._body, self._epoch)

    def __repr__(self) -> str:
        return f"Event({dict(self.attributes)!r})"

    # What becomes of it

    async def ack(self, *, confirmed: bool = False) -> None:
        """It is done with: a durable subscription will not hand it out again. Otherwise there is nothing to do.

        It is sent at the end of this turn of the event loop, together with others; `confirmed` waits until the
        broker has it on disk. Raises `RequestTimeout` then, and `ConnectionLost` if nobody can know any more
        whether it is: the event may come again, but is acknowledged by this client without being seen.
        """
        if self._subscription is None:  # it is of the past, and nobody waits for it
            return
        done = self._subscription._acknowledge(self, confirmed=confirmed)
        if done is not None:
            await self._subscription._session.wait_for("acknowledge", done, None)

    async def reject(self, *, delay: float | None = None, reason: str = "", dead_letter: bool = False) -> None:
        """It could not be dealt with: a durable subscription hands it out again, or at last gives it up.

        It comes again after a pause that doubles each time, or after `delay` seconds. With `dead_letter` it is
        given up at once, for what will not be better the next time. The `reason` (its first 500 characters) is
        there for who looks at the dead letter. Otherwise there is nothing to do. Raises `WrongAttachment` if
        that is no delay.
        """
        if self._subscription is not None:
            self._subscription._reject(self, Rejection(delay, reason, dead_letter))

    async def reply(self, content: Mapping[str, Any] | Notification | None) -> None:
        """Answer a request; None says that there is nothing to say.

        Raises `NoRequest`, `InvalidNotification` or `EventTooLarge`.
        """
        if self._question is None:
            raise NoRequest
        if content is not None:
            content = Notification.of_body(make_body(content))
        question, self._question = self._question, None
        question.reply(content)

    def _fail(self, problem: BaseException) -> None:
        """There is no answer to a request, and whoever asks shall know why."""
        if self._question is not None:
            question, self._question = self._question, None
            question.reply(None, Rejection(reason=said_by(problem)).reason)

    @property
    def is_request(self) -> bool:
        """Whether who published it waits for replies."""
        return self._question is not None

    @contextlib.asynccontextmanager
    async def process(self) -> AsyncIterator[Event[Content_co]]:
        """Deal with it: `async with event.process():` acknowledges it at the end, and rejects it on an
        exception, which is the reason that a dead letter tells.

        A request that was not replied to is told that there is nothing to say, or the exception.
        """
        try:
            yield self
        except BaseException as problem:
            await self.reject(reason=said_by(problem))
            self._fail(problem)
            raise
        else:
            await self.ack()
            if self._question is not None:
                await self.reply(None)
