"""Links: who may be connected, that no cycle closes, and what happens when links go."""

import random

import pytest

from palio import Filter
from palio.model.form import VERSION as FORM
from palio.protocol.peers import Component, Forward, Goodbye, Hello, Interest, LinkKind, Update
from palio.protocol.requests import Publish, Ready, Subscribe
from palio.routing import Configuration, Router
from palio.routing.configuration import WrongConfiguration
from palio.routing.effects import CloseLink, Send
from palio.routing.occurrences import LinkUp, Open
from tests.routing.harness import Network, router


def parts(links):
    """The connected parts of a network, and whether some link closed a cycle."""
    root = {}

    def find(name):
        while root.setdefault(name, name) != name:
            name = root[name]
        return name

    acyclic = True
    for one, other in links:
        if find(one) == find(other):
            acyclic = False
        root[find(one)] = find(other)
    return {name: find(name) for name in root}, acyclic


def links_of(network):
    return {
        tuple(sorted((name, neighbour)))
        for name, router in network.routers.items()
        for neighbour in router.neighbours()
    }


def test_a_link_that_would_close_a_cycle_is_refused_with_a_reason():
    network = Network([("a", "b"), ("b", "c")])
    network.connect("a", "c")
    network.run()
    assert ("a", "c", "a and c are connected already; this link would close a cycle.") in network.closed
    assert links_of(network) == {("a", "b"), ("b", "c")}


def test_brokers_that_write_filters_in_different_forms_do_not_link():
    one = router("a")
    one.handle(LinkUp(), "b", 0.0)
    effects = one.handle(Hello(LinkKind.PEER, 1.0, one.configuration.terms, Component("b"), ("b",)), "b", 0.0)
    reason = (
        f"b writes filters in version 0 of their form, a in version {FORM}; "
        "run the same version of Palio at both."
    )
    assert effects[:2] == [Send("b", Goodbye(reason, "terms")), CloseLink("b", reason, "terms")]


def test_a_part_that_was_cut_off_can_be_joined_again_anywhere():
    network = Network([("a", "b"), ("b", "c"), ("c", "d")])
    network.disconnect("b", "c")
    network.run()
    network.connect("a", "d")
    network.run()
    assert links_of(network) == {("a", "b"), ("a", "d"), ("c", "d")}
    network.subscribe("c", "s", "x > 1")
    network.publish("b", "p", x=2)
    assert network.takers() == ["s"]


@pytest.mark.parametrize("seed", range(60))
def test_whatever_is_connected_at_once_ends_without_cycles_and_connected(seed):
    choose = random.Random(seed)
    names = [f"b{n}" for n in range(choose.randint(3, 8))]
    network = Network(brokers=names)
    wanted = set()
    for _ in range(choose.randint(3, 14)):
        one, other = choose.sample(names, 2)
        known = links_of(network)
        if tuple(sorted((one, other))) in known and choose.random() < 0.7:
            network.disconnect(one, other)
            wanted.discard(tuple(sorted((one, other))))
        elif not {(one, other), (other, one)} & wanted:
            network.connect(one, other)
            wanted.add((one, other))
        for _ in range(choose.randint(0, 8)):
            if network.under_way:
                network.step(choose)
    for _ in range(2_000):
        if network.under_way:
            network.step(choose)
    assert not network.under_way
    now = links_of(network)
    _, acyclic = parts(now)
    assert acyclic
    # Both ends of each link agree, and all of a part have one name that no other part has.
    for one, other in now:
        assert network.routers[one].neighbours().keys() >= {other}
        assert network.routers[other].neighbours().keys() >= {one}
    part_of, _ = parts([*now, *[(name, name) for name in names]])
    by_name = {}
    for name in names:
        by_name.setdefault(network.routers[name]._core.naming.component, set()).add(part_of[name])
    assert all(len(found) == 1 for found in by_name.values())
    assert len(by_name) == len(set(part_of.values()))
    # What was subscribed anywhere in a part is known in all of it.
    for index, name in enumerate(names):
        network.subscribe(name, f"s{index}", f"x = {index}")
    for index, name in enumerate(names):
        network.forget()
        network.ask(names[0], "p", Open())
        network.publish(names[0], "p", x=index)
        assert network.takers() == ([f"s{index}"] if part_of[name] == part_of[names[0]] else [])


def test_brokers_that_do_not_agree_refuse_each_other():
    covering, flooding = router("a"), router("b", "flooding")
    covering.handle(LinkUp(), "b", 0.0)
    (hello,) = [effect.message for effect in flooding.handle(LinkUp(), "a", 0.0)]
    effects = covering.handle(hello, "b", 0.0)
    assert [type(effect) for effect in effects] == [Send, CloseLink]
    assert isinstance(effects[0].message, Goodbye)
    assert "flooding" in effects[1].reason
    assert covering.neighbours() == {}


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        (LinkKind.MASTER, LinkKind.MASTER, "has a master already"),
        (LinkKind.MASTER, LinkKind.GRAPH, "only the top of a hierarchy"),
    ],
)
def test_a_broker_has_one_master_and_then_no_graph(first, second, reason):
    network = Network(brokers=["low", "one", "two"])
    network.connect("low", "one", first)
    network.connect("low", "two", second)
    network.run()
    assert any(reason in why for _, _, why in network.closed)
    assert network.routers["low"].neighbours() == {"one": first}


def test_ends_that_take_each_other_for_something_else_refuse():
    network = Network(brokers=["a", "b"])
    network.under_way += [("a", LinkUp(LinkKind.MASTER), "b"), ("b", LinkUp(LinkKind.PEER), "a")]
    network.run()
    assert len(network.closed) >= 1
    assert links_of(network) == set()


def test_a_cluster_has_one_gateway_to_the_graph():
    network = Network([("a", "b")])
    network.connect("a", "far", LinkKind.GRAPH)
    network.routers["far"] = router("far")
    network.connect("b", "far", LinkKind.GRAPH)
    network.run()
    assert any("gateway" in why for _, _, why in network.closed)
    assert links_of(network) == {("a", "b"), ("a", "far")}


def test_a_lost_link_ends_waiting_for_what_was_behind_it():
    one = router("a")
    one.handle(LinkUp(), "b", 0.0)
    one.handle(Hello(LinkKind.PEER, 1.0, one.configuration.terms, Component("b"), ("b",), FORM), "b", 0.0)
    one.handle(Open(), "s", 0.0)
    effects = one.handle(Subscribe("h", Filter.parse("x > 1"), ready=True), "s", 0.0)
    assert not any(getattr(effect, "answer", None) == Ready("h") for effect in effects)
    network = Network(brokers=["a"])
    network.routers["a"] = one
    network.under_way.append(("a", Goodbye("closing"), "b"))
    network.run()
    assert ("s", Ready("h")) in network.answers


@pytest.mark.parametrize(
    "message",
    [
        Update(1, remove=(7,)),
        Update(1, add=((1, Filter.parse("x > 1")), (1, Filter.parse("x > 2"))), remove=(1, 1)),
    ],
)
def test_an_update_that_does_not_fit_ends_the_link_and_nothing_else(message):
    one = router("a")
    one.handle(LinkUp(), "b", 0.0)
    one.handle(Hello(LinkKind.PEER, 1.0, one.configuration.terms, Component("b"), ("b",), FORM), "b", 0.0)
    effects = one.handle(message, "b", 0.0)
    assert any(isinstance(effect, CloseLink) for effect in effects)
    assert one.neighbours() == {}
    assert one.statistics().filters == 0


def test_messages_of_links_that_are_gone_are_ignored():
    one = router("a")
    for message in (Update(1), Forward(()), Interest("x", Update(1)), Goodbye("no")):
        assert one.handle(message, "stranger", 0.0) == []


def test_interest_with_a_gap_ends_the_link():
    network = Network([("a", "b")], kind=LinkKind.GRAPH)
    effects = network.routers["a"].handle(Interest("far", Update(5)), "b", 0.0)
    assert any(isinstance(effect, CloseLink) for effect in effects)


def test_settings_that_make_no_sense_are_refused():
    for wrong in ({"broker": ""}, {"broker": "a", "merging_excess": 1.0}, {"broker": "a", "hop_limit": 0}):
        with pytest.raises(WrongConfiguration):
            Configuration(**wrong)


def test_a_notification_in_a_loop_is_dropped():
    one = Router(Configuration(broker="a", hop_limit=1))
    one.handle(LinkUp(), "b", 0.0)
    one.handle(Hello(LinkKind.PEER, 1.0, one.configuration.terms, Component("b"), ("b",), FORM), "b", 0.0)
    one.handle(Open(), "s", 0.0)
    one.handle(Update(1, add=((1, Filter.parse("true")),)), "b", 0.0)
    from palio import Notification

    (send,) = one.handle(Publish((Notification({}),)), "s", 0.0)
    assert one.handle(send.message, "b", 0.0) == []
    assert one.statistics().forwarding.dropped == {"duplicate": 1}
