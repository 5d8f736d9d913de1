"""Failures: from a scenario that goes wrong to the shortest story that shows it.

Shrinking is greedy. First the scenario is made smaller, field by field: fewer brokers, clients, subscriptions
and notifications, no churn, and so on. As a smaller scenario is another draw of luck, a few seeds are tried
for each. Then steps are left out of its script, in ever smaller pieces, which leaves everything else as it
is. What counts is that a violation of the same kind is still there.

The effort is bounded by the number of simulated messages, not by a clock: the same failure always shrinks to
the same story.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator

import msgspec

from palio.protocol.peers import Forward, Interest, Update
from palio.protocol.requests import Publish
from palio.routing.effects import Deliver
from palio.routing.occurrences import LinkDown
from palio.sim.clients import is_optional
from palio.sim.run import SimulatedRun, prepare, simulate
from palio.sim.scenario import AnyScenario, Scenario
from palio.sim.trace import TraceEntry
from palio.sim.violations import Violation

_MOST_MESSAGES = 2_000_000  # some tens of seconds
_SEEDS = 3
_MOST_LINES = 60
# What a run can do without, in the order in which that is tried, and a scenario without any of it.
_LUXURIES = (
    "link_churn", "churn", "repeats", "both", "locality", "skew", "batch", "merging_excess", "advertisements",
)  # fmt: skip
_PLAIN = Scenario()

Simulate = Callable[[Scenario], SimulatedRun]


def replay_command(scenario: AnyScenario) -> str:
    """What to type to see a run again."""
    return f"palio sim replay {shlex.quote(scenario.to_json())}"


def shrink(
    run: SimulatedRun, simulate: Simulate = simulate, *, most_messages: int = _MOST_MESSAGES
) -> SimulatedRun:
    """A smaller run that goes wrong in the same way; the same one, if none is found. It is traced."""
    shrinking = _Shrinking(run, simulate, most_messages)
    shrinking.shrink_fields()
    shrinking.shrink_steps()
    return shrinking.best


class _Shrinking:
    def __init__(self, run: SimulatedRun, simulate: Simulate, most_messages: int) -> None:
        self.best = run
        self._kind = type(run.verdict.violations[0])
        self._simulate = simulate
        self._left = most_messages

    def shrink_fields(self) -> None:
        progress = True
        while progress:
            progress = sum(self._try_seeds(candidate) for candidate in self._smaller()) > 0

    def _smaller(self) -> Iterator[dict[str, object]]:
        """Changes that may make the best scenario so far smaller; each is read when it is tried."""
        for field in _LUXURIES:
            plain = getattr(_PLAIN, field)
            if getattr(self.best.scenario, field) != plain:
                yield {field: plain}
        for field in ("brokers", "notifications", "subscriptions", "subscribers", "publishers", "interests"):
            for share in (4, 2, 1):
                value = getattr(self.best.scenario, field)
                smaller = value // share if share > 1 else value - 1
                if 1 <= smaller < value:
                    yield {field: smaller}

    def _try_seeds(self, change: dict[str, object]) -> bool:
        seed = self.best.scenario.seed
        return any(self._try({**change, "seed": seed + offset}) for offset in range(_SEEDS))

    def _try(self, change: dict[str, object]) -> bool:
        if self._left <= 0:
            return False
        run = self._simulate(msgspec.structs.replace(self.best.scenario, **change))
        self._left -= run.network.handled
        if not any(isinstance(one, self._kind) for one in run.verdict.violations):
            return False
        self.best = run
        return True

    def shrink_steps(self) -> None:
        kept = optional_steps(self.best.scenario)
        size = len(kept)
        while size and self._left > 0:
            start = 0
            while start < len(kept):
                rest = kept[:start] + kept[start + size :]
                if self._try({"keep": tuple(rest)}):
                    kept = rest
                else:
                    start += size
            size //= 2


def optional_steps(scenario: Scenario) -> list[int]:
    """The numbers of the steps of a script that can be left out."""
    phases = prepare(scenario)[1].phases
    return [step.number for phase in phases for step in phase.steps if is_optional(step, phase.name)]


def story(run: SimulatedRun, violation: Violation) -> Iterator[str]:
    """What a traced run has to do with a violation, line by line."""
    yield str(violation)
    for link in run.network.layout.links:
        kind, other = link.kind.value, link.other_kind.value
        yield f"  link b{link.one} - b{link.other} ({kind if kind == other else f'{kind}, {other}'})"
    yield from abridged([f"  {entry}" for entry in _involved(run, violation)], _MOST_LINES)


def abridged(lines: list[str], most: int) -> list[str]:
    """The beginning and the end of a story that is too long."""
    half = most // 2
    if len(lines) > most:
        lines[half:-half] = [f"  … {len(lines) - 2 * half:,} lines are left out; --trace shows everything …"]
    return lines


def _involved(run: SimulatedRun, violation: Violation) -> Iterator[TraceEntry]:
    name = violation.notification
    publication = None if name is None else run.verdict.record.publications.get(name)
    ends = {getattr(violation, "broker", ""), getattr(violation, "neighbour", "")} - {""}
    rows: set[tuple[str, str, int]] = set()  # (broker, source, number) of rows that select the notification
    for entry in run.trace.entries:
        message = entry.message
        if isinstance(message, Forward | Deliver):
            wanted = any((one.origin, one.sequence) == name for one in message.envelopes)
        elif isinstance(message, Publish):
            wanted = publication is not None and entry.moment == publication.begin
        elif isinstance(message, Update | Interest):
            update = message if isinstance(message, Update) else message.update
            about = entry.source if isinstance(message, Update) else message.broker
            wanted = {entry.broker, about} >= ends if ends else False
            if publication is not None:
                for number, filter in update.add:
                    if filter.matches(publication.notification):
                        rows.add((entry.broker, about, number))
                        wanted = True
                wanted = wanted or any((entry.broker, about, number) in rows for number in update.remove)
        else:
            wanted = isinstance(message, LinkDown) or entry.source == violation.session
        if wanted:
            yield entry
