"""The `palio` program: its commands, and how it starts."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator, MutableMapping
from importlib import import_module
from importlib.metadata import version
from types import ModuleType
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from palio.cli.credentials import SAID
from palio.cli.terminal import help_epilog, orderly_endings

EPILOG = help_epilog(
    "palio up",
    "palio pub symbol=ACME price=101.5",
    """palio explain 'price > 100 and not halted' '{"price": 101.5}'""",
    "palio match -f examples/filters.jsonl -e examples/events.jsonl",
)
# In the order of the help: commands, or groups of them, by the module that has them. A module with an `app` is
# a group; otherwise the command is its function of the same name. None is loaded before it is needed: a program
# that is started for each event had better start quickly.
COMMANDS = {
    "up": "up",
    "network": "network",
    "token": "token",
    "rights": "rights",
    "config": "config",
    "context": "context",
    "pub": "pub",
    "sub": "sub",
    "advertise": "advertise",
    "request": "requests",
    "reply": "requests",
    "replay": "replay",
    "backtest": "backtest",
    "trace": "trace",
    "explain": "explain",
    "match": "match",
    "patterns": "patterns",
    "covers": "covers",
    "lint": "lint",
    "stats": "looking",
    "peers": "looking",
    "clients": "looking",
    "subs": "subs",
    "top": "top",
    "dlq": "dlq",
    "forget": "forget",
    "journal": "journal",
    "demo": "demo",
    "sim": "sim",
    "spark": "spark",
    "bench": "bench",
    "doctor": "doctor",
}


class Commands(MutableMapping[str, Any]):
    """The commands by their names, each loaded when it is first asked for."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = _load(name, import_module(f"palio.cli.{COMMANDS[name]}"))
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)

    def __setitem__(self, name: str, command: Any) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self._loaded[name]


def _load(name: str, module: ModuleType) -> Any:
    if hasattr(module, "app"):
        command: Any = typer.main.get_group(module.app)
    else:
        alone = typer.Typer(add_completion=False, rich_markup_mode="rich")
        epilogs = getattr(module, "EPILOGS", None)
        alone.command(name, epilog=epilogs[name] if epilogs else module.EPILOG)(getattr(module, name))
        command = typer.main.get_command(alone)
    command.name = name
    return command


class OrderlyGroup(TyperGroup):
    """Commands that end in an orderly way, whatever goes wrong: in the options as well as in the work."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = Commands()

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.commands)

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
    token_file: Annotated[
        str | None,
        typer.Option(metavar="FILE", envvar="PALIO_TOKEN_FILE", help="Has the token that brokers ask for."),
    ] = None,
    authority: Annotated[
        str | None,
        typer.Option(metavar="FILE", envvar="PALIO_AUTHORITY", help="Who signs the certificates of brokers."),
    ] = None,
    certificate: Annotated[
        str | None,
        typer.Option(metavar="FILE", envvar="PALIO_CERTIFICATE", help="Shows brokers who you are."),
    ] = None,
    key: Annotated[
        str | None, typer.Option(metavar="FILE", envvar="PALIO_KEY", help="The key of the certificate.")
    ] = None,
) -> None:
    """Content-based publish/subscribe: say what you want with a filter over the content.

    A filter looks like: symbol = "ACME" and price > 100 and not halted
    """
    said = {"token_file": token_file, "authority": authority, "certificate": certificate, "key": key}
    SAID.set({name: file for name, file in said.items() if file is not None})


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
