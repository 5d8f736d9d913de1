"""Decoding what a client hears: events are read straight into what users get."""

from __future__ import annotations

from typing import Any

import msgspec

from palio.client.event import Event
from palio.model.body import Body
from palio.model.errors import PalioError
from palio.protocol.deliveries import Events, Handed
from palio.protocol.durable.journals import Replayed, Surveyed
from palio.protocol.encoding import decoder_of
from palio.protocol.greeting import Welcome
from palio.protocol.heartbeat import Bye, Ping, Pong
from palio.protocol.inquiries import Requested, Responded
from palio.protocol.overlay import OtherBrokers
from palio.protocol.requests import Accepted, Published, Refused
from palio.protocol.vocabulary import TO_CLIENTS


class ReceivedEvents(msgspec.Struct, frozen=True, tag="events"):
    """`Events` of the protocol."""

    handles: tuple[str, ...]
    envelopes: list[Event]


class ReceivedDeliveries(msgspec.Struct, frozen=True, tag="handed"):
    """`Handed` of the protocol."""

    name: str
    deliveries: list[tuple[int, int, Event]]


class ReceivedRequest(msgspec.Struct, frozen=True, tag="requested"):
    """`Requested` of the protocol."""

    id: str
    handles: tuple[str, ...]
    envelope: Event


class ReceivedReply(msgspec.Struct, frozen=True, tag="responded"):
    """`Responded` of the protocol."""

    number: int
    notification: Body | None = None
    last: bool = False
    missing: int = 0
    problem: str | None = None


class ReceivedSurvey(msgspec.Struct, frozen=True, tag="surveyed"):
    """`Surveyed` of the protocol."""

    number: int
    count: int
    first: float | None
    last: float | None
    histogram: tuple[int, ...]
    span: tuple[float, float]
    samples: list[Event]
    missing: tuple[str, ...] = ()


class ReceivedReplayPage(msgspec.Struct, frozen=True, tag="replayed"):
    """`Replayed` of the protocol."""

    number: int
    origin: str = ""
    envelopes: list[Event] = []
    last: bool = False
    missing: tuple[str, ...] = ()


_OURS = {ReceivedEvents, ReceivedDeliveries, ReceivedRequest, ReceivedReply, ReceivedSurvey, ReceivedReplayPage}
# What a client hears from a broker that it is welcome at: these in the place of those of the protocol.
HEARD = TO_CLIENTS - {Events, Handed, Requested, Responded, Surveyed, Replayed} | _OURS
# What everybody hears first, and who only publishes nothing else. A reader of all takes much longer to make.
_SOON = (Welcome, Accepted, Published, Refused, Ping, Pong, Bye, OtherBrokers)
_decoders = [decoder_of(*_SOON)]


def read(payload: bytes) -> Any:
    """The message that the bytes say. Raises `msgspec.DecodeError` or ValueError."""
    try:
        return _decoders[-1].decode(payload)
    except PalioError as problem:  # a filter that this version cannot read
        raise ValueError(str(problem)) from None
    except msgspec.ValidationError:
        if len(_decoders) > 1:
            raise
        _decoders.append(decoder_of(*HEARD, *_SOON))
        return read(payload)
