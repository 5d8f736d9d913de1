"""Durable subscriptions of one home are read for together, and each gets what it would have got alone."""

import pytest
from msgspec.structs import replace

from palio.protocol.durable.letters import Page
from palio.protocol.envelope import Envelope
from palio.routing.durable.home import reading
from palio.routing.durable.home.reading import part_of, selected
from palio.sim.faults.run import simulate
from palio.sim.faults.soak import drawn
from palio.sim.faults.violations import LostNotification, Outside
from tests.routing.durable.world import number


def crowded(seed):
    """A drawn scenario with many takers at few homes."""
    scenario = drawn(seed)
    mix = tuple(word for word in scenario.mix if word not in ("joining", "roaming"))
    return replace(scenario, takers=8, brokers=min(scenario.brokers, 3), page=50, joins=0, mix=mix)


def found(kind) -> bool:
    return any(isinstance(one, kind) for seed in range(1, 60) for one in simulate(crowded(seed)).violations)


def test_every_promise_is_kept_where_many_have_one_home():
    asked = one_by_one = 0
    for seed in range(1, 31):
        run = simulate(crowded(seed))
        assert not run.violations
        routers = [station.router for station in run.world.stations.values() if station.router]
        for durable in [router.durable for router in routers if router.durable]:
            asked += durable.parts.reading.asked
            one_by_one += durable.parts.reading.one_by_one
    assert one_by_one > 1.1 * asked, "hardly any were read for together"


FAULTS = {
    "the part of another one": (
        lambda read, page: [selected(read, page)[0]] * len(read.filters),
        LostNotification,
    ),
    "all of it": (lambda read, page: [page.envelopes] * len(read.filters), Outside),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_part_is_found(monkeypatch, fault):
    spoilt, kind = FAULTS[fault]
    monkeypatch.setattr(reading, "selected", spoilt)
    assert found(kind)


def test_passing_over_what_there_is_no_room_for_is_found(monkeypatch):
    monkeypatch.setattr(
        reading,
        "part_of",
        lambda page, after, target, found, room: part_of(page, after, target, found[: room // 2], 1 << 60),
    )
    assert found(LostNotification)


def test_a_part_begins_at_the_position_and_ends_with_the_room():
    events = tuple([Envelope("b", n, 0.0, 0, "b", number(n)) for n in range(1, 9)])
    page = Page("1", 0, 10, events, damaged=(2, 3, 9))
    whole = part_of(page, 0, 10, events, 100)
    assert whole == page
    middle = part_of(page, 2, 6, events, 100)
    assert (middle.after, middle.upto, middle.damaged) == (2, 6, (3,))
    assert [one.sequence for one in middle.envelopes] == [3, 4, 5, 6]
    assert part_of(page, 2, 10, events, 3).upto == 5
    assert part_of(page, 2, 10, events, 0) is None
    assert part_of(page, 10, 20, events, 5) is None
    assert part_of(page, 8, 10, events, 0).upto == 10
