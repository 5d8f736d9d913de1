"""Relays: brokers that pass on what others keep, and for which nobody waits."""

from collections import deque

import pytest

from palio.model.errors import PalioError
from palio.model.filter import Filter
from palio.protocol.durable.journals import Forget, ListJournals, Survey
from palio.protocol.durable.subscriptions import Attach, Change
from palio.protocol.peers import Goodbye, Hello, LinkKind
from palio.protocol.requests import Publish, Refused
from palio.routing import Configuration, Router
from palio.routing.configuration import WrongConfiguration
from palio.routing.durable.facts import FactKind, values_of
from palio.routing.durable.leaving import CannotLeave
from palio.routing.durable.network.topology import Topology
from palio.routing.effects import Reply, Send
from palio.routing.links import COUNTERPART
from palio.routing.occurrences import LinkDown, LinkUp, Open
from tests.routing.durable.test_introductions import join
from tests.routing.durable.test_members import Held, heard_of, lose
from tests.routing.durable.test_rare import forget, got, publish, told
from tests.routing.durable.world import SETTINGS, World, number

seeds = pytest.mark.parametrize("seed", range(8))
LINE = ["a", "r", "b"], [("a", "r"), ("r", "b")]


def line(seed) -> World:
    world = World(f"relays {seed}", *LINE, relays="r")
    world.run()
    return world


def epochs(world) -> set:
    return {router.epoch for router in world.routers.values()}


@seeds
def test_a_relay_is_in_the_epoch_of_all_and_waited_for_by_nobody(seed):
    world = line(seed)
    assert len(epochs(world)) == 1
    for broker in "ab":
        assert world.routers[broker].durable.topology.known == {"a", "b"}
        assert set(values_of(FactKind.KNOWN, world.disks[broker].facts.items())) <= {"a", "b"}
    world.attach("one", "b", "s0", "n > 0")
    world.run()
    assert told(world, "DurableReady", "s0")
    publish(world, "a", 1, 2)
    world.crash("r")
    world.post("a", Open(), "p")
    publish(world, "a", 3)
    assert got(world, "s0") == {1, 2}
    world.heal()
    world.run()
    assert got(world, "s0") == {1, 2, 3}
    assert len(epochs(world)) == 1
    assert world.disks["a"].trimmed == 3, "everyone who reads it has read it"
    assert not world.stores["r"]
    assert not world.disks["r"].facts


@seeds
def test_who_joins_by_a_relay_hears_of_nobody_before_it_is_on_a_disk(seed):
    world = World(f"relays {seed}", ["a", "r"], [("a", "r")], relays="r")
    world.run()
    world.stores["a"] = Held(world.stores["a"])
    join(world, "b", "r")
    for _ in range(100):
        world.step() or world.wait()
    assert FactKind.KNOWN.of("b") not in world.disks["a"].facts
    assert "a" in world.routers["b"].durable.topology.known, "it is waited for"
    assert heard_of(world, "b") == {"b"}
    world.stores["a"] = deque(world.stores["a"])
    world.run()
    assert heard_of(world, "a") == heard_of(world, "b") == {"a", "b"}
    assert len(epochs(world)) == 1


def joined_by_a_relay(seed) -> World:
    """Who has joined by a relay publishes; the home forgets it in a crash, and changes its filter."""
    world = World(f"relays {seed}", ["a", "r"], [("a", "r")], relays="r")
    world.attach("one", "a", "s0", "n > 0")
    world.run()
    assert told(world, "DurableReady", "s0")
    world.stores["a"] = Held(world.stores["a"])
    join(world, "b", "r")
    while not heard_of(world, "b") >= {"a"}:
        if not world.step() and not isinstance(world.stores["a"], Held):
            world.wait()
        elif world.now > 5.0:  # nothing but the disk can go on
            world.stores["a"] = deque(world.stores["a"])
        else:
            world.wait()
    world.cut(frozenset("br"))
    publish(world, "b", 1)
    while world.step():
        pass
    lose(world, "a")
    world.begin("a")
    world.attach("one", "a", "s0", "n > 0")
    world.run()
    world.post("a", Change("s0", Filter.parse("n > 5")), "one")
    world.run()
    return world


@seeds
def test_who_joined_by_a_relay_is_asked_about_a_change_of_the_filter_whatever_others_forget(seed):
    world = joined_by_a_relay(seed)
    assert not told(world, "Changed", "s0")
    world.heal()
    world.run()
    assert told(world, "Changed", "s0")
    assert got(world, "s0") == {1}


def test_believing_a_relay_at_once_loses_events(monkeypatch):
    monkeypatch.setattr(Topology, "note_strangers", lambda self, counts, heard_of: None)
    lost = 0
    for seed in range(8):
        world = joined_by_a_relay(seed)
        world.heal()
        world.run()
        lost += got(world, "s0") != {1}
    assert lost


@seeds
def test_what_is_known_of_a_broker_that_is_away_is_told_by_those_who_have_heard_of_it(seed):
    world = World(f"relays {seed}", ["a", "b", "r"], [("a", "b"), ("b", "r")], relays="r")
    world.run()
    world.crash("a")
    world.run()
    join(world, "c", "r")
    world.run()
    assert heard_of(world, "c") == {"a", "b", "c"}
    assert len(epochs(world)) == 1


@seeds
def test_relays_behind_relays(seed):
    links = [("a", "r"), ("r", "s"), ("s", "t"), ("t", "b"), ("s", "c")]
    world = World(f"relays {seed}", list("abcrst"), links, relays="rst")
    world.run()
    assert [heard_of(world, broker) for broker in "abc"] == [set("abc")] * 3
    world.attach("one", "b", "s0", "n > 0")
    world.run()
    for count, broker in enumerate("rst"):
        publish(world, "a", 10 * count + 1)
        world.crash(broker)
        publish(world, "c", 10 * count + 2)
        world.heal()
        world.run()
    assert got(world, "s0") == {1, 2, 11, 12, 21, 22}
    assert len(epochs(world)) == 1


@seeds
def test_a_subscription_moves_through_a_relay_and_a_broker_leaves_through_it(seed):
    world = line(seed)
    world.attach("one", "b", "s0", "n > 0")
    world.run()
    publish(world, "a", 1)
    world.attach("two", "a", "s0", "n > 0")
    world.run()
    assert told(world, "Attached", "s0") == 2
    assert list(world.disks["a"].subscriptions) == ["s0"]
    world.carry_out("a", world.routers["a"].leave("", world.now))
    world.run()
    assert list(world.disks["b"].subscriptions) == ["s0"]
    assert world.routers["b"].durable.topology.known == {"b"}
    assert world.routers["a"].durable.leaving.stage == "left"


def refusal(router, *messages) -> Refused:
    effects = []
    for message in messages:
        effects += router.handle(message, "one", 1.0)
    [answer] = [one.answer for one in effects if isinstance(one, Reply)]
    assert isinstance(answer, Refused)
    return answer


def test_what_lasts_is_refused_at_a_relay():
    world = line(1)
    router = world.routers["r"]
    router.handle(Open(), "one", 1.0)
    everything = Filter.parse("n > 0")
    for message in (
        Attach("s0", everything, number=7),
        Publish((number(1),), 7),
        Survey(7, everything),
        ListJournals(7),
        Forget("b", number=7),
    ):
        answer = refusal(router, message)
        assert answer.error == "KeepsNothing"
        assert "Ask one with a journal: a, b." in answer.reason
        assert answer.number == 7
    with pytest.raises(CannotLeave, match="it is a relay, for which nobody waits"):
        router.leave("", 1.0)
    alone = Router(Configuration(broker="r", relay=True))
    alone.handle(Open(), "one", 1.0)
    assert "when one is connected" in refusal(alone, Publish((number(1),), 7)).reason


def test_a_relay_has_no_durable_delivery_of_its_own():
    with pytest.raises(WrongConfiguration, match="keeps nothing"):
        Configuration(broker="r", relay=True, durable=SETTINGS)


def greeted(one: Router, other: Router) -> list:
    """What a broker answers to the greeting of another."""
    ours, theirs = one.broker, other.broker
    kind = LinkKind.PEER
    greetings = other.handle(LinkUp(COUNTERPART[kind]), ours, 1.0)
    [hello] = [effect.message for effect in greetings if isinstance(effect, Send)]
    assert isinstance(hello, Hello)
    one.handle(LinkUp(kind), theirs, 1.0)
    return [effect.message for effect in one.handle(hello, theirs, 1.0) if isinstance(effect, Send)]


@pytest.mark.parametrize(
    ("one", "other", "refused"),
    [
        ({"relay": True}, {"relay": True}, False),
        ({"relay": True}, {"durable": SETTINGS}, False),
        ({"durable": SETTINGS}, {"relay": True}, False),
        ({"relay": True}, {}, True),
        ({}, {"relay": True}, True),
        ({"durable": SETTINGS}, {"relay": True, "advertisements": True}, True),
    ],
)
def test_relays_link_with_brokers_that_have_journals(one, other, refused):
    answer = greeted(Router(Configuration(broker="one", **one)), Router(Configuration(broker="other", **other)))
    assert any(isinstance(message, Goodbye) for message in answer) == refused


def test_a_version_that_knows_no_relays_refuses_them():
    """It compares terms as they are."""
    assert Configuration(broker="r", relay=True).terms != Configuration(broker="b", durable=SETTINGS).terms


def test_a_relay_with_the_name_of_a_broker_that_is_waited_for_is_refused():
    world = World("relays", ["a", "b"], [("a", "b")])
    world.run()
    world.crash("b")
    world.run()
    relay = Router(Configuration(broker="b", relay=True, incarnation=9))
    [goodbye] = [one for one in greeted(world.routers["a"], relay) if isinstance(one, Goodbye)]
    assert "b is a relay now, but had a journal" in goodbye.reason
    world.routers["a"].handle(LinkDown(orderly=True), "b", 1.0)
    forget(world, "a", "b")
    assert not [
        one
        for one in greeted(world.routers["a"], Router(Configuration(broker="b", relay=True, incarnation=10)))
        if isinstance(one, Goodbye)
    ]


@seeds
def test_a_relay_that_is_gone_can_be_forgotten_and_comes_back(seed):
    world = line(seed)
    world.crash("r")
    world.run()
    assert "r" in world.routers["a"].durable.topology.relays
    forget(world, "a", "r")
    assert told(world, "Forgot", "r")
    assert "r" not in world.routers["a"].durable.topology.relays
    world.heal()
    world.run()
    assert len(epochs(world)) == 1
    assert "r" in world.routers["b"].durable.topology.relays


@seeds
def test_a_relay_alone_forgets_what_it_was_told(seed):
    world = line(seed)
    assert world.routers["r"].relay.others() == ("a", "b")
    for broker in "ab":
        world.cut(frozenset((broker, "r")))
    world.run()
    assert world.routers["r"].relay.others() == ()
    world.heal()
    world.run()
    assert world.routers["r"].relay.others() == ("a", "b")
    assert len(epochs(world)) == 1


def test_an_error_for_the_relay_survives_its_way():
    world = line(1)
    problem = world.routers["r"].relay.refusal()
    assert isinstance(problem, PalioError)
    assert str(problem).endswith(".")
