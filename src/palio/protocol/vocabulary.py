"""All messages of the wire, by who says them to whom."""

from __future__ import annotations

from typing import TypeAlias, get_args

from palio.protocol import (
    deliveries,
    greeting,
    heartbeat,
    inquiries,
    invocations,
    overlay,
    peers,
    reconfiguration,
    requests,
    sharing,
)
from palio.protocol.durable import control, journals, letters, subscriptions
from palio.protocol.durable import peers as durable_peers

# From clients.
_Subscribing: TypeAlias = requests.Subscribe | requests.Release | requests.Unsubscribe
_Advertising: TypeAlias = requests.Advertise | requests.Unadvertise
SubscriberRequest: TypeAlias = _Subscribing | _Advertising | requests.Publish
_Taking: TypeAlias = subscriptions.Attach | subscriptions.Change | subscriptions.Detach | subscriptions.Finish
_Settling: TypeAlias = subscriptions.Acknowledged | subscriptions.Rejected
_DeadLetters: TypeAlias = subscriptions.Requeue | subscriptions.Discard
_Steering: TypeAlias = control.Pause | control.Resume | control.Seek
_Looking: TypeAlias = journals.Survey | journals.Replay | journals.GoOn | journals.ListJournals
_Keeping: TypeAlias = journals.Hold | journals.TrimJournal | journals.Forget
DurableRequest: TypeAlias = _Taking | _Settling | _DeadLetters | _Steering | _Looking | _Keeping
InquiryMessage: TypeAlias = inquiries.Request | inquiries.Respond | inquiries.Trace | inquiries.Watch
ClientMessage: TypeAlias = SubscriberRequest | DurableRequest | InquiryMessage

# To clients.
Answer: TypeAlias = requests.Accepted | requests.Ready | requests.Ended | requests.Published | requests.Refused
_OfTaking: TypeAlias = subscriptions.Attached | subscriptions.DurableReady | subscriptions.Changed
_OfSettling: TypeAlias = subscriptions.Done | subscriptions.Requeued | subscriptions.Discarded
_OfSteering: TypeAlias = control.Paused | control.Sought
_OfLooking: TypeAlias = journals.Surveyed | journals.Replayed | journals.JournalsListed
_OfKeeping: TypeAlias = journals.Held | journals.JournalTrimmed | journals.Forgot
_Told: TypeAlias = subscriptions.Taken | subscriptions.GapNoticed
DurableAnswer: TypeAlias = _OfTaking | _OfSettling | _OfSteering | _OfLooking | _OfKeeping | _Told
InquiryAnswer: TypeAlias = inquiries.Requested | inquiries.Responded | inquiries.Traced | inquiries.Wanted
AnyAnswer: TypeAlias = Answer | DurableAnswer | InquiryAnswer

# Between brokers.
_Linking: TypeAlias = peers.Hello | peers.Goodbye | peers.Joined
_Flooding: TypeAlias = peers.LinkState | peers.Interest | peers.Known
PeerMessage: TypeAlias = _Linking | _Flooding | peers.Update | peers.Acknowledge | peers.Forward
DurablePeerMessage: TypeAlias = (
    durable_peers.TopologyChanged | durable_peers.Marks | durable_peers.Ask | durable_peers.Told | letters.Carry
)
InquiryPeerMessage: TypeAlias = inquiries.Probe | inquiries.Probed | inquiries.Enquire | inquiries.Answered
SharingMessage: TypeAlias = sharing.Share | sharing.Verify | sharing.Verified
OverlayMessage: TypeAlias = overlay.Nearby | overlay.Suggest
ReconfigurationMessage: TypeAlias = reconfiguration.Flush | reconfiguration.Prepare | reconfiguration.Activate
_AmongBrokers: TypeAlias = PeerMessage | DurablePeerMessage | InquiryPeerMessage
BrokerMessage: TypeAlias = _AmongBrokers | SharingMessage | OverlayMessage | ReconfigurationMessage

# Of the connection itself, and what is said to clients by the broker around the core.
_Greeting: TypeAlias = greeting.Greet | greeting.Welcome
_Heartbeat: TypeAlias = heartbeat.Ping | heartbeat.Pong | heartbeat.Bye
_Inspection: TypeAlias = inquiries.Inspect | inquiries.Inspected
_Invocation: TypeAlias = invocations.Invoke | invocations.Invoked
_Reading: TypeAlias = requests.PublishDocuments
_Telling: TypeAlias = deliveries.Lost | overlay.OtherBrokers
ConnectionMessage: TypeAlias = _Greeting | _Heartbeat | _Inspection | _Invocation | _Reading | _Telling
AnyMessage: TypeAlias = (
    ClientMessage | AnyAnswer | BrokerMessage | ConnectionMessage | deliveries.Events | deliveries.Handed
)

# What a client hears from a broker that it is welcome at; and what of it answers a request, by its number.
TO_CLIENTS: frozenset[type] = frozenset(
    {
        *get_args(AnyAnswer),
        *(deliveries.Events, deliveries.Handed, *get_args(_Telling)),
        *(inquiries.Inspected, invocations.Invoked),
    }
)
_UNASKED = {requests.Ready, subscriptions.DurableReady, *get_args(_Told), inquiries.Requested}
ANSWERS = TO_CLIENTS - _UNASKED - {deliveries.Events, deliveries.Handed, *get_args(_Telling)}
# What clients hear only if they have said that they know it: it came into this version of the protocol later.
OPTIONAL: frozenset[type] = frozenset({subscriptions.GapNoticed, overlay.OtherBrokers})
KNOWN: tuple[str, ...] = tuple(sorted([kind.__name__.lower() for kind in OPTIONAL]))
# What clients ask only of a broker that has said that it knows it: it came into this version later, too.
LATER_REQUESTS: frozenset[type] = frozenset({invocations.Invoke, requests.PublishDocuments})
SERVED: tuple[str, ...] = tuple(sorted([kind.__name__.lower() for kind in LATER_REQUESTS]))
# What a broker hears from clients, and from its neighbours.
FROM_CLIENTS: frozenset[type] = frozenset({*get_args(ClientMessage), inquiries.Inspect, *LATER_REQUESTS})
FROM_BROKERS: frozenset[type] = frozenset(get_args(BrokerMessage))
