"""What is to go wrong and when, drawn from a seed before anything runs: the same seed, the same plan.

Brokers are named in the plan, but for those that only the overlay of the moment knows (the root, an inner
broker, a link): there a number is drawn by which one is chosen of those that there are. Everything else is the
same in every run of a seed; what the machine makes of it is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Literal, TypeAlias, get_args

import msgspec

FaultKind: TypeAlias = Literal["kill", "cut", "split", "stop", "restart"]
FAULT_KINDS: tuple[FaultKind, ...] = get_args(FaultKind)
# Whom a kill hits: brokers that are named; or, of the overlay as it is then, an inner broker, or the root.
Target: TypeAlias = Literal["named", "inner", "root"]

# How long it is calm before the first fault and after the last one, in the unit of time of a plan: a second, as
# a rule.
CALM = 3.0
# How many are killed at the same moment, now and then.
_SEVERAL = 3
_KILLS: tuple[tuple[Target, int], ...] = (("inner", 1), ("root", 1), ("named", _SEVERAL), ("named", 1))
# Brokers that are restarted one after the other; all of them where nothing else is asked for.
_RESTARTED = 3
# How long one takes that is restarted, about, and the pause after it.
_RESTART_TAKES = 3.0


class PlannedFault(msgspec.Struct, frozen=True):
    """One thing that goes wrong, `at` seconds after the load began, and is put right after so many more."""

    number: int
    kind: FaultKind
    at: float
    lasts: float
    brokers: tuple[str, ...] = ()
    target: Target = "named"
    choice: int = 0  # which one, where the overlay is asked who there is


def draw_plan(
    seed: int,
    brokers: Sequence[str],
    seconds: float,
    kinds: Sequence[FaultKind],
    *,
    heartbeat: float,
    every: float,
    pace: float,
) -> list[PlannedFault]:
    """Faults for so many seconds, in their order. Kinds take turns, each round in another order.

    Between two of them are `every` seconds on average, beside what they take; `pace` is the unit of all else.
    """
    chance = Random(f"chaos {seed}")
    found: list[PlannedFault] = []
    round: list[FaultKind] = []
    kills: list[tuple[Target, int]] = []
    at = CALM * pace
    while at < seconds:
        if not round:
            round = chance.sample(sorted(set(kinds)), len(set(kinds)))
        kind = round.pop()
        lasts = _lasts(kind, heartbeat, pace, chance)
        target: Target = "named"
        some = _brokers(kind, brokers, alone=len(set(kinds)) == 1, chance=chance)
        if kind == "kill":
            if not kills:
                kills = chance.sample(_KILLS, len(_KILLS))
            target, count = kills.pop()
            some = (
                tuple(chance.sample(list(brokers), min(count, len(brokers) - 1))) if target == "named" else ()
            )
        found.append(PlannedFault(len(found) + 1, kind, at, lasts, some, target, chance.randrange(1_000)))
        # Most are over before the next one begins; some are not.
        at += lasts * chance.choice((0.5, 1.0, 1.0, 1.0)) + chance.uniform(0.5, 1.5) * every
        if kind == "restart":
            at += _RESTART_TAKES * len(some) * pace
    return found


def _lasts(kind: FaultKind, heartbeat: float, pace: float, chance: Random) -> float:
    """Seconds. Half of those that silence tells of are too short to be noticed, half long enough."""
    match kind:
        case "stop" | "split":
            return heartbeat * (chance.uniform(0.3, 1.5) if chance.random() < 0.5 else chance.uniform(4.0, 7.0))
        case "restart":
            return 0.0
        case _:
            return pace * chance.uniform(2.0, 6.0)


def _brokers(kind: FaultKind, brokers: Sequence[str], *, alone: bool, chance: Random) -> tuple[str, ...]:
    match kind:
        case "stop":
            return (chance.choice(brokers),)
        case "split":
            return tuple(sorted(chance.sample(list(brokers), chance.randint(1, len(brokers) // 2))))
        case "restart":
            count = len(brokers) if alone else min(_RESTARTED, len(brokers))
            return tuple(chance.sample(list(brokers), count))
        case _:
            return ()
