"""`palio sim`: replaying a scenario and soaking many."""

import json

import pytest

from palio.cli.sim import commands as sim
from palio.sim.run import simulate
from palio.sim.soak import in_order, soak
from tests.sim import faults


def test_replay_shows_costs_and_says_that_all_is_well(command):
    result = command("sim", "replay", '{"brokers":3,"churn":0.5}')
    assert result.exit_code == 0
    assert "deliveries expected" in result.stdout
    assert "Everything was delivered as it should be." in result.stdout


def test_replay_shows_every_message_on_request(command):
    plain = command("sim", "replay", '{"brokers":3}').stdout
    traced = command("sim", "replay", '{"brokers":3}', "--trace").stdout
    assert " < p0: publish " not in plain
    assert " < p0: publish " in traced


@pytest.mark.parametrize("text", ['{"brokers":0}', '{"colour":"red"}', '{"shape":"blob"}', "{", '{"churn":2}'])
def test_what_is_no_scenario_is_a_sentence(command, text):
    result = command("sim", "replay", text)
    assert result.exit_code == 3
    assert "scenario" in result.stderr
    assert len(result.stderr.splitlines()) <= 2


def test_soak_counts_what_went_well(command):
    result = command("sim", "soak", "--seeds", "12", "--first", "100")
    assert result.exit_code == 0
    assert result.stdout.startswith("12 scenarios, ")
    assert result.stdout.endswith("no violation.\n")


def test_soak_on_several_processes_finds_the_same(command):
    alone = command("sim", "soak", "--seeds", "10").stdout
    assert command("sim", "soak", "--seeds", "10", "--workers", "2").stdout == alone


def test_the_first_violation_is_told_and_ends_it(command, monkeypatch):
    def lossy(scenario, **settings):
        fault = faults.with_fault(lambda: faults.LosesForward(None))
        return simulate(scenario, make_router=fault, **settings)

    monkeypatch.setattr(sim, "simulate", lossy)
    monkeypatch.setattr("palio.sim.soak.simulate", lossy)
    result = command("sim", "soak", "--seeds", "200")
    assert result.exit_code == 1
    first, replay, _, _, shortened, sentence, *story = result.stdout.splitlines()
    assert first.startswith("Seed ")
    assert replay.startswith("palio sim replay '{")
    assert shortened.startswith("palio sim replay '{")
    assert len(shortened) < len(replay) + 40
    assert "did not get" in sentence
    assert 3 < len(story) < 20
    text = shortened.removeprefix("palio sim replay '").removesuffix("' --story")
    assert json.loads(text)
    again = command("sim", "replay", text, "--story")
    assert again.exit_code == 1
    assert sentence in again.stdout


# Long ranges


@pytest.fixture
def losing_some(monkeypatch):
    """Simulated networks of which those of some seeds lose what is forwarded."""

    def lossy(scenario, **settings):
        if scenario.seed % 10:
            return simulate(scenario, **settings)
        fault = faults.with_fault(lambda: faults.LosesForward(None))
        return simulate(scenario, make_router=fault, **settings)

    monkeypatch.setattr("palio.sim.soak.simulate", lossy)


def failing_seeds(first, count):
    return [one.seed for one in soak(first, count) if one.violations]


def test_going_on_behind_each_violation_lists_all_of_them(command, losing_some):
    expected = failing_seeds(1, 25)
    assert len(expected) > 1
    result = command("sim", "soak", "--seeds", "25", "--keep-going")
    assert result.exit_code == 1
    *told, sentence = result.stdout.splitlines()
    assert [int(line.split()[1].rstrip(":")) for line in told if line.startswith("Seed ")] == expected
    assert sum(line.startswith("palio sim replay '{") for line in told) == len(expected)
    assert sentence.startswith("25 scenarios, ")
    assert ", seeds 1 to 25: " in sentence
    assert sentence.endswith(f" in {len(expected)} seeds: {', '.join(map(str, expected))}.")


def test_what_it_came_to_is_one_json_object_and_slices_add_up(command, losing_some):
    def counts(first, seeds):
        text = command("sim", "soak", "--first", str(first), "--seeds", str(seeds), "--keep-going", "--json")
        return json.loads(text.stdout)

    whole, slices = counts(1, 22), [counts(1, 12), counts(13, 10)]
    for field in ("scenarios", "messages", "deliveries", "violations", "failed"):
        assert whole[field] == sum(one[field] for one in slices)
    assert all(one["failing"] for one in slices)
    assert whole["failing"] == [one for part in slices for one in part["failing"]]
    assert [one["seed"] for one in whole["failing"]] == failing_seeds(1, 22)


def test_who_stops_it_is_told_where_to_go_on(command, monkeypatch):
    def stopped(first, count, workers):
        yield from soak(first, 5)
        raise KeyboardInterrupt

    monkeypatch.setattr(sim, "soaked", stopped)
    result = command("sim", "soak", "--first", "7", "--seeds", "100")
    assert result.exit_code == 130
    assert result.stdout.startswith("5 scenarios, ")
    assert "seeds 7 to 11: " in result.stdout
    assert "palio sim soak --first 12 --seeds 95" in result.stderr


def test_a_long_range_is_handed_to_workers_piece_by_piece():
    """However many seeds there are, few of them wait: the range below would never end otherwise."""
    found = in_order(abs, range(10**12), workers=2)
    assert [next(found) for _ in range(100)] == list(range(100))
    found.close()
