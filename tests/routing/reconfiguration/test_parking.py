"""Rows of a lost link that are parked: what they still do, and what they do not do any more."""

from __future__ import annotations

import pytest

from palio import Advertisement, Filter, Notification
from palio.protocol.peers import Forward, Update
from palio.protocol.requests import Advertise, Publish, Release, Subscribe
from palio.routing.reconfiguration.parking import MOST_PARKED
from tests.routing.reconfiguration.scenes import settings, subscribed, tree_world

STAR = (("a", "b"), ("b", "c"), ("b", "d"), ("d", "e"))
DEFERS = 3.0


def world_of(*wanted, links=STAR, **more):
    world = tree_world(links, "deferred", **more)
    subscribed(world, *wanted)
    return world


def told(world, one, other):
    return sorted(map(str, world.routers[one].sent(other).values()))


def wait(world, seconds):
    world.run(world.now + seconds)


def test_parked_rows_still_stand_where_they_were_told_until_their_time_has_come():
    world = world_of(("a", "p"))
    world.cut("a", "b")
    wait(world, DEFERS - 0.1)
    assert told(world, "b", "c") == ["p = 1"]
    assert world.routers["b"].reconfiguration().rows == 1
    wait(world, 0.2)
    assert told(world, "b", "c") == []
    assert world.routers["b"].reconfiguration().rows == 0
    assert world.routers["b"].reconfiguration().expired == 1


def test_parked_rows_attract_no_events():
    world = world_of(("a", "p"))
    world.cut("a", "b")
    world.ask("b", "publisher", Publish((Notification({"p": 1}),)))
    wait(world, 1.0)
    assert world.delivered == []
    assert world.said["Forward"] == 0


def test_new_neighbours_are_not_told_of_parked_rows():
    world = world_of(("a", "p"), ("c", "q"), links=(*STAR, ("x", "y")))
    world.cut("a", "b")
    world.link("b", "x")
    wait(world, 1.0)
    assert told(world, "b", "x") == ["q = 1"]
    world.run()
    assert told(world, "b", "x") == ["q = 1"]


@pytest.mark.parametrize("strategy", ["covering", "merging"])
def test_new_neighbours_are_told_what_parked_rows_alone_cover(strategy):
    world = tree_world((*STAR, ("x", "y")), "deferred", strategy)
    world.ask("a", "wide", Subscribe("w", Filter.parse("p > 0")))
    world.ask("c", "narrow", Subscribe("n", Filter.parse("p > 5")))
    world.run()
    assert told(world, "b", "d") == ["p > 0"]
    world.cut("a", "b")
    world.link("b", "x")
    wait(world, 1.0)
    assert told(world, "b", "x") == ["p > 5"]
    assert told(world, "b", "d") == ["p > 0"]
    world.run()
    assert told(world, "b", "d") == ["p > 5"]


def test_who_comes_back_in_time_is_told_of_by_nobody():
    world = world_of(("a", "p"))
    world.cut("a", "b")
    world.after(1.0, world.link, "a", "b")
    world.run()
    assert told(world, "b", "c") == ["p = 1"]
    assert (world.said["added"], world.said["removed"]) == (1, 0)
    assert world.routers["b"].received("a").keys() == world.routers["a"].sent("b").keys()


def test_what_is_cancelled_behind_a_lost_link_goes_with_its_time():
    world = world_of(("a", "p"))
    world.cut("a", "b")
    world.ask("a", "client a", Release("p"))
    world.after(1.0, world.link, "a", "b")
    world.run()
    assert told(world, "b", "c") == []


def test_a_subscription_that_is_parked_elsewhere_is_told_of_at_once_where_it_was_not():
    world = world_of(("a", "p"))
    world.cut("a", "b")
    world.ask("c", "client c", Subscribe("p", Filter.parse("p = 1")))
    wait(world, 0.5)
    world.ask("d", "publisher", Publish((Notification({"p": 1}),)))
    wait(world, 0.5)
    assert [session for _, session, _ in world.delivered] == ["client c"]


def test_advertisements_of_a_lost_link_are_parked_too():
    world = tree_world((*STAR, ("x", "y")), "deferred", advertisements=True)
    world.ask("a", "publisher", Advertise("a", Advertisement.parse("p > 0")))
    world.ask("c", "client", Subscribe("s", Filter.parse("p > 5")))
    world.run()
    world.cut("a", "b")
    world.link("b", "x")
    wait(world, 1.0)
    assert len(world.routers["b"].sent_advertisements("c")) == 1
    assert len(world.routers["b"].sent_advertisements("x")) == 0
    assert told(world, "c", "b") == ["p > 5"]
    world.run()
    assert len(world.routers["b"].sent_advertisements("c")) == 0
    assert told(world, "c", "b") == []


def test_a_leaf_drops_its_rows_at_once_and_says_nothing():
    world = world_of(("d", "p"))
    world.cut("d", "e")
    assert world.routers["e"].reconfiguration().parked == 0
    assert world.routers["e"].statistics().filters == 0
    assert world.said["Update"] == 0


def test_no_time_is_strawman():
    said = []
    for protocol in ("strawman", "deferred"):
        world = tree_world(STAR, protocol, defer=0.0)
        subscribed(world, ("a", "p"), ("e", "q"))
        world.cut("a", "b")
        world.after(1.0, world.link, "a", "d")
        world.run()
        assert world.routers["b"].reconfiguration().parked == 0
        said.append((world.said["added"], world.said["removed"], world.said["Update"]))
    assert said[0] == said[1]


def test_other_settings_count_from_the_next_lost_link_on():
    world = world_of(("a", "p"), ("c", "q"))
    router = world.routers["b"]
    world.cut("a", "b")
    router.reconfigure(settings("strawman"))
    world.cut("b", "c")
    assert router.reconfiguration().rows == 1
    assert told(world, "b", "d") == ["p = 1"]
    router.reconfigure(settings("deferred", defer=60.0))
    wait(world, DEFERS + 0.1)
    assert told(world, "b", "d") == []


def test_a_link_that_is_lost_again_has_its_rows_parked_once():
    world = world_of(("a", "p"))
    for _ in range(3):
        world.cut("a", "b")
        wait(world, 0.5)
        world.link("a", "b")
        wait(world, 0.5)
    assert world.routers["b"].reconfiguration().waiting == 1
    world.run()
    assert world.routers["b"].reconfiguration().waiting == 0
    assert told(world, "b", "c") == ["p = 1"]


def test_lots_of_parked_rows_are_bounded():
    around = [f"n{number}" for number in range(MOST_PARKED + 3)]
    world = world_of(*[(name, f"p{name}") for name in around], links=[("b", name) for name in (*around, "z")])
    for name in around:
        world.cut("b", name)
    assert world.routers["b"].reconfiguration().waiting == MOST_PARKED
    wait(world, 0.5)
    assert len(told(world, "b", "z")) == MOST_PARKED


def test_nothing_of_it_goes_over_links_but_updates():
    world = world_of(("a", "p"), ("e", "q"))
    world.cut("a", "b")
    world.after(1.0, world.link, "a", "e")
    world.run()
    kinds = {kind for kind in world.said if kind[0].isupper()}
    assert kinds <= {Update.__name__, Forward.__name__, "Hello", "Joined"}


def test_rows_are_parked_as_long_as_repairs_take():
    world = tree_world((("a", "b"), ("b", "c"), ("c", "d")), "notified", defer="auto")
    subscribed(world, ("a", "p"), ("d", "q"))
    for _ in range(2):
        world.cut("b", "c")
        world.after(8.0, world.link, "b", "c")  # longer than the three seconds of the beginning
        world.run()
    lost = world.routers["c"].reconfiguration()
    assert (lost.expired, lost.flushed) == (1, 1)


@pytest.mark.parametrize(
    ("repairs", "seconds"), [((), 3.0), ((1.0, 4.0, 2.0), 8.0), ((0.01,), 0.5), ((1e6,), 60.0)]
)
def test_automatic_times_are_bounded(repairs, seconds):
    assert settings("deferred", defer="auto").parks_for(repairs) == seconds
    assert settings("strawman", defer="auto").parks_for(repairs) == 0.0
    assert settings("deferred", defer=7.0).parks_for(repairs) == 7.0
