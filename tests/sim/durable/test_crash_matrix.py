"""A crash before and after every single effect of small scenes, and every two crashes of the smallest.

The places are dealt out like cards: a share has every so many-th of them, from the first to the last. One share
is played each time, all of them by `make slow`. The numbers of shares are odd, since places come in twos and
fours: nothing written or everything, before an effect or after it.
"""

import pytest

from palio.sim.failures import replay_command
from palio.sim.faults.failures import story
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
    "relay": 250,
    "join by a relay": 600,
}
SHARES = 7
SHARES_OF_PAIRS = 35


def explain(run) -> str:
    return "\n".join([f"{replay_command(run.scenario)} --story", *story(run, run.violations[0])])


@pytest.mark.parametrize("share", sliced(range(SHARES), 1))
@pytest.mark.parametrize("name", SCENES)
def test_a_crash_at_every_effect(name, share):
    count = 0
    for run in matrix(name, share=share, shares=SHARES):
        count += 1
        assert not run.violations, explain(run)
        assert any("crashes" in line.what for line in run.record.lines), "nothing crashed"
    assert count >= FEWEST[name] // SHARES


@pytest.mark.parametrize("share", sliced(range(SHARES_OF_PAIRS), 1))
def test_two_crashes_at_every_pair_of_effects(share):
    count = 0
    for run in matrix("one", pairs=True, share=share, shares=SHARES_OF_PAIRS):
        count += 1
        assert not run.violations, explain(run)
    assert count > 4_000 // SHARES_OF_PAIRS
