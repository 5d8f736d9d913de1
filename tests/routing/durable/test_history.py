"""Surveys and replays: what the journals in reach hold of a filter."""

from collections import deque

import pytest

from palio import Filter
from palio.protocol.durable.journals import GoOn, Replay, Replayed, Survey, Surveyed
from palio.protocol.durable.subscriptions import Attach
from palio.routing.durable.network.journal_history import MAX_PER_SESSION
from palio.routing.occurrences import Close, Open
from tests.routing.durable.world import World, number

RING = ["a", "b", "c"], [("a", "b"), ("b", "c")]
EVEN = Filter.parse("even = true")
seeds = pytest.mark.parametrize("seed", range(6))


class Stuck(deque):
    """A store that completes nothing."""

    def __bool__(self) -> bool:
        return False


class Asking(World):
    """A world that keeps what is answered to who asks about history."""

    def __init__(self, *arguments) -> None:
        self.told = []
        super().__init__(*arguments)

    def answered(self, session, answer) -> None:
        if isinstance(answer, Surveyed | Replayed):
            self.told.append(answer)
        else:
            super().answered(session, answer)


def world_of(seed, events=40) -> Asking:
    """A line of three brokers, with events at each; a subscription keeps all journals as they are."""
    world = Asking(f"history {seed}", *RING)
    world.run()
    world.post("a", Open(), "keeper")
    world.post("a", Attach("keeper", Filter.parse("n < 0")), "keeper")
    world.run()
    durable = world.routers["a"].durable
    durable.parts.takers.detach(durable.homes.subscriptions["keeper"])
    world.now = max(world.now, 100.0)
    for n in range(events):
        broker = world.choose.choice(RING[0])
        world.publish(f"p {broker}", broker, n, number(n, even=n % 2 == 0))
        while world.step():
            pass
        world.now += 1.0
    return world


def journal(world) -> list:
    return [envelope for disk in world.disks.values() for envelope in disk.journal.values()]


def say(world, session, *messages, at="b") -> None:
    world.post(at, Open(), session)
    for message in messages:
        world.post(at, message, session)
    while world.step():
        pass


@seeds
def test_a_survey_counts_what_all_journals_hold(seed):
    world = world_of(seed)
    since, until = 110.0, 130.0
    say(world, "pat", Survey(7, EVEN, since, until, buckets=4, samples=3))
    (told,) = world.told
    wanted = [one for one in journal(world) if EVEN.matches(one.notification) and since <= one.time <= until]
    times = sorted(one.time for one in wanted)
    assert (told.number, told.count, told.missing) == (7, len(wanted), ())
    assert (told.first, told.last) == (times[0], times[-1])
    assert told.histogram == tuple(
        sum(since + 5 * n <= time < since + 5 * (n + 1) or (n == 3 and time == until) for time in times)
        for n in range(4)
    )
    assert [one.time for one in told.samples] == times[-3:]


@seeds
def test_a_survey_of_nothing_is_answered(seed):
    world = world_of(seed, events=0)
    say(world, "pat", Survey(7, EVEN))
    (told,) = world.told
    assert (told.count, told.first, told.last, told.samples, told.missing) == (0, None, None, (), ())


@seeds
def test_who_is_not_in_reach_is_named(seed):
    world = world_of(seed)
    world.crash("c")
    say(world, "pat", Survey(7, EVEN), Replay(8, EVEN))
    for _ in range(100):  # letters may have been lost when the network changed; they are written again
        say(world, "pat", GoOn(8))
        world.wait()
    survey = next(told for told in world.told if isinstance(told, Surveyed))
    here = [
        one for name in "ab" for one in world.disks[name].journal.values() if EVEN.matches(one.notification)
    ]
    assert (survey.count, survey.missing) == (len(here), ("c",))
    pages = [told for told in world.told if isinstance(told, Replayed)]
    assert sum(len(page.envelopes) for page in pages) == len(here)
    assert (pages[-1].last, pages[-1].missing) == (True, ("c",))


@seeds
def test_an_origin_that_says_nothing_is_given_up(seed):
    world = world_of(seed)
    world.stores["c"] = Stuck()
    for message in (Open(), Survey(7, EVEN), Replay(8, EVEN)):
        world.post("b", message, "pat")
    pages = 0
    while world.step() or world.wait():
        if len(world.told) > pages:
            pages = len(world.told)
            world.post("b", GoOn(8), "pat")
    survey = next(told for told in world.told if isinstance(told, Surveyed))
    replayed = [told for told in world.told if isinstance(told, Replayed) and told.last]
    assert survey.missing == ("c",)
    assert [one.missing for one in replayed] == [("c",)]


@seeds
def test_a_replay_comes_page_by_page_as_the_client_goes_on(seed):
    world = world_of(seed)
    say(world, "pat", Replay(7, EVEN, 105.0, 135.0, page=2))
    got = []
    for turn in range(1, 100):
        assert len(world.told) == turn  # never more than was asked for
        page = world.told[-1]
        assert len(page.envelopes) <= 2
        if page.last:
            break
        assert {one.origin for one in page.envelopes} == {page.origin}
        got += page.envelopes
        say(world, "pat", GoOn(7))
    assert world.told[-1] == Replayed(7, last=True)
    wanted = [one for one in journal(world) if EVEN.matches(one.notification) and 105.0 <= one.time <= 135.0]
    assert [(one.origin, one.sequence) for one in got] == sorted((one.origin, one.sequence) for one in wanted)
    say(world, "pat", GoOn(7))
    assert world.told[-1].last


def test_what_is_wrong_or_too_much_is_refused():
    world = world_of(0)
    wrong = [
        Survey(1, EVEN, buckets=0), Survey(2, EVEN, samples=-1), Survey(3, EVEN, 5.0, 5.0),
        Replay(4, EVEN, page=0), Survey(5, EVEN, float("nan")), Survey(6, Filter.parse("x > 1 and x < 1")),
    ]  # fmt: skip
    say(world, "pat", *wrong)
    errors = [(entry[3], entry[4]) for entry in world.history if entry[1] == "refused"]
    assert errors == [
        ("survey 1", "WrongSurvey"), ("survey 2", "WrongSurvey"), ("survey 3", "WrongSurvey"),
        ("replay 4", "WrongSurvey"), ("survey 5", "WrongSurvey"), ("survey 6", "ContradictoryFilter"),
    ]  # fmt: skip
    say(world, "pat", *[Replay(n, EVEN, page=1) for n in range(MAX_PER_SESSION + 1)])
    assert [entry[4] for entry in world.history if entry[1] == "refused"][-1] == "TooManySurveys"
    say(world, "pat", Close())
    world.told.clear()
    say(world, "pat", Survey(9, EVEN))
    assert [told.number for told in world.told] == [9]
    world.run()  # and nothing is waited for
