"""The ways of letters: learned in the present epoch, and found again wherever they are missing."""

import pytest

from palio.protocol.durable.letters import Carry, MoveOut, NotHere
from palio.protocol.durable.peers import Ask, Head, Told
from palio.routing.durable.desk import Desk
from palio.routing.durable.facts import FactKind
from palio.routing.durable.network.polling import Polling
from palio.routing.durable.network.topology import Topology
from palio.routing.effects import Send
from palio.routing.occurrences import Open
from tests.routing.durable.world import SETTINGS, World

NOW, BEFORE = 7, 6  # epochs
seeds = pytest.mark.parametrize("seed", range(4))


def queries() -> Polling:
    """Of the broker `a`, which has the neighbours `b` and `c`."""
    topology = Topology("a", 1, {}, {})
    topology.epoch = NOW
    return Polling(Desk("a", SETTINGS, 1), lambda: ("b", "c"), topology, 0)


def test_a_neighbour_is_reached_without_having_learned_a_way():
    assert queries().way_to("b") == "b"
    assert queries().way_to("d") is None


@pytest.mark.parametrize(("epoch", "sure"), [(NOW, True), (BEFORE, False), (0, False)])
def test_a_question_shows_the_way_to_its_asker_in_its_own_epoch(epoch, sure):
    asked = queries()
    asked.hear(Ask("d", 1, distance=1, epoch=epoch), "b")
    assert (asked.way_to("d"), asked.is_sure_of("d")) == ("b", sure)


@pytest.mark.parametrize(
    ("epochs", "sure"), [((NOW,), True), ((BEFORE,), False), ((NOW, BEFORE), False), ((), False)]
)
def test_answers_show_ways_if_all_were_given_in_the_present_epoch(epochs, sure):
    """An answer that was on its way during a change may lead to who has forgotten the rest of the way."""
    asked = queries()
    asked.told(Told("a", 1, epochs, (Head("d", 1, 0, distance=1),)), "b")
    assert (asked.way_to("d"), asked.is_sure_of("d")) == ("b", sure)


def test_a_way_that_is_not_sure_is_taken_while_there_is_no_other():
    asked = queries()
    asked.told(Told("a", 1, (BEFORE,), (Head("d", 1, 0, distance=1),)), "b")
    asked.told(Told("a", 2, (NOW,), (Head("d", 1, 0, distance=5),)), "c")
    asked.told(Told("a", 1, (BEFORE,), (Head("d", 1, 0, distance=0),)), "b")
    assert (asked.way_to("d"), asked.is_sure_of("d")) == ("c", True)


@seeds
def test_who_sends_a_letter_on_a_way_that_is_not_sure_asks(seed):
    world = World(f"doubts {seed}", ["a", "b", "c"], [("a", "b"), ("b", "c")])
    world.run()
    letters, queries = world.routers["a"].durable.parts.letters, world.routers["a"].durable.parts.polling
    queries.forget_ways()
    queries.told(Told("a", 1, (BEFORE,), (Head("c", 1, 0, distance=1),)), "b")
    world.carry_out("a", world.routers["a"].handle(Open(), "one", world.now))
    assert letters.write("c", NotHere("s0"))
    assert not queries.is_sure_of("c")
    world.carry_out("a", world.routers["a"]._core.effects)
    world.run()
    assert queries.is_sure_of("c")


def test_the_shortest_way_of_an_epoch_is_taken():
    asked = queries()
    asked.told(Told("a", 1, (NOW,), (Head("d", 1, 0, distance=2),)), "b")
    asked.told(Told("a", 1, (NOW,), (Head("d", 1, 0, distance=1),)), "c")
    assert asked.way_to("d") == "c"
    asked.forget_ways()
    assert asked.way_to("d") is None


@seeds
def test_who_cannot_pass_a_letter_on_asks_for_the_way(seed):
    """The writer knows a way up to there, and has no reason to ask."""
    world = World(f"ways {seed}", ["a", "b", "c", "d"], [("a", "b"), ("b", "c"), ("c", "d")])
    world.run()
    service = world.routers["b"].durable
    service.parts.polling.forget_ways()
    letter = Carry("a", "d", 0, NotHere("s0"))
    effects = world.routers["b"].handle(letter, "a", world.now)
    assert not [effect for effect in effects if isinstance(effect, Send)]
    world.carry_out("b", effects)
    world.run()
    effects = world.routers["b"].handle(letter, "a", world.now)
    assert [(one.broker, one.message.hops) for one in effects if isinstance(one, Send)] == [("c", 1)]


@seeds
def test_who_cannot_answer_a_letter_asks_for_the_way(seed):
    """It has nothing else to do, and whoever has written to it knows the way."""
    world = World(f"answers {seed}", ["a", "b", "c"], [("a", "b"), ("b", "c")])
    world.run()
    world.routers["a"].durable.parts.polling.forget_ways()
    letter = Carry("c", "a", 1, MoveOut("s0"))  # which is not there
    effects = world.routers["a"].handle(letter, "b", world.now)
    assert not [effect for effect in effects if isinstance(effect, Send)]
    world.carry_out("a", effects)
    world.run()
    effects = world.routers["a"].handle(letter, "b", world.now)
    assert [(one.broker, one.message.receiver) for one in effects if isinstance(one, Send)] == [("b", "c")]


@seeds
def test_who_looks_for_a_name_is_answered_when_it_is_known_for_ever(seed):
    """Otherwise a crash would let a broker forget who has the name, and give it once more."""
    world = World(f"names {seed}", ["a", "b", "c"], [("a", "b"), ("b", "c")])
    a, c = world.routers["a"].durable, world.routers["c"].durable
    while FactKind.KNOWN.of("a") not in c.parts.retention._writing:
        assert world.step()
    assert FactKind.KNOWN.of("a") not in world.disks["c"].facts
    ask = Ask("a", 1 << 40, "s0", epoch=a.epoch)
    effects = world.routers["c"].handle(ask, "b", world.now)
    assert not [one for one in effects if isinstance(one, Send) and isinstance(one.message, Told)]
    world.carry_out("c", effects)
    seen = []
    post = world.post
    world.post = lambda name, message, source: (seen.append(message), post(name, message, source))
    world.run()
    assert [one for one in seen if isinstance(one, Told) and one.number == 1 << 40]
    assert FactKind.KNOWN.of("a") in world.disks["c"].facts
