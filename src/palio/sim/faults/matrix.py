"""The crash matrix: a scene is played once for each single effect, and a broker crashes before it or after it.

After an effect that is not the last one of its message is before the next one; so "after" is tried for the
last ones only. Of what was being written at that moment, nothing survives, or everything.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from palio.routing.router import Router
from palio.sim.faults.run import FaultRun, Stage, simulate
from palio.sim.faults.scenario import FaultScenario
from palio.sim.faults.scenes import scene
from palio.sim.faults.station import CrashPlan
from palio.sim.faults.world import RouterMaker

_SHARES = (0.0, 1.0)


def crash_points(scenario: FaultScenario, *, make_router: RouterMaker = Router) -> list[CrashPlan]:
    """Every place at which a broker can crash in a scene; with a crash in it, every place after that one."""
    stage = Stage(scenario, make_router=make_router)
    stage.play()
    found: list[CrashPlan] = []
    for name, station in stage.world.stations.items():
        first, last = 0, station.carried - stage.begun[name]
        if scenario.crash_at and scenario.crash_at[-1].broker == name:
            first = scenario.crash_at[-1].at + 1
        ends = {end - stage.begun[name] - 1 for end in station.ends}
        for at in range(first, last):
            for share in _SHARES:
                found.append(CrashPlan(name, at, False, share))
                if at in ends:
                    found.append(CrashPlan(name, at, True, share))
    return found


def matrix(
    name: str, *, pairs: bool = False, share: int = 0, shares: int = 1, make_router: RouterMaker = Router
) -> Iterator[FaultRun]:
    """A run for each place at which a broker can crash in a scene; with `pairs`, for any two of them.

    The work can be divided: each of so many `shares` has the first crash at other places.
    """
    scenario = scene(name)
    for point in crash_points(scenario, make_router=make_router)[share::shares]:
        once = msgspec.structs.replace(scenario, crash_at=(point,))
        if not pairs:
            yield simulate(once, make_router=make_router)
            continue
        for other in crash_points(once, make_router=make_router):
            twice = msgspec.structs.replace(scenario, crash_at=(point, other))
            yield simulate(twice, make_router=make_router)
