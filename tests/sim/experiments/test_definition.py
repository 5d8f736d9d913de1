"""An experiment is checked when it is read; what is wrong is said with its path."""

import pytest

from palio.sim.experiments.errors import InvalidExperiment, UnknownExperiment
from palio.sim.experiments.loading import load, parse, ready_experiments
from palio.sim.experiments.sweep import expand
from tests.sim.experiments.examples import TEXT, experiment


@pytest.mark.parametrize(
    ("old", "new", "path", "reason"),
    [
        ("seeds = 10", "seeds = 9", "$.seeds", "at least 10 seeds"),
        ("seeds = 10", 'seeds = "ten"', "$.seeds", "Expected `int`"),
        ("title = \"Two ways\"", "", "", "missing required field `title`"),
        ("[base]", "colour = 1\n[base]", "", "unknown field `colour`"),
        ("[base]\nbrokers", "[base]\nborkers", "$.base.borkers", "did you mean 'brokers'?"),
        ("[base]\n", "[base]\nseed = 3\n", "$.base.seed", "counted by themselves"),
        ("base = { brokers = 4 }", "base = { sort = 4 }", "$.quick.base.sort", "no field of a scenario"),
        ("brokers = 8", 'brokers = "many"', "$.sweeps[0]", "Expected `int`"),
        ('"hierarchical"', '"pyramid"', "$.sweeps[0]", "pyramid"),
        ('{ topology = "acyclic" }', "{ publishers = 3 }", "$.sweeps[0].variants.across.publishers", "swept"),
        ("over.publishers = [1, 2]", "over.publishers = []", "$.sweeps[0].over.publishers", "needs values"),
        ("over.publishers = [1, 2]", "over.publishers = [1, 1]", "$.sweeps[0].over.publishers", "once"),
        ("quick.subscribers", "quick.brokers", "$.sweeps[0].quick.brokers", "no swept field"),
        ('"2 * subscribers"', '"2 * shape"', "$.sweeps[0].follow.subscriptions", "no known number"),
        ('"2 * subscribers"', '"import os"', "$.sweeps[0].follow.subscriptions", "no arithmetic"),
        ("follow.subscriptions", "follow.publishers", "$.sweeps[0].follow.publishers", "swept"),
        ("subscription_cost / s", "subscription_cots / s", "$.measures.cost_each.formula", "did you mean"),
        ("measures.twice", "measures.brokers", "$.measures.brokers", "has that name already"),
        ('y = "cost_each"', 'y = "cost_eahc"', "$.plots[0].y", "did you mean 'cost_each'?"),
        ('panels = "publishers"', 'panels = "brokers"', "$.plots[0].panels", "no swept field"),
        ("log_y = true", "logy = true", "$.plots[0]", "unknown field `logy`"),
        ("{ publishers = 1 }", "{ brokers = 1 }", "$.fits[0].where.brokers", "no swept field"),
        ("paper = { up", "paper = { down", "$.fits[0].paper.down", "no variant"),
        ('than = "across"', 'than = "accross"', "$.claims[0].than", "did you mean 'across'?"),
        ('kind = "lower"', 'kind = "true"', "$.claims[0].kind", "Invalid value 'true'"),
        ("[base]", 'simulator = "weather"\n[base]', "$.simulator", "weather"),
        ("[base]", 'simulator = "cost"\n[base]', "$.base.notifications", "no field of a scenario"),
        ('sweep = "parties"\nmeasure', 'sweep = "people"\nmeasure', "$.claims[0].sweep", "no sweep"),
    ],
)  # fmt: skip
def test_mistakes_are_found_at_their_place(old, new, path, reason):
    with pytest.raises(InvalidExperiment) as caught:
        experiment((old, new))
    assert caught.value.path.removeprefix("$") == path.removeprefix("$")
    assert reason in str(caught.value)


def test_broken_toml_is_a_sentence():
    with pytest.raises(InvalidExperiment, match="It is no TOML"):
        parse("title = ")


def test_a_sweep_is_every_combination_with_every_seed():
    runs = expand(experiment())
    assert len(runs) == 2 * 3 * 2 * 10
    assert len({run.key for run in runs}) == len(runs)
    first = runs[0]
    assert (first.sweep, first.variant, first.scenario.topology) == ("parties", "up", "hierarchical")
    assert [run.scenario.seed for run in runs[:10]] == list(range(1, 11))
    for run in runs:
        assert run.scenario.brokers == 8
        assert run.scenario.subscriptions == 2 * run.scenario.subscribers
        assert run.scenario.interests == run.scenario.publishers
    assert runs == expand(experiment())


def test_a_finding_can_be_confirmed_with_seeds_that_nobody_has_seen():
    runs, others = expand(experiment()), expand(experiment(), first_seed=1001)
    assert [run.scenario.seed for run in others[:10]] == list(range(1001, 1011))
    assert not {run.key for run in runs} & {run.key for run in others}
    assert len(others) == len(runs)


def test_quick_is_smaller():
    runs = expand(experiment(), quick=True)
    assert len(runs) == 2 * 2 * 2 * 2
    assert {run.scenario.brokers for run in runs} == {4}
    assert {run.scenario.subscribers for run in runs} == {1, 10}


def test_both_variants_of_a_point_have_the_same_seeds():
    runs = expand(experiment())
    up = [run.scenario for run in runs if run.variant == "up"]
    across = [run.scenario for run in runs if run.variant == "across"]
    assert [(one.seed, one.subscribers) for one in up] == [(one.seed, one.subscribers) for one in across]


def test_the_ready_experiments_can_be_run():
    assert ready_experiments() == ["churn", "durable", "growth", "reconfiguration", "siena", "strategies"]
    for name in ready_experiments():
        ready = load(name)
        assert ready.name == name
        assert ready.claims
        assert len(expand(ready, quick=True)) < len(expand(ready)) / 4


def test_an_experiment_is_a_file_or_a_name(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(TEXT)
    assert load(str(path)).name == "mine"
    with pytest.raises(
        UnknownExperiment, match="ready are: churn, durable, growth, reconfiguration, siena, strategies"
    ):
        load("nothing")
    path.write_bytes(b"\xff")
    with pytest.raises(InvalidExperiment, match="no UTF-8"):
        load(str(path))
