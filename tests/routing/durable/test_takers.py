"""What takers may wish of a durable subscription, and what becomes of dead letters."""

import pytest

from palio import Filter
from palio.protocol.durable.subscriptions import (
    Acknowledged,
    Attach,
    Change,
    Changed,
    Discard,
    Rejected,
    Requeue,
)
from palio.protocol.durable.wishes import MAX_IN_FLIGHT
from palio.protocol.inquiries import Hop, Recipient, Request, Responded, Trace
from palio.routing.durable.effects import Hand
from palio.routing.occurrences import Close, Open
from tests.routing.durable.world import SETTINGS, World, number

LINE = ["a", "b"], [("a", "b")]
seeds = pytest.mark.parametrize("seed", range(4))
ALL = Filter.parse("n >= 0")


class Quiet(World):
    """A world whose takers keep what they get until they are told what to do with it."""

    def handed(self, broker, hand: Hand) -> None:
        self.note("handed", hand.session, hand.name, hand.deliveries)


def quiet(seed) -> Quiet:
    world = Quiet(f"takers {seed}", *LINE)
    world.run()
    return world


def say(world, broker, session, *messages) -> None:
    world.post(broker, Open(), session)
    for message in messages:
        world.post(broker, message, session)
    go(world)


def go(world) -> None:
    """All messages and writes; and time, but not more than a second or so."""
    until = world.now + 1.5
    for _ in range(10_000):
        if not world.step():
            if not world.timers or min(world.timers.values()) > until:
                return
            world.wait()
    raise AssertionError("The world does not come to rest.")


def publish(world, broker, *numbers) -> None:
    for n in numbers:
        world.publish(f"pat at {broker}", broker, n, number(n))
    go(world)


def handed(world, name="s0") -> list:
    """(session, delivery, attempt, number) since this was asked last."""
    found = [
        (entry[2], delivery, attempt, envelope.notification["n"])
        for entry in world.history
        if entry[1] == "handed" and entry[3] == name
        for delivery, attempt, envelope in entry[4]
    ]
    world.history.clear()
    return found


def answers(world, *kinds) -> list:
    return [entry[1:] for entry in world.history if entry[1] in kinds]


def subscription(world, broker, name="s0"):
    return world.routers[broker].durable.homes.subscriptions.get(name)


@seeds
def test_a_taker_gets_as_many_at_a_time_as_it_asks_for(seed):
    world = quiet(seed)
    say(world, "a", "one", Attach("s0", ALL, in_flight=7))
    publish(world, "b", *range(20))
    assert [n for _, _, _, n in handed(world)] == list(range(7))
    say(world, "a", "one", Acknowledged("s0", (1, 2, 3)))
    assert [n for _, _, _, n in handed(world)] == [7, 8, 9]
    say(world, "a", "two", Attach("s0", ALL))  # another taker has its own wishes
    assert len(handed(world)) == SETTINGS.patience.in_flight


@seeds
def test_a_subscription_that_does_not_linger_ends_soon_after_its_taker(seed):
    world = quiet(seed)
    say(world, "a", "one", Attach("s0", ALL, linger=60.0), Attach("s1", ALL))
    say(world, "a", "one", Close())
    left = world.now
    world.wait()
    while world.timers and subscription(world, "a") is not None:
        world.wait()
        go(world)
    assert left + 59.0 <= world.now <= left + 62.0
    assert subscription(world, "a") is None
    assert subscription(world, "a", "s1") is not None


@seeds
def test_whoever_comes_back_in_time_finds_it(seed):
    world = quiet(seed)
    say(world, "a", "one", Attach("s0", ALL, linger=60.0))
    say(world, "a", "one", Close())
    world.now += 50.0
    say(world, "a", "two", Attach("s0", ALL))
    world.now += 50.0
    world.run()
    assert subscription(world, "a").linger == 60.0  # a taker without a wish leaves it


@seeds
def test_how_long_it_lingers_survives_restarts_and_moves(seed):
    world = quiet(seed)
    say(world, "a", "one", Attach("s0", ALL, linger=60.0))
    say(world, "a", "two", Attach("s0", ALL, linger=90.0))
    world.crash("a")
    world.heal()
    go(world)
    assert subscription(world, "a").linger == 90.0
    say(world, "b", "three", Attach("s0", ALL))
    assert subscription(world, "a") is None
    assert subscription(world, "b").linger == 90.0
    world.crash("b")
    world.heal()
    world.run()  # nobody comes back
    assert subscription(world, "b") is None
    assert not world.disks["b"].subscriptions


@seeds
def test_a_new_one_may_begin_at_a_position(seed):
    world = quiet(seed)
    for router in world.routers.values():
        router.durable.journal.register("keeper", "a")  # so that nothing is trimmed
    publish(world, "b", 1, 2, 3, 4)
    publish(world, "a", 5, 6)
    world.history.clear()
    say(world, "a", "one", Attach("s0", ALL, after={"b": 2}))
    assert sorted(n for _, _, _, n in handed(world)) == [3, 4]
    say(world, "a", "two", Attach("s1", ALL, since="all", after={"b": 3}))
    assert sorted(n for _, _, _, n in handed(world, "s1")) == [4, 5, 6]
    publish(world, "a", 7)
    publish(world, "b", 8)
    world.crash("a")  # the position is on disk
    world.heal()
    go(world)
    world.history.clear()
    say(world, "a", "three", Attach("s0", ALL, in_flight=9))
    assert sorted(n for _, _, _, n in handed(world)) == [3, 4, 7, 8]


@pytest.mark.parametrize(
    "wish",
    [
        {"linger": -1.0},
        {"linger": float("nan")},
        {"linger": float("inf")},
        {"in_flight": 0},
        {"in_flight": MAX_IN_FLIGHT + 1},
        {"after": {"b": -1}},
    ],
    ids=str,
)
def test_what_nobody_can_grant_is_refused(wish):
    world = quiet(0)
    say(world, "a", "one", Attach("s0", ALL, **wish))
    ((_, _, subject, error, _),) = answers(world, "refused")
    assert (subject, error) == ("attach s0", "WrongAttachment")
    assert subscription(world, "a") is None


def with_dead_letters(seed) -> Quiet:
    """The first three of four deliveries are dead letters."""
    world = quiet(seed)
    say(world, "a", "one", Attach("s0", ALL))
    publish(world, "b", 1, 2, 3, 4)
    for _ in range(SETTINGS.patience.attempts):
        say(world, "a", "one", Rejected("s0", (1, 2, 3)))
    world.history.clear()
    return world


def settle_for(monkeypatch, **limits) -> None:
    """Two attempts are enough."""
    patience = type(SETTINGS.patience)(in_flight=4, acknowledge_within=1_000.0, first_pause=0.5, attempts=2)
    settings = type(SETTINGS)(patience=patience, page=3, outbox=50, **limits)
    monkeypatch.setattr("tests.routing.durable.world.SETTINGS", settings)
    monkeypatch.setattr("tests.routing.durable.test_takers.SETTINGS", settings)


@pytest.fixture
def impatient(monkeypatch):
    settle_for(monkeypatch)


def letters(world, broker, name="s0") -> list:
    found = world.routers[broker].durable.dead_letters(name)
    assert found == world.routers[broker].durable.dead_letters()
    return [(one.delivery, one.attempts, one.envelope.notification["n"]) for one in found]


@seeds
def test_dead_letters_are_listed_put_back_and_discarded(seed, impatient):
    world = with_dead_letters(seed)
    assert letters(world, "a") == [(1, 2, 1), (2, 2, 2), (3, 2, 3)]
    assert not world.routers["a"].durable.dead_letters("s1")
    say(world, "a", "operator", Requeue("s0", (2, 2, 99)))  # anybody may ask
    assert answers(world, "Requeued") == [("Requeued", "operator", "s0", (2,))]
    assert handed(world) == [("one", 2, 1, 2)]  # it begins with a first attempt, and keeps its number
    say(world, "a", "operator", Discard("s0", (3, 4)))
    assert answers(world, "Discarded") == [("Discarded", "operator", "s0", (3,))]
    assert letters(world, "a") == [(1, 2, 1)]
    say(world, "a", "one", Acknowledged("s0", (2,)))
    world.crash("a")
    world.heal()
    go(world)
    assert letters(world, "a") == [(1, 2, 1)]
    world.history.clear()
    say(world, "a", "two", Attach("s0", ALL))
    assert [n for _, _, _, n in handed(world)] == [4]


@seeds
def test_what_was_put_back_is_a_delivery_after_a_crash_too(seed, impatient):
    world = with_dead_letters(seed)
    say(world, "a", "operator", Requeue("s0", (1, 2, 3)))
    world.crash("a")
    world.heal()
    go(world)
    assert letters(world, "a") == []
    world.history.clear()
    say(world, "a", "two", Attach("s0", ALL))
    assert sorted(n for _, _, _, n in handed(world)) == [1, 2, 3, 4]


@pytest.mark.parametrize("limit", [{"dead_letters": 2}, {"dead_letters_bytes": 100}], ids=str)
def test_where_dead_letters_are_many_nothing_is_given_up(limit, monkeypatch):
    settle_for(monkeypatch, **limit)
    world = with_dead_letters(0)
    assert letters(world, "a") == [(1, 2, 1), (2, 2, 2)]
    handed(world)
    say(world, "a", "one", Rejected("s0", (3,)))
    world.wait()
    go(world)
    assert handed(world) == [("one", 3, 4, 3)], "it comes again, after a pause"
    say(world, "a", "operator", Discard("s0", (1,)))
    say(world, "a", "one", Rejected("s0", (3,)))
    assert letters(world, "a") == [(2, 2, 2), (3, 4, 3)]


def test_dead_letters_are_at_the_home(impatient):
    world = with_dead_letters(0)
    say(world, "b", "operator", Requeue("s0", (1,)), Discard("s0", (1,)))
    assert [(entry[2], entry[3]) for entry in answers(world, "refused")] == [
        ("requeue s0", "NotHome"),
        ("discard s0", "NotHome"),
    ]


def test_a_trace_names_durable_subscriptions_and_a_request_does_not_ask_them():
    world = quiet(0)
    say(world, "a", "one", Attach("s0", ALL))
    router = world.routers["a"]
    (traced,) = router.handle(Trace(1, number(3)), "one", world.now)
    assert traced.answer.route == Hop("a", (Recipient("s0", True, (str(ALL),)),))
    (responded,) = router.handle(Request(2, number(3)), "one", world.now)
    assert responded.answer == Responded(2, None, last=True)


class Hearing(World):
    """A world that keeps the answers to changes."""

    def answered(self, session, answer) -> None:
        super().answered(session, answer)
        if isinstance(answer, Changed):
            self.note("now", answer.number, str(answer.filter))


@seeds
def test_a_change_answers_whoever_asked_for_it_and_nobody_of_the_same_name(seed):
    world = Hearing(f"changes {seed}", *LINE)
    world.attach("one", "a", "s0", "n >= 0")
    world.run()
    world.post("a", Change("s0", Filter.parse("n > 1"), number=7), "one")
    world.post("a", Close(), "one")
    world.attach("one", "a", "s0", "n >= 0")
    world.run()
    world.post("a", Change("s0", Filter.parse("n > 2"), number=7), "one")
    world.run()
    assert [what[2:] for what in world.history if what[1] == "now"] == [(0, "n > 1"), (7, "n > 2")]
