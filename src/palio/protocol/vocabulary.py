"""All messages of the wire, by who says them to whom."""

from __future__ import annotations

from typing import TypeAlias, get_args

from palio.protocol import deliveries, greeting, heartbeat, inquiries, peers, requests
from palio.protocol.durable import control, journals, letters, subscriptions
from palio.protocol.durable import peers as durable_peers

# From clients.
SubscriberRequest: TypeAlias = (
    requests.Subscribe
    | requests.Release
    | requests.Unsubscribe
    | requests.Advertise
    | requests.Unadvertise
    | requests.Publish
)
DurableRequest: TypeAlias = (
    subscriptions.Attach
    | subscriptions.Change
    | subscriptions.Acknowledged
    | subscriptions.Rejected
    | subscriptions.Detach
    | subscriptions.Finish
    | subscriptions.Requeue
    | subscriptions.Discard
    | journals.Forget
    | journals.Survey
    | journals.Replay
    | journals.GoOn
    | journals.ListJournals
    | journals.Hold
    | journals.TrimJournal
    | control.Pause
    | control.Resume
    | control.Seek
)
InquiryMessage: TypeAlias = inquiries.Request | inquiries.Respond | inquiries.Trace | inquiries.Watch
ClientMessage: TypeAlias = SubscriberRequest | DurableRequest | InquiryMessage

# To clients.
Answer: TypeAlias = requests.Accepted | requests.Ready | requests.Ended | requests.Published | requests.Refused
DurableAnswer: TypeAlias = (
    subscriptions.Attached
    | subscriptions.DurableReady
    | subscriptions.Done
    | subscriptions.Changed
    | subscriptions.Taken
    | subscriptions.Requeued
    | subscriptions.Discarded
    | journals.Forgot
    | journals.Surveyed
    | journals.Replayed
    | journals.JournalsListed
    | journals.Held
    | journals.JournalTrimmed
    | control.Paused
    | control.Sought
)
InquiryAnswer: TypeAlias = inquiries.Requested | inquiries.Responded | inquiries.Traced | inquiries.Wanted
AnyAnswer: TypeAlias = Answer | DurableAnswer | InquiryAnswer

# Between brokers.
PeerMessage: TypeAlias = (
    peers.Hello
    | peers.Goodbye
    | peers.Joined
    | peers.Update
    | peers.Acknowledge
    | peers.Forward
    | peers.LinkState
    | peers.Interest
    | peers.Known
)
DurablePeerMessage: TypeAlias = (
    durable_peers.TopologyChanged | durable_peers.Marks | durable_peers.Ask | durable_peers.Told | letters.Carry
)
InquiryPeerMessage: TypeAlias = inquiries.Probe | inquiries.Probed | inquiries.Enquire | inquiries.Answered
BrokerMessage: TypeAlias = PeerMessage | DurablePeerMessage | InquiryPeerMessage

# Of the connection itself, and what is said to clients by the broker around the core.
ConnectionMessage: TypeAlias = (
    greeting.Greet
    | greeting.Welcome
    | heartbeat.Ping
    | heartbeat.Pong
    | heartbeat.Bye
    | deliveries.Lost
    | inquiries.Inspect
    | inquiries.Inspected
)
AnyMessage: TypeAlias = (
    ClientMessage | AnyAnswer | BrokerMessage | ConnectionMessage | deliveries.Events | deliveries.Handed
)

# What a client hears from a broker that it is welcome at; and what of it answers a request, by its number.
TO_CLIENTS: frozenset[type] = frozenset(
    {*get_args(AnyAnswer), deliveries.Events, deliveries.Handed, deliveries.Lost, inquiries.Inspected}
)
ANSWERS = TO_CLIENTS - {
    requests.Ready,
    subscriptions.DurableReady,
    subscriptions.Taken,
    inquiries.Requested,
    deliveries.Events,
    deliveries.Handed,
    deliveries.Lost,
}
# What a broker hears from clients, and from its neighbours.
FROM_CLIENTS: frozenset[type] = frozenset({*get_args(ClientMessage), inquiries.Inspect})
FROM_BROKERS: frozenset[type] = frozenset(get_args(BrokerMessage))
