"""The worked examples of broker networks from the event channel's description, AT9 to AT15.

Where the figures are lost, the networks are the smallest that show what the text says.
"""

from palio import Advertisement, Filter
from palio.protocol.peers import LinkKind, Update
from palio.protocol.requests import Advertise, Subscribe
from palio.routing.occurrences import Open
from tests.routing.harness import Bench, Network

A, B = 'kind = "A"', 'kind = "B"'


def test_at9_with_a_broker_every_publisher_sends_once_and_all_takers_get_it():
    network = Network(brokers=["broker"])
    network.subscribe("broker", "P1", A)
    network.subscribe("broker", "P2", A, B)
    network.publish("broker", "O1", kind="A")
    network.publish("broker", "O2", kind="A")
    assert network.takers() == ["P1", "P1", "P2", "P2"]


def test_at10_only_the_roots_of_the_order_are_told_to_neighbours():
    bench = Bench("neighbour")
    roots = ['odred = "TOR"', "cijena < 1500"]
    for text in ['odred = "TOR" and cijena < 1000 and polaz = "ZG"', 'odred = "TOR" and cijena < 1000', *roots]:
        bench.ask("K", Subscribe(text, Filter.parse(text)))
    told = {str(filter) for filter in bench.router.sent("neighbour").values()}
    assert told == {str(Filter.parse(text)) for text in roots}


def test_at11_hierarchical_subscribe():
    network = Network([("H2", "H1")], kind=LinkKind.MASTER)
    network.subscribe("H2", "K1", 'odred = "TOR"')
    assert len(network.routers["H1"].received("H2")) == 1
    network.subscribe("H2", "K2", 'odred = "TOR" and polaz = "ZG"')
    assert len(network.routers["H1"].received("H2")) == 1
    network.forget()
    network.publish("H1", "O", odred="TOR", polaz="ZG")
    assert network.ways() == [("H1", "H2")]
    assert network.takers() == ["K1", "K2"]
    network.forget()
    network.publish("H1", "O", odred="TOR", polaz="ST")
    assert network.takers() == ["K1"]


def test_at12_downstream_replication_makes_copies_only_where_ways_part():
    network = Network(
        [("P1", "P2"), ("P2", "P4"), ("P4", "P5"), ("P4", "P6"), ("P6", "P7"), ("P6", "P8"), ("P2", "P3")]
    )
    for broker in ("P5", "P7", "P8"):
        network.subscribe(broker, f"K at {broker}", A)
    network.forget()
    network.publish("P1", "O", kind="A")
    copies = {broker: sum(one == broker for one, _ in network.ways()) for broker in network.routers}
    assert copies == {"P1": 1, "P2": 1, "P3": 0, "P4": 2, "P5": 0, "P6": 2, "P7": 0, "P8": 0}
    assert network.takers() == ["K at P5", "K at P7", "K at P8"]


def test_at13_upstream_evaluation_filters_at_the_sources_and_assembles_on_the_way():
    """P1 and P3 stop what nobody wants; a detector at P2 assembles A and B and sends what it found onward."""
    network = Network([("P1", "P2"), ("P3", "P2"), ("P2", "P4")])
    network.subscribe("P2", "detector", A, B)
    network.subscribe("P4", "K3", 'kind = "A and B"')
    network.forget()
    for kind in ("C", "A"):
        network.publish("P1", "K1", kind=kind)
    for kind in ("D", "B"):
        network.publish("P3", "K2", kind=kind)
    assert network.ways() == [("P1", "P2"), ("P3", "P2")]
    seen = [notification["kind"] for _, notification, _ in network.delivered]
    assert seen == ["A", "B"]
    network.publish("P2", "detector", kind=" and ".join(seen))
    assert network.ways()[2:] == [("P2", "P4")]
    assert network.takers() == ["K3", "detector", "detector"]


def test_at14_subscription_forwarding_reaches_all_brokers_and_events_take_the_reverse_path():
    network = Network([("P1", "P2"), ("P2", "P3"), ("P3", "P4")])
    network.forget()
    network.subscribe("P2", "K2", A)
    assert {other for _, other in network.ways(Update)} == {"P1", "P3", "P4"}
    network.publish("P4", "K1", kind="A")
    assert network.ways() == [("P4", "P3"), ("P3", "P2")]
    assert network.takers() == ["K2"]


def test_at15_advertisement_forwarding_draws_subscriptions_along_one_way():
    network = Network([("P1", "P2"), ("P2", "P3"), ("P2", "P4")], advertisements=True)
    network.ask("P4", "K3", Open(), Advertise("A", Advertisement.parse(A), True))
    network.forget()
    network.subscribe("P1", "K1", A)
    assert network.ways(Update) == [("P1", "P2"), ("P2", "P4")]
    network.publish("P4", "K3", kind="A")
    assert network.ways() == [("P4", "P2"), ("P2", "P1")]
    assert network.takers() == ["K1"]


def test_at15_what_was_not_advertised_is_refused_whole():
    network = Network(brokers=["P"], advertisements=True)
    network.ask("P", "K", Open(), Advertise("A", Advertisement.parse(A)))
    network.subscribe("P", "L", "true")
    network.forget()
    network.publish("P", "K", kind="B")
    ((session, refused),) = network.answers
    assert (session, refused.error) == ("K", "NotAdvertised")
    assert not network.delivered
