"""`run`: one scenario, from its network to its outcome."""

from __future__ import annotations

from palio.sim.outcome import Outcome
from palio.sim.scenario import Scenario


def run(scenario: Scenario) -> Outcome:
    """Simulate a scenario. The same scenario gives the same outcome, but for `wall_seconds`."""
    raise NotImplementedError
