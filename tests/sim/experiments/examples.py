"""A small experiment, and rows made up for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from palio.sim.experiments.definition import Experiment
from palio.sim.experiments.loading import parse
from palio.sim.experiments.results import Row

TEXT = """
title = "Two ways"
description = "A small experiment for tests."
seeds = 10

[base]
brokers = 8
notifications = 20

[quick]
seeds = 2
base = { brokers = 4 }

[labels]
subscribers = "interested parties"

[measures.cost_each]
formula = "subscription_cost / subscribers"
label = "cost per party"
unit = "messages"

[measures.twice]
formula = "2 * cost_each"

[[sweeps]]
name = "parties"
variants.up = { topology = "hierarchical" }
variants.across = { topology = "acyclic" }
over.publishers = [1, 2]
over.subscribers = [1, 10, 100]
follow.subscriptions = "2 * subscribers"
follow.interests = "publishers"
quick.subscribers = [1, 10]

[[plots]]
name = "cost"
title = "Cost by parties"
sweep = "parties"
along = "subscribers"
y = "cost_each"
panels = "publishers"
log_x = true
log_y = true

[[fits]]
name = "growth"
title = "Growth of cost"
sweep = "parties"
along = "subscribers"
y = "subscription_cost"
extrapolate = [10000]
proportional = ["subscriptions"]
where = { publishers = 1 }
paper = { up = "3 * subscriptions" }
reasoning = "Three messages a subscription."

[[claims]]
kind = "lower"
title = "Up is cheaper"
sweep = "parties"
measure = "subscription_cost"
variant = "up"
than = "across"
"""


def experiment(*changes: tuple[str, str], more: str = "") -> Experiment:
    text = TEXT
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return parse(text + more)


def rows(
    value: Callable[[str, dict[str, Any], int], float], *, seeds: int = 10, measure: str = "subscription_cost"
) -> list[Row]:
    """A row a run of the experiment above, with the measure as the function says."""
    return [
        {
            "sweep": "parties",
            "variant": variant,
            "seed": seed,
            "publishers": publishers,
            "subscribers": subscribers,
            "subscriptions": 2 * subscribers,
            measure: value(variant, {"publishers": publishers, "subscribers": subscribers}, seed),
        }
        for publishers in (1, 2)
        for subscribers in (1, 10, 100)
        for variant in ("up", "across")
        for seed in range(1, seeds + 1)
    ]
