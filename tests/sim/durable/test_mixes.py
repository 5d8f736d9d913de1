"""The mix of a run: knots are tied, nothing else changes by them, and what is rare becomes common."""

import json
from collections import Counter

import pytest

from palio.sim.faults.knots import KNOTS, WORDS
from palio.sim.faults.reach import HAPPENINGS, STATES, TRANSITIONS, FaultReach, Reckoning, counts
from palio.sim.faults.run import prepare, simulate
from palio.sim.faults.scenario import TROUBLE, FaultScenario
from palio.sim.faults.soak import drawn, drawn_evenly, drawn_mixed
from palio.sim.faults.steps import Crash, Cut, End, Leave, Say, Take
from palio.sim.scenario import WrongScenario

# Drawn and played before there were mixes: what such a scenario says, and the run that it is.
BEFORE = (
    '{"type":"faults","seed":20005300,"shape":"grid","topology":"graph","brokers":4,"strategy":"flooding",'
    '"takers":3,"publishers":1,"notifications":14,"length":3.0,"cuts":3,"lags":2,"outbox":100}'
)


def measured(scenarios):
    reckoning = Reckoning()
    for scenario in scenarios:
        reach = FaultReach()
        simulate(scenario, reach=reach)
        reckoning.add(counts(reach))
    return reckoning.rows()


def missing(rows):
    return [f"{row.what} | {row.state}" for row in rows if not row.times]


def test_a_scenario_without_a_mix_is_drawn_as_ever():
    scenario = FaultScenario.from_json(BEFORE)
    assert scenario.mix == ()
    assert scenario.to_json() == BEFORE
    _, script = prepare(scenario)
    times = [(type(step).__name__, round(step.time, 6)) for step in script]
    assert len(times) == 16
    assert times[:3] == [("Take", 0.013009), ("Say", 0.228442), ("Cut", 0.246122)]


@pytest.mark.parametrize("word", KNOTS)
def test_each_knot_adds_steps_and_leaves_the_others_as_they_are(word):
    added = 0
    for seed in range(1, 12):
        plain = FaultScenario(seed=seed, shape="ring", topology="graph", brokers=4, joins=1, ends=1, leaves=2)
        mixed = FaultScenario.from_json(plain.to_json()[:-1] + f',"mix":["{word}"]}}')
        without, with_knots = prepare(plain)[1], prepare(mixed)[1]

        def told(script):
            return Counter(str(step) + f" {step.time}" for step in script)

        assert not told(without) - told(with_knots)
        added += len(with_knots) - len(without)
    assert added > 10


def test_what_is_early_is_over_after_a_third():
    plain = FaultScenario(seed=5, brokers=4, crashes=3, cuts=4, leaves=3, notifications=20)
    mixed = FaultScenario.from_json(plain.to_json()[:-1] + ',"mix":["early"]}')
    _, script = prepare(mixed)
    assert all(step.time < plain.length * 0.5 for step in script if isinstance(step, Cut))
    assert max(step.time for step in script if isinstance(step, Say | Leave)) > plain.length / 2


def test_what_is_close_happens_around_one_moment():
    plain = FaultScenario(seed=7, brokers=5, crashes=6, cuts=6)
    mixed = FaultScenario.from_json(plain.to_json()[:-1] + ',"mix":["close"]}')
    times = sorted(step.time for step in prepare(mixed)[1] if isinstance(step, Cut))
    assert any(later - earlier <= 0.5 for earlier, later in zip(times, times[3:], strict=False))
    crashes = Counter(step.broker for step in prepare(mixed)[1] if isinstance(step, Crash))
    assert crashes.most_common(1)[0][1] * 2 > crashes.total()


def test_an_unknown_word_is_refused():
    with pytest.raises(WrongScenario, match="mix"):
        FaultScenario.from_json('{"type":"faults","mix":["hasty","nasty"]}')


def test_most_seeds_have_few_kinds_and_some_have_all():
    scenarios = [drawn(seed) for seed in range(1, 1_001)]
    kinds = [sum(1 for kind in TROUBLE if getattr(one, kind)) for one in scenarios]
    assert sum(count <= 3 for count in kinds) > 600
    assert sum(count == len(TROUBLE) for count in kinds) > 10
    assert {word for one in scenarios for word in one.mix} == set(WORDS)
    assert 300 < sum(one.batched for one in scenarios) < 700
    assert any(one == drawn_evenly(one.seed) for one in scenarios)


def test_a_mixed_scenario_is_read_back_from_its_text():
    for seed in range(1, 40):
        scenario = drawn_mixed(seed)
        assert FaultScenario.from_json(scenario.to_json()) == scenario
        assert json.loads(scenario.to_json()).get("mix", []) == list(scenario.mix)


# Reach


def test_measuring_changes_nothing():
    for seed in (3, 4, 5, 11):
        plain, watched = simulate(drawn_mixed(seed)), simulate(drawn_mixed(seed), reach=FaultReach())
        assert plain.record.lines == watched.record.lines
        assert plain.world.handled == watched.world.handled


def test_a_meeting_is_of_what_happens_and_of_the_state_in_which_it_does():
    steps = (
        Take(time=0.1, name="s0", broker="b0", filter="n > 0"),
        Crash(time=3.0, broker="b0", effects=1000, share=1.0, down=0.5, number=1),
        End(time=8.0, name="s0", number=2),
    )
    reach = FaultReach()
    simulate(FaultScenario(shape="single", brokers=1, takers=1, script=steps), reach=reach)
    assert reach.meetings == {("crash", "live"): 1, ("end", "live"): 1}
    assert reach.transitions["live", "down"] == 1
    assert reach.transitions["down", "behind"] == 1
    assert reach.transitions["live", "removing"] == 1
    assert reach.transitions["removing", "absent"] == 1


def test_all_that_can_be_reached_is_listed_the_rarest_first():
    rows = measured([drawn_mixed(1)])
    assert [row.runs for row in rows] == sorted(row.runs for row in rows)
    listed = {(row.what, row.state) for row in rows if row.kind == "meeting"}
    assert listed >= {(what, state) for what in HAPPENINGS for state in STATES}
    ways = {(one, other) for one, others in TRANSITIONS.items() for other in others}
    assert {(row.what, row.state) for row in rows if row.kind == "transition"} >= ways


def test_knots_reach_what_the_same_number_of_even_runs_does_not():
    seeds = range(1, 31)
    mixed, even = missing(measured(map(drawn_mixed, seeds))), missing(measured(map(drawn_evenly, seeds)))
    assert len(mixed) < 0.7 * len(even)


@pytest.mark.slow
def test_a_modest_number_of_seeds_reaches_everything():
    """Also by its rarest: 2,400 seeds, which is a minute."""
    assert missing(measured(map(drawn_mixed, range(1, 2_401)))) == []
