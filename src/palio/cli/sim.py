"""`palio sim`: try a network before you run one."""

from __future__ import annotations

import typer

from palio.cli import sim_experiments
from palio.cli.terminal import help_epilog

app = typer.Typer(
    help="Simulate networks: single runs, many runs, whole experiments.",
    no_args_is_help=True,
    epilog=help_epilog("palio sim list", "palio sim run siena --quick --output /tmp/siena"),
)
app.command("run", epilog=sim_experiments.RUN_EPILOG)(sim_experiments.run_experiment)
app.command("list", epilog=sim_experiments.LIST_EPILOG)(sim_experiments.list_experiments)


@app.callback()
def sim() -> None:
    """Simulate networks: single runs, many runs, whole experiments."""
