"""What an experiment can run: simulators of routing, of durable delivery, of trees that are rebuilt, of churn.

Each has a type of scenario, which decides a run, and a type of outcome, whose fields are flat and numeric. All
else here works with either.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec

from palio.sim.cost.run import run as run_cost
from palio.sim.cost.scenario import CostOutcome, CostScenario
from palio.sim.experiments.definition import Experiment
from palio.sim.outcome import Outcome
from palio.sim.overlay.churn import ChurnOutcome, ChurnScenario, run_churn
from palio.sim.reconfiguration.run import run_reconfiguration
from palio.sim.reconfiguration.scenario import TreeOutcome, TreeScenario
from palio.sim.run import run as run_routing
from palio.sim.scenario import Scenario

AnyScenario: TypeAlias = Scenario | CostScenario | TreeScenario | ChurnScenario
AnyOutcome: TypeAlias = Outcome | CostOutcome | TreeOutcome | ChurnOutcome
Simulate: TypeAlias = Callable[[Any], AnyOutcome]


class Simulator(msgspec.Struct, frozen=True):
    """A way to turn a scenario into an outcome."""

    scenario: type[AnyScenario]
    outcome: type[AnyOutcome]
    run: Simulate

    @property
    def name(self) -> str:
        """The tag of its scenarios."""
        return str(self.scenario.__struct_config__.tag)

    @property
    def scenario_fields(self) -> tuple[msgspec.structs.FieldInfo, ...]:
        return msgspec.structs.fields(self.scenario)

    def column(self, field: str) -> str:
        """What a field of an outcome is called in rows: not as one of the scenario."""
        return f"actual_{field}" if field in self.scenario.__struct_fields__ else field


ROUTING = Simulator(Scenario, Outcome, run_routing)
_SIMULATORS = {
    "routing": ROUTING,
    "cost": Simulator(CostScenario, CostOutcome, run_cost),
    "reconfiguration": Simulator(TreeScenario, TreeOutcome, run_reconfiguration),
    "churn": Simulator(ChurnScenario, ChurnOutcome, run_churn),
}
# Those whose outcome says what was wrong by a number alone.
MEASURING = tuple([_SIMULATORS[name] for name in ("cost", "reconfiguration", "churn")])


def simulator_of(experiment: Experiment) -> Simulator:
    """The one that makes the runs of an experiment."""
    return _SIMULATORS[experiment.simulator]


def simulator_for(scenario: AnyScenario) -> Simulator:
    """The one that a scenario is for."""
    return next(one for one in _SIMULATORS.values() if isinstance(scenario, one.scenario))


def simulate(scenario: AnyScenario) -> AnyOutcome:
    return simulator_for(scenario).run(scenario)
