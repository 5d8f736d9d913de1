"""A stand-in for the simulator: numbers that follow from the scenario by simple rules, at once."""

from __future__ import annotations

import random

from palio.sim.outcome import Outcome
from palio.sim.scenario import Scenario


def simulate(scenario: Scenario) -> Outcome:
    """Costs of about the right shape, with noise that the seed decides."""
    chance = random.Random(f"{scenario.seed} {scenario.brokers}")
    noise = chance.uniform(0.9, 1.1)
    hierarchical = scenario.topology == "hierarchical"
    reach = scenario.brokers**0.5 if hierarchical else scenario.brokers
    share = min(1.0, scenario.subscribers / 10 / scenario.interests)
    links = reach * min(scenario.subscriptions, scenario.interests * 5)
    if scenario.strategy == "flooding":
        links, share = 0, 1.0
    elif scenario.strategy != "simple":
        links *= 1 - 0.8 * scenario.covered
    forwards = scenario.notifications * (scenario.brokers * share + (10 if hierarchical else 0))
    return Outcome(
        brokers=scenario.brokers,
        links=scenario.brokers - 1,
        subscription_messages=round(links * noise),
        subscription_cost=links * noise,
        forwards=round(forwards * noise),
        forwards_cost=forwards * noise,
        published=scenario.notifications,
        subscribes=scenario.subscriptions + round(scenario.churn * scenario.subscriptions),
        unsubscribes=round(scenario.churn * scenario.subscriptions),
        table_rows_mean=links * noise / scenario.brokers,
        table_rows_max=round(links),
        matching_calls=round(forwards),
        wall_seconds=chance.random(),
    )


def never(scenario: Scenario) -> Outcome:
    """For those runs that must not be made."""
    raise AssertionError(f"a run that nobody asked for: {scenario}")
