"""Delivery while brokers come and go: what is counted is what happened."""

from __future__ import annotations

import msgspec
import pytest

from palio.routing.overlay.look import Look
from palio.sim.experiments.loading import load
from palio.sim.experiments.sweep import expand
from palio.sim.overlay.churn import ChurnScenario, run_churn
from palio.sim.scenario import WrongScenario

SMALL = ChurnScenario(brokers=8, degree=3, links=2, seconds=20.0, rate=10.0, deaths=0.0)
OVERLAYS = ("tree", "mesh", "fixed")
SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    "overlay", ["tree", pytest.param("mesh", marks=SLOW), pytest.param("fixed", marks=SLOW)]
)
def test_where_nobody_dies_everything_comes_once(overlay):
    found = run_churn(msgspec.structs.replace(SMALL, overlay=overlay))
    assert found.due > 100
    assert (found.missed, found.redundant, found.violations, found.died) == (0, 0, 0, 0)
    assert found.together == 1.0
    assert found.overlay_messages == found.dialled == 0


@SLOW
def test_the_same_happens_whatever_the_overlay_is():
    scenario = msgspec.structs.replace(SMALL, deaths=20.0)
    runs = [run_churn(msgspec.structs.replace(scenario, overlay=overlay)) for overlay in OVERLAYS]
    assert len({(one.died, one.published, one.due) for one in runs}) == 1
    assert runs[0].died > 2
    tree, mesh, fixed = runs
    assert tree.overlay_messages < mesh.overlay_messages
    assert fixed.together < min(tree.together, mesh.together)


@SLOW
def test_the_same_scenario_has_the_same_outcome():
    scenario = msgspec.structs.replace(SMALL, deaths=20.0, seconds=10.0)
    first, second = [msgspec.structs.replace(run_churn(scenario), wall_seconds=0.0) for _ in range(2)]
    assert first == second


@SLOW
def test_brokers_that_do_not_look_for_others_miss_more(monkeypatch):
    scenario = msgspec.structs.replace(SMALL, deaths=12.0)
    missed = run_churn(scenario).missed
    monkeypatch.setattr(Look, "go_on", lambda self: self.end() or False)
    alone = run_churn(scenario)
    assert alone.missed > missed
    assert alone.together < 0.5


def test_a_scenario_that_cannot_be_is_refused():
    with pytest.raises(WrongScenario, match="There are 3 topics"):
        ChurnScenario(topics=3, wanted=4)


def test_the_experiment_compares_the_same_scenarios():
    by_variant = {}
    for run in expand(load("churn")):
        plain = msgspec.structs.replace(run.scenario, overlay="tree")
        by_variant.setdefault(run.variant, []).append((run.sweep, plain))
    assert by_variant["tree"] == by_variant["mesh"] == by_variant["fixed links"]
