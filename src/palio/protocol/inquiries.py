"""Inquiries: request and reply, traces, watches (whether anybody is interested), and inspection of a broker.

A *request* is a notification that every taker may answer. It travels as notifications do, and each broker
counts to how many takers and neighbours it went; replies come back the same way, and the last one says so. So
who asks knows when all have answered, and a request that reaches nobody is answered at once.

A *trace* goes the way that a notification would go and delivers nothing: each broker says who would get it
here, and to which neighbours it would go on.

Who *watches* is told whether anybody wants what an advertisement describes, and whenever that changes.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import msgspec

from palio.model.advertisement import Advertisement
from palio.model.notification import Notification
from palio.protocol.base import Moment, Number, Numbered, Paired, WireMessage
from palio.protocol.envelope import Envelope

# Why a taker could not reply, in a sentence or two. Where not everything may be said, only that it could not.
Problem: TypeAlias = Annotated[str, msgspec.Meta(max_length=500)]
UNTOLD = "It does not say why."


class Request(Paired, frozen=True):
    """Ask all that take this notification. After `timeout` seconds what is missing is given up."""

    notification: Notification
    timeout: Moment = 5.0


class Respond(Numbered, frozen=True):
    """Reply to a request; without a notification the taker has nothing to say, or a problem."""

    id: str
    notification: Notification | None = None
    problem: Problem | None = None


class Trace(Paired, frozen=True):
    """Trace a notification: who would get it, and by which way?"""

    notification: Notification


class Watch(Numbered, frozen=True):
    """Watch whether anybody wants what this advertisement describes. A `Release` of the handle ends it."""

    handle: str
    advertisement: Advertisement


class Inspect(WireMessage, frozen=True):
    """Inspect the broker itself; what can be asked, the broker knows."""

    number: int
    what: str
    argument: dict[str, Any] = msgspec.field(default_factory=dict)


# The answers.


class Requested(WireMessage, frozen=True):
    """A request for a taker, who shall answer with its id."""

    id: str
    handles: tuple[str, ...]
    envelope: Envelope


class Responded(Paired, frozen=True):
    """A reply to a request, or (`last`) that there will be no more; `missing` have not answered by then.

    A `problem` comes in the place of a reply that could not be given.
    """

    notification: Notification | None = None
    last: bool = False
    missing: Number = 0
    problem: Problem | None = None


class Recipient(msgspec.Struct, frozen=True):
    """Who would get a notification: a session by these handles, or a durable subscription by its name."""

    name: str
    durable: bool
    filters: tuple[str, ...]
    handles: tuple[str, ...] = ()
    more: Number = 0  # subscriptions that are not listed, since there are too many


class Hop(msgspec.Struct, frozen=True):
    """A broker on the way of a traced notification, who would get it there, and where it goes on."""

    broker: str
    recipients: tuple[Recipient, ...] = ()
    onward: tuple[Hop, ...] = ()
    problem: str | None = None


class Traced(Paired, frozen=True):
    """Answers `Trace`: the whole way."""

    route: Hop


class Wanted(Numbered, frozen=True):
    """News of a watch: whether anybody wants what was asked about with this handle."""

    handle: str
    wanted: bool


class Inspected(WireMessage, frozen=True):
    """Answers `Inspect`, as plain data. A long answer comes in parts; `last` is the end."""

    number: int
    result: Any
    last: bool = True


# Between brokers. Origin and sequence of the envelope are the asker's broker and a number of its own: they name
# the inquiry in the whole network, and nothing in a journal. `within` is how long the answer may take.


class Probe(WireMessage, frozen=True):
    """Trace between brokers: who would get this at the receiver and behind it?"""

    envelope: Envelope
    within: Moment


class Probed(WireMessage, frozen=True):
    """Answers `Probe`: the way from the sender on."""

    origin: str
    sequence: Number
    route: Hop


class Enquire(WireMessage, frozen=True):
    """Request between brokers: for all that take it at the receiver and behind it."""

    envelope: Envelope
    within: Moment


class Answered(WireMessage, frozen=True):
    """Reply from the sender or behind it, or (`last`) that no more will come; `missing` did not answer."""

    origin: str
    sequence: Number
    notification: Notification | None = None
    last: bool = False
    missing: Number = 0
    problem: Problem | None = None
