"""The table of costs of `docs/overlay.md`: what a change takes, in messages and attempts, at most."""

from __future__ import annotations

import re

import pytest

from tests.sim.overlay.costs import CHANGES, measure, measure_events

BROKERS = (20, 100, 1_000)
SEEDS = range(1, 5)


@pytest.fixture(scope="module")
def table(root) -> dict[tuple[str, int], tuple[int, int]]:
    """By change and number of brokers: the most messages and attempts, as the page says."""
    page = (root / "docs" / "overlay.md").read_text()
    found = {}
    for change in CHANGES:
        cells = re.search(rf"^\| {change} \| (.+) \|$", page, re.MULTILINE)[1].split(" | ")
        for brokers, cell in zip(BROKERS, cells, strict=True):
            found[change, brokers] = tuple(int(one.replace(",", "")) for one in cell.split(" / "))
    return found


def cases(changes=CHANGES):
    for brokers in BROKERS:
        for change in changes:
            for seed in SEEDS:
                quick = seed == 1 and brokers == 20
                yield pytest.param(change, brokers, seed, marks=() if quick else pytest.mark.slow)


@pytest.mark.parametrize(("change", "brokers", "seed"), list(cases()))
def test_a_change_costs_no_more_than_the_page_says(change, brokers, seed, table):
    cost = measure(change, brokers, seed)
    messages, dialled = table[change, brokers]
    assert cost.messages <= messages
    assert cost.dialled <= dialled


MESH_CHANGES = {
    "a join": "a join",
    "a leave": "a leave",
    "an inner broker dies": "a broker dies",
    "a partition heals": "a partition heals",
}


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("change", MESH_CHANGES)
def test_a_change_of_a_mesh_costs_no_more_than_the_page_says(change, seed, root):
    page = (root / "docs" / "overlay.md").read_text()
    row = re.search(rf"^\| a mesh: {MESH_CHANGES[change]} \| (.+) \|$", page, re.MULTILINE)[1]
    for brokers, cell in zip((20, 100), row.split(" | "), strict=True):
        messages, dialled = [int(one.replace(",", "")) for one in cell.split(" / ")]
        cost = measure(change, brokers, seed, "mesh")
        assert cost.messages <= messages
        assert cost.dialled <= dialled


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_events_in_a_mesh_come_once(seed):
    cost = measure_events("an inner broker dies", 20, seed, "mesh")
    assert cost.redundant_at_rest == cost.missed_at_rest == 0
    assert cost.redundant_in_repair < 0.2


@pytest.mark.parametrize(("change", "brokers", "seed"), list(cases(("an inner broker dies", "the root dies"))))
def test_events_come_once_and_those_whose_way_is_not_broken_miss_none(change, brokers, seed):
    cost = measure_events(change, brokers, seed)
    assert cost.redundant_at_rest == 0
    assert cost.redundant_in_repair < 0.2
    assert cost.missed_at_rest == cost.missed_in_repair == 0
