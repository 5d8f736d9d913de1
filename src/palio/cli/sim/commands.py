"""`palio sim`: simulate networks, see a run again, look for one that goes wrong, run whole experiments."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer
from rich.table import Table
from rich.text import Text

from palio.cli.program.dressing import argument, flag
from palio.cli.program.loading import command_group
from palio.cli.program.terminal import ExitCode, error_console, help_epilog, output_console
from palio.cli.sim import experiments as sim_experiments
from palio.cli.sim.faults import crash_everywhere, is_of_type, replay_faults, soak_faults
from palio.cli.sim.overlay import replay_overlay, soak_overlay
from palio.cli.sim.soaking import Manner, conclude, soak_through
from palio.sim.experiments.simulators import MEASURING, AnyOutcome
from palio.sim.failures import replay_command, shrink, story
from palio.sim.faults.soak import KINDS
from palio.sim.run import SimulatedRun, simulate
from palio.sim.scenario import Scenario
from palio.sim.soak import Soaked
from palio.sim.soak import soak as soaked

app = command_group(
    'palio sim replay \'{"seed":7,"topology":"graph"}\'',
    "palio sim soak --seeds 48",
    "palio sim run examples/experiment.toml --output /tmp/palio-example",
)
app.command("run", epilog=sim_experiments.RUN_EPILOG)(sim_experiments.run_experiment)
app.command("list", epilog=sim_experiments.LIST_EPILOG)(sim_experiments.list_experiments)

REPLAY_EPILOG = help_epilog(
    'palio sim replay \'{"seed":7,"topology":"graph"}\'',
    'palio sim replay \'{"brokers":2,"subscriptions":1}\' --trace',
    'palio sim replay \'{"strategy":"merging","churn":0.5}\' --story',
)
SOAK_EPILOG = help_epilog(
    "palio sim soak --seeds 48",
    "palio sim soak --seeds 24 --first 1000 --workers 2",
    "palio sim soak --faults --seeds 24",
    "palio sim soak --faults --first 5000 --seeds 48 --workers 2 --keep-going",
    "palio sim soak --faults --documents --seeds 24",
    "palio sim soak --faults --seeds 24 --reach",
    "palio sim soak --overlay --seeds 24",
)

# What a person wants to see of an outcome, in groups; the other numbers are for tables of many runs.
_SHOWN = (
    ("brokers", "links", "sessions", "simulated_messages"),
    ("messages", "subscription_messages", "advertisement_messages", "forwards", "acknowledgement_messages"),
    ("cost", "subscription_cost", "advertisement_cost", "forwards_cost"),
    ("subscribes", "published", "refused", "deliveries", "deliveries_expected", "deliveries_possible"),
    ("table_rows_mean", "table_rows_max", "matching_calls", "wasted_forwards"),
    ("hops_mean", "hops_max", "latency_mean", "latency_p99", "ready_mean", "wall_seconds"),
)


@app.command("replay", epilog=REPLAY_EPILOG)
def replay(
    scenario_text: Annotated[
        str, argument("SCENARIO", "The scenario as JSON; what is left out has its default.")
    ],
    trace: Annotated[bool, flag("--trace", "Every message that a broker handles.")] = False,
    tell: Annotated[
        bool, flag("--story", "For each violation, what has to do with it and nothing else.")
    ] = False,
) -> None:
    """Simulate one scenario and show what it cost and what was wrong.

    The same scenario gives the same run, always. Exits with 1 if something
    was delivered, or left out, that should not have been.
    """
    if is_of_type(scenario_text, "faults"):
        replay_faults(scenario_text, trace=trace, tell=tell)
        return
    if is_of_type(scenario_text, "overlay"):
        replay_overlay(scenario_text, trace=trace)
        return
    for simulator in MEASURING:
        if is_of_type(scenario_text, simulator.name):
            measured = simulator.run(simulator.scenario.from_json(scenario_text))
            _show(measured, (simulator.outcome.__struct_fields__,))
            if measured.violations:
                raise typer.Exit(ExitCode.NO)
            return
    run = simulate(Scenario.from_json(scenario_text), trace=trace or tell)
    console = output_console()
    if trace:
        for line in run.trace.lines():
            console.print(line, soft_wrap=True)
    _show(run.outcome(), _SHOWN)
    for violation in run.verdict.violations:
        lines = story(run, violation) if tell else [str(violation)]
        for number, line in enumerate(lines):
            console.print(Text(line, style="red" if number == 0 else ""), soft_wrap=True)
    if run.verdict.violations:
        raise typer.Exit(ExitCode.NO)
    console.print("Everything was delivered as it should be.", style="green")


@app.command("soak", epilog=SOAK_EPILOG)
def soak(
    *,
    seeds: Annotated[int, typer.Option(min=1, help="How many scenarios to simulate.")] = 480,
    first: Annotated[int, typer.Option(min=0, help="The seed of the first one.")] = 1,
    workers: Annotated[int, typer.Option(min=1, max=256, help="On so many processes.")] = 1,
    faults: Annotated[
        bool, flag("--faults", "Durable delivery: brokers crash, links break, disks fill.")
    ] = False,
    overlay: Annotated[
        bool, flag("--overlay", "Brokers that find their links themselves: they come, go, and are cut off.")
    ] = False,
    crash_points: Annotated[
        bool, flag("--crash-points", "No luck: a crash at every effect of small scenes.")
    ] = False,
    keep_going: Annotated[
        bool, flag("--keep-going", "Go on behind each violation; all are listed at the end.")
    ] = False,
    even: Annotated[bool, flag("--even", "With --faults: spread all kinds evenly, tie no knots.")] = False,
    older_disks: Annotated[
        bool, flag("--older-disks", "With --faults: in all runs disks come back older, or empty.")
    ] = False,
    flipped_bits: Annotated[
        bool, flag("--flipped-bits", "With --faults: in all runs bits flip on disks, in what is there.")
    ] = False,
    flapping_links: Annotated[
        bool, flag("--flapping-links", "With --faults: in all runs links come and go all the time.")
    ] = False,
    departing: Annotated[
        bool, flag("--departing", "With --faults: in all runs brokers leave for good, in order.")
    ] = False,
    relays: Annotated[
        bool, flag("--relays", "With --faults: in all runs some brokers keep nothing, and pass on.")
    ] = False,
    documents: Annotated[
        bool, flag("--documents", "With --faults: documents are published, kept, and begun with.")
    ] = False,
    reach: Annotated[
        bool, flag("--reach", "With --faults: what happened in which states, the rarest first.")
    ] = False,
    as_json: Annotated[bool, flag("--json", "What it came to as one JSON object.")] = False,
) -> None:
    """Simulate many different small scenarios until one goes wrong.

    Strategies, topologies and advertisements come in all combinations; shapes,
    clients, churn and failing links by luck. At the first violation it stops,
    looks for a smaller scenario that shows the same, and exits with 1. With
    --keep-going it tells the seed of each violation and goes on. Seeds come in
    their order: a long range can be run in slices, and if it is stopped by
    Ctrl-C, it says where to go on.
    """
    if crash_points:
        crash_everywhere()
        return
    asked_for = older_disks, flipped_bits, flapping_links, departing, relays, documents
    kinds = tuple([kind for kind, is_wanted in zip(KINDS, asked_for, strict=True) if is_wanted])
    if faults:
        manner_of_it = {"keep_going": keep_going, "as_json": as_json, "even": even, "reach": reach}
        soak_faults(first, seeds, workers, kinds=kinds, **manner_of_it)
        return
    if even or reach or kinds:
        theirs = ", ".join([f"--{kind}" for kind in ("even", *KINDS)]) + " and --reach"
        raise typer.BadParameter(f"{theirs} are for runs with faults: add --faults.")
    flags = " --overlay" * overlay + " --keep-going" * keep_going
    manner = Manner(praise="no violation", keep_going=keep_going, as_json=as_json, flags=flags)
    if overlay:
        soak_overlay(first, seeds, workers, manner)
        return
    tally, ending = soak_through(soaked(first, seeds, workers), first, seeds, manner)
    if ending is not None and not as_json:
        _report(ending)
    conclude(tally, manner)


def _report(failed: Soaked[Scenario]) -> None:
    console = output_console()
    console.print(Text(f"Seed {failed.seed}: {failed.violations[0]}", style="red"), soft_wrap=True)
    console.print(replay_command(failed.scenario), soft_wrap=True)
    with error_console().status("looking for a smaller scenario that shows the same"):
        run = shrink(_traced(failed.scenario), _traced)
    console.print("\nShortened:", style="bold")
    console.print(f"{replay_command(run.scenario)} --story", soft_wrap=True)
    for line in story(run, run.verdict.violations[0]):
        console.print(line, soft_wrap=True)


def _traced(scenario: Scenario) -> SimulatedRun:
    return simulate(scenario, trace=True)


def _show(outcome: AnyOutcome, groups: tuple[tuple[str, ...], ...]) -> None:
    values = msgspec.structs.asdict(outcome)
    table = Table.grid(padding=(0, 2))
    for group in groups:
        for name in group:
            value = values[name]
            shown = f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"
            table.add_row(Text(name.replace("_", " "), style="dim"), Text(shown, justify="right"))
        table.add_row()
    output_console().print(table)
