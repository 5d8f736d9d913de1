"""`palio sim` with faults: seeing a run again, and looking for one that breaks a promise."""

from __future__ import annotations

from collections.abc import Iterator

import typer
from rich.table import Column, Table
from rich.text import Text

from palio.cli.output.progress import progress_bar
from palio.cli.program.terminal import ExitCode, error_console, output_console, plural
from palio.cli.sim.soaking import Manner, conclude, soak_through
from palio.sim.failures import replay_command
from palio.sim.faults.failures import shrink, story
from palio.sim.faults.matrix import matrix
from palio.sim.faults.reach import Reached, Reckoning
from palio.sim.faults.run import FaultRun, simulate
from palio.sim.faults.scenario import FaultScenario
from palio.sim.faults.scenes import SCENES, SMALLEST
from palio.sim.faults.soak import FaultSoaked, soak
from palio.sim.faults.violations import BrokenPromise


def is_of_type(text: str, kind: str) -> bool:
    """Whether a scenario is of another kind than that of routing: it says so."""
    return f'"type":"{kind}"' in text.replace(" ", "")


def replay_faults(text: str, *, trace: bool, tell: bool) -> None:
    """Simulate one scenario with faults and show which promises were broken."""
    run = simulate(FaultScenario.from_json(text), trace=trace)
    console = output_console()
    if trace:
        for line in run.record.lines:
            console.print(f"{line.time:9.3f} {line.who:>4} {line.what}", soft_wrap=True)
    counts = f"{plural(run.world.handled, 'message')}, {len(run.record.handings):,} deliveries"
    console.print(f"{counts}, {run.world.now:.1f} simulated seconds.")
    for number, violation in enumerate(run.violations):
        _tell(run, violation, tell=tell and number == 0)  # the others are usually the same story
    if run.violations:
        raise typer.Exit(ExitCode.NO)
    console.print("Every promise was kept.", style="green")


def soak_faults(
    first: int,
    seeds: int,
    workers: int,
    *,
    keep_going: bool,
    as_json: bool,
    even: bool,
    kinds: tuple[str, ...],
    reach: bool,
) -> None:
    """Simulate many different scenarios with faults until one breaks a promise, or all of them."""
    manner = Manner(
        praise="every promise was kept",
        keep_going=keep_going,
        as_json=as_json,
        flags=" --faults"
        + " --even" * even
        + "".join([f" --{kind}" for kind in kinds])
        + " --keep-going" * keep_going
        + " --reach" * reach,
    )
    reckoning = Reckoning()
    results = _reckoned(soak(first, seeds, workers, even=even, kinds=kinds, measured=reach), reckoning)
    tally, ending = soak_through(results, first, seeds, manner)
    if ending is not None and not as_json:
        _report(ending)
    if reach:
        rows = tally.reach = reckoning.rows()
        if not as_json:
            _show_reach(rows)
    conclude(tally, manner)


def _reckoned(results: Iterator[FaultSoaked], reckoning: Reckoning) -> Iterator[FaultSoaked]:
    for one in results:
        reckoning.add(one.reached)
        yield one


def _show_reach(rows: list[Reached]) -> None:
    table = Table("kind", "what", "state", Column("runs", justify="right"), Column("times", justify="right"))
    for row in rows:
        style = "red" if not row.times else ""
        table.add_row(row.kind, row.what, row.state, f"{row.runs:,}", f"{row.times:,}", style=style)
    output_console().print(table)


def crash_everywhere() -> None:
    """Simulate small scenes with a crash before and after every effect, and the smallest with every two."""
    count = 0
    with progress_bar(error_console(), "crashing", None) as advance:
        for name, pairs in (*((name, False) for name in SCENES), (SMALLEST, True)):
            for run in matrix(name, pairs=pairs):
                count += 1
                advance(count)
                if run.violations:
                    console = output_console()
                    console.print(Text(f"{replay_command(run.scenario)} --story"), soft_wrap=True)
                    _tell(run, run.violations[0], tell=True)
                    raise typer.Exit(ExitCode.NO)
    output_console().print(f"{plural(count, 'run')} with crashes: every promise was kept.")


def _report(failed: FaultSoaked) -> None:
    console = output_console()
    console.print(Text(f"Seed {failed.seed}: {failed.violations[0]}", style="red"), soft_wrap=True)
    console.print(Text(replay_command(failed.scenario)), soft_wrap=True)
    with error_console().status("leaving out steps that do not matter"):
        first = simulate(failed.scenario)
        run = shrink(first)
    console.print("\nShortened:", style="bold")
    console.print(Text(f"{replay_command(run.scenario)} --story"), soft_wrap=True)
    same = [one for one in run.violations if type(one) is type(first.violations[0])]
    _tell(run, same[0], tell=True)


def _tell(run: FaultRun, violation: BrokenPromise, *, tell: bool) -> None:
    lines = story(run, violation) if tell else [str(violation)]
    for number, line in enumerate(lines):
        output_console().print(Text(line, style="red" if number == 0 else ""), soft_wrap=True)
