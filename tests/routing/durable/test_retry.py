"""How what failed is tried again: delays, attempts, pauses, and what is remembered of each attempt."""

import msgspec
import pytest

from palio.protocol.durable.attempts import MAX_FAILURES
from palio.protocol.durable.control import Seek
from palio.protocol.durable.retry import Patience, Retry
from palio.protocol.durable.subscriptions import Acknowledged, Attach, Detach, Discard, Rejected, Requeue
from palio.routing.occurrences import Close
from tests.routing.durable.test_takers import (
    ALL,
    answers,
    go,
    handed,
    letters,
    publish,
    quiet,
    say,
    seeds,
    subscription,
)
from tests.routing.durable.world import SETTINGS

# How long a world may take to do what is said: see `go`. Times below keep clear of it.
SLACK = 3.0


def reasons(world, broker="a", name="s0") -> list:
    """What is known of each dead letter: its number, and of each attempt the taker and why it failed."""
    found = world.routers[broker].durable.dead_letters(name)
    return [(one.delivery, [(failure.taker, str(failure)) for failure in one.failures]) for one in found]


def wait_for(world, seconds) -> list:
    """Let time pass, and everything happen that comes due. Returns what was handed out."""
    until = world.now + seconds
    while world.timers and min(world.timers.values()) <= until:
        world.wait()
        while world.step():
            pass
    world.now = max(world.now, until)
    return handed(world)


def with_one(seed, **wishes):
    """One delivery is out."""
    world = quiet(seed)
    say(world, "a", "one", Attach("s0", ALL, **wishes))
    publish(world, "b", 1)
    assert handed(world) == [("one", 1, 1, 1)]
    return world


@seeds
def test_what_is_rejected_with_a_delay_comes_again_after_it_and_not_before(seed):
    world = with_one(seed)
    say(world, "a", "one", Rejected("s0", (1,), delay=100.0))
    assert wait_for(world, 100.0 - SLACK) == []
    assert wait_for(world, SLACK) == [("one", 1, 2, 1)]
    say(world, "a", "one", Rejected("s0", (1,), delay=0.0))
    assert handed(world) == [("one", 1, 3, 1)]


@seeds
def test_another_taker_waits_for_the_delay_too(seed):
    world = with_one(seed)
    say(world, "a", "one", Rejected("s0", (1,), delay=50.0))
    say(world, "a", "two", Attach("s0", ALL))
    assert wait_for(world, 50.0 - 2 * SLACK) == []
    assert wait_for(world, 2 * SLACK) == [("two", 1, 2, 1)]


@seeds
def test_of_two_rejections_the_later_counts_also_for_what_was_about_to_go_out(seed):
    world = quiet(seed)
    say(world, "a", "one", Attach("s0", ALL, in_flight=1))
    publish(world, "b", 1, 2)
    say(world, "a", "one", Detach("s0"))  # what was out is ready to go out again
    say(world, "a", "one", Attach("s0", ALL, in_flight=1), Rejected("s0", (2,), delay=60.0))
    handed(world)
    say(world, "a", "one", Acknowledged("s0", (1,)))
    assert wait_for(world, 60.0 - 2 * SLACK) == []
    assert wait_for(world, 2 * SLACK) == [("one", 2, 1, 2)]


@seeds
def test_a_taker_can_give_up_at_once_and_say_why(seed):
    world = with_one(seed)
    say(world, "a", "one", Rejected("s0", (1,), reason="$.price: not a number", dead_letter=True))
    assert letters(world, "a") == [(1, 1, 1)]
    expected = [(1, [("one", "rejected: $.price: not a number")])]
    assert reasons(world) == expected
    world.crash("a")
    world.heal()
    go(world)
    assert reasons(world) == expected, "it is on disk"
    say(world, "b", "two", Attach("s0", ALL))
    assert reasons(world, "b") == expected, "and moves with the subscription"
    world.crash("b")
    world.heal()
    go(world)
    assert reasons(world, "b") == expected


def test_where_there_is_no_room_what_is_given_up_comes_again_after_the_longest_pause(monkeypatch):
    settings = msgspec.structs.replace(SETTINGS, dead_letters=1)
    monkeypatch.setattr("tests.routing.durable.world.SETTINGS", settings)
    world = quiet(0)
    say(world, "a", "one", Attach("s0", ALL))
    publish(world, "b", 1, 2)
    handed(world)
    say(world, "a", "one", Rejected("s0", (1, 2), dead_letter=True))
    assert letters(world, "a") == [(1, 1, 1)]
    assert wait_for(world, SETTINGS.patience.longest_pause - SLACK) == []
    assert wait_for(world, SLACK) == [("one", 2, 2, 2)]


@seeds
def test_each_attempt_is_remembered_with_its_taker_and_what_became_of_it(seed):
    world = with_one(seed, retry=Retry(attempts=4))
    assert wait_for(world, SETTINGS.patience.acknowledge_within + SLACK) == [("one", 1, 2, 1)]
    say(world, "a", "one", Close())
    say(world, "a", "two", Attach("s0", ALL))
    say(world, "a", "two", Rejected("s0", (1,), reason="no", delay=1_000.0))
    expected = [
        ("one", "not acknowledged in time"),
        ("one", "taker left"),
        ("two", "rejected: no"),
    ]
    (delivery,) = subscription(world, "a").outbox.deliveries.values()
    assert [(one.taker, str(one)) for one in delivery.failures] == expected
    say(world, "b", "three", Attach("s0", ALL))  # all of that moves with it
    say(world, "b", "three", Rejected("s0", (1,)))
    assert reasons(world, "b") == [(1, [*expected, ("three", "rejected")])]
    times = [one.time for one in world.routers["b"].durable.dead_letters()[0].failures]
    assert times == sorted(times)


@seeds
def test_of_many_attempts_the_last_few_are_remembered(seed):
    world = with_one(seed, retry=Retry(attempts=20, first_pause=0.1, longest_pause=0.1))
    for attempt in range(1, 21):
        say(world, "a", "one", Rejected("s0", (1,), reason=str(attempt)))
    ((_, failures),) = reasons(world)
    assert [why for _, why in failures] == [f"rejected: {n}" for n in range(21 - MAX_FAILURES, 21)]
    home = subscription(world, "a")
    assert home.outbox.bytes == 0
    say(world, "a", "operator", Discard("s0", (1,)))
    assert home.dead.bytes == 0


@seeds
def test_how_it_is_tried_again_survives_takers_restarts_and_moves(seed):
    world = quiet(seed)
    say(world, "a", "one", Attach("s0", ALL))
    say(world, "a", "one", Attach("s0", ALL, retry=Retry(attempts=2, first_pause=70.0, longest_pause=90.0)))
    world.crash("a")
    world.heal()
    go(world)
    say(world, "b", "two", Attach("s0", ALL))
    world.crash("b")
    world.heal()
    go(world)
    say(world, "b", "three", Attach("s0", ALL))  # without a wish: that of the subscription stays
    publish(world, "a", 1)
    handed(world)
    say(world, "b", "three", Rejected("s0", (1,)))
    assert wait_for(world, 70.0 - SLACK) == []
    assert wait_for(world, SLACK) == [("three", 1, 2, 1)]
    say(world, "b", "three", Rejected("s0", (1,)))
    assert letters(world, "b") == [(1, 2, 1)]


def test_what_a_subscription_wants_goes_before_what_its_taker_and_the_broker_say():
    patience = Patience(first_pause=1.0, longest_pause=10.0, attempts=5, in_flight=7)
    assert Retry().applied(patience) == patience
    assert Retry(attempts=2).applied(patience) == msgspec.structs.replace(patience, attempts=2)
    longer = msgspec.structs.replace(patience, first_pause=20.0, longest_pause=20.0)
    assert Retry(first_pause=20.0).applied(patience) == longer
    assert Retry(longest_pause=0.5).applied(patience).longest_pause == 0.5


def test_what_is_put_back_begins_without_a_past():
    world = with_one(0)
    say(world, "a", "one", Rejected("s0", (1,), dead_letter=True, reason="first"))
    say(world, "a", "operator", Requeue("s0", (1,)))
    say(world, "a", "one", Rejected("s0", (1,), dead_letter=True, reason="again"))
    assert reasons(world) == [(1, [("one", "rejected: again")])]


@pytest.mark.parametrize("delay", [-1.0, 86_401.0])
def test_a_delay_that_is_none_is_refused(delay):
    world = with_one(0)
    say(world, "a", "one", Rejected("s0", (1,), delay=delay))
    assert [entry[3] for entry in answers(world, "refused")] == ["WrongAttachment"]


@pytest.mark.parametrize(
    "wish", [{"attempts": 0}, {"attempts": 1_001}, {"first_pause": -1.0}, {"longest_pause": 1e6}], ids=str
)
def test_a_wish_that_nobody_can_grant_is_refused(wish):
    world = quiet(0)
    say(world, "a", "one", Attach("s0", ALL, retry=Retry(**wish)))
    assert [entry[3] for entry in answers(world, "refused")] == ["WrongAttachment"]
    assert subscription(world, "a") is None


@seeds
def test_what_a_subscription_wants_outlives_that_it_was_moved_to_another_position(seed):
    world = quiet(seed)
    say(world, "a", "one", Attach("s0", ALL, retry=Retry(attempts=7)))
    say(world, "a", "operator", Seek("s0", since="all"))
    assert subscription(world, "a").retry == Retry(attempts=7)
    world.crash("a")
    world.heal()
    go(world)
    assert subscription(world, "a").retry == Retry(attempts=7)
