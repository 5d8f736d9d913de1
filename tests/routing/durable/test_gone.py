"""Whoever is gone takes nothing: a client may leave at any moment between its wish and the answer to it."""

from collections.abc import Iterable, Mapping

import pytest

from palio import Advertisement
from palio.protocol.durable.journals import Forget, Hold, ListJournals, Replay, Survey
from palio.protocol.durable.letters import MovedIn
from palio.protocol.durable.subscriptions import Acknowledged, Attach, Change, Detach, Finish
from palio.protocol.inquiries import Request, Trace, Watch
from palio.protocol.requests import Advertise, Subscribe
from palio.routing.durable.home.subscription import HomeState
from palio.routing.durable.home.wishes import GIVE_UP_AFTER
from palio.routing.effects import Reply
from palio.routing.occurrences import Close, Open
from tests.routing.durable.test_takers import (
    ALL,
    Quiet,
    answers,
    go,
    handed,
    publish,
    quiet,
    say,
    seeds,
    subscription,
)
from tests.routing.durable.world import number

LEAVING = {"closes": Close(), "detaches": Detach("s0")}
leaving = pytest.mark.parametrize("leave", LEAVING.values(), ids=LEAVING)


def at_once(world, broker, session, *messages) -> None:
    """A broker handles these before anything else happens."""
    for message in messages:
        world.carry_out(broker, world.routers[broker].handle(message, session, world.now))


def wish(world, broker, name="s0"):
    return world.routers[broker].durable.parts.wishes.by_name.get(name)


def step_until(world, reached) -> None:
    for _ in range(10_000):
        if reached():
            return
        if not world.step():
            world.wait()
    raise AssertionError("It never came to that.")


def the_next_taker_gets_everything(world, broker) -> None:
    """What is published is not handed to anybody, and does not become a dead letter, until somebody comes."""
    publish(world, "b", *range(1, 6))
    world.now += 1_000.0
    go(world)
    assert handed(world) == []
    assert not len(world.routers[broker].durable.homes.subscriptions["s0"].dead)
    say(world, broker, "next", Attach("s0", ALL, in_flight=9))
    assert [(session, attempt, n) for session, _, attempt, n in handed(world)] == [
        ("next", 1, n) for n in range(1, 6)
    ]


@seeds
@leaving
def test_while_it_is_looked_for(seed, leave):
    world = quiet(seed)
    at_once(world, "a", "one", Open(), Attach("s0", ALL))
    assert wish(world, "a").question is not None
    at_once(world, "a", "one", leave)
    go(world)
    assert subscription(world, "a") is None, "nobody wants it any more"
    assert wish(world, "a") is None
    say(world, "a", "other", Attach("s0", ALL), Close())
    say(world, "a", "other", Attach("s0", ALL))
    say(world, "a", "other", Close())
    the_next_taker_gets_everything(world, "a")


@seeds
@leaving
def test_while_it_is_handed_over(seed, leave):
    world = quiet(seed)
    say(world, "b", "zero", Attach("s0", ALL))
    at_once(world, "a", "one", Open(), Attach("s0", ALL))
    step_until(world, lambda: wish(world, "a").home is not None)
    at_once(world, "a", "one", leave)
    go(world)
    assert subscription(world, "a").taker is None
    the_next_taker_gets_everything(world, "a")


@seeds
@leaving
def test_while_it_waits_to_look_again(seed, leave):
    world = quiet(seed)
    say(world, "a", "zero", Attach("s0", ALL))
    say(world, "b", "one", Open())
    at_once(world, "b", "one", Attach("s0", ALL))
    step_until(world, lambda: getattr(subscription(world, "a"), "state", None) is HomeState.MOVING)
    at_once(world, "a", "two", Open(), Attach("s0", ALL))
    assert (wish(world, "a").question, wish(world, "a").home) == (None, None)
    at_once(world, "a", "two", leave)
    at_once(world, "b", "one", leave)
    go(world)
    assert subscription(world, "a") is None
    assert subscription(world, "b").taker is None
    the_next_taker_gets_everything(world, "b")


@seeds
@leaving
def test_while_it_is_being_written(seed, leave):
    world = quiet(seed)
    at_once(world, "a", "one", Open(), Attach("s0", ALL))
    step_until(world, lambda: subscription(world, "a") is not None)
    assert subscription(world, "a").state is HomeState.STORING
    at_once(world, "a", "one", leave)
    go(world)
    assert subscription(world, "a").taker is None
    the_next_taker_gets_everything(world, "a")


@seeds
def test_what_is_handed_over_has_the_latest_for_its_taker(seed):
    """One waits for it; another one comes while what was handed over is being written."""
    world = quiet(seed)
    say(world, "b", "zero", Attach("s0", ALL))
    publish(world, "b", 1)
    at_once(world, "a", "one", Open(), Attach("s0", ALL))
    step_until(world, lambda: subscription(world, "a") is not None)
    assert subscription(world, "a").state is HomeState.STORING
    world.history.clear()
    at_once(world, "a", "two", Open(), Attach("s0", ALL))
    go(world)
    assert answers(world, "Taken") == [("Taken", "one", "s0")]
    assert answers(world, "Attached") == [("Attached", "two", "s0")]
    assert [(session, n) for session, _, _, n in handed(world)] == [("two", 1)]


@seeds
def test_the_latest_is_the_taker_also_if_another_one_was_waiting(seed):
    """Who waits to look again does not take it from who came later and found it here."""
    world = quiet(seed)
    say(world, "a", "zero", Attach("s0", ALL))
    at_once(world, "b", "one", Open(), Attach("s0", ALL))
    step_until(world, lambda: getattr(subscription(world, "a"), "state", None) is HomeState.MOVING)
    at_once(world, "a", "two", Open(), Attach("s0", ALL))
    step_until(world, lambda: subscription(world, "a") is None)
    at_once(world, "a", "three", Open(), Attach("s0", ALL))
    world.history.clear()
    go(world)
    go(world)
    assert subscription(world, "a").taker == "three"
    assert not [one for one in answers(world, "Taken") if one[1] == "three"]


REQUESTS = (
    Attach("s0", ALL),
    Attach("s1", ALL),
    Change("s1", ALL),
    Acknowledged("s1", (1,)),
    Detach("s2"),
    Finish("s2"),
    Subscribe("h1", ALL, ready=True),
    Advertise("h2", Advertisement.parse("n > 0"), ready=True),
    Watch("h3", Advertisement.parse("n > 0")),
    Request(1, number(1)),
    Trace(2, number(2)),
    Survey(3, ALL),
    Replay(4, ALL),
    ListJournals(5),
    Hold(6, "lake", 0),
    Forget("nobody"),
)


def mentions(thing, name, path="", seen=None):
    """Where in an object, and all that it has, there is a text. What only answers somebody does not count."""
    seen = {} if seen is None else seen
    if id(thing) in seen or callable(thing) or isinstance(thing, int | float | bytes | type(None)):
        return
    seen[id(thing)] = thing
    if isinstance(thing, str):
        if thing == name:
            del seen[id(thing)]
            yield path
    elif isinstance(thing, Reply):
        return
    elif isinstance(thing, Mapping):
        for key, value in thing.items():
            yield from mentions(key, name, f"{path}[key]", seen)
            yield from mentions(value, name, f"{path}[{key!r:.30}]", seen)
    elif isinstance(thing, Iterable):
        for place, one in enumerate(list(thing)):
            yield from mentions(one, name, f"{path}[{place}]", seen)
    fields = [*getattr(thing, "__dict__", ())]
    fields += [one for kind in type(thing).__mro__ for one in getattr(kind, "__slots__", ())]
    for field in dict.fromkeys(fields):
        if hasattr(thing, field):
            yield from mentions(getattr(thing, field), name, f"{path}.{field}", seen)


@seeds
def test_whoever_is_gone_is_remembered_nowhere(seed):
    """All that a session can ask for, just asked or half answered, and then it is gone."""
    world = quiet(seed)
    say(world, "a", "one", Attach("s1", ALL))
    say(world, "b", "zero", Attach("s0", ALL), Attach("s2", ALL))
    router = world.routers["a"]
    at_once(world, "a", "one", *REQUESTS)
    assert len([*mentions(router, "one")]) > 5
    for _ in range(world.choose.randrange(20)):
        world.step()
    at_once(world, "a", "one", Close())
    assert [*mentions(router, "one")] == []
    world.run()
    assert [*mentions(router, "one")] == []


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda one: type(one).__name__)
def test_nothing_is_asked_for_in_a_session_that_is_not_open(request_):
    world = quiet(0)
    at_once(world, "a", "one", Open(), Close())
    world.history.clear()
    at_once(world, "a", "one", request_)
    assert [one[3] for one in answers(world, "refused")] == ["NoSession"]
    assert [*mentions(world.routers["a"], "one")] == []
    go(world)
    assert subscription(world, "a") is None


@seeds
def test_what_is_acknowledged_again_is_answered_and_not_written(seed):
    world = quiet(seed)
    say(world, "a", "one", Attach("s0", ALL))
    publish(world, "a", 1)
    world.history.clear()
    at_once(world, "a", "one", Acknowledged("s0", (1,)))
    writes = len(world.stores["a"])
    for _ in range(3_000):
        at_once(world, "a", "one", Acknowledged("s0", (1,)))
    assert len(world.stores["a"]) == writes, "there is nothing more to write"
    assert not answers(world, "done"), "the first of them is not on disk yet"
    go(world)
    assert answers(world, "done") == 3_001 * [("done", "one", "s0", (1,))]
    say(world, "a", "one", Acknowledged("s0", (1, 77)))
    assert answers(world, "done")[-1] == ("done", "one", "s0", (1, 77))


@seeds
def test_who_looks_again_and_again_does_not_keep_a_former_home_from_forgetting(seed):
    """The next home has ended it, and the former one was not told: it asks, whoever looks for it meanwhile."""
    world = Quiet(f"gone {seed}", ["a", "b", "c"], [("a", "b"), ("a", "c")])
    world.run()
    say(world, "b", "zero", Attach("s0", ALL))
    at_once(world, "a", "one", Open(), Attach("s0", ALL))
    step_until(world, lambda: getattr(subscription(world, "a"), "taker", None) == "one")
    told = world.messages["b", "a"]
    lost = [one for one in told if type(getattr(one, "content", None)) is MovedIn]
    assert lost, "the former home was to be told"
    told.remove(lost[0])
    at_once(world, "a", "one", Finish("s0"))
    for _ in range(4 * GIVE_UP_AFTER):
        say(world, "c", "two", Attach("s0", None))
    assert subscription(world, "b") is None
    say(world, "c", "three", Attach("s0", ALL))
    assert subscription(world, "c").taker == "three"
