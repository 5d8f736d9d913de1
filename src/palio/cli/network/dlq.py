"""`palio dlq`: dead letters, which could not be delivered as often as they were tried."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.table import Table

from palio.cli.network.broker_status import NotAtHome
from palio.cli.program.confirming import Yes, want_yes
from palio.cli.program.connecting import Server, with_client
from palio.cli.program.dressing import argument, flag
from palio.cli.program.loading import command_group
from palio.cli.program.terminal import ExitCode, help_epilog, output_console, plural, printable, say, write_json
from palio.client import Client
from palio.model import jsontext
from palio.model.errors import PalioError
from palio.model.moments import format_time

_LIST = "palio dlq list"
_SHOW = "palio dlq show desk-7 1"
app = command_group(_LIST, _SHOW)
Name = Annotated[str, argument("NAME", "A durable subscription that is at home at this broker.")]
Numbers = Annotated[list[int] | None, argument("[DELIVERY]...", "Numbers as palio dlq list shows them.")]
All = Annotated[bool, flag("--all", "All dead letters of the subscription.")]


class NoLetter(PalioError):
    """A dead letter that is not there."""


@app.callback()
def dlq() -> None:
    """Look at dead letters, deliver them after all, or throw them away.

    An event of a durable subscription that was rejected, or not acknowledged,
    as often as the broker's patience allows becomes a dead letter.
    """


@app.command("list", epilog=help_epilog(_LIST, "palio dlq list desk-7 --json"))
def list_letters(
    name: Annotated[str | None, argument("[NAME]", "Only those of this subscription.")] = None,
    server: Server = None,
    as_json: Annotated[bool, flag("--json", "JSON lines, with the events.")] = False,
) -> None:
    """Show dead letters. Exits with 0 also if there are none."""
    rows = with_client(server, lambda client: _rows(client, name))
    if as_json:
        for row in rows:
            write_json(_document(row))
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("subscription", "delivery", "attempts", "published", "why", "event"):
        right = heading in ("delivery", "attempts")
        table.add_column(heading, justify="right" if right else "left", overflow="ellipsis", no_wrap=True)
    for row in rows:
        moment = datetime.fromtimestamp(row["time"], UTC).strftime("%Y-%m-%d %H:%M:%S")
        cells = printable(row["name"]), str(row["delivery"]), str(row["attempts"]), moment
        why = row["failures"][-1]["why"] if row["failures"] else "not known"
        table.add_row(*cells, printable(why), printable(row["event"]))
    console = output_console()
    if rows:
        console.print(table)
    console.print(plural(len(rows), "dead letter") if rows else "No dead letters.", style="dim")


@app.command("show", epilog=help_epilog(_SHOW))
def show(
    name: Name,
    delivery: Annotated[int, argument("DELIVERY", "A number as palio dlq list shows it.")],
    server: Server = None,
) -> None:
    """Show one dead letter with all that is known of it, as JSON: also, of each
    of its last attempts, when it failed, who took it, and why.
    """
    for row in with_client(server, lambda client: _rows(client, name)):
        if row["delivery"] == delivery:
            write_json(_document(row))
            return
    raise NoLetter(
        f"There is no dead letter {delivery} of {name!r}; palio dlq list shows those that there are."
    )


@app.command("requeue", epilog=help_epilog("palio dlq requeue desk-7 --all"))
def requeue(name: Name, delivery: Numbers = None, everything: All = False, server: Server = None) -> None:
    """Let dead letters be delivered after all, as if for the first time."""
    _deal_with(server, name, delivery, everything, discard=False)


@app.command(
    "discard", epilog=help_epilog("palio dlq discard desk-7 1", "palio dlq discard desk-7 --all --yes")
)
def discard(
    name: Name, delivery: Numbers = None, everything: All = False, server: Server = None, yes: Yes = False
) -> None:
    """Throw dead letters away, for good; all of them only with --yes."""
    if everything and not delivery and not yes:
        count = len(with_client(server, lambda client: _rows(client, name)))
        if count:
            want_yes(f"{plural(count, 'dead letter')} of {name} would be thrown away for good.")
    _deal_with(server, name, delivery, everything, discard=True)


def _deal_with(
    server: str | None, name: str, numbers: list[int] | None, everything: bool, *, discard: bool
) -> None:
    if everything == bool(numbers):
        raise typer.BadParameter("Name deliveries by their numbers, or say --all.")
    done, missing = with_client(server, lambda client: _change(client, name, numbers, discard=discard))
    verb = "thrown away" if discard else "queued again"
    say(f"{plural(len(done), 'dead letter')} of {name} {verb}.")
    if missing:
        say(f"There was no dead letter {', '.join(map(str, missing))}.", "red")
        raise typer.Exit(ExitCode.NO)


async def _change(
    client: Client, name: str, numbers: list[int] | None, *, discard: bool
) -> tuple[tuple[int, ...], list[int]]:
    if not numbers:
        numbers = [row["delivery"] for row in await _rows(client, name)]
    act = client.discard if discard else client.requeue
    done = await act(name, numbers)
    return done, sorted(set(numbers) - set(done))


async def _rows(client: Client, name: str | None) -> list[dict[str, Any]]:
    """Dead letters. Raises `NotAtHome` if there is no such subscription here."""
    rows: list[dict[str, Any]] = await client.inspect("dlq", name=name)
    if not rows and name is not None and not await client.inspect("subs", durable=name):
        raise NotAtHome(name, client.broker)
    return rows


def _document(row: dict[str, Any]) -> dict[str, Any]:
    failures = [one | {"time": _moment(one["time"])} for one in row["failures"]]
    return row | {"time": _moment(row["time"]), "event": jsontext.read(row["event"]), "failures": failures}


def _moment(seconds: float) -> str:
    return format_time(datetime.fromtimestamp(seconds, UTC))
