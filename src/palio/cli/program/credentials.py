"""How brokers are shown who one is: options of the whole program, which every command takes as well.

`palio --token-file FILE sub …` and `palio sub … --token-file FILE` mean the same; what stands later counts.
What is said goes before the environment, and that before what is saved for a connection.
"""

from __future__ import annotations

import os
from contextvars import ContextVar
from typing import Annotated, Any

import typer

OPTIONS = ("token_file", "authority", "certificate", "key")
TOKEN_VARIABLE = "PALIO_TOKEN"
# By the names of the options.
SAID: ContextVar[dict[str, str]] = ContextVar("credentials")
_PANEL = "Who you are, for brokers that ask"


def variable(option: str) -> str:
    """The environment variable that says the same as an option."""
    return f"PALIO_{option.upper()}"


def said() -> dict[str, str]:
    """What was said on the command line, or else by the environment, by the names of the options."""
    environment = {name: os.environ[variable(name)] for name in OPTIONS if os.environ.get(variable(name))}
    return environment | SAID.get({})


def _say(context: typer.Context, parameter: typer.CallbackParam, value: str | None) -> None:
    if value is not None and not context.resilient_parsing:
        SAID.set(SAID.get({}) | {str(parameter.name): value})


def _option(help: str, name: str) -> Any:
    return typer.Option(
        metavar="FILE",
        help=f"{help}; also {variable(name)}.",
        callback=_say,
        expose_value=False,
        rich_help_panel=_PANEL,
    )


def _nothing(
    token_file: Annotated[str | None, _option("Has the token that brokers ask for", "token_file")] = None,
    authority: Annotated[str | None, _option("Who signs the certificates of brokers", "authority")] = None,
    certificate: Annotated[str | None, _option("Shows brokers who you are", "certificate")] = None,
    key: Annotated[str | None, _option("The key of the certificate", "key")] = None,
) -> None:
    """Never called: Typer makes options of the arguments of a function."""


def credential_options() -> list[Any]:
    """The options, to be added to a command."""
    alone = typer.Typer(add_completion=False)
    alone.command()(_nothing)
    made: list[Any] = typer.main.get_command(alone).params
    return made
