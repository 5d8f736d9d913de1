"""`TreeScenario`: everything that decides a run in which a tree is rebuilt, and `TreeOutcome`: what it cost."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from palio.routing.reconfiguration.settings import Protocol
from palio.sim.scenario import AnyScenario, Shape, WrongScenario

TreeChange: TypeAlias = Literal["near", "far", "death"]


class TreeScenario(AnyScenario, frozen=True, kw_only=True, tag="reconfiguration"):
    """A tree, who wants what in it, and `changes` of it, one every `pause` seconds.

    With `near`, a broker loses the link to its parent and finds another one, `repair` seconds later, to a
    neighbour of that parent, as brokers do that find each other. With `far`, both ends of the new link can be
    anywhere. With `death`, a broker with several neighbours dies, and the others find each other. With the
    same seed, all protocols have the same tree, subscriptions, events and changes.
    """

    seed: int = 1
    shape: Shape = "tree"
    brokers: int = 50
    protocol: Protocol = "strawman"
    defer: float = 3.0
    density: float = 1.0  # subscriptions for each broker
    topics: int = 50  # of which each subscription wants one
    change: TreeChange = "near"
    changes: int = 10
    pause: float = 10.0
    repair: float = 1.0  # seconds, on average; from half of it to half as much again
    rate: float = 20.0  # events a second

    def __post_init__(self) -> None:
        self._demand_some("topics", "changes")
        self._demand_more_than_nothing("pause", "repair", "rate")
        self._demand(lambda value: value >= 0, "It cannot be less than nothing.", "density", "defer")
        if self.brokers < 3:
            raise WrongScenario("brokers", "With fewer than three there is no other link.")


class TreeOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What the changes of a tree cost. Set-up is not counted.

    A row is *needed* if it is in the tables of the tree after a change and not in those before, or the
    other way round; all others are *wasted*. *Off the path* are brokers that are on no reconfiguration path:
    from the ends of the lost link to those of the new one. An event is lost if somebody who is there wants it
    and never gets it.
    """

    violations: int = 0  # tables that are not right in the end, events that came twice or to the wrong ones
    changed: int = 0
    rows_added: int = 0
    rows_removed: int = 0
    rows: int = 0
    rows_needed: int = 0
    rows_wasted: int = 0
    rows_lost: int = 0  # on the links that were lost, in both directions
    rows_off_path: int = 0
    needed_off_path: int = 0
    messages: int = 0  # without events
    protocol_messages: int = 0  # those that only some of the protocols have
    published: int = 0
    expected: int = 0
    lost: int = 0
    doubled: int = 0
    forwarded: int = 0
    forwarded_in_vain: int = 0  # to a broker where it was of no use
    repair_mean: float = 0.0  # seconds from the loss until all needed rows are there
    repair_max: float = 0.0
    simulated_seconds: float = 0.0
    wall_seconds: float = 0.0
