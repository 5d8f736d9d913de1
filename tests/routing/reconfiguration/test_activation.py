"""New links that are told nothing which only their other end has wanted: what is held back, and until when."""

from __future__ import annotations

import pytest

from palio import Filter, Notification
from palio.model.form import VERSION as FORM
from palio.protocol.encoding import UnreadableMessage, decode, encode
from palio.protocol.peers import Component, Hello, LinkKind
from palio.protocol.reconfiguration import DIGEST_BYTES, MOST_DIGESTS, MOST_STEPS, Activate, Prepare
from palio.protocol.requests import Publish, Ready, Subscribe
from palio.routing import Configuration, Router
from palio.routing.durable.desk import DurableSettings
from palio.routing.effects import Send
from palio.routing.occurrences import LinkDown, LinkUp
from palio.routing.reconfiguration.activation import WAITS_FOR, digest_of, taken_apart, together
from palio.routing.reconfiguration.protocols import WAITS_AT_ONCE
from tests.routing.reconfiguration.scenes import SOON, TREE, counted, settings, subscribed, tree_world


def reconfigured(*wanted, strategy="identity", **more):
    """Figure 6 an instant after its new link is there; nothing that was parked is dropped yet."""
    world = tree_world(TREE, "informed", strategy, **more)
    subscribed(world, *wanted)
    world.began = world.now
    world.cut("A", "B")
    world.after(SOON, world.link, "C", "D")
    world.run(world.began + 1.0)
    return world


def told(world, one, other):
    return sorted(map(str, world.routers[one].sent(other).values()))


def test_what_only_the_other_side_has_wanted_is_not_told_to_it():
    world = reconfigured(("A", "p"))
    assert told(world, "D", "C") == []
    assert told(world, "C", "D") == ["p = 1"]


def test_what_is_wanted_on_this_side_is_told():
    world = reconfigured(("A", "p"), ("G", "p"), ("G", "q"))
    assert told(world, "D", "C") == ["p = 1", "q = 1"]


@pytest.mark.parametrize("strategy", ["identity", "covering"])
def test_what_gets_another_source_is_told_at_once(strategy):
    world = tree_world(TREE, "informed", strategy, defer=60.0, hold_back=90.0)
    subscribed(world, ("A", "p"))
    world.cut("A", "B")
    world.after(SOON, world.link, "C", "D")
    world.run(world.now + 1.0)
    world.ask("G", "client G", Subscribe("p", Filter.parse("p = 1")))
    world.run(world.now + 1.0)
    assert told(world, "D", "C") == ["p = 1"]
    world.ask("E", "publisher", Publish((Notification({"p": 1}),)))
    world.run(world.now + 1.0)
    assert sorted(session for _, session, _ in world.delivered) == ["client A", "client G"]


def test_who_has_an_activation_forgotten_is_told_everything_after_a_second():
    world = tree_world(TREE, "informed")
    subscribed(world, ("E", "p"), ("D", "p"))
    world.loses = Activate
    began = world.now
    world.cut("A", "B")
    world.after(SOON, world.link, "C", "D")
    world.run(began + SOON + WAITS_FOR - 0.1)
    assert told(world, "C", "D") == []
    world.run(began + SOON + WAITS_FOR + 0.2)
    assert told(world, "C", "D") == told(world, "D", "C") == ["p = 1"]


def test_nobody_is_told_that_all_know_while_a_link_waits():
    world = tree_world(TREE, "informed")
    subscribed(world, ("E", "p"))
    world.loses = Activate
    world.cut("A", "B")
    world.after(SOON, world.link, "C", "D")
    world.run(world.now + SOON + 0.1)
    world.ask("C", "client", Subscribe("s", Filter.parse("s = 1"), ready=True))
    world.run(world.now + 0.1)
    assert ready(world) == []
    world.run(world.now + WAITS_FOR)
    assert ready(world) == ["s"]


def ready(world):
    return [answer.handle for _, answer in world.answers if isinstance(answer, Ready)]


def test_others_that_do_not_inform_are_neighbours_as_before():
    world = tree_world(TREE, "informed")
    subscribed(world, ("A", "p"))
    for name in "CG":
        world.routers[name].reconfigure(settings("strawman"))
    world.cut("A", "B")
    world.after(SOON, world.link, "C", "D")
    world.run()
    assert told(world, "C", "D") == ["p = 1"]
    assert told(world, "D", "C") == []


def test_a_list_names_what_it_was_made_of():
    filters = [Filter.parse(f"p = {number}") for number in range(10)]
    assert taken_apart(together(filters)) == {digest_of(one) for one in filters}
    assert taken_apart(b"") == set()


def test_lists_are_bounded():
    many = [Filter.parse(f"p = {number}") for number in range(MOST_DIGESTS + 5)]
    assert len(together(many)) == MOST_DIGESTS * DIGEST_BYTES
    assert decode(encode(Activate(Component("b"), together(many))))


@pytest.mark.parametrize(
    "message",
    [
        Activate(Component("b"), b"x" * (MOST_DIGESTS * DIGEST_BYTES + 1)),
        Activate(Component("b"), b"", b"x" * (MOST_DIGESTS * DIGEST_BYTES + 1)),
        Activate(Component("b"), way=("x",) * (MOST_STEPS + 1)),
        Prepare(Component("b"), ("x",) * (MOST_STEPS + 1)),
    ],
)
def test_lists_without_end_are_not_read(message):
    with pytest.raises(UnreadableMessage):
        decode(encode(message))


@pytest.mark.parametrize(
    "message",
    [
        Activate(Component("A", 1), b"12345678"),
        Activate(Component("A", 1), b"123"),
        Activate(Component("A", 1), b"12345678", way=("B", "nobody")),
        Activate(Component("A", 1), b"12345678", way=("B",)),
        Activate(Component("A", 1), b"12345678", way=("nobody",)),
        Prepare(Component("nobody", 1), ("nobody",)),
        Prepare(Component("B", 1), ()),
    ],
)
def test_nonsense_changes_nothing(message):
    world = tree_world(TREE, "informed")
    subscribed(world, ("A", "p"))
    effects = world.routers["B"].handle(message, "G", world.now)
    assert [one for one in effects if getattr(one, "broker", "") not in ("", "G")] == []
    world.ask("A", "client A", Subscribe("q", Filter.parse("q = 1")))
    world.run()
    assert counted(world) == (6, 0)


@pytest.mark.parametrize("keeps", [{"durable": DurableSettings()}, {"relay": True}, {}])
def test_in_a_network_with_journals_nothing_is_held_back(keeps):
    configuration = Configuration(broker="b", reconfiguration=settings("informed"), **keeps)
    router = Router(configuration)
    hellos = []
    for name in ("a", "c"):
        router.handle(LinkUp(), name, 0.0)
        hello = Hello(
            LinkKind.PEER, 1.0, configuration.terms, Component(name), (name,), FORM, reconfigures=True
        )
        router.handle(hello, name, 0.0)
    router.handle(LinkDown(), "a", 1.0)
    for effect in router.handle(LinkUp(), "d", 1.5):
        if isinstance(effect, Send) and isinstance(effect.message, Hello):
            hellos.append(effect.message)
    assert [hello.activates for hello in hellos] == [not keeps]


def test_somebody_who_makes_links_wait_without_end_is_not_waited_for():
    configuration = Configuration(broker="b", reconfiguration=settings("informed"))
    router, waited = Router(configuration), 0
    for number in range(10 * WAITS_AT_ONCE):
        name, now = f"x{number}", number * 0.01
        router.handle(LinkUp(), name, now)
        terms, part = configuration.terms, Component(name, 1)
        hello = Hello(LinkKind.PEER, 1.0, terms, part, (name,), FORM, reconfigures=True, activates=True)
        router.handle(hello, name, now)
        waited += name not in router._core.waves.ports
        router.handle(LinkDown(), name, now)
    assert waited == WAITS_AT_ONCE
