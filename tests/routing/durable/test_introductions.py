"""A journal trims nothing before it knows the readers of every broker that it has heard of."""

from collections import deque

import pytest

from palio.protocol.durable.subscriptions import Finish
from palio.routing.durable.desk import Desk
from palio.routing.durable.effects import SaveFact
from palio.routing.durable.facts import FactKind, values_of
from palio.routing.durable.origin.introductions import DOUBT_AFTER
from palio.routing.occurrences import Close
from palio.sim.faults.disk import Disk
from tests.routing.durable.test_rare import forget, got, homes, publish, told
from tests.routing.durable.world import SETTINGS, World

seeds = pytest.mark.parametrize("seed", range(8))


class Stuck(deque):
    """What waits for a disk that does not get on."""

    def __bool__(self):
        return False


def pair(seed) -> World:
    """Two brokers, and a subscription at each that is ready."""
    world = World(f"introductions {seed}", ["a", "b"], [("a", "b")])
    world.run()
    for session, broker, name in (("one", "a", "s0"), ("keeper", "b", "s1")):
        world.attach(session, broker, name, "n > 0")
        world.run()
        assert told(world, "DurableReady", name)
    return world


def add_link(world, *ends) -> None:
    world.links[frozenset(ends)] = ends
    world.connect(frozenset(ends))


def join(world, broker, neighbour) -> None:
    world.disks[broker] = Disk()
    world.incarnations[broker] = 0
    world.begin(broker)
    add_link(world, neighbour, broker)


def introduced(world, broker) -> set:
    return set(values_of(FactKind.INTRODUCED, world.disks[broker].facts.items()))


@seeds
@pytest.mark.parametrize("crashes", [False, True])
def test_what_a_home_misses_while_a_broker_joins_is_kept(seed, crashes):
    world = pair(seed)
    world.cut(frozenset("ab"))
    world.run()
    join(world, "c", "b")
    world.run()
    publish(world, "c", 1)
    if crashes:
        world.crash("c")
        world.begin("c")
        world.connect(frozenset("bc"))
        world.run()
    world.now += 3_600.0
    publish(world, "c", 2)
    assert introduced(world, "c") == {"b"}
    assert world.disks["c"].trimmed == 0
    world.connect(frozenset("ab"))
    world.run()
    assert got(world, "s0") == {1, 2}
    publish(world, "c", 3)
    assert introduced(world, "c") == {"a", "b"}
    assert world.disks["c"].trimmed == 3, "now that everyone is known, what was read is trimmed"


@seeds
def test_a_subscription_is_not_missed_while_it_moves(seed):
    """It comes to a home that was introduced before, and has left the other one when that is introduced."""
    world = pair(seed)
    world.cut(frozenset("ab"))
    world.run()
    join(world, "c", "b")
    world.run()
    world.attach("here", "c", "s2", "n > 0", anew=True)
    world.run()
    publish(world, "c", 1)
    world.cut(frozenset("bc"))
    world.connect(frozenset("ab"))
    world.run()
    world.attach("two", "b", "s0", "n > 0")
    world.run()
    assert homes(world, "s0") == ["b"]
    world.cut(frozenset("ab"))
    add_link(world, "a", "c")
    world.run()
    publish(world, "c", 2)
    assert introduced(world, "c") == {"a", "b"}
    world.connect(frozenset("bc"))
    world.run()
    assert got(world, "s0") == {1, 2}


@seeds
def test_nobody_is_introduced_before_it_knows_for_ever_whom_it_answers(seed):
    world = pair(seed)
    waiting = world.stores["a"]
    world.stores["a"] = stuck = Stuck(waiting)
    join(world, "c", "b")
    for _ in range(2_000):
        world.step() or world.wait()
    assert "a" not in introduced(world, "c")
    world.stores["a"] = deque(stuck)
    world.run()
    assert introduced(world, "c") == {"a", "b"}


@seeds
def test_who_was_forgotten_has_everyone_introduced_again(seed):
    world = pair(seed)
    assert introduced(world, "b") == {"a"}
    asked = []
    introductions = world.routers["b"].durable.parts.introductions
    ask = introductions._ask
    introductions._ask = lambda *what: asked.append(what[0]) or ask(*what)
    forget(world, "a", "b")
    publish(world, "b", 1)
    assert ("a",) in asked
    assert introduced(world, "b") == {"a"}
    assert got(world, "s0") == {1}


@seeds
def test_a_broker_that_is_gone_for_good_is_not_waited_for(seed):
    world = pair(seed)
    world.crash("a")
    world.run()
    join(world, "c", "b")
    world.run()
    publish(world, "c", 1)
    assert world.disks["c"].trimmed == 0
    forget(world, "b", "a")
    publish(world, "c", 2)
    assert world.disks["c"].trimmed == 2


@seeds
def test_a_reader_whose_end_was_not_heard_of_does_not_hold_a_journal_for_ever(seed):
    world = pair(seed)
    publish(world, "b", 1)
    world.cut(frozenset("ab"))
    world.run()
    world.post("a", Finish("s0"), "one")
    world.run()
    world.crash("a")
    world.heal()
    world.run()
    publish(world, "b", 2)
    assert len(world.routers["b"].durable.journal.readers) == 2
    assert world.disks["b"].trimmed == 1
    for n in range(3, 7):
        world.now += DOUBT_AFTER * SETTINGS.tick
        publish(world, "b", n)
    assert len(world.routers["b"].durable.journal.readers) == 1
    assert world.disks["b"].trimmed == 6


@seeds
def test_a_reader_that_is_away_is_doubted_in_vain(seed):
    world = pair(seed)
    world.cut(frozenset("ab"))
    world.run()
    for n in range(1, 6):
        world.now += DOUBT_AFTER * SETTINGS.tick
        publish(world, "b", n)
    assert world.disks["b"].trimmed == 0
    world.heal()
    world.run()
    assert got(world, "s0") == {1, 2, 3, 4, 5}


@pytest.mark.parametrize(
    ("identity", "gave"),
    [("ff a b 1 7", True), ("ff a b 2 7", False), ("ff b 1 7", False), ("a b", False), ("", False)],
)
def test_a_broker_knows_what_it_began_before_it_crashed(identity, gave):
    assert Desk("a b", SETTINGS, 2).gave_before(identity) is gave


@seeds
def test_who_does_not_come_back_is_abandoned_also_in_a_silent_network(seed):
    world = pair(seed)
    world.post("a", Close(), "one")
    world.run()
    world.now += SETTINGS.abandon_after - 5 * 86_400.0
    world.post("b", Close(), "keeper")
    world.run()
    assert (homes(world, "s0"), homes(world, "s1")) == (["a"], ["b"])
    world.now += 5 * 86_400.0
    world.run()
    assert (homes(world, "s0"), homes(world, "s1")) == ([], ["b"])


def test_who_waits_for_a_reader_waits_for_it_at_its_home():
    """That it is on disk with another home is not enough: that one may be forgotten with all its readers."""
    world = World("homes", ["a"], [])
    world.run()
    retention, desk = world.routers["a"].durable.parts.retention, world.routers["a"].durable.parts.desk
    retention.register("reader", "b")
    retention.register("reader", "c")
    written = []
    retention.when_saved([FactKind.READER.of("reader", "c")], lambda: written.append("c"))
    first, second = [effect.token for effect in desk.effects if isinstance(effect, SaveFact)][-2:]
    desk.completed(first)
    assert written == []
    desk.completed(second)
    assert written == ["c"]
