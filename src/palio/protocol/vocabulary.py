"""All messages of the wire, by who says them to whom."""

from __future__ import annotations

from typing import TypeAlias, get_args

from palio.protocol.deliveries import Events, Handed, Lost
from palio.protocol.durable.control import Pause, Paused, Resume, Seek, Sought
from palio.protocol.durable.journals import (
    Forget,
    Forgot,
    GoOn,
    Held,
    Hold,
    JournalsListed,
    JournalTrimmed,
    ListJournals,
    Replay,
    Replayed,
    Survey,
    Surveyed,
    TrimJournal,
)
from palio.protocol.durable.letters import Carry
from palio.protocol.durable.peers import Ask, Marks, Told, TopologyChanged
from palio.protocol.durable.subscriptions import (
    Acknowledged,
    Attach,
    Attached,
    Change,
    Changed,
    Detach,
    Discard,
    Discarded,
    Done,
    DurableReady,
    Finish,
    Rejected,
    Requeue,
    Requeued,
    Taken,
)
from palio.protocol.greeting import Greet, Welcome
from palio.protocol.heartbeat import Bye, Ping, Pong
from palio.protocol.inquiries import (
    Answered,
    Enquire,
    Inspect,
    Inspected,
    Probe,
    Probed,
    Request,
    Requested,
    Respond,
    Responded,
    Trace,
    Traced,
    Wanted,
    Watch,
)
from palio.protocol.peers import (
    Acknowledge,
    Forward,
    Goodbye,
    Hello,
    Interest,
    Joined,
    Known,
    LinkState,
    Update,
)
from palio.protocol.requests import (
    Accepted,
    Advertise,
    Ended,
    Publish,
    Published,
    Ready,
    Refused,
    Release,
    Subscribe,
    Unadvertise,
    Unsubscribe,
)

# From clients.
SubscriberRequest: TypeAlias = Subscribe | Release | Unsubscribe | Advertise | Unadvertise | Publish
DurableRequest: TypeAlias = (
    Attach
    | Change
    | Acknowledged
    | Rejected
    | Detach
    | Finish
    | Requeue
    | Discard
    | Forget
    | Survey
    | Replay
    | GoOn
    | ListJournals
    | Hold
    | TrimJournal
    | Pause
    | Resume
    | Seek
)
InquiryMessage: TypeAlias = Request | Respond | Trace | Watch
ClientMessage: TypeAlias = SubscriberRequest | DurableRequest | InquiryMessage

# To clients.
Answer: TypeAlias = Accepted | Ready | Ended | Published | Refused
DurableAnswer: TypeAlias = (
    Attached
    | DurableReady
    | Done
    | Changed
    | Taken
    | Requeued
    | Discarded
    | Forgot
    | Surveyed
    | Replayed
    | JournalsListed
    | Held
    | JournalTrimmed
    | Paused
    | Sought
)
InquiryAnswer: TypeAlias = Requested | Responded | Traced | Wanted
AnyAnswer: TypeAlias = Answer | DurableAnswer | InquiryAnswer

# Between brokers.
PeerMessage: TypeAlias = (
    Hello | Goodbye | Joined | Update | Acknowledge | Forward | LinkState | Interest | Known
)
DurablePeerMessage: TypeAlias = TopologyChanged | Marks | Ask | Told | Carry
InquiryPeerMessage: TypeAlias = Probe | Probed | Enquire | Answered
BrokerMessage: TypeAlias = PeerMessage | DurablePeerMessage | InquiryPeerMessage

# Of the connection itself, and what is said to clients by the broker around the core.
ConnectionMessage: TypeAlias = Greet | Welcome | Ping | Pong | Bye | Lost | Inspect | Inspected
AnyMessage: TypeAlias = ClientMessage | AnyAnswer | BrokerMessage | ConnectionMessage | Events | Handed

# What a client hears from a broker that it is welcome at; and what of it answers a request, by its number.
TO_CLIENTS: frozenset[type] = frozenset({*get_args(AnyAnswer), Events, Handed, Lost, Inspected})
ANSWERS = TO_CLIENTS - {Ready, DurableReady, Taken, Requested, Events, Handed, Lost}
# What a broker hears from clients, and from its neighbours.
FROM_CLIENTS: frozenset[type] = frozenset({*get_args(ClientMessage), Inspect})
FROM_BROKERS: frozenset[type] = frozenset(get_args(BrokerMessage))
