"""What comes to a client without being asked for each time: events, deliveries, and that some were lost."""

from __future__ import annotations

from palio.protocol.base import WireMessage
from palio.protocol.envelope import Envelope


class Events(WireMessage, frozen=True):
    """Notifications for a client; each satisfies all the subscriptions that the handles name."""

    handles: tuple[str, ...]
    envelopes: tuple[Envelope, ...]


class Handed(WireMessage, frozen=True):
    """Deliveries of a durable subscription: (number, attempt, what)."""

    name: str
    deliveries: tuple[tuple[int, int, Envelope], ...]


class Lost(WireMessage, frozen=True):
    """The client was too slow: so many events were not sent to it, for this reason."""

    count: int
    reason: str
