"""What all commands have in common: how they name their options, and what each is given when it is loaded, so
that no command has to think of it.

- The options by which brokers are shown who one is stand behind a command as well as before it. The help of
  commands that talk to a broker has them. Where a command has one of these names for itself, it has none.
- A flag is shown without the type of a value: it takes none.
- A value that is plainly right loads no validator (`plain_values`).
"""

from __future__ import annotations

from typing import Any

import typer

from palio.cli.program.credentials import OPTIONS, credential_options
from palio.cli.program.plain_values import read_plainly

# An option of these names says which broker, or which cluster, a command talks to.
_TALKING = frozenset({"server", "remote"})


def flag(name: str, help: str, *short: str) -> Any:
    """An option that is said or not."""
    return typer.Option(name, *short, help=help)


def option(metavar: str, help: str, *names: str, **more: Any) -> Any:
    """An option that takes a value; without names, it has that of its parameter."""
    return typer.Option(*names, metavar=metavar, help=help, **more)


def argument(metavar: str, help: str) -> Any:
    """What is named without an option."""
    return typer.Argument(metavar=metavar, help=help)


def dressed(command: Any) -> Any:
    """The command, and all that are in it if it is a group."""
    names = {one.name for one in command.params}
    handed_on = command.context_settings.get("ignore_unknown_options", False)  # to a program of its own
    if not names & set(OPTIONS) and not handed_on:
        options = credential_options()
        for one in options:
            one.hidden = not names & _TALKING
        command.params.extend(options)
    dress_options(command)
    inside = getattr(command, "commands", {})
    if isinstance(inside, dict):  # a group that loads its commands later has them dressed then
        for inner in inside.values():
            dressed(inner)
    return command


def dress_options(command: Any) -> None:
    """The options of a command, `--help` among them: flags are shown as what they are, plain values read so."""
    parameters = command.get_params(typer.Context(command, help_option_names=["--help", "-h"]))
    for one in parameters:
        if getattr(one, "is_flag", False):
            one.metavar = ""
    read_plainly(parameters)
