"""Verdicts follow from the data, both ways."""

import random

import pytest

from palio.sim.experiments.claims import evaluate
from palio.sim.experiments.fits import evaluate_fits
from tests.sim.experiments.examples import experiment, rows

FALLS = """
[[claims]]
kind = "falls"
title = "It falls"
sweep = "parties"
measure = "subscription_cost"
along = "subscribers"
"""
SIMILAR = """
[[claims]]
kind = "similar"
title = "They are alike"
sweep = "parties"
measure = "subscription_cost"
variant = "up"
to = "across"
within = 0.1
"""
CROSSOVER = """
[[claims]]
kind = "crossover"
title = "They cross"
sweep = "parties"
measure = "subscription_cost"
along = "subscribers"
variant = "up"
later = "across"
"""


def finding(value, *, more="", seeds=10):
    return evaluate(experiment(more=more), rows(value, seeds=seeds))[-1]


def noise(seed, size=1.0):
    return size * random.Random(seed).uniform(-1, 1)


def test_lower_is_supported_where_it_is_lower_everywhere():
    found = finding(lambda variant, at, seed: (5 if variant == "up" else 9) + noise(seed))
    assert found.verdict == "supported"
    assert "at 6 of 6 points, higher at none of 6 points" in found.sentence


def test_lower_is_not_supported_where_it_is_higher():
    found = finding(lambda variant, at, seed: (9 if variant == "up" else 5) + noise(seed))
    assert found.verdict == "not supported"
    assert "at none of 6 points, higher at 6 of 6 points" in found.sentence
    assert len(found.details) == 6


def test_lower_is_not_supported_where_nothing_differs():
    assert finding(lambda variant, at, seed: 5.0).verdict == "not supported"
    unpaired = finding(lambda variant, at, seed: noise(f"{variant}{at}{seed}"))
    assert unpaired.verdict == "not supported"


def test_lower_is_partly_supported_where_it_depends():
    found = finding(
        lambda variant, at, seed: (5 if variant == "up" else 9 if at["subscribers"] < 100 else 1) + noise(seed)
    )
    assert found.verdict == "partly supported"
    assert "at 4 of 6 points, higher at 2 of 6" in found.sentence
    assert all("interested parties 100" in detail for detail in found.details)


def test_one_seed_decides_nothing():
    found = finding(lambda variant, at, seed: 5 if variant == "up" else 9, seeds=1)
    assert found.verdict == "undecided"


def test_falling():
    found = finding(lambda variant, at, seed: 100 / at["subscribers"] + noise(seed, 0.1), more=FALLS)
    assert found.verdict == "supported"
    assert "2 steps 2 clearly down, 0 clearly up" in found.details[0]


def test_rising_is_not_falling():
    found = finding(lambda variant, at, seed: at["subscribers"] + noise(seed, 0.1), more=FALLS)
    assert found.verdict == "not supported"
    assert "rises from start to end at 4 of 4 lines" in found.sentence


def test_a_hill_on_the_way_is_not_falling():
    heights = {1: 100, 10: 200, 100: 50}
    found = finding(lambda variant, at, seed: heights[at["subscribers"]] + noise(seed), more=FALLS)
    assert found.verdict == "not supported"


def test_similar():
    alike = finding(lambda variant, at, seed: (100 if variant == "up" else 104) + noise(seed), more=SIMILAR)
    assert alike.verdict == "supported"
    apart = finding(lambda variant, at, seed: (100 if variant == "up" else 140) + noise(seed), more=SIMILAR)
    assert apart.verdict == "not supported"
    assert "the ratio is 0.7" in apart.sentence
    unsure = finding(lambda variant, at, seed: 100 + noise(f"{variant}{seed}", 90), more=SIMILAR)
    assert unsure.verdict == "not supported"


AT_MOST = """
[[claims]]
kind = "at most"
title = "Not much more"
sweep = "parties"
measure = "subscription_cost"
variant = "up"
of = "across"
factor = 1.05
"""


@pytest.mark.parametrize(("level", "verdict"), [(104, "supported"), (50, "supported"), (106, "not supported")])
def test_at_most(level, verdict):
    found = finding(
        lambda variant, at, seed: (level if variant == "up" else 100) + noise(seed, 0.1), more=AT_MOST
    )
    assert found.verdict == verdict
    assert "at most 1.05 times that with across" in found.sentence


def test_crossing():
    found = finding(
        lambda variant, at, seed: (at["subscribers"] if variant == "up" else 30) + noise(seed), more=CROSSOVER
    )
    assert found.verdict == "supported"
    assert "up clearly lower from 1 to 10; across clearly lower from 100 to 100" in found.details[0]
    crossing = float(found.details[0].split("cross at ")[1].split()[0])
    assert 15 < crossing < 30


@pytest.mark.parametrize("level", [0.5, 1000])
def test_no_crossing(level):
    found = finding(lambda variant, at, seed: at["subscribers"] if variant == "up" else level, more=CROSSOVER)
    assert found.verdict == "not supported"
    assert "no crossing at 2 of 2 lines" in found.sentence


def test_crossing_the_other_way_is_not_what_was_claimed():
    found = finding(lambda variant, at, seed: 30 if variant == "up" else at["subscribers"], more=CROSSOVER)
    assert found.verdict == "not supported"


def test_growth_is_fitted_and_carried_on():
    up, across = evaluate_fits(
        experiment(),
        rows(lambda variant, at, seed: 6.0 * at["subscribers"] if variant == "up" else at["subscribers"] ** 2),
    )
    assert up.law is not None
    assert up.law.exponent == pytest.approx(1.0)
    assert up.law(10_000) == pytest.approx(60_000)
    assert up.paper(10_000) == pytest.approx(60_000)
    assert up.paper_error == pytest.approx(1.0)
    assert across.law is not None
    assert across.law.exponent == pytest.approx(2.0)
    assert across.on_paper == ()
