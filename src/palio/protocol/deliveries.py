"""Deliveries to a client: events of transient subscriptions, deliveries of durable ones, what was lost."""

from __future__ import annotations

from palio.protocol.base import WireMessage
from palio.protocol.envelope import Envelope


class Events(WireMessage, frozen=True):
    """Events of transient subscriptions; each satisfies all the subscriptions that the handles name."""

    handles: tuple[str, ...]
    envelopes: tuple[Envelope, ...]


class Handed(WireMessage, frozen=True):
    """Deliveries of a durable subscription to its taker: (number, attempt, what)."""

    name: str
    deliveries: tuple[tuple[int, int, Envelope], ...]


class Lost(WireMessage, frozen=True):
    """Slow consumer: so many events were not sent to the client, for this reason."""

    count: int
    reason: str
