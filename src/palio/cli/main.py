"""The `palio` program: its commands, and how it starts."""

from __future__ import annotations

import io
import os
import sys
from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from palio.cli import bench, covers, demo, explain, lint, match, network, sim, up
from palio.cli.terminal import help_epilog, orderly_endings

EPILOG = help_epilog(
    "palio demo",
    """palio explain 'price > 100 and not halted' '{"price": 101.5}'""",
    "palio match -f examples/filters.jsonl -e examples/events.jsonl",
)


class OrderlyGroup(TyperGroup):
    """Commands that end in an orderly way, whatever goes wrong: in the options as well as in the work."""

    def make_context(self, *arguments: Any, **settings: Any) -> Any:
        with orderly_endings():
            return super().make_context(*arguments, **settings)

    def invoke(self, ctx: Any) -> Any:
        with orderly_endings():
            return super().invoke(ctx)


app = typer.Typer(
    name="palio",
    cls=OrderlyGroup,
    epilog=EPILOG,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)
app.command("up", epilog=up.EPILOG)(up.up)
app.command("match", epilog=match.EPILOG)(match.match)
app.command("explain", epilog=explain.EPILOG)(explain.explain)
app.command("covers", epilog=covers.EPILOG)(covers.covers)
app.command("lint", epilog=lint.EPILOG)(lint.lint)
app.command("demo", epilog=demo.EPILOG)(demo.demo)
app.add_typer(network.app, name="network")
app.add_typer(bench.app, name="bench")
app.add_typer(sim.app, name="sim")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"palio {version('palio')}")
        raise typer.Exit


@app.callback()
def palio(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Content-based publish/subscribe: say what you want with a filter over the content.

    A filter looks like: symbol = "ACME" and price > 100 and not halted
    """


def main() -> None:
    """Start the program."""
    # A shell's `>&-` leaves no stream at all; whoever says that wants nothing written.
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        # JSON may name characters that no encoding has; showing them escaped beats stopping there.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    app(prog_name="palio")


if __name__ == "__main__":
    main()
