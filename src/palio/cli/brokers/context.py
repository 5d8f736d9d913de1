"""`palio context`: saved connections."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
from rich.table import Table

from palio.cli.program.dressing import argument, flag, option
from palio.cli.program.loading import command_group
from palio.cli.program.saved_contexts import (
    DEFAULT_SERVER,
    Context,
    checked_name,
    chosen,
    contexts_file,
    known,
    read_contexts,
    write_contexts,
)
from palio.cli.program.terminal import help_epilog, output_console, say, write_json

_ADD = "palio context add here 127.0.0.1:7070 --use"
_SECURE = "palio context add desk palios://siena.example --token-file desk.token"
_LIST = "palio context list"
app = command_group(_ADD, _LIST)
Name = Annotated[str, argument("NAME", "The name of the connection.")]


@app.callback()
def context() -> None:
    """Save connections to brokers under names, and say which one is meant.

    A command that talks to a broker takes --server, which is an address or the
    name of a saved connection; else what PALIO_SERVER says; else the saved
    connection in use; else 127.0.0.1:7070.
    """


@app.command("add", epilog=help_epilog(_ADD, _SECURE))
def add(
    name: Name,
    server: Annotated[str, argument("ADDRESS", "host:port; several after commas.")],
    *,
    token_file: Annotated[str | None, option("FILE", "Has the token that the broker asks for.")] = None,
    authority: Annotated[str | None, option("FILE", "Who signs the broker's certificate.")] = None,
    certificate: Annotated[
        str | None, option("FILE", "Shows the broker who you are, instead of a token.")
    ] = None,
    key: Annotated[str | None, option("FILE", "The key of the certificate.")] = None,
    use: Annotated[bool, flag("--use", "Use it from now on.")] = False,
) -> None:
    """Save a connection, or change it.

    Secrets are not saved, only where they are: a token in a file, and a
    certificate with its key. palios://host:port speaks TLS.
    """
    saved = read_contexts()
    files = [str(Path(one).absolute()) if one else None for one in (token_file, authority, certificate, key)]
    new = Context(server, *files)
    _ = new.address  # which raises what is wrong with it
    contexts = saved.contexts | {checked_name(name): new}
    current = name if use or not saved.contexts else saved.current
    write_contexts(msgspec.structs.replace(saved, contexts=contexts, current=current))
    say(f"{name} is {new.shown}{', and in use' if current == name else ''}; saved in {contexts_file()}.")


@app.command("use", epilog=help_epilog(f"{_ADD} && palio context use here"))
def use(name: Name) -> None:
    """Use a saved connection from now on."""
    saved = read_contexts()
    server = known(saved, name).shown
    write_contexts(msgspec.structs.replace(saved, current=name))
    say(f"{name} ({server}) is in use.")


@app.command("remove", epilog=help_epilog(f"{_ADD} && palio context remove here"))
def remove(name: Name) -> None:
    """Forget a saved connection."""
    saved = read_contexts()
    known(saved, name)
    contexts = {other: one for other, one in saved.contexts.items() if other != name}
    current = None if saved.current == name else saved.current
    write_contexts(msgspec.structs.replace(saved, contexts=contexts, current=current))
    say(f"{name} is forgotten.")


@app.command("list", epilog=help_epilog(_LIST, "palio context list --json"))
def list_contexts(
    as_json: Annotated[bool, flag("--json", "As a JSON object; tokens are not shown.")] = False,
) -> None:
    """Show the saved connections, and which broker is meant now."""
    saved = read_contexts()
    meant = chosen(None)
    if as_json:
        servers = {name: one.shown for name, one in saved.contexts.items()}
        write_json({"server": meant.shown, "current": saved.current, "contexts": servers})
        return
    console = output_console()
    if saved.contexts:
        table = Table("", "name", "server", box=None, pad_edge=False)
        for name, one in saved.contexts.items():
            table.add_row("*" if name == saved.current else "", name, one.shown)
        console.print(table)
    default = " (the default)" if meant.server == DEFAULT_SERVER else ""
    console.print(f"Commands talk to {meant.shown}{default}.", soft_wrap=True)
