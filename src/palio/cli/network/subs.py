"""`palio subs`: the subscriptions at a broker, and what can be done to durable ones from outside."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from palio.cli.input.positions import parse_position
from palio.cli.network.broker_status import AsJson, NotAtHome, count_of, labels, print_rows
from palio.cli.program.confirming import Yes, want_yes
from palio.cli.program.connecting import Server, with_client
from palio.cli.program.dressing import argument, flag, option
from palio.cli.program.terminal import help_epilog, plural, printable, say, write_json
from palio.client import Client
from palio.client.attaching import Since
from palio.model.amounts import brief_span
from palio.model.moments import parse_since
from palio.protocol.durable.control import Sought

_LIST = ("palio subs", "palio subs --durable --json")
app = typer.Typer(
    invoke_without_command=True,
    epilog=help_epilog(*_LIST, "palio subs pause desk-7", "palio subs seek desk-7 --since 1h"),
)
Name = Annotated[str, argument("NAME", "A durable subscription, as palio subs shows it.")]
Durable = Annotated[bool, flag("--durable", "Only those that stay.")]


@app.callback(invoke_without_command=True)
def subs(ctx: typer.Context, server: Server = None, durable: Durable = False, as_json: AsJson = False) -> None:
    """Show subscriptions; end, pause, resume and move durable ones.

    A durable subscription is shown as @NAME, another one as @SESSION/HANDLE:
    that is what palio explain takes. The commands below are for durable ones.
    """
    if ctx.invoked_subcommand is None:
        _show(server, durable, as_json)
    elif server is not None or durable or as_json:
        raise typer.BadParameter(f"Write options behind {ctx.invoked_subcommand}, not before it.")


@app.command("list", epilog=help_epilog("palio subs list", "palio subs list --durable --json"))
def list_subscriptions(server: Server = None, durable: Durable = False, as_json: AsJson = False) -> None:
    """Show subscriptions, as palio subs does."""
    _show(server, durable, as_json)


@app.command("show", epilog=help_epilog("palio subs show desk-7"))
def show(name: Name, server: Server = None) -> None:
    """Show one durable subscription with all that is known of it, as JSON."""
    write_json(with_client(server, lambda client: _row(client, name.removeprefix("@"))))


@app.command("rm", epilog=help_epilog("palio subs rm desk-7"))
def remove(name: Name, server: Server = None, yes: Yes = False) -> None:
    """End a durable subscription for good, wherever in the network it is.

    What waits for it goes with it, and its dead letters; so it wants --yes. Whoever
    reads it is told.
    """
    name = name.removeprefix("@")
    if not yes:
        waits = "all that waits for it"
        for row in with_client(server, lambda client: client.inspect("subs", durable=name)):
            pending, dead = plural(row["pending"], "event"), plural(row["dead_letters"], "dead letter")
            waits = f"{pending} that wait for it and {dead}"
        want_yes(f"The durable subscription {name} would end for good, with {waits}.")
    with_client(server, lambda client: client.remove(name))
    say(f"The durable subscription {name} has ended.")


@app.command("pause", epilog=help_epilog("palio subs pause desk-7"))
def pause(name: Name, server: Server = None) -> None:
    """Let a durable subscription keep what comes, and deliver nothing until it is resumed.

    Also when the broker is started again, and at another broker. Whoever reads it
    may acknowledge what is out. It must be at home at this broker.
    """
    name = name.removeprefix("@")
    with_client(server, lambda client: client.pause(name))
    say(f"{name} is paused: what comes is kept, and delivered after palio subs resume {name}.")


@app.command("resume", epilog=help_epilog("palio subs resume desk-7"))
def resume(name: Name, server: Server = None) -> None:
    """Let a durable subscription deliver again."""
    name = name.removeprefix("@")
    with_client(server, lambda client: client.resume(name))
    say(f"{name} delivers again.")


@app.command(
    "seek",
    epilog=help_epilog(
        "palio subs seek desk-7 --since 1h", "palio subs seek desk-7 --since now --yes",
        "palio subs seek desk-7 --position siena/17",
    ),
)  # fmt: skip
def seek(
    name: Name,
    server: Server = None,
    since: Annotated[
        str | None, option("WHEN", "What came since: 1h, 7d, a date, a time, @seconds, all, now.")
    ] = None,
    position: Annotated[
        str | None, option("POSITION", "What follows: BROKER:SEQUENCE, several after commas.")
    ] = None,
    yes: Yes = False,
) -> None:
    """Move a durable subscription: it goes on from there.

    Moved back, it delivers again what was acknowledged, as far as journals and
    lakes have it. Moved on, what was not acknowledged before that place is
    dropped; that wants --yes. A position is what full shows of events as origin
    and sequence (palio sub --format full). It must be at home at this broker.
    """
    if (since is None) == (position is None):
        raise typer.BadParameter("Name --since or --position.")
    place: Since = "now"
    if position is not None:
        place = parse_position(position)
    elif since is not None and since != "now":
        place = parse_since(since, now=time.time())
    name = name.removeprefix("@")
    if not yes:
        would = with_client(server, lambda client: client.seek(name, place, dry=True))
        if would.dropped or would.unread:
            want_yes(f"{_dropped(would)} of {name} would be dropped.")
    sought = with_client(server, lambda client: client.seek(name, place))
    dropped = f" {_dropped(sought)} were dropped." if sought.dropped else ""
    say(f"{name} goes on from there.{dropped}")


def _dropped(sought: Sought) -> str:
    more = ", and what was not read before that place," if sought.unread else ""
    return f"{plural(sought.dropped, 'event')}{more}"


async def _row(client: Client, name: str) -> dict[str, Any]:
    rows: list[dict[str, Any]] = await client.inspect("subs", durable=name)
    if not rows:
        raise NotAtHome(name, client.broker)
    return rows[0]


def _show(server: str | None, durable: bool, as_json: bool) -> None:
    rows = with_client(server, lambda client: client.inspect("subs", timeout=5.0))
    rows = [row | {"subscription": label} for row in rows for label in labels(row)]
    if durable:
        rows = [row for row in rows if "durable" in row]
    if as_json:
        for row in rows:
            write_json(row)
        return
    shown = []
    for row in rows:
        oldest, dead = row.get("oldest"), row.get("dead_letters", "")
        waits = "" if oldest is None else brief_span(time.time() - oldest)
        numbers = row.get("pending", ""), waits, dead
        shown.append((printable(row["subscription"]), state_of(row), *numbers, printable(row["filter"])))
    print_rows(("subscription", "state", "pending", "oldest", "dead", "filter"), shown, 3)
    count_of(rows, "subscription")


def state_of(row: dict[str, Any]) -> str:
    """How a subscription is doing, in a word."""
    return "paused" if row.get("paused") else str(row.get("state", "transient"))
