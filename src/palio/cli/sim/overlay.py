"""`palio sim` where brokers find their links themselves: seeing a run again, and looking for a wrong one."""

from __future__ import annotations

import typer
from rich.text import Text

from palio.cli.program.terminal import ExitCode, output_console, plural
from palio.cli.sim.soaking import Manner, conclude, soak_through
from palio.sim.failures import replay_command
from palio.sim.overlay.oracle import judged
from palio.sim.overlay.reported import REPORTED
from palio.sim.overlay.script import OverlayScenario
from palio.sim.overlay.soak import soak
from palio.sim.overlay.world import OverlayWorld


def replay_overlay(text: str, *, trace: bool) -> None:
    """Simulate one scenario of the overlay, and show what was wrong; with `trace`, also what was done."""
    world = OverlayWorld(OverlayScenario.from_json(text))
    violations = judged(world)
    console = output_console()
    for time, broker, event in world.events if trace else ():
        line = f"{time:9.3f} {broker:>4} {event.what} {event.broker} {event.why} {event.reason}"
        console.print(line.rstrip(), soft_wrap=True)
    said = plural(world.sent.total(), "message")
    console.print(f"{said}, {plural(world.dialled, 'attempt')} to connect, {world.now:.1f} simulated seconds.")
    for violation in violations:
        console.print(Text(violation, style="red"), soft_wrap=True)
    if violations:
        raise typer.Exit(ExitCode.NO)
    console.print("The network is whole.", style="green")


def soak_overlay(first: int, seeds: int, workers: int, manner: Manner) -> None:
    """Simulate what was reported elsewhere and many other scenarios until one goes wrong, or all of them."""
    for name, play in REPORTED.items():
        if problems := play():
            output_console().print(Text(f"{name}: {problems[0]}", style="red"), soft_wrap=True)
            raise typer.Exit(ExitCode.NO)
    tally, ending = soak_through(soak(first, seeds, workers), first, seeds, manner)
    if ending is not None and not manner.as_json:
        console = output_console()
        console.print(Text(f"Seed {ending.seed}: {ending.violations[0]}", style="red"), soft_wrap=True)
        console.print(f"{replay_command(ending.scenario)} --trace", soft_wrap=True)
    conclude(tally, manner)
