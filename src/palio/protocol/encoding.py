"""Messages as bytes: MessagePack of the structs of the protocol.

Filters and advertisements are texts in what clients ask, which is read once, at their broker, under the limits
of the parser; and forms (`model.form`) in all that brokers say to each other. Neither is taken for the other:
text would be read under limits that it may have outgrown, and a form would pass by those for clients.

A notification travels as its encoded attributes and its properties. Reading trusts nothing: whatever the bytes
are, the answer is a message or `UnreadableMessage`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Annotated, Any, Union, get_args

import msgspec

from palio.model.advertisement import Advertisement
from palio.model.body import Body
from palio.model.errors import PalioError
from palio.model.filter import Filter
from palio.model.form import UnreadableForm
from palio.model.notification import Notification
from palio.protocol.base import Moment, Number
from palio.protocol.deliveries import Events
from palio.protocol.durable.journals import Replay, Survey
from palio.protocol.durable.letters import Carry
from palio.protocol.durable.subscriptions import Attach, Change
from palio.protocol.envelope import Envelope
from palio.protocol.inquiries import Inspect, Trace, Watch
from palio.protocol.invocations import Invoke
from palio.protocol.peers import Forward, Interest, Update
from palio.protocol.requests import (
    Advertise,
    Publish,
    PublishDocuments,
    Refused,
    Subscribe,
    Unadvertise,
    Unsubscribe,
)
from palio.protocol.vocabulary import AnyMessage


class UnreadableMessage(PalioError):
    """Bytes that are no message. `error` is the type of the error in what it says, such as a wrong filter."""

    reason: str
    error: str = ""
    sentence = "This is no message of the protocol: {reason}"


# What travels in great numbers is read by structs that msgspec fills in one go; notifications are their bodies.


class _Envelope(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An `Envelope`, field by field."""

    origin: str
    sequence: Number
    time: Moment
    hops: Number
    entry: str
    body: Body
    epoch: Number = 0


class _Forward(msgspec.Struct, frozen=True, tag="forward"):
    envelopes: tuple[_Envelope, ...]


class _Publish(msgspec.Struct, frozen=True, tag="publish"):
    notifications: tuple[Body, ...]
    number: Number = 0
    publisher: Annotated[str, msgspec.Meta(max_length=255)] = ""


class _PublishDocuments(msgspec.Struct, frozen=True, tag="publishdocuments"):
    notifications: tuple[Body, ...]
    number: Number = 0
    publisher: Annotated[str, msgspec.Meta(max_length=255)] = ""


class _Events(msgspec.Struct, frozen=True, tag="events"):
    handles: tuple[str, ...]
    envelopes: tuple[_Envelope, ...]


class _Update(msgspec.Struct, frozen=True, tag="update"):
    """An `Update`, whose filters and advertisements are in their forms."""

    version: Number
    add: tuple[tuple[Number, bytes], ...] = ()
    remove: tuple[Number, ...] = ()
    advertise: tuple[tuple[Number, bytes], ...] = ()
    withdraw: tuple[Number, ...] = ()
    confirm: bool = False


class _Interest(msgspec.Struct, frozen=True, tag="interest"):
    broker: str
    update: _Update
    whole: bool = False


class UnreadRequest(msgspec.Struct, frozen=True):
    """What can be said of a request whatever else is in it."""

    kind: str = msgspec.field(name="type")
    number: Number = 0
    handle: str | None = None
    name: str | None = None

    @property
    def subject(self) -> str:
        """What it is called for people."""
        return f"{self.kind} {next((one for one in (self.handle, self.name) if one is not None), self.number)}"


class _EncodedEvents(msgspec.Struct, frozen=True, tag="events"):
    handles: tuple[str, ...]
    envelopes: msgspec.Raw


def _to_form(value: Any) -> Any:
    return value.body if isinstance(value, Notification) else value.form


def _to_text(value: Any) -> Any:
    """What a person wrote, if a person did: it is surely read again."""
    if isinstance(value, Notification):
        return value.body
    return value.source if value.source is not None else str(value)


def _from_plain(kind: type, value: Any) -> Any:
    if kind is Filter or kind is Advertisement:
        if isinstance(value, bytes):
            return kind.of_form(value)
        return kind.parse(msgspec.convert(value, str))
    notification = Notification.of_body(msgspec.convert(value, Body))
    _ = notification.attributes  # it is read at once, so that what is wrong is found here
    return notification


def _envelopes(read: tuple[_Envelope, ...]) -> tuple[Envelope, ...]:
    envelope, lazy = Envelope, Notification.of_body
    return tuple([envelope(o.origin, o.sequence, o.time, o.hops, o.entry, lazy(o.body), o.epoch) for o in read])


def _notifications(read: _Publish | _PublishDocuments) -> tuple[Notification, ...]:
    return (*map(Notification.of_body, read.notifications),)


def _update(read: _Update) -> Update:
    add = tuple([(number, _wanted(form)) for number, form in read.add])
    advertise = tuple([(number, Advertisement.of_form(form)) for number, form in read.advertise])
    return Update(read.version, add, read.remove, advertise, read.withdraw, read.confirm)


def _wanted(form: bytes) -> Filter:
    """What a row of a neighbour asks for; everything, if it cannot be read: that costs traffic, and no link."""
    try:
        return Filter.of_form(form)
    except UnreadableForm:
        return Filter()


# What msgspec reads, and what becomes of it.
_READ: dict[type, tuple[type, Callable[[Any], Any]]] = {
    Forward: (_Forward, lambda read: Forward(_envelopes(read.envelopes))),
    Publish: (_Publish, lambda read: Publish(_notifications(read), read.number, read.publisher)),
    PublishDocuments: (
        _PublishDocuments,
        lambda read: PublishDocuments(_notifications(read), read.number, read.publisher),
    ),
    Update: (_Update, _update),
    Interest: (_Interest, lambda read: Interest(read.broker, _update(read.update), read.whole)),
    Events: (_Events, lambda read: Events(read.handles, _envelopes(read.envelopes))),
}
_THEN = dict(_READ.values())
_readable = tuple(_READ[kind][0] if kind in _READ else kind for kind in get_args(AnyMessage))
_encoder = msgspec.msgpack.Encoder(enc_hook=_to_form)
_asking_encoder = msgspec.msgpack.Encoder(enc_hook=_to_text)

# Requests of clients, in which there is text: of what.
_TEXTS: dict[type, Callable[[Any], Filter | Advertisement | None]] = {
    **dict.fromkeys((Subscribe, Unsubscribe, Attach, Change, Survey, Replay), attrgetter("filter")),
    **dict.fromkeys((Advertise, Unadvertise, Watch), attrgetter("advertisement")),
}

# Requests about content: what they ask takes some thought.
ABOUT_CONTENT = frozenset([kind.__name__.lower() for kind in (*_TEXTS, Trace, Inspect, Invoke)])


def _require_dialect(message: Any) -> None:
    """Raises `UnreadableMessage` for a form of a client, and for text between brokers."""
    kind = type(message)
    if kind is Carry:
        filter: Filter | None = getattr(message.content, "filter", None)
        if filter is not None and filter.source is not None:
            raise UnreadableMessage("Brokers write filters in their form, not as text.")
    elif (of := _TEXTS.get(kind)) is not None:
        written = of(message)
        if written is not None and written.source is None:
            raise UnreadableMessage("Clients write filters and advertisements as text.", "FilterSyntaxError")


@cache
def decoder_of(*kinds: type) -> msgspec.msgpack.Decoder[Any]:
    """Reads messages of these kinds, with what is in them as `decode` reads it, and raises what that raises.

    It takes as long to make as to connect, so it is made when something is to be read.
    """
    return msgspec.msgpack.Decoder(Union[kinds], dec_hook=_from_plain)  # noqa: UP007


@cache
def _decoder() -> msgspec.msgpack.Decoder[Any]:
    """Reads messages of all kinds."""
    return decoder_of(*_readable)


def encode(message: AnyMessage) -> bytes:
    """The bytes of a message."""
    return (_asking_encoder if type(message) in _TEXTS else _encoder).encode(message)


def encode_envelopes(envelopes: tuple[Envelope, ...]) -> msgspec.Raw:
    """The bytes of envelopes, to be put into several"""
    return msgspec.Raw(_encoder.encode(envelopes))


def encode_events(handles: tuple[str, ...], envelopes: msgspec.Raw) -> bytes:
    """`Events` with envelopes that have been encoded before."""
    return _encoder.encode(_EncodedEvents(handles, envelopes))


def decode(data: bytes) -> AnyMessage:
    """The message that the bytes say. Raises `UnreadableMessage`, and nothing else.

    Notifications that travel in batches are not looked into: who first needs their attributes may find that
    they are none (`InvalidNotification`).
    """
    try:
        read = _decoder().decode(data)
        _require_dialect(read)
        then = _THEN.get(type(read))
        return read if then is None else then(read)  # type: ignore[no-any-return]
    except UnreadableMessage:
        raise
    except PalioError as problem:
        raise UnreadableMessage(str(problem), type(problem).__name__) from None
    except (msgspec.DecodeError, ValueError, RecursionError) as problem:
        raise UnreadableMessage(f"{problem}.") from None


def refusal_of(data: bytes, problem: UnreadableMessage) -> Refused | None:
    """What answers a request that cannot be read, such as one with a wrong filter; None if it is none."""
    read = unread(data)
    if read is None or (read.number == 0 and read.handle is None and read.name is None):
        return None
    return Refused(read.subject, problem.error, problem.reason, number=read.number)


def unread(data: bytes) -> UnreadRequest | None:
    """What bytes ask for, without understanding it; None if they are no request."""
    try:
        return msgspec.msgpack.decode(data, type=UnreadRequest)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
