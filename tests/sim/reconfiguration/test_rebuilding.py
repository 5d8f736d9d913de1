"""The simulator of trees that are rebuilt: what should be in the tables, what is counted, what is found."""

from __future__ import annotations

import re
from random import Random
from typing import get_args

import msgspec
import pytest

from palio.routing.reconfiguration.parking import Parking
from palio.routing.reconfiguration.protocols import Reconfiguration
from palio.routing.reconfiguration.settings import Protocol
from palio.sim.experiments.simulators import simulate
from palio.sim.reconfiguration.run import RebuiltTree, run_reconfiguration
from palio.sim.reconfiguration.scenario import TreeChange, TreeOutcome, TreeScenario
from palio.sim.reconfiguration.tables import ideal_rows, part_of, path_between
from palio.sim.scenario import WrongScenario
from tests.slices import sliced

SMALL = TreeScenario(brokers=10, topics=6, changes=4, pause=8.0, rate=5.0)


def small(**more) -> TreeScenario:
    return msgspec.structs.replace(SMALL, **more)


@pytest.mark.parametrize("seed", range(8))
def test_a_broker_tells_of_what_is_wanted_on_its_side(seed):
    chance = Random(seed)
    names = [f"b{number}" for number in range(chance.randint(2, 9))]
    links = [(names[chance.randrange(place)], one) for place, one in enumerate(names) if place]
    links = chance.sample(links, chance.randint(1, len(links)))  # perhaps in several parts
    wanted = {name: frozenset(chance.sample(range(5), chance.randint(0, 2))) for name in names}
    expected = set()
    for one, other in [*links, *[link[::-1] for link in links]]:
        left = [link for link in links if set(link) != {one, other}]
        expected |= {(one, other, topic) for name in part_of(left, one) for topic in wanted[name]}
    assert ideal_rows(links, wanted) == expected


def test_a_path_has_its_ends():
    links = [("a", "b"), ("b", "c"), ("b", "d"), ("d", "e")]
    assert path_between(links, "e", "a") == ["e", "d", "b", "a"]
    assert path_between(links, "a", "a") == ["a"]


@pytest.mark.parametrize("change", get_args(TreeChange))
@pytest.mark.parametrize("protocol", get_args(Protocol))
def test_a_tree_is_right_after_all_of_its_changes(protocol, change):
    run = RebuiltTree(small(protocol=protocol, change=change))
    assert run.wrong() == []
    outcome = run.outcome()
    assert outcome.violations == outcome.doubled == 0
    assert outcome.changed > 0
    assert outcome.rows == outcome.rows_needed + outcome.rows_wasted
    assert outcome.rows_wasted >= 0


def test_all_protocols_meet_the_same():
    same = ("changed", "published", "expected", "rows_needed", "rows_lost", "needed_off_path")
    outcomes = [run_reconfiguration(small(protocol=protocol)) for protocol in get_args(Protocol)]
    assert len({tuple(getattr(one, field) for field in same) for one in outcomes}) == 1
    assert outcomes[0].rows > outcomes[-1].rows


def test_the_same_scenario_gives_the_same_outcome():
    first, second = [simulate(small(protocol="informed", change="far")) for _ in range(2)]
    assert isinstance(first, TreeOutcome)
    assert msgspec.structs.replace(first, wall_seconds=0.0) == msgspec.structs.replace(second, wall_seconds=0.0)


@pytest.mark.parametrize("change", get_args(TreeChange))
@pytest.mark.parametrize("seed", sliced(range(1, 11), 1))
def test_informed_brokers_say_at_most_half_of_what_strawman_says(seed, change):
    informed, strawman = [
        run_reconfiguration(TreeScenario(seed=seed, change=change, protocol=protocol, rate=0.1)).rows
        for protocol in ("informed", "strawman")
    ]
    assert informed <= strawman / 2


@pytest.mark.slow
@pytest.mark.parametrize("change", get_args(TreeChange))
def test_rows_are_as_many_as_the_page_says(change, root):
    page = (root / "docs" / "reconfiguration.md").read_text()
    shown = re.search(rf"^\| rows said, {change} \| (.+) \|$", page, re.MULTILINE)[1].split(" | ")
    for protocol, cell in zip(get_args(Protocol), shown, strict=False):
        scenarios = [TreeScenario(seed=seed, change=change, protocol=protocol) for seed in range(1, 11)]
        rows = [run_reconfiguration(scenario).rows for scenario in scenarios]
        assert f"{sum(rows) / len(rows):,.0f}" == cell


def test_only_brokers_on_the_path_need_other_tables():
    for seed in range(3):
        assert run_reconfiguration(small(seed=seed, change="far")).needed_off_path == 0


@pytest.mark.parametrize("fields", [{"brokers": 2}, {"pause": 0.0}, {"changes": 0}, {"density": -1.0}])
def test_what_is_no_tree_is_refused(fields):
    with pytest.raises(WrongScenario):
        TreeScenario(**fields)


def test_rows_that_are_parked_for_ever_are_found(monkeypatch):
    monkeypatch.setattr(Reconfiguration, "on_timer", lambda self, name: None)
    assert any("parked rows" in one for one in RebuiltTree(small(protocol="deferred", change="far")).wrong())


def test_rows_that_are_never_dropped_are_found(monkeypatch):
    monkeypatch.setattr(Parking, "_dropping", lambda self, link, port: iter(()))
    assert "The tables are not those of the tree." in RebuiltTree(small(change="far")).wrong()
