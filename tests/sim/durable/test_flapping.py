"""Durable delivery gets on where links change faster than everyone can agree on an epoch."""

from random import Random

import pytest
from msgspec.structs import replace

from palio.routing.durable.home.reading import JournalReads
from palio.routing.router import Router
from palio.sim.faults import steps
from palio.sim.faults.oracle import judge
from palio.sim.faults.run import Stage, simulate
from palio.sim.faults.scenario import FaultScenario
from palio.sim.faults.soak import drawn, with_flapping_links
from palio.sim.faults.violations import LostNotification

BROKERS = 24
MOST_RUNS = 60
CALM = 5.0  # seconds in which the subscriptions become ready


def changing(length: float, seed: int = 1) -> FaultScenario:
    """Some link changes every half second, for so long, and everyone is asked in longer than that."""
    chance, script = Random(f"changing {seed}"), []
    for number, filter in enumerate(("n > 0", "kind = 1", "v > 2")):
        broker = f"b{chance.randrange(BROKERS)}"
        script.append(steps.Take(time=0.1, name=f"s{number}", broker=broker, filter=filter))
    for number in range(round(length)):
        noticed = chance.uniform(0.0, 0.05), chance.uniform(0.0, 0.05)
        link = chance.randrange(BROKERS - 1)
        script.append(steps.Cut(time=CALM + number, links=(link,), seconds=0.5, noticed=noticed))
    for number in range(1, round(2 * length) + 1):
        contents = (number, 1 + number % 3, number % 10)
        script.append(
            steps.Say(time=CALM + number / 2, publisher=f"p{number % 3}", contents=(contents,), number=number)
        )
    return FaultScenario(
        seed=seed,
        shape="tree",
        brokers=BROKERS,
        takers=3,
        publishers=3,
        page=50,
        outbox=200,
        independent=True,
        script=tuple(sorted(script, key=lambda step: step.time)),
    )


def lags(scenario: FaultScenario) -> list[float]:
    """How late events come, if the oracle has nothing else to say."""
    stage = Stage(scenario, make_router=Router)
    stage.world.calm, stage.world.most_events = True, 1 << 60
    stage.play()
    assert not judge(stage.world.record)
    return stage.world.record.lags()


@pytest.mark.parametrize("length", [60.0, pytest.param(600.0, marks=pytest.mark.slow)])
def test_what_is_behind_is_read_though_links_change_all_the_time(length):
    found = lags(changing(length))
    assert len(found) > 3 * length
    assert max(found) < 10.0  # simulated seconds: where nothing is read without an agreement, most of the run


def test_reading_past_what_a_page_has_is_found(monkeypatch):
    fetched = JournalReads.fetched

    def past(self, origin, page):
        read = self._reads.get(page.reader)
        if read is not None and page.problem is None:
            page = replace(page, upto=read.fetch.upto)
        fetched(self, origin, page)

    monkeypatch.setattr(JournalReads, "fetched", past)
    runs = (simulate(with_flapping_links(drawn(seed))) for seed in range(1, MOST_RUNS))
    assert any(isinstance(one, LostNotification) for run in runs for one in run.violations)


def test_links_flap_in_a_part_of_all_soaks():
    flapping = [scenario for scenario in map(drawn, range(200)) if scenario.flapping]
    assert 5 < len(flapping) < 60
