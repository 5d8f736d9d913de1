"""What happens seldom: beginning anew, being abandoned, full buffers, brokers that are gone for good."""

import msgspec
import pytest

from palio.protocol.durable.journals import Forget
from palio.protocol.envelope import Envelope
from palio.routing.durable.desk import created_at
from palio.routing.durable.home import subscription
from palio.routing.durable.home.room import Room
from palio.routing.durable.home.subscription import CatchUp
from palio.routing.durable.network.topology import MAX_OWN, Topology
from palio.routing.occurrences import Close, Open
from tests.routing.durable.world import SETTINGS, World, number

LINE = ["a", "b", "c"], [("a", "b"), ("b", "c")]
seeds = pytest.mark.parametrize("seed", range(8))


def line(seed) -> World:
    world = World(f"rare {seed}", *LINE)
    world.run()
    return world


def told(world, what, name) -> int:
    return sum(entry[1] == what and entry[3] == name for entry in world.history)


def got(world, name) -> set:
    return {entry[8] for entry in world.history if entry[1] == "handed" and entry[3] == name}


def homes(world, name) -> list:
    return [broker for broker, disk in world.disks.items() if name in disk.subscriptions]


def publish(world, broker, *numbers) -> None:
    for n in numbers:
        world.publish(f"p{n}", broker, n, number(n, kind=1))
    world.run()


def forget(world, at, broker) -> None:
    world.post(at, Open(), "operator")
    world.post(at, Forget(broker), "operator")
    world.run()


@seeds
def test_of_two_homes_the_older_one_retires(seed):
    world = line(seed)
    world.attach("one", "a", "s0", "n > 0")
    world.run()
    publish(world, "b", 1)
    world.crash("a")
    world.attach("two", "c", "s0", "n > 0")
    world.run()
    assert told(world, "refused", "attach s0")
    world.attach("two", "c", "s0", "n > 0", anew=True)
    world.run()
    assert homes(world, "s0") == ["a", "c"]
    publish(world, "b", 2)
    world.heal()
    world.run()
    assert homes(world, "s0") == ["c"]
    assert "s0" not in world.routers["a"].durable.homes.subscriptions
    publish(world, "a", 3)
    assert {1, 2, 3} <= got(world, "s0")
    identity = world.routers["c"].durable.homes.subscriptions["s0"].identity
    for broker, router in world.routers.items():
        assert set(router.durable.journal.readers) == {identity}, f"at {broker}"


@seeds
def test_two_that_are_asked_for_at_once_become_one(seed):
    """A client comes back to a third broker before the two homes have heard of each other."""
    world = line(seed)
    world.attach("one", "a", "s0", "n > 0")
    world.run()
    world.cut(frozenset("ab"))
    world.run()
    world.attach("two", "c", "s0", "n > 0", anew=True)
    world.run()
    world.connect(frozenset("ab"))
    for _ in range(seed * 3):
        world.step()
    world.attach("three", "b", "s0", "n > 0")
    world.run()
    world.attach("four", "b", "s0", "n > 0")
    world.run()
    assert homes(world, "s0") == ["b"]
    publish(world, "a", 1)
    assert got(world, "s0") == {1}


def test_identities_are_ordered_by_their_time():
    assert created_at("ff b 1 1") < created_at("100 a 1 1") < created_at("100 a 1 2")


@seeds
def test_who_does_not_come_back_is_abandoned(seed):
    world = line(seed)
    world.attach("one", "a", "s0", "n > 0")
    world.run()
    publish(world, "c", 1)
    world.post("a", Close(), "one")
    world.run()
    world.now += SETTINGS.abandon_after / 2
    publish(world, "c", 2)
    assert homes(world, "s0") == ["a"]
    world.now += SETTINGS.abandon_after
    publish(world, "c", 3)
    assert homes(world, "s0") == []
    for router in world.routers.values():
        assert not router.durable.journal.readers
    world.attach("two", "b", "s0", "n > 0")
    world.run()
    assert homes(world, "s0") == ["b"], "the name is free again"


def test_a_buffer_that_overflows_is_fetched_instead(monkeypatch):
    monkeypatch.setattr(subscription, "MAX_BUFFERED", 3)
    catching_up = CatchUp(10)
    for sequence in (9, 11, 12, 12, 13):
        catching_up.hold(Envelope("a", sequence, 0.0, 0, "a", number(sequence)))
    assert [one.sequence for one in catching_up.buffer] == [11, 12, 13]
    catching_up.hold(Envelope("a", 14, 0.0, 0, "a", number(14)))
    assert catching_up.target == 14
    assert not catching_up.buffer


def caught_up_with(broker="c"):
    """A live subscription that is caught up with one broker, and the parts of its home."""
    world = line(1)
    world.attach("one", "a", "s0", "n > 0")
    world.run()
    publish(world, broker, 1)
    home = world.routers["a"].durable
    durable = home.homes.subscriptions["s0"]
    durable.catching_up[broker] = CatchUp(durable.position[broker])
    return durable, home.parts


def test_a_mark_that_comes_while_caught_up_with_counts_afterwards():
    durable, parts = caught_up_with()
    before = durable.position["c"]
    parts.spooling.mark("c", before + 5)
    assert durable.position["c"] == before, "what was published up to there has not come yet"
    parts.reading.read_on(durable, "c")
    assert (durable.position["c"], durable.catching_up) == (before + 5, {})


def test_a_mark_is_not_remembered_beyond_an_interruption():
    """What it counts on may be lost on the way."""
    durable, parts = caught_up_with()
    before = durable.position["c"]
    parts.spooling.mark("c", before + 5)
    durable.interrupt()
    parts.reading.read_on(durable, "c")
    assert (durable.position["c"], durable.catching_up) == (before, {})
    durable.catching_up["c"] = CatchUp(before)
    parts.spooling.mark("c", before + 5)
    assert durable.catching_up["c"].marked == 0, "it is not live"


def test_a_mark_that_comes_while_everyone_is_asked_counts_afterwards():
    durable, parts = caught_up_with()
    before = durable.position["c"]
    durable.interrupt()
    durable.collecting = {}
    parts.spooling.mark("c", before + 5)
    assert (durable.position["c"], durable.collecting["c"].marked) == (before, before + 5)


@pytest.mark.parametrize("most", [0, 1, 4])
def test_nothing_is_lost_when_buffers_overflow(monkeypatch, most):
    monkeypatch.setattr(subscription, "MAX_BUFFERED", most)
    overflows = []
    hold = CatchUp.hold

    def watched(self, envelope):
        before = self.target
        hold(self, envelope)
        overflows.append(self.target > before)

    monkeypatch.setattr(CatchUp, "hold", watched)
    for seed in range(8):
        check_that_all_comes_in_order(seed)
    assert overflows, "nothing was held back in any of these runs"
    assert most or any(overflows)


@pytest.mark.parametrize("limit", [1, 200, 1_000])
def test_outboxes_and_buffers_are_bounded_by_their_bytes(monkeypatch, limit):
    settings = msgspec.structs.replace(SETTINGS, outbox_bytes=limit)
    monkeypatch.setattr("tests.routing.durable.world.SETTINGS", settings)
    monkeypatch.setattr(subscription, "MAX_BUFFERED_BYTES", limit)
    held = []
    is_full = Room.is_full

    def watched(self, durable, taken=0, taken_bytes=0):
        held.append(durable.outbox.bytes + durable.spooling_bytes)
        buffered = [sum(one.notification.body.size for one in up.buffer) for up in durable.catching_up.values()]
        assert max(buffered, default=0) <= limit
        return is_full(self, durable, taken, taken_bytes)

    monkeypatch.setattr(Room, "is_full", watched)
    for seed in range(8):
        check_that_all_comes_in_order(seed)
    assert max(held) < limit + SETTINGS.page * 100, "a page more, at the most"


def check_that_all_comes_in_order(seed):
    world = line(seed)
    publish(world, "c", *range(1, 20))
    world.attach("one", "a", "s0", "n > 0", since="all")
    for n in range(20, 60):
        world.publish(f"p{n}", "c", n, number(n, kind=1))
        if n == 30:
            world.cut(frozenset("ab"))
        if n == 35:
            world.connect(frozenset("ab"))
        for _ in range(world.choose.randint(0, 12)):
            if not world.step():
                world.wait()
    world.run()
    assert got(world, "s0") == set(range(1, 60)), f"seed {seed}"
    first = list(dict.fromkeys(entry[7] for entry in world.history if entry[1] == "handed"))
    assert first == sorted(first), f"first deliveries keep their order (seed {seed})"


# Brokers that are gone for good


@seeds
def test_nobody_waits_for_a_forgotten_broker(seed):
    world = line(seed)
    world.attach("one", "c", "s0", "n > 0")
    world.run()
    publish(world, "a", 1, 2)
    world.crash("c")
    world.attach("two", "a", "s1", "n > 0", anew=True)
    world.run()
    assert told(world, "Attached", "s1")
    assert not told(world, "DurableReady", "s1")
    forget(world, "b", "c")
    assert told(world, "Forgot", "c")
    assert told(world, "DurableReady", "s1")
    for broker in ("a", "b"):
        readers = [fact for fact in world.disks[broker].facts if fact.home == "c"]
        assert not readers, "nothing is kept for its subscriptions"
    world.attach("three", "b", "s0", "n > 0")
    world.run()
    assert homes(world, "s0") == ["b", "c"], "what it had can be created again"
    publish(world, "b", 3)
    assert 3 in got(world, "s0") & got(world, "s1")


@seeds
def test_a_forgotten_broker_stays_forgotten_over_crashes(seed):
    world = line(seed)
    world.crash("c")
    world.run()
    forget(world, "a", "c")
    for broker in ("a", "b"):
        world.crash(broker)
    for broker in ("a", "b"):
        world.begin(broker)
    world.connect(frozenset("ab"))
    world.run()
    world.attach("one", "a", "s0", "n > 0")
    world.run()
    assert told(world, "DurableReady", "s0")


@seeds
def test_a_forgotten_broker_that_comes_back_is_known_again(seed):
    world = line(seed)
    world.attach("one", "c", "s0", "n > 0")
    world.attach("other", "c", "s2", "n > 0")
    world.run()
    world.crash("c")
    forget(world, "a", "c")
    world.attach("two", "a", "s0", "n > 0")
    world.run()
    world.heal()
    world.run()
    assert homes(world, "s0") == ["a"], "the one that was created later stays"
    assert homes(world, "s2") == ["c"], "nobody else has it"
    assert len({router.durable.epoch for router in world.routers.values()}) == 1
    for router in world.routers.values():
        assert router.durable.topology.known == {"a", "b", "c"}
    world.attach("three", "c", "s2", "n > 0")
    world.run()
    publish(world, "a", 1)
    publish(world, "c", 2)
    assert got(world, "s0") == got(world, "s2") == {1, 2}


@seeds
def test_a_broker_that_is_there_cannot_be_forgotten(seed):
    world = line(seed)
    world.attach("one", "c", "s0", "n > 0")
    world.run()
    forget(world, "a", "c")
    for router in world.routers.values():
        assert router.durable.topology.known == {"a", "b", "c"}
    publish(world, "a", 1)
    assert got(world, "s0") == {1}


@pytest.mark.parametrize("broker", ["a", "nobody"])
def test_who_was_never_heard_of_cannot_be_forgotten(broker):
    world = line(0)
    forget(world, "a", broker)
    assert any(entry[1] == "refused" and entry[4] == "UnknownBroker" for entry in world.history)


def test_a_count_of_its_own_that_no_broker_can_have_reached_is_not_believed():
    topology = Topology("a", 1, {}, {})
    before = topology.versions["a"]
    assert topology.hear((("a", MAX_OWN + 1),)) == ()
    assert topology.versions["a"] == before
    assert topology.hear((("a", before + 5),)) == (("a", before + 6),)


def test_everyone_comes_to_the_same_epoch_in_whatever_order_they_hear():
    orders = []
    for order in ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)):
        topology = Topology("a", 1, {}, {})
        for one in order:
            if one == 1:
                topology.forget("x", 5)
            else:
                topology.hear((("x", 5 if one == 0 else 6),))
        orders.append((topology.epoch, tuple(sorted(topology.versions.items()))))
    assert len(set(orders)) == 1
