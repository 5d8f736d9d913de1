"""Who hears of the network is on disk there, so that no crash makes it a stranger."""

from collections import deque

import pytest

from palio.model.filter import Filter
from palio.protocol.durable.peers import Ask, TopologyChanged
from palio.protocol.durable.subscriptions import Change
from palio.protocol.peers import LinkKind
from palio.routing.durable.facts import FactKind, values_of
from palio.routing.occurrences import LinkUp
from tests.routing.durable.test_introductions import add_link, join
from tests.routing.durable.test_rare import got, publish, told
from tests.routing.durable.world import World

seeds = pytest.mark.parametrize("seed", range(8))


class Held(deque):
    """What waits for a disk that does not get on."""

    def __bool__(self):
        return False


def heard_of(world, broker) -> set:
    return world.routers[broker].durable.topology.heard_of


def lose(world, broker) -> None:
    """A broker crashes with nothing on disk of what waited."""
    world.stores[broker].clear()
    world.crash(broker)


@seeds
def test_who_joins_hears_of_nobody_before_it_is_on_disk(seed):
    world = World(f"members {seed}", ["a", "b"], [("a", "b")])
    world.run()
    world.stores["a"] = Held(world.stores["a"])
    join(world, "c", "a")
    world.run()
    assert heard_of(world, "c") == {"c"}
    assert FactKind.KNOWN.of("c") not in world.disks["a"].facts
    world.stores["a"] = deque(world.stores["a"])
    world.run()
    assert heard_of(world, "c") == {"a", "b", "c"}
    assert set(values_of(FactKind.KNOWN, world.disks["b"].facts.items())) == {"a", "c"}


@seeds
def test_a_broker_that_joined_is_asked_about_a_change_of_the_filter_whatever_its_neighbour_forgets(seed):
    world = World(f"members {seed}", ["a"], [])
    world.attach("one", "a", "s0", "n > 0")
    world.run()
    assert told(world, "DurableReady", "s0")
    world.stores["a"] = Held(world.stores["a"])
    join(world, "b", "a")
    while not heard_of(world, "b") >= {"a"}:
        if not world.step():  # nothing but the disk can go on
            world.stores["a"] = deque(world.stores["a"])
    world.cut(frozenset("ab"))
    publish(world, "b", 1)
    while world.step():
        pass
    lose(world, "a")
    world.begin("a")
    world.attach("one", "a", "s0", "n > 0")
    world.run()
    world.post("a", Change("s0", Filter.parse("n > 5")), "one")
    world.run()
    assert not told(world, "Changed", "s0")
    world.heal()
    world.run()
    assert told(world, "Changed", "s0")
    assert got(world, "s0") == {1}


@seeds
def test_a_neighbour_that_never_told_its_count_is_told_to_others_after_a_crash(seed):
    world = World(f"members {seed}", ["a", "b"], [("a", "b")])
    world.run()
    world.cut(frozenset("ab"))
    world.run()
    join(world, "c", "a")
    while FactKind.KNOWN.of("c") not in world.disks["a"].facts:
        assert world.step()
    world.cut(frozenset("ac"))
    lose(world, "a")
    world.begin("a")
    world.connect(frozenset("ab"))
    world.run()
    assert "c" in world.routers["b"].durable.topology.versions


def test_nothing_is_asked_and_nothing_answered_where_a_link_does_not_count():
    world = World("members", ["a"], [])
    world.run()
    world.stores["a"] = Held(world.stores["a"])
    join(world, "b", "a")
    world.run()
    sent = []
    for message in (TopologyChanged((("b", 1 << 32),)), Ask("b", 1, epoch=0)):
        sent += world.routers["a"].handle(message, "b", world.now)
    assert not [one for one in sent if getattr(one, "broker", None) == "b"]


@seeds
def test_two_networks_meet_by_a_link(seed):
    world = World(f"members {seed}", ["a", "b", "c", "d"], [("a", "b"), ("c", "d")])
    world.run()
    add_link(world, "b", "c")
    world.run()
    assert [heard_of(world, broker) for broker in "abcd"] == [set("abcd")] * 4
    assert len({world.routers[broker].durable.epoch for broker in "abcd"}) == 1


@seeds
@pytest.mark.parametrize("home", "bc")
def test_who_attaches_while_brokers_meet_is_not_told_that_one_is_away(seed, home):
    world = World(f"members {seed}", ["a", "b", "c"], [("b", "c")])
    world.run()
    world.stores["b"] = Held(world.stores["b"])
    add_link(world, "a", "b")
    while world.step():
        pass
    world.attach("one", home, "s0", "n > 0")
    while world.step():
        pass
    world.stores["b"] = deque(world.stores["b"])
    world.run()
    assert not told(world, "refused", "attach s0")
    assert told(world, "DurableReady", "s0")


def three(seed) -> World:
    links = [("a", "b"), ("b", "c"), ("a", "c")]
    world = World(f"leaving {seed}", ["a", "b", "c"], links, kind=LinkKind.GRAPH)
    world.run()
    return world


def leave(world, broker, stage) -> None:
    """A broker leaves, until it is so far."""
    router = world.routers[broker]
    world.carry_out(broker, router.leave("", world.now, parting=True))
    while router.durable.leaving.stage != stage:
        assert world.step() or world.wait()


def known(world, broker) -> set:
    return set(world.routers[broker].durable.topology.known)


@seeds
def test_who_has_left_is_not_known_again_by_a_new_link_before_it_ends(seed):
    world = three(seed)
    leave(world, "c", "left")
    assert [known(world, broker) for broker in "ab"] == [{"a", "b"}] * 2
    world.cut(frozenset("ac"))
    while world.step():
        pass
    world.connect(frozenset("ac"))
    while world.step():
        pass
    assert [known(world, broker) for broker in "ab"] == [{"a", "b"}] * 2


@seeds
def test_who_is_forgotten_while_a_neighbour_writes_that_it_came_is_not_known_again(seed):
    world = three(seed)
    leave(world, "c", "left")
    world.cut(frozenset("ac"))
    world.cut(frozenset("bc"))
    while world.step():
        pass
    world.stores["a"] = Held(world.stores["a"])
    a, hello = world.routers["a"], world.routers["c"].handle(LinkUp(world.kind), "a", world.now)[0].message
    for message in (LinkUp(world.kind), hello, TopologyChanged(())):
        world.carry_out("a", a.handle(message, "c", world.now))
    # It was a member again by that link, and has left since: others know earlier.
    count = a.durable.topology.forgotten["c"] + 3
    world.carry_out("a", a.handle(TopologyChanged((), (("c", count),)), "b", world.now))
    world.carry_out("a", a.handle(TopologyChanged(()), "c", world.now))
    world.stores["a"] = deque(world.stores["a"])
    while world.step():
        pass
    assert [known(world, broker) for broker in "ab"] == [{"a", "b"}] * 2
    lose(world, "a")
    world.begin("a")
    assert known(world, "a") == {"a", "b"}


@seeds
def test_who_leaves_is_a_member_again_if_somebody_knows_it_again(seed):
    world = three(seed)
    leave(world, "c", "going")
    count = world.routers["c"].durable.topology.versions["c"]
    untrue = TopologyChanged((("c", count + 3),))  # one neighbour believes it
    for broker in "ac":
        world.carry_out(broker, world.routers[broker].handle(untrue, "b", world.now))
    for _ in range(2_000):
        if world.routers["c"].durable.leaving.stage == "left":
            break
        assert world.step() or world.wait()
    assert world.routers["c"].durable.leaving.stage == "left"
    assert [known(world, broker) for broker in "ab"] == [{"a", "b"}] * 2
