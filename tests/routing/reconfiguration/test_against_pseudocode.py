"""What brokers say when a link is replaced, counted against the protocols as they were written down."""

from __future__ import annotations

import pytest

from palio.protocol.peers import Update
from palio.protocol.reconfiguration import Flush
from palio.routing.core import Core
from palio.routing.effects import Send
from palio.routing.reconfiguration import protocols
from palio.routing.reconfiguration.parking import Parking
from palio.routing.reconfiguration.protocols import Reconfiguration
from palio.routing.table import Table
from palio.sim.reconfiguration.world import TreeWorld
from tests.routing.reconfiguration.pseudocode import DEFERRED, INFORMED, NOTIFIED, STRAWMAN
from tests.routing.reconfiguration.scenes import (
    EXTENDED,
    LATER,
    SOON,
    TREE,
    Scene,
    died,
    drawn,
    drawn_death,
    imagined,
    replaced,
    subscribed,
    tree_world,
)
from tests.slices import sliced

PROTOCOLS = (STRAWMAN, DEFERRED, NOTIFIED, INFORMED)
OLD = ("A", "B")
ED, AT_A, AT_G = (("E", "p"), ("D", "p")), (("A", "p"),), (("G", "p"),)

# What the pseudocode says in all, and without what the receiver has been told already or never was: sent when
# everything is at rest again, and with the new link at the same moment.
WRITTEN = {
    "A": (TREE, ED, ("C", "D"), {STRAWMAN: ("4/3", "4/3"), DEFERRED: ("4/3", "4/3"), INFORMED: ("4/3", "4/3")}),
    "B": (
        TREE,
        AT_A,
        ("C", "D"),
        {STRAWMAN: ("3/2", "7/6"), DEFERRED: ("7/6", "7/6"), INFORMED: ("3/3", "3/3")},
    ),
    "shared": (
        TREE,
        ED,
        ("A", "G"),
        {STRAWMAN: ("4/3", "4/3"), DEFERRED: ("3/1", "3/1"), INFORMED: ("2/1", "2/1")},
    ),
    "extended, shared": (
        EXTENDED,
        AT_G,
        ("A", "G"),
        {STRAWMAN: ("8/7", "8/7"), DEFERRED: ("2/1", "2/1"), INFORMED: ("1/1", "1/1")},
    ),
    "extended": (
        EXTENDED,
        AT_G,
        ("C", "D"),
        {STRAWMAN: ("8/7", "9/8"), DEFERRED: ("6/5", "6/5"), INFORMED: ("4/4", "4/4")},
    ),
}
# Who is told when to drop says the same as who waits.
CASES = [(name, protocol) for name in WRITTEN for protocol in PROTOCOLS]


@pytest.mark.parametrize(("name", "protocol"), CASES)
def test_the_pseudocode_says_what_its_table_says(name, protocol):
    links, wanted, new, written = WRITTEN[name]
    as_written = written[DEFERRED if protocol == NOTIFIED else protocol]
    said = []
    for wait in (LATER, 0.0):
        net = imagined(links, protocol, wanted)
        net.replace(OLD, new, wait)
        net.run()
        said.append(f"{net.said['SUB']}/{net.said['UNSUB']}")
    assert tuple(said) == as_written


@pytest.mark.parametrize("wait", [SOON, LATER])
@pytest.mark.parametrize(("name", "protocol"), CASES)
def test_brokers_say_what_the_pseudocode_says_but_nothing_twice(name, protocol, wait):
    links, wanted, new, _ = WRITTEN[name]
    routers, written = replaced(Scene(links, wanted, OLD, new), protocol, wait)
    assert routers == written


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("seed", sliced(range(400), 10))
def test_brokers_of_random_trees_say_what_the_pseudocode_says(seed, protocol):
    scene, wait = drawn(seed)
    routers, written = replaced(scene, protocol, wait)
    assert routers == written, (seed, scene, wait)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("seed", sliced(range(200), 5))
def test_brokers_that_lose_one_of_them_say_what_the_pseudocode_says(seed, protocol):
    scene, wait = drawn_death(seed)
    (said, tables), (written, expected) = died(scene, protocol, wait)
    assert tables == expected
    if protocol in (NOTIFIED, INFORMED) and len(scene.new) > 1:
        # In the pseudocode the first child that is back makes rows go of others that are about to come back.
        assert all(ours <= theirs for ours, theirs in zip(said, written, strict=True)), (seed, scene, wait)
    else:
        assert said == written, (seed, scene, wait)


def expired(scene, wait):
    """How many lots of rows waited for their time, though a link has taken the place of the lost one."""
    world = tree_world(scene.links, NOTIFIED)
    subscribed(world, *scene.wanted)
    world.cut(*scene.old)
    world.after(wait, world.link, *scene.new)
    world.run()
    return sum(router.reconfiguration().expired for router in world.routers.values())


@pytest.mark.parametrize("seed", range(10))
def test_nobody_waits_who_can_be_notified(seed):
    assert expired(*drawn(seed)) == 0


# Faults that are planted


def found(protocol):
    """Seeds of which the pseudocode shows that something is wrong."""
    different = []
    for seed in range(12):
        scene, wait = drawn(seed)
        routers, written = replaced(scene, protocol, wait)
        if routers != written:
            different.append(seed)
    return different


def test_rows_that_are_parked_for_ever_are_found(monkeypatch):
    monkeypatch.setattr(Reconfiguration, "on_timer", lambda self, name: None)
    assert found(DEFERRED)


def test_a_flush_that_is_forgotten_is_found(monkeypatch):
    monkeypatch.setattr(Reconfiguration, "link_gained", lambda self, link, hello: True)
    assert any(expired(*drawn(seed)) for seed in range(10))


def test_a_flush_that_is_not_sent_on_to_the_other_end_is_found(monkeypatch):
    monkeypatch.setattr(Reconfiguration, "_flush_own", lambda self, part, confirmed: None)
    assert any(expired(*drawn(seed)) for seed in range(10))


def overtakes(scene, wait, monkeypatch):
    """Whether a Flush is said on a link before rows that there are to tell in the same moment."""
    early = []

    def carry_out(world, broker, effects):
        said = [(one.broker, type(one.message)) for one in effects if isinstance(one, Send)]
        early.extend(
            [
                name
                for place, (name, kind) in enumerate(said)
                if kind is Flush and (name, Update) in said[place:]
            ]
        )
        carried_out(world, broker, effects)

    carried_out = TreeWorld._carry_out
    with monkeypatch.context() as patch:
        patch.setattr(TreeWorld, "_carry_out", carry_out)
        expired(scene, wait)
    return bool(early)


@pytest.mark.parametrize("seed", range(10))
def test_a_flush_is_behind_the_rows(seed, monkeypatch):
    assert not overtakes(*drawn(seed), monkeypatch)


def test_a_flush_that_overtakes_rows_is_found(monkeypatch):
    monkeypatch.setattr(Core, "settle", overtaking)
    assert any(overtakes(*drawn(seed), monkeypatch) for seed in range(10))


def overtaking(core):
    core.effects += core.behind_rows
    core.behind_rows = []
    core._settle_rows()


@pytest.mark.parametrize("forgotten", ["_prepare", "_hear_activate"])
def test_an_activation_that_is_forgotten_is_found(monkeypatch, forgotten):
    monkeypatch.setattr(Reconfiguration, forgotten, lambda self, neighbour, message: None)
    assert found(INFORMED)


def test_lists_that_are_empty_are_found(monkeypatch):
    monkeypatch.setattr(protocols, "wanted_alone", lambda parked: b"")
    assert found(INFORMED)


def test_rows_that_are_dropped_at_once_are_found(monkeypatch):
    monkeypatch.setattr(Parking, "park", lambda self, link, part, seconds: self.drop_at_once(link))
    assert found(DEFERRED)


def test_parked_rows_that_new_neighbours_are_told_of_are_found(monkeypatch):
    monkeypatch.setattr(Table, "_targets_in_sight", lambda self, entry, targets: targets)
    assert found(DEFERRED)
