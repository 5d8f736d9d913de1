"""What a broker hears from the shell around it, beside what the wire carries: of sessions, links, the store.

A message from a client, or about a session, comes with the name of the session as its source, a message from or
about a neighbour with that broker's name; the type says which of the two it is.
"""

from __future__ import annotations

from typing import TypeAlias

from palio.model.notification import Notification
from palio.protocol.base import Moment, Number, WireMessage
from palio.protocol.envelope import Envelope
from palio.protocol.peers import LinkKind
from palio.protocol.vocabulary import BrokerMessage, ClientMessage, SubscriberRequest


class Open(WireMessage, frozen=True):
    """A session begins."""


class Close(WireMessage, frozen=True):
    """A session ends; all that it subscribed and advertised goes with it."""


class PublishPart(WireMessage, frozen=True):
    """Some notifications of a `Publish`, all of which were found to be in order; answered with the `last`."""

    notifications: tuple[Notification, ...]
    number: Number
    publisher: str
    last: bool


class LinkUp(WireMessage, frozen=True):
    """`peer_connect`: messages can be exchanged with a broker from now on.

    `dialled` is the address that this broker has asked for a link by `Dial`; `asked` says that the other one
    asks, from this `host`. A link `by_hand` is one that an operator here wants.
    """

    kind: LinkKind = LinkKind.PEER
    cost: Moment = 1.0
    dialled: str = ""
    asked: bool = False
    host: str = ""
    by_hand: bool = False


class LinkDown(WireMessage, frozen=True):
    """`peer_disconnect`: the link is gone, closed in order or not; `silent` if nothing was heard any more."""

    orderly: bool = True
    silent: bool = False


class NotReached(WireMessage, frozen=True):
    """What `Dial` was to reach cannot be, or does not take this broker; and why, as a sentence.

    It may be its own address (`is_own`).
    """

    address: str
    reason: str
    is_own: bool = False


class Resolved(WireMessage, frozen=True):
    """All addresses of a name that was to be looked up (`Resolve`); or the `reason` why there are none."""

    name: str
    addresses: tuple[str, ...] = ()
    reason: str = ""


# From the store. Each effect on the store has a token, and is completed by one of these.


class Stored(WireMessage, frozen=True):
    """It is on disk, and so is all that was asked for before it."""

    token: Number


class Failed(WireMessage, frozen=True):
    """It could not be written, or read; after an append that failed, none that was asked for later was done."""

    token: Number
    reason: str


class Found(WireMessage, frozen=True):
    """What was read of the journal: all that the filter selects up to `upto`, in order.

    Sequences on the way that are `damaged`, that is, not what was written, are left out.
    """

    token: Number
    upto: Number
    envelopes: tuple[Envelope, ...]
    damaged: tuple[Number, ...] = ()


SessionMessage: TypeAlias = Open | Close | PublishPart
SubscriberMessage: TypeAlias = SessionMessage | SubscriberRequest
LinkMessage: TypeAlias = LinkUp | LinkDown | NotReached | Resolved
StoreMessage: TypeAlias = Stored | Failed | Found
Message: TypeAlias = SessionMessage | LinkMessage | StoreMessage | ClientMessage | BrokerMessage
