"""The shell around the brokers: order on links, loss with links, timers, and coming to rest."""

from palio.model.notification import Notification
from palio.protocol.envelope import Envelope
from palio.protocol.peers import Forward, Goodbye, LinkKind
from palio.protocol.requests import Publish
from palio.routing.effects import CloseLink, Send, SetTimer
from palio.routing.occurrences import LinkDown, LinkUp
from palio.sim.clients import ClientStep, LinkStep, Phase
from palio.sim.network import SimulatedNetwork
from palio.sim.topologies import Layout, TopologyLink


class Noting:
    """A broker that notes what it handles and does what it is told."""

    def __init__(self, name, reactions=None):
        self.broker = name
        self.heard = []
        self.reactions = reactions or {}

    def handle(self, message, source, now):
        self.heard.append((round(now, 3), source, message))
        return self.reactions.get(type(message), lambda *_: [])(message, source, now)

    def on_timer(self, name, now):
        self.heard.append((round(now, 3), "timer", name))
        return []


def pair(**reactions) -> tuple[SimulatedNetwork, Noting, Noting]:
    """Two brokers, a second apart."""
    made = {name: Noting(name, reactions.get(name)) for name in ("b0", "b1")}
    layout = Layout(2, (TopologyLink(0, 1, LinkKind.MASTER, LinkKind.BELOW, 2.5, 1.0),))
    network = SimulatedNetwork(layout, made.__getitem__)
    return network, made["b0"], made["b1"]


def forward(sequence: int) -> Forward:
    return Forward((Envelope("b0", sequence, 0.0, 0, "b0", Notification({})),))


def sending(*messages):
    return {Publish: lambda message, source, now: [Send("b1", one) for one in messages]}


UP = Phase("links", (LinkStep(0, 0.0, 0, up=True),))
SAY = ClientStep(0, 0.0, 0, "p", Publish((), 1))


def test_both_ends_hear_of_a_link_and_what_the_other_is_to_them():
    network, lower, upper = pair()
    network.play(UP)
    assert lower.heard == [(0.0, "b1", LinkUp(LinkKind.MASTER, 2.5))]
    assert upper.heard == [(0.0, "b0", LinkUp(LinkKind.BELOW, 2.5))]


def test_a_link_keeps_the_order_and_takes_its_time():
    network, _, upper = pair(b0=sending(forward(1), forward(2), forward(3)))
    network.play(UP)
    network.play(Phase("flow", (SAY,)))
    assert upper.heard[1:] == [(1.0, "b0", forward(number)) for number in (1, 2, 3)]
    assert network.forwards() == network.traffic(Forward) == network.traffic() == (3, 7.5)
    assert network.lines[0][0].messages == {Forward: 3}
    assert network.counts.wasted_forwards == 3
    assert network.history.last_seen["b0", 3] == network.moment - 1


def test_what_is_on_a_link_that_goes_is_lost():
    network, lower, upper = pair(b0=sending(forward(1)))
    network.play(UP)
    down, up = LinkStep(0, 0.5, 0, up=False, orderly=False, delay=0.2), LinkStep(0, 0.8, 0, up=True)
    network.play(Phase("flow", (SAY, down, up)))
    assert [message for _, _, message in upper.heard[1:]] == [LinkDown(False), LinkUp(LinkKind.BELOW, 2.5)]
    assert upper.heard[1][0] == 0.7
    assert [one[0] for one in lower.heard[2:]] == [0.5, 0.8]
    assert network.history.disturbances == [(network.moment - 4, network.moment, 0)]
    assert network.history.last_seen["b0", 1] >= network.moment - 4


def test_without_a_link_nothing_arrives():
    network, _, upper = pair(b0=sending(forward(1)))
    network.play(Phase("flow", (SAY,)))
    assert upper.heard == []


def test_a_timer_is_replaced_by_one_of_its_name():
    def react(message, source, now):
        return [SetTimer("a", now + 5), SetTimer("a", now + 2)]

    network, lower, _ = pair(b0={Publish: react})
    network.play(Phase("flow", (SAY,)))
    assert lower.heard[1:] == [(2.0, "timer", "a")]


def test_a_network_that_goes_on_and_on_is_stopped():
    def back(message, source, now):
        return [Send(source, message)]

    network, _, _ = pair(b0={**sending(forward(1)), Forward: back}, b1={Forward: back})
    network.play(UP)
    network.play(Phase("flow", (SAY,)))
    assert network.history.unquiet.endswith("there are still 1 under way")


def test_a_link_that_is_refused_carries_the_reason_and_nothing_more():
    def refuse(message, source, now):
        return [Send("b1", Goodbye("No.")), CloseLink("b1", "No."), Send("b1", forward(1))]

    network, _, upper = pair(b0={Publish: refuse})
    network.play(UP)
    network.play(Phase("flow", (SAY,)))
    assert [message for _, _, message in upper.heard[1:]] == [Goodbye("No."), LinkDown()]
    assert network.history.refused_links == [("b0", "b1", "No.")]
    assert not network.is_whole


def test_a_batch_is_wasted_as_far_as_it_goes_nowhere():
    envelopes = forward(1).envelopes + forward(2).envelopes

    def half(message, source, now):
        return [Send(source, Forward(message.envelopes[:1]))] if source == "b0" else []

    network, _, _ = pair(b0=sending(Forward(envelopes)), b1={Forward: half})
    network.play(UP)
    network.play(Phase("flow", (SAY,)))
    assert network.forwards() == (3, 7.5)
    assert network.traffic(Forward) == (2, 5.0)
    assert network.counts.wasted_forwards == 2
