"""Between neighbouring brokers: subscriptions and advertisements (interest), and notifications on their way.

Between brokers every subscription travels as a *row*: a number that the sender gave it on that link, and a
filter. Cancelling names the number, never a filter, so it cannot take more than it should. All that changes
on a link at one moment is one `Update`, in which additions come before removals: no gap opens when a narrow
subscription takes the place of a wide one.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated, TypeAlias

import msgspec

from palio.model.advertisement import Advertisement
from palio.model.filter import Filter
from palio.protocol.base import Moment, Number, WireMessage
from palio.protocol.envelope import Envelope
from palio.protocol.overlay import BrokerName, Contacts, Standing


class LinkKind(Enum):
    """What the broker at the other end of a link is to this one."""

    PEER = "peer"  # an equal, on a network without cycles
    MASTER = "master"  # one level up
    BELOW = "below"  # one level down
    GRAPH = "graph"  # an equal, on a network in which cycles are welcome


class Component(msgspec.Struct, frozen=True, order=True):
    """The name of a connected part of an acyclic network: a broker in it, and a count of that broker's own."""

    broker: BrokerName
    count: Number = 0


class Hello(WireMessage, frozen=True):
    """The first message on a link, each way. Who cannot work together finds out here.

    `form` is the version in which the sender writes filters and advertisements (`model.form`); brokers from
    before there was one wrote text. `shared` are digests of the shared records that it has (`routing.shared`);
    brokers from before there were any say nothing of them, and are told none. `standing` is said by those that
    choose their links themselves (`routing.overlay`); who `reconfigures`
    knows `Flush`, `Prepare` and `Activate`, and who `activates` is about to say the last one.
    """

    kind: LinkKind
    cost: Moment
    terms: str
    component: Component
    path: tuple[BrokerName, ...]
    form: Number = 0
    shared: Annotated[bytes, msgspec.Meta(max_length=4_096)] | None = None
    standing: Standing | None = None
    reconfigures: bool = False
    activates: bool = False


class Goodbye(WireMessage, frozen=True):
    """Refuse or end a link: the sender will not use it, and why.

    `why` says the same in a word, to who has asked for the link; `others` may take it instead.
    """

    reason: str
    why: str = ""
    others: Contacts = ()


class Joined(WireMessage, frozen=True):
    """The part of the acyclic network on the sender's side has this name now; it came by these brokers."""

    component: Component
    path: tuple[BrokerName, ...]


# A row: its number on the link, and what it says.
Row: TypeAlias = tuple[Number, Filter]
AdvertisementRow: TypeAlias = tuple[Number, Advertisement]


class Update(WireMessage, frozen=True):
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


class Acknowledge(WireMessage, frozen=True):
    """Acknowledge updates: all of the link up to this version are known to everyone behind the sender."""

    version: Number


class Forward(WireMessage, frozen=True):
    """Notifications for whoever wants them at the receiver or behind it."""

    envelopes: tuple[Envelope, ...]


class LinkState(WireMessage, frozen=True):
    """The links that a broker has in the graph, with their costs; flooded, the newest version counts.

    `component` names the acyclic cluster that the broker joins to the graph.
    """

    broker: str
    version: Number
    links: tuple[tuple[str, Moment], ...]
    component: Component


class Interest(WireMessage, frozen=True):
    """An update of what a broker of the graph wants and advertises, for all others; flooded.

    A `whole` one replaces all that was known of that broker: what a new neighbour is told.
    """

    broker: str
    update: Update
    whole: bool = False


class Known(WireMessage, frozen=True):
    """Everyone behind the sender knows this version of the broker's interest."""

    broker: str
    version: Number
