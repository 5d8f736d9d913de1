"""`Envelope`: a notification on its way, with what names it in the whole network."""

from __future__ import annotations

import msgspec

from palio.model.notification import Notification
from palio.protocol.base import Moment, Number


class Envelope(msgspec.Struct, frozen=True, array_like=True):
    """A notification on its way. (origin, sequence) names it in the whole network.

    `entry` is the broker at which it entered the part of the network that it is in: in a graph it travels
    the tree of that broker. `epoch` is that of all brokers that it has met, or 0 if they differ.
    """

    origin: str
    sequence: Number
    time: Moment
    hops: Number
    entry: str
    notification: Notification
    epoch: Number = 0
