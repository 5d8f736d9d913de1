"""Numbers that can be worked out by hand: three brokers in a line, one subscriber, two notifications."""

import pytest

from palio.model.filter import Filter
from palio.model.notification import Notification
from palio.protocol.peers import LinkKind
from palio.protocol.requests import Publish, Release, Subscribe
from palio.routing.configuration import Configuration, Strategy
from palio.routing.occurrences import Open
from palio.routing.router import Router
from palio.sim.clients import ClientStep, LinkStep, Phase
from palio.sim.metrics import measure
from palio.sim.network import SimulatedNetwork
from palio.sim.oracle import judge
from palio.sim.outcome import Outcome
from palio.sim.run import run
from palio.sim.scenario import Scenario
from palio.sim.topologies import Layout, TopologyLink

LINE = Layout(
    3,
    (
        TopologyLink(0, 1, LinkKind.PEER, LinkKind.PEER, 1.0, 0.01),
        TopologyLink(1, 2, LinkKind.PEER, LinkKind.PEER, 2.0, 0.02),
    ),
)


def outcome(strategy: Strategy, *, release: bool = False) -> Outcome:
    network = SimulatedNetwork(LINE, lambda name: Router(Configuration(broker=name, strategy=strategy)))
    filter = Filter.parse("x > 0")
    wanted, unwanted = Notification({"x": 1}), Notification({"x": 0})
    network.play(Phase("links", tuple(LinkStep(0, 0.0, link, up=True) for link in range(2))))
    begin = (
        ClientStep(0, 0.0, 2, "s", Open()),
        ClientStep(0, 0.0, 0, "p", Open()),
        ClientStep(0, 0.0, 2, "s", Subscribe("h", filter, ready=True)),
    )
    network.play(Phase("begin", begin))
    network.play(Phase("flow", (ClientStep(0, 0.0, 0, "p", Publish((wanted, unwanted), 1)),)))
    if release:
        network.play(Phase("end", (ClientStep(0, 0.0, 2, "s", Release("h")),)))
    network.finish()
    return measure(network, judge(network.history, advertisements=False), wall_seconds=0.0)


def test_a_subscription_goes_to_everyone_and_a_notification_to_who_wants_it():
    found = outcome(Strategy.COVERING)
    assert (found.brokers, found.links, found.sessions, found.violations) == (3, 2, 2, 0)
    assert (found.subscription_messages, found.subscription_cost, found.rows_added) == (2, 3.0, 2)
    assert (found.acknowledgement_messages, found.acknowledgement_cost) == (2, 3.0)
    assert (found.forward_messages, found.forward_cost) == (2, 3.0)
    assert (found.forwards, found.forwards_cost, found.wasted_forwards) == (2, 3.0, 0)
    assert (found.subscribes, found.published, found.deliveries) == (1, 2, 1)
    assert (found.deliveries_expected, found.deliveries_possible, found.notifications_checked) == (1, 1, 2)
    assert (found.table_rows, found.table_rows_max) == (2, 1)
    assert found.table_rows_mean == pytest.approx(2 / 3)
    assert (found.hops_mean, found.hops_p50, found.hops_p99, found.hops_max) == (2, 2, 2, 2)
    assert found.latency_mean == pytest.approx(0.03)
    assert found.ready_mean == pytest.approx(0.06)
    assert found.messages == found.greeting_messages + 2 + 2 + 2
    assert found.cost == found.greeting_cost + 9.0


def test_flooding_takes_no_tables_and_wastes():
    found = outcome(Strategy.FLOODING)
    assert (found.subscription_messages, found.table_rows) == (0, 0)
    assert (found.forward_messages, found.forward_cost) == (2, 3.0)  # two at once
    assert (found.forwards, found.forwards_cost, found.wasted_forwards) == (4, 6.0, 1)
    assert (found.deliveries, found.deliveries_expected) == (1, 1)


def test_what_ends_leaves_the_tables():
    found = outcome(Strategy.COVERING, release=True)
    assert (found.unsubscribes, found.rows_removed, found.table_rows) == (1, 2, 0)
    assert found.subscription_messages == 4


def test_advertisements_are_counted_apart():
    plain, advertised = (run(Scenario(advertisements=semantics, interests=3)) for semantics in (False, True))
    assert plain.advertisement_messages == plain.advertisements_added == plain.advertisement_rows == 0
    assert advertised.advertises > 0
    assert advertised.advertisement_messages > 0
    assert advertised.advertisement_cost > 0
    assert advertised.advertisement_rows_max > 0
    assert advertised.deliveries == plain.deliveries > 0


def test_graphs_flood_the_state_of_their_links():
    found = run(Scenario(topology="graph", shape="ring", brokers=6, interests=3))
    assert found.link_state_messages > 0
    assert found.link_state_cost > 0
    assert found.acknowledgement_messages > 0
