"""The reconfigurable overlay: what its list of atomic tests says of the protocols, by their numbers there."""

import pytest

from palio.protocol.reconfiguration import Flush
from tests.routing.harness import Bench
from tests.routing.reconfiguration.scenes import (
    EXTENDED,
    LATER,
    SOON,
    TREE,
    Scene,
    counted,
    died,
    replaced,
    rows,
    settings,
    subscribed,
    tree_world,
)

PROTOCOLS = ("strawman", "deferred", "notified", "informed")
PARKING = PROTOCOLS[1:]
STAR = (("a", "b"), ("b", "c"), ("b", "d"), ("d", "e"))
P = "x > 5"


def cut_at(world, *link):
    """A link is lost; what is said in the next second is over."""
    world.cut(*link)
    world.run(world.now + 1.0)


def test_1_strawman_a_lost_link_takes_back_everything_heard_there():
    world = tree_world(STAR)
    subscribed(world, ("a", "p"), ("a", "q"), ("c", "p"))
    cut_at(world, "a", "b")
    assert rows(world)["d"] == {("b", "p")}
    assert counted(world) == (0, 4)  # q to three brokers, and p to the one that has it


def test_1_strawman_a_new_link_is_told_every_pattern():
    world = tree_world((*STAR, ("x", "y")))
    subscribed(world, ("a", "p"), ("c", "q"))
    world.link("b", "x")
    world.run()
    assert rows(world)["x"] == {("b", "p"), ("b", "q")}


def test_2_the_first_goes_to_all_the_second_to_the_first_and_later_ones_to_nobody():
    bench = Bench("m", "n", "o", strategy="identity")
    assert list(bench.hear("m", add=P)) == ["n", "o"]
    assert list(bench.hear("n", add=P)) == ["m"]
    assert list(bench.hear("o", add=P)) == []
    assert list(bench.hear("o", remove=P)) == []
    assert list(bench.hear("n", remove=P)) == ["m"]
    assert sorted(bench.hear("m", remove=P)) == ["n", "o"]


def test_3_timed_deferral_adds_at_once_and_takes_back_after_three_seconds():
    world = tree_world(TREE, "deferred")
    subscribed(world, ("E", "p"), ("D", "p"))
    began = world.now
    world.cut("A", "B")
    world.after(SOON, world.link, "C", "D")
    world.run(began + 2.9)
    assert counted(world) == (4, 0)
    world.run(began + 3.2)
    assert counted(world) == (4, 3)


@pytest.mark.parametrize("protocol", PARKING)
def test_4_no_timeout_is_strawman(protocol):
    for wait in (SOON, LATER):
        scene = Scene(TREE, [("E", "p"), ("D", "p"), ("A", "q")], ("A", "B"), ("A", "G"))
        (said, tables), (written, expected) = replaced(scene, "strawman", wait)
        world = tree_world(TREE, protocol, defer=0.0)
        subscribed(world, *scene.wanted)
        world.cut("A", "B")
        world.after(wait, world.link, "A", "G")
        world.run()
        assert counted(world) == said == written
        assert rows(world) == tables == expected


@pytest.mark.parametrize("protocol", PARKING)
def test_5_parked_entries_are_hidden_from_new_links(protocol):
    world = tree_world((*STAR, ("x", "y")), protocol)
    subscribed(world, ("a", "p"), ("c", "q"))
    world.cut("a", "b")
    world.link("b", "x")
    world.run(world.now + 1.0)
    assert rows(world)["x"] == {("b", "q")}


@pytest.mark.parametrize("protocol", PARKING)
def test_6_a_leaf_cleans_up_at_once_and_tells_nothing_on_its_new_link(protocol):
    world = tree_world(STAR, protocol)
    subscribed(world, ("a", "p"), ("e", "q"))
    world.cut("d", "e")
    assert world.routers["e"].statistics().filters == 1
    world.after(SOON, world.link, "c", "e")
    world.run()
    assert rows(world)["c"] == {("b", "p"), ("e", "q")}
    assert world.routers["e"].reconfiguration().parked == 0


def test_7_notified_deferral_drops_when_the_flush_has_come():
    world = tree_world(TREE, "notified")
    subscribed(world, ("E", "p"), ("D", "p"))
    world.cut("A", "B")
    world.after(SOON, world.link, "C", "D")
    world.run(world.now + 1.0)
    assert counted(world) == (4, 3)
    assert [world.routers[one].reconfiguration().flushed for one in "AB"] == [1, 1]


def test_7_the_timer_is_the_fallback_for_a_flush_that_is_lost():
    world = tree_world(TREE, "notified")
    subscribed(world, ("E", "p"), ("D", "p"))
    world.loses = Flush
    began = world.now
    world.cut("A", "B")
    world.after(SOON, world.link, "C", "D")
    world.run(began + 2.9)
    assert counted(world) == (4, 0)
    world.run()
    assert counted(world) == (4, 3)
    assert [world.routers[one].reconfiguration().expired for one in "AB"] == [1, 1]


def test_8_the_flush_goes_along_the_path_of_the_reconfiguration_only():
    world = tree_world(EXTENDED, "notified")
    subscribed(world, ("E", "p"), ("D", "p"), ("h4", "q"))
    world.cut("A", "B")
    world.after(SOON, world.link, "C", "D")
    world.run()
    # From C to D, G and B; and from there all the way round to A, and back.
    assert world.said["Flush"] == 3 + 6 + 6


def test_9_figure_4_what_only_the_old_neighbour_wanted_is_not_pushed_over_the_new_link():
    routers, written = replaced(Scene(TREE, [("A", "p")], ("A", "B"), ("C", "D")), "informed", SOON)
    assert routers == written
    assert routers[0] == (3, 2)
    assert replaced(Scene(TREE, [("A", "p")], ("A", "B"), ("C", "D")), "notified", SOON)[0][0] == (7, 6)


def test_9_what_was_held_back_and_is_still_wanted_is_told_when_its_time_has_come():
    world = tree_world(TREE, "informed", defer=60.0)
    subscribed(world, ("A", "p"))
    world.loses = Flush
    began = world.now
    world.cut("A", "B")
    world.after(SOON, world.link, "C", "D")
    world.run(began + SOON + 4.9)
    assert ("D", "p") not in rows(world)["C"]
    world.run(began + SOON + 5.2)
    assert ("D", "p") in rows(world)["C"]


def test_10_figure_12_a_the_child_of_a_dead_broker_says_what_only_it_had_wanted():
    links = (("A", "X"), ("X", "B"), ("X", "C"), ("A", "D"), ("C", "c1"), ("B", "b1"), ("D", "d1"))
    # Of the dead broker itself and of its other child: s1 and s2. Of C's side alone: s3.
    wanted = [("X", "s1"), ("B", "s2"), ("c1", "s3"), ("d1", "s4")]
    world = tree_world(links, "informed")
    subscribed(world, *wanted)
    world.crash("X")
    world.after(SOON, world.link, "D", "C")
    world.run(world.now + 1.0)
    assert ("C", "s1") not in rows(world)["D"]
    assert ("D", "s3") not in rows(world)["C"]
    assert ("D", "s4") in rows(world)["C"]
    assert ("C", "s3") in rows(world)["D"]


@pytest.mark.parametrize("wait", [SOON, LATER])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_13_tables_are_those_of_a_tree_that_is_built_anew(protocol, wait):
    wanted = [("E", "p"), ("D", "p"), ("A", "q"), ("G", "r")]
    (_, tables), _ = replaced(Scene(TREE, wanted, ("A", "B"), ("C", "D")), protocol, wait)
    fresh = tree_world([link for link in TREE if link != ("A", "B")] + [("C", "D")])
    subscribed(fresh, *wanted)
    assert tables == rows(fresh)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_14_figure_6_adds_four_entries_and_removes_five(protocol):
    before = tree_world(TREE)
    scene = Scene(TREE, [("E", "p"), ("D", "p")], ("A", "B"), ("C", "D"))
    subscribed(before, *scene.wanted)
    (_, tables), _ = replaced(scene, protocol, SOON)
    old = {(name, *row) for name, has in rows(before).items() for row in has}
    new = {(name, *row) for name, has in tables.items() for row in has}
    assert new - old == {("E", "F", "p"), ("F", "C", "p"), ("C", "D", "p"), ("D", "C", "p")}
    assert old - new == {("A", "B", "p"), ("B", "A", "p"), ("E", "A", "p"), ("G", "B", "p"), ("D", "G", "p")}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_14_figure_12_a_broker_dies_and_its_children_find_other_links(protocol):
    links = (("A", "X"), ("X", "B"), ("X", "C"), ("A", "D"), ("C", "c1"), ("B", "b1"))
    wanted = [("c1", "s1"), ("C", "s2"), ("D", "s3"), ("A", "s4"), ("b1", "s5")]
    (said, tables), (written, expected) = died(
        Scene(links, wanted, "X", (("D", "C"), ("A", "B"))), protocol, SOON
    )
    assert tables == expected
    if protocol in ("strawman", "deferred"):
        assert said == written
    else:  # a broker that has died does not say that rows can go, and its children do not do so for each other
        assert said <= died(Scene(links, wanted, "X", (("D", "C"), ("A", "B"))), "deferred", SOON)[0][0]
        assert said < written


def test_15_each_loss_has_a_name_of_its_own_that_is_known_before_the_new_link_is_there():
    world = tree_world(TREE, "notified")
    names = set()
    for _ in range(5):
        world.cut("A", "B")
        world.run(world.now + SOON)
        names.add(world.routers["D"]._core.naming.component)
        world.link("A", "B")
        world.run()
    assert len(names) == 5


@pytest.mark.parametrize("protocol", PARKING)
def test_17_other_timeouts_count_from_the_next_reconfiguration_on(protocol):
    world = tree_world(STAR, protocol)
    subscribed(world, ("a", "p"), ("c", "q"))
    began = world.now
    world.cut("a", "b")
    world.routers["b"].reconfigure(settings(protocol, defer=9.0))
    world.cut("c", "b")
    world.run(began + 3.5)
    assert rows(world)["d"] == {("b", "q")}
    world.run(began + 9.5)
    assert rows(world)["d"] == set()


def test_18_the_protocol_is_a_setting():
    for protocol in PROTOCOLS:
        assert tree_world(STAR, protocol).routers["b"].reconfiguration().protocol == protocol
