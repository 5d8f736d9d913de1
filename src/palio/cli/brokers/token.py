"""`palio token`: who may come in."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.table import Table

from palio.broker.access.files import write_private
from palio.broker.access.rights import read_rights
from palio.broker.access.tokens import Token, create_token, read_tokens, revoke_tokens
from palio.cli.brokers.access import Config, Data, Folder, access_folder
from palio.cli.program.dressing import argument, flag, option
from palio.cli.program.loading import command_group
from palio.cli.program.terminal import ExitCode, help_epilog, output_console, plural, printable, say, write_json
from palio.model.moments import parse_span

_CREATE = "palio token create desk-7 --expires 90d --note 'the desk in Siena'"
app = command_group(_CREATE, "palio token list")


@app.callback()
def token() -> None:
    """Make, list and revoke the tokens by which clients and brokers show who they are.

    They are kept beside the broker's data, as hashes. A running broker sees
    changes by itself; who was let in by a token that is revoked is sent away.
    """


@app.command(
    "create",
    epilog=help_epilog(_CREATE, "palio token create brokers", "palio token create camera-viewer --digest"),
)
def create(
    principal: Annotated[str, argument("PRINCIPAL", "Who will show it.")],
    *,
    expires: Annotated[str | None, option("SPAN", "How long it is good: 12h, 90d; else for ever.")] = None,
    note: Annotated[str, option("TEXT", "What it is for; shown in the list.")] = "",
    output: Annotated[
        Path | None, option("FILE", "Write it there, for your eyes only.", "--output", "-o")
    ] = None,
    digest: Annotated[
        bool, flag("--digest", "Keep the secret, for clients of SOAP that prove it by a digest (ONVIF).")
    ] = False,
    folder: Folder = None,
    data: Data = None,
    config: Config = None,
) -> None:
    """Make a token. It is shown once, and cannot be had again.

    It goes to standard output, or into the --output file. It says who somebody
    is; palio rights set says what they may do.
    """
    now = time.time()
    where = access_folder(folder, data, config)
    until = None if expires is None else now + parse_span(expires)
    made, text = create_token(where, principal, now=now, expires=until, note=note, digest=digest)
    if output is None:
        typer.echo(text)
    else:
        write_private(output, text + "\n")
    place = f", in {output}" if output is not None else ""
    good = f" until {_time(made.expires)}" if made.expires is not None else ""
    say(f"The token {made.id} is for {principal}{good}{place}.")
    if principal not in read_rights(where):
        say(
            f"{principal} has no rights yet: palio rights set {principal} --subscribe FILTER gives some.",
            "yellow",
        )


@app.command("list", epilog=help_epilog("palio token list", "palio token list --json"))
def list_tokens(
    as_json: Annotated[bool, flag("--json", "JSON lines, without the hashes.")] = False,
    folder: Folder = None,
    data: Data = None,
    config: Config = None,
) -> None:
    """Show who has tokens, and until when. Secrets are not shown: nobody has them."""
    tokens = read_tokens(access_folder(folder, data, config))
    rows = sorted(tokens.values(), key=lambda one: (one.principal, one.created))
    if as_json:
        for one in rows:
            row = msgspec.to_builtins(one) | {"expired": one.has_expired(time.time())}
            del row["hash"], row["secret"]
            write_json(row)
        return
    if not rows:
        say("There are no tokens; palio token create makes one.")
        return
    table = Table("id", "principal", "created", "expires", "note", box=None, pad_edge=False)
    for one in rows:
        table.add_row(one.id, one.principal, _time(one.created), _expiry(one), printable(one.note))
    output_console().print(table)


@app.command("revoke", epilog=help_epilog("palio token create desk-7 && palio token revoke --principal desk-7"))
def revoke(
    ids: Annotated[list[str] | None, argument("[ID]...", "As palio token list shows them.")] = None,
    principal: Annotated[str | None, option("NAME", "All tokens of this principal.")] = None,
    folder: Folder = None,
    data: Data = None,
    config: Config = None,
) -> None:
    """Take tokens away; connections that were made with them end."""
    where = access_folder(folder, data, config)
    known = read_tokens(where)
    wanted = [*(ids or []), *[one.id for one in known.values() if one.principal == principal]]
    if not ids and principal is None:
        raise typer.BadParameter("Name tokens, or a --principal.")
    gone = revoke_tokens(where, wanted)
    say(f"{plural(len(gone), 'token')} revoked.")
    if not gone:
        raise typer.Exit(ExitCode.NO)


def _time(seconds: float | None) -> str:
    return "" if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(" ", "minutes")[:16]


def _expiry(token: Token) -> str:
    if token.expires is None:
        return "never"
    return f"{_time(token.expires)}{' (over)' if token.has_expired(time.time()) else ''}"
