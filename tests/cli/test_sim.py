"""`palio sim`: replaying a scenario and soaking many."""

import json

import pytest

from palio.cli import sim
from palio.sim.run import simulate
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
    alone = command("sim", "soak", "--seeds", "20").stdout
    assert command("sim", "soak", "--seeds", "20", "--workers", "2").stdout == alone


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
