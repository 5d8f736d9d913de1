"""Many simulated runs, one after the other: until one goes wrong, or all of them with a list of those that did.

A soak goes through a range of seeds in their order, so that what is done is always the beginning of the
range: one that is stopped says where to go on, and a million seeds can be run in slices.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec
import typer
from rich.text import Text

from palio.cli.output.progress import progress_bar
from palio.cli.program.terminal import ExitCode, error_console, output_console, plural, write_json
from palio.sim.failures import replay_command
from palio.sim.soak import Soaked

MOST_FAILING = 1_000  # seeds that are listed at the end; each is told when it is met, also those beyond


One = TypeVar("One", bound=Soaked[Any])


class Failing(msgspec.Struct, frozen=True):
    seed: int
    violations: tuple[str, ...]
    replay: str


class SoakTally(msgspec.Struct):
    """What a range of seeds has come to."""

    first: int
    seeds: int
    scenarios: int = 0
    messages: int = 0
    deliveries: int = 0
    violations: int = 0
    failed: int = 0
    stopped: bool = False
    failing: list[Failing] = msgspec.field(default_factory=list)
    reach: list[Any] | msgspec.UnsetType = msgspec.UNSET  # where it was measured

    @property
    def next(self) -> int:
        """The seed with which to go on."""
        return self.first + self.scenarios

    def add(self, one: Soaked[Any]) -> None:
        self.scenarios += 1
        self.messages += one.messages
        self.deliveries += one.deliveries
        if one.violations:
            self.violations += len(one.violations)
            self.failed += 1
            if len(self.failing) < MOST_FAILING:
                self.failing.append(Failing(one.seed, one.violations, replay_command(one.scenario)))

    def sentence(self, praise: str) -> str:
        """All of it in one line, to be written down."""
        counts = f"{plural(self.scenarios, 'scenario')}, {plural(self.messages, 'message')}"
        counts += f", {self.deliveries:,} deliveries, seeds {self.first} to {self.next - 1}"
        if not self.failed:
            return f"{counts}: {praise}."
        listed = ", ".join(str(one.seed) for one in self.failing)
        more = f" and {self.failed - len(self.failing):,} more" if self.failed > len(self.failing) else ""
        wrong = f"{plural(self.violations, 'violation')} in {plural(self.failed, 'seed')}"
        return f"{counts}: {wrong}: {listed}{more}."


class Manner(msgspec.Struct, frozen=True, kw_only=True):
    """How to soak: `flags` are those of the command line with which to go on."""

    praise: str
    keep_going: bool = False
    as_json: bool = False
    flags: str = ""


def soak_through(
    results: Iterable[One], first: int, seeds: int, manner: Manner
) -> tuple[SoakTally, One | None]:
    """Go through the results. Returns what they came to, and the one that ended it, if one did."""
    tally = SoakTally(first, seeds)
    console = output_console()
    try:
        with progress_bar(error_console(), "simulating", seeds) as advance:
            for one in results:
                tally.add(one)
                if one.violations and not manner.keep_going:
                    return tally, one
                if one.violations and not manner.as_json:
                    console.print(Text(f"Seed {one.seed}: {one.violations[0]}", style="red"), soft_wrap=True)
                    console.print(Text(replay_command(one.scenario)), soft_wrap=True)
                advance(tally.scenarios)
    except KeyboardInterrupt:
        tally.stopped = True
    return tally, None


def conclude(tally: SoakTally, manner: Manner) -> None:
    """Say what it came to, and end with the exit code of that. One that ended it has been told already."""
    if manner.as_json:
        write_json(msgspec.to_builtins(tally))
    elif manner.keep_going or not tally.failed:
        output_console().print(Text(tally.sentence(manner.praise)), soft_wrap=True)
    if tally.stopped:
        rest = f"--first {tally.next} --seeds {tally.first + tally.seeds - tally.next}"
        error_console().print(f"Stopped. The rest of it: palio sim soak{manner.flags} {rest}", soft_wrap=True)
    if tally.failed or tally.stopped:
        raise typer.Exit(ExitCode.NO if tally.failed else ExitCode.INTERRUPTED)
