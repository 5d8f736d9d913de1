"""What neighbours say of reconfigurations: who is told, where it goes, and what is made of nonsense."""

from __future__ import annotations

import pytest

from palio.model.form import VERSION as FORM
from palio.protocol.encoding import UnreadableMessage, decode, encode
from palio.protocol.peers import Component, Hello, LinkKind
from palio.protocol.reconfiguration import MOST_STEPS, Flush
from palio.routing import Configuration, Router
from palio.routing.effects import Send
from palio.routing.occurrences import LinkUp
from palio.routing.reconfiguration.protocols import HEARD_AT_ONCE, way_between
from tests.routing.reconfiguration.scenes import TREE, rows, settings, subscribed, tree_world


def flushes(effects):
    return [
        (one.broker, one.message) for one in effects if isinstance(one, Send) and isinstance(one.message, Flush)
    ]


def greeted(*neighbours, reconfigures=True, count=1):
    """A broker whose neighbours came with parts that were made by losses."""
    configuration = Configuration(broker="a", reconfiguration=settings("notified"))
    router, told = Router(configuration), []
    for name in neighbours:
        router.handle(LinkUp(), name, 0.0)
        terms = router.configuration.terms
        hello = Hello(
            LinkKind.PEER, 1.0, terms, Component(name, count), (name,), FORM, reconfigures=reconfigures
        )
        told += flushes(router.handle(hello, name, 0.0))
    return router, told


@pytest.mark.parametrize(
    ("ours", "other", "way"),
    [
        ("ab", "ab", ""),
        ("a", "abc", "bc"),
        ("abc", "a", "ba"),
        ("abcd", "abxy", "cbxy"),
        ("abc", "xyz", ""),
        ("", "a", ""),
    ],
)
def test_the_way_between_two_brokers_leads_up_and_down(ours, other, way):
    assert way_between(tuple(ours), tuple(other)) == tuple(way)


def test_who_knows_nothing_of_it_is_told_nothing():
    assert greeted("b")[1] == [("b", Flush(Component("b", 1)))]
    assert greeted("b", reconfigures=False)[1] == []


def test_a_part_that_no_loss_has_made_is_told_nothing():
    assert greeted("b", count=0)[1] == []


def test_a_broker_that_is_not_to_notify_says_nothing_and_passes_on():
    world = tree_world(TREE, "notified")
    for name in "GFE":
        world.routers[name].reconfigure(settings("strawman"))
    subscribed(world, ("E", "p"), ("D", "p"))
    world.cut("A", "B")
    world.after(0.15, world.link, "C", "D")
    world.run(world.now + 1.0)
    assert [world.routers[one].reconfiguration().flushed for one in "AB"] == [1, 1]


@pytest.mark.parametrize(
    "message",
    [
        Flush(Component("a", 7)),
        Flush(Component("nobody", 1)),
        Flush(Component("nobody", 1), ("x", "b")),
        Flush(Component("nobody", 1), ("a", "nobody")),
        Flush(Component("b", 1), ("a",)),
        Flush(Component("c", 1), steps=MOST_STEPS),
        Flush(Component("b", 1)),
    ],
)
def test_nonsense_is_passed_on_to_nobody(message):
    router, _ = greeted("b", "c")
    assert flushes(router.handle(message, "b", 1.0)) == []


def test_a_way_is_followed_by_neighbours_only():
    router, _ = greeted("b", "c")
    passed = flushes(router.handle(Flush(Component("x", 1), ("a", "c", "d")), "b", 1.0))
    assert passed == [("c", Flush(Component("x", 1), ("c", "d"), steps=1))]


def test_what_is_passed_on_is_bounded():
    router, _ = greeted("b", "c")
    passed = []
    for _ in range(10 * HEARD_AT_ONCE):
        passed += flushes(router.handle(Flush(Component("x", 1), ("a", "c", "d")), "b", 1.0))
    assert len(passed) == HEARD_AT_ONCE


@pytest.mark.parametrize(
    "message",
    [
        Flush(Component("b"), ("x",) * (MOST_STEPS + 1)),
        Flush(Component("b" * 256)),
        Flush(Component("b"), steps=-1),
    ],
)
def test_ways_without_end_are_not_read(message):
    with pytest.raises(UnreadableMessage):
        decode(encode(message))


def test_a_flush_that_is_made_up_costs_rows_and_nothing_else():
    world = tree_world(TREE, "notified")
    subscribed(world, ("A", "p"))
    world.cut("A", "B")
    for effect in world.routers["B"].handle(Flush(Component("A", 9), ("B",)), "G", world.now):
        assert effect.broker == "G"
    world.link("A", "B")
    world.run()
    assert {name: has for name, has in rows(world).items() if not has} == {"A": frozenset()}


def test_no_neighbour_has_a_name_under_which_rows_are_parked():
    router, _ = greeted("\0b")
    assert router.neighbours() == {}
