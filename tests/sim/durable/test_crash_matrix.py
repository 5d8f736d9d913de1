"""A crash before and after every single effect of small scenes, and every two crashes of the smallest."""

import pytest

from palio.sim.faults.failures import replay_command, story
from palio.sim.faults.matrix import matrix
from palio.sim.faults.scenes import SCENES
from tests.slices import sliced

# How many crashes there are at least: fewer would mean that some are not tried any more.
FEWEST = {
    "one": 100,
    "two": 200,
    "three": 250,
    "ring": 250,
    "move": 350,
    "change": 200,
    "join": 350,
    "end": 100,
}
STRIDE = 4  # of the pairs, each one of so many tests takes its share


def explain(run) -> str:
    return "\n".join([f"{replay_command(run.scenario)} --story", *story(run, run.violations[0])])


@pytest.mark.parametrize("name", SCENES)
def test_a_crash_at_every_effect(name):
    count = 0
    for run in matrix(name):
        count += 1
        assert not run.violations, explain(run)
        assert any("crashes" in line.what for line in run.record.lines), "nothing crashed"
    assert count >= FEWEST[name]


@pytest.mark.parametrize("share", sliced(range(STRIDE), 1))
def test_two_crashes_at_every_pair_of_effects(share):
    count = 0
    for run in matrix("one", pairs=True, share=share, shares=STRIDE):
        count += 1
        assert not run.violations, explain(run)
    assert count > 1_000
