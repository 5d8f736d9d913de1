"""Fitting into frames: what a broker says goes out in several frames where one would be too large.

A client reads frames of up to `MAX_FRAME`. An event that was taken at the door has at most `MAX_EVENT` bytes,
so that it fits into a frame by itself, whatever goes with it. But an older broker may have let in more, and
much may come together in one effect of the router: many events, many handles, a long list.

1. No payload that leaves here has more than `MAX_FRAME` bytes, and those with several events about `MAX_BATCH`.
2. What is cut says the same as before: every handle gets every event once, and events keep their order.
3. What does not fit by itself is given back as None, in its place, and nothing waits behind it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias, TypeVar

import msgspec

from palio.protocol.deliveries import Handed
from palio.protocol.durable.journals import Replayed, Surveyed
from palio.protocol.encoding import encode, encode_envelopes, encode_events
from palio.protocol.envelope import Envelope
from palio.protocol.frames import MAX_FRAME
from palio.protocol.inquiries import Requested, Responded
from palio.protocol.peers import Forward
from palio.protocol.requests import Ended

# Batches for clients and neighbours are cut near this size.
MAX_BATCH = MAX_FRAME // 2

Item = TypeVar("Item")
Delivery: TypeAlias = tuple[int, int, Envelope]


def halves(items: tuple[Item, ...]) -> tuple[tuple[Item, ...], tuple[Item, ...]]:
    middle = len(items) // 2
    return items[:middle], items[middle:]


def events(
    handles: tuple[str, ...], envelopes: tuple[Envelope, ...], encoded: msgspec.Raw | None = None
) -> Iterator[tuple[bytes | None, int]]:
    """`Events` for a client: payloads, and how many events each brings. What is `encoded` need not be again."""
    payload = encode_events(handles, encoded if encoded is not None else encode_envelopes(envelopes))
    if len(payload) <= MAX_BATCH or (len(envelopes) == 1 and len(payload) <= MAX_FRAME):
        yield payload, len(envelopes)
    elif len(envelopes) > 1:
        for part in halves(envelopes):
            yield from events(handles, part)
    elif len(handles) > 1:
        for some in halves(handles):
            yield from events(some, envelopes)
    else:
        yield None, 1


def handed(name: str, deliveries: tuple[Delivery, ...]) -> Iterator[tuple[bytes | None, tuple[Delivery, ...]]]:
    """`Handed` for the taker of a durable subscription: payloads, and the deliveries that each brings."""
    payload = encode(Handed(name, deliveries))
    if len(payload) <= MAX_BATCH or (len(deliveries) == 1 and len(payload) <= MAX_FRAME):
        yield payload, deliveries
    elif len(deliveries) > 1:
        for part in halves(deliveries):
            yield from handed(name, part)
    else:
        yield None, deliveries


def letters(message: Any) -> Iterator[bytes]:
    """A message for a neighbour: events on their way in several where they are many."""
    payload = encode(message)
    if len(payload) > MAX_BATCH and type(message) is Forward and len(message.envelopes) > 1:
        for part in halves(message.envelopes):
            yield from letters(Forward(part))
    else:
        yield payload


def answers(answer: Any) -> Iterator[bytes | None]:
    """An answer for a client. Of what is too much, what matters least is left out; None is all of it."""
    payload = encode(answer)
    if len(payload) <= MAX_FRAME:
        yield payload
        return
    match answer:
        case Ended(handles) if len(handles) > 1:
            for some in halves(handles):
                yield from answers(Ended(some))
        case Requested(_, handles, _) if len(handles) > 1:  # a session answers once, by whichever of them
            yield from answers(msgspec.structs.replace(answer, handles=halves(handles)[0]))
        case Responded(notification=notification) if notification is not None:
            yield None
            if answer.last:
                yield from answers(msgspec.structs.replace(answer, notification=None))
        case Surveyed(samples=samples) if samples:
            yield from answers(msgspec.structs.replace(answer, samples=samples[1:]))
        case Replayed(envelopes=envelopes) if envelopes:  # the client goes on all the same, behind it
            yield None
            yield from answers(msgspec.structs.replace(answer, envelopes=()))
        case _:
            yield None
