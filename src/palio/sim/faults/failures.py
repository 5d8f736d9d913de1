"""Failures: from a run with faults that goes wrong to a short story of it.

Shrinking leaves out steps of the script, in ever smaller pieces, for as long as a promise of the same kind is
still broken; nothing else of the run changes by that. Who does not join is there from the beginning, so a step
stays without which the brokers that are would be parts that never met: nothing is promised between these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from palio.sim.failures import abridged
from palio.sim.faults.run import FaultRun, simulate
from palio.sim.faults.scenario import FaultScenario
from palio.sim.faults.script import are_one_network
from palio.sim.faults.steps import Join, Say
from palio.sim.faults.violations import BrokenPromise

_MOST_RUNS = 400
_MOST_LINES = 120

Simulate = Callable[[FaultScenario], FaultRun]


def shrink(run: FaultRun, simulate: Simulate = simulate, *, most_runs: int = _MOST_RUNS) -> FaultRun:
    """A run with fewer steps that goes wrong in the same way."""
    kind = type(run.violations[0])
    best, kept = run, [step.number for step in run.script]
    size = max(len(kept) // 2, 1)
    while size and most_runs > 0:
        start, before = 0, len(kept)
        while start < len(kept) and most_runs > 0:
            rest = kept[:start] + kept[start + size :]
            if not _have_met(run, rest):
                start += size
                continue
            most_runs -= 1
            tried = simulate(msgspec.structs.replace(run.scenario, keep=tuple(rest)))
            if any(type(one) is kind for one in tried.violations):
                best, kept = tried, rest
            else:
                start += size
        # Single steps are tried until none of them can be left out any more.
        size = 1 if size == 1 and len(kept) < before else size // 2
    return best


def _have_met(run: FaultRun, kept: list[int]) -> bool:
    """Whether the brokers that are there from the beginning are one network."""
    absent = {step.broker for step in run.script if isinstance(step, Join) and step.number in kept}
    links = [{wire.one.name, wire.other.name} for wire in run.world.wires]
    return are_one_network(set(run.world.stations) - absent, links)


def story(run: FaultRun, violation: BrokenPromise) -> Iterator[str]:
    """What a run has to do with a violation, line by line."""
    yield str(violation)
    scenario = run.scenario
    advertisements = "with" if scenario.advertisements else "without"
    yield f"  {scenario.topology}, {scenario.strategy}, {advertisements} advertisements"
    for wire in run.world.wires:
        yield f"  link {wire.number}: {wire.one.name} - {wire.other.name} ({wire.link.kind.value})"
    for name, publisher in run.world.clients.publishers.items():
        if any(isinstance(step, Say) and step.publisher == name for step in run.script):
            yield f"  {name} publishes at {publisher.station.name}"
    numbers = {violation.number, *(getattr(violation, field, None) for field in ("after", "other"))} - {None}
    lines = [
        f"  {line.time:8.3f} {line.who:>4} {line.what}"
        for line in run.record.lines
        if _concerns(line.about, violation.session, numbers)
    ]
    yield from abridged(lines, _MOST_LINES)


def _concerns(about: tuple[object, ...], name: str, numbers: set[object]) -> bool:
    if "trace" in about:
        return False
    names = [one for one in about if isinstance(one, str)]
    others = [one for one in about if not isinstance(one, str)]
    if names and name and name not in names:
        return False
    return not others or not numbers or not numbers.isdisjoint(others)
