"""What a broker hears: from its clients, from its neighbours, and about its links.

All of these are immutable structs with a tag, so that the wire can carry them as they are. A message from a
client comes with the name of its session as its source, a message from or about a neighbour with that
broker's name; the type says which of the two it is.

Between brokers every subscription travels as a *row*: a number that the sender gave it on that link, and a
filter. Cancelling names the number, never a filter, so it cannot take more than it should. All that changes
on a link at one moment is one `Update`, in which additions come before removals: no gap opens when a narrow
subscription takes the place of a wide one.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any, TypeAlias

import msgspec

from palio.model.advertisement import Advertisement
from palio.model.errors import PalioError
from palio.model.filter import Filter
from palio.model.notification import Notification

# Numbers on the wire count something: they are never negative, and fit into any column, with room to count on.
# Moments and costs are finite.
Number: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
Moment: TypeAlias = Annotated[float, msgspec.Meta(ge=-1e300, le=1e300)]


class LinkKind(Enum):
    """What the broker at the other end of a link is to this one."""

    PEER = "peer"  # an equal, on a network without cycles
    MASTER = "master"  # one level up
    BELOW = "below"  # one level down
    GRAPH = "graph"  # an equal, on a network in which cycles are welcome


class _Message(msgspec.Struct, frozen=True, tag=str.lower):
    pass


# From clients. A handle is the client's own name for a subscription or an advertisement.


class Open(_Message, frozen=True):
    """A session begins."""


class Close(_Message, frozen=True):
    """A session ends; all that it subscribed and advertised goes with it."""


class Subscribe(_Message, frozen=True):
    """Ask for all that the filter selects.

    A filter that the session has subscribed already is the same subscription, with one more handle.
    With `ready`, a `Ready` follows once the whole network knows of it.
    """

    handle: str
    filter: Filter
    ready: bool = False


class Release(_Message, frozen=True):
    """Give a handle back; a subscription or an advertisement without handles ends."""

    handle: str


class Unsubscribe(_Message, frozen=True):
    """End every subscription of the session that the filter covers, whatever its handles."""

    filter: Filter


class Advertise(_Message, frozen=True):
    """Say what will be published. Handles, repetition and `ready` are as in `Subscribe`."""

    handle: str
    advertisement: Advertisement
    ready: bool = False


class Unadvertise(_Message, frozen=True):
    """End every advertisement of the session that this one covers, whatever its handles."""

    advertisement: Advertisement


class Publish(_Message, frozen=True):
    """Notifications, in the order in which their takers shall get them.

    Whoever publishes the same again, under the same ids, is recognised by its name: that of the session, or
    that of a `publisher` that has several sessions, at the same time or one after the other.
    """

    notifications: tuple[Notification, ...]
    request: Number = 0
    publisher: str = ""


ClientMessage: TypeAlias = Open | Close | Subscribe | Release | Unsubscribe | Advertise | Unadvertise | Publish


# To clients, as answers.


class Accepted(_Message, frozen=True):
    """The broker holds the subscription or advertisement; `handle` is its name."""

    handle: str


class Ready(_Message, frozen=True):
    """The whole network knows of the subscription or advertisement."""

    handle: str


class Ended(_Message, frozen=True):
    """These handles have come to their end, by whatever request."""

    handles: tuple[str, ...]


class Published(_Message, frozen=True):
    """The notifications were taken and numbered from `sequence` on at this origin.

    `sequences` names all of them, where some were known already and have other numbers.
    """

    request: Number
    origin: str
    sequence: Number
    sequences: tuple[Number, ...] = ()


_LONGEST_FIELD = 4_096


def _travels(value: Any) -> bool:
    """Whether a field of an error goes with it: it is plain, and not long."""
    match value:
        case str():
            return len(value) <= _LONGEST_FIELD
        case int():
            return -(2**63) <= value < 2**63
        case _:
            return isinstance(value, float)


class Refused(_Message, frozen=True):
    """A request that was not carried out: `subject` is its kind, and its handle, name or number.

    `error` names the type of the error, `reason` is its sentence, `fields` what the sentence is made of.
    """

    subject: str
    error: str
    reason: str
    fields: dict[str, Any] = {}

    @classmethod
    def of(cls, subject: str, problem: PalioError) -> Refused:
        """What tells somebody of an error."""
        plain = {name: value for name, value in problem.fields.items() if _travels(value)}
        return cls(subject, type(problem).__name__, str(problem), plain)


Answer: TypeAlias = Accepted | Ready | Ended | Published | Refused


# About links, from the shell that owns them.


class LinkUp(_Message, frozen=True):
    """`peer_connect`: messages can be exchanged with a broker from now on."""

    kind: LinkKind = LinkKind.PEER
    cost: Moment = 1.0


class LinkDown(_Message, frozen=True):
    """`peer_disconnect`: the link is gone, closed in order or found dead."""

    orderly: bool = True


# Between brokers.


class Component(msgspec.Struct, frozen=True, order=True):
    """The name of a connected part of an acyclic network: a broker in it, and a count of that broker's own."""

    broker: str
    count: Number = 0


class Hello(_Message, frozen=True):
    """The first message on a link, each way. Who cannot work together finds out here.

    `form` is the version in which the sender writes filters and advertisements (`model.form`); brokers from
    before there was one wrote text.
    """

    kind: LinkKind
    cost: Moment
    terms: str
    component: Component
    path: tuple[str, ...]
    form: Number = 0


class Goodbye(_Message, frozen=True):
    """The sender will not use this link, and why."""

    reason: str


class Joined(_Message, frozen=True):
    """The part of the acyclic network on the sender's side has this name now; it came by these brokers."""

    component: Component
    path: tuple[str, ...]


# A row: its number on the link, and what it says.
Row: TypeAlias = tuple[Number, Filter]
AdvertisementRow: TypeAlias = tuple[Number, Advertisement]


class Update(_Message, frozen=True):
    """All that changes on a link at one moment. Additions apply before removals. Versions only grow.

    With `confirm`, an `Acknowledge` shall follow once everyone behind the receiver knows it and all before it;
    an empty one asks for that alone.
    """

    version: Number
    add: tuple[Row, ...] = ()
    remove: tuple[Number, ...] = ()
    advertise: tuple[AdvertisementRow, ...] = ()
    withdraw: tuple[Number, ...] = ()
    confirm: bool = False


class Acknowledge(_Message, frozen=True):
    """All updates of the link up to this version are known to everyone behind the sender."""

    version: Number


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


class Forward(_Message, frozen=True):
    """Notifications for whoever wants them at the receiver or behind it."""

    envelopes: tuple[Envelope, ...]


class LinkState(_Message, frozen=True):
    """The links that a broker has in the graph, with their costs; flooded, the newest version counts.

    `component` names the acyclic cluster that the broker joins to the graph.
    """

    broker: str
    version: Number
    links: tuple[tuple[str, Moment], ...]
    component: Component


class Interest(_Message, frozen=True):
    """An update of what a broker of the graph wants and advertises, for all others; flooded.

    A `whole` one replaces all that was known of that broker: what a new neighbour is told.
    """

    broker: str
    update: Update
    whole: bool = False


class Known(_Message, frozen=True):
    """Everyone behind the sender knows this version of the broker's interest."""

    broker: str
    version: Number


PeerMessage: TypeAlias = (
    Hello | Goodbye | Joined | Update | Acknowledge | Forward | LinkState | Interest | Known
)
LinkMessage: TypeAlias = LinkUp | LinkDown
Message: TypeAlias = ClientMessage | LinkMessage | PeerMessage
