"""`palio stats`, `peers` and `clients`: what a broker says about itself."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Annotated, Any

import typer
from rich.table import Column, Table

from palio.cli.network.peer_watch import follow_changes
from palio.cli.program.connecting import NoBroker, Server, ask, connected, run
from palio.cli.program.dressing import flag, option
from palio.cli.program.terminal import ExitCode, help_epilog, output_console, plural, printable, write_json
from palio.client import Client
from palio.model.amounts import brief_span, size_text
from palio.model.errors import PalioError
from palio.model.moments import parse_span

EPILOGS = {
    "stats": help_epilog("palio stats", "palio stats --json"),
    "peers": help_epilog("palio peers", "palio peers --json", "palio peers --whole 1s", "palio peers --watch"),
    "clients": help_epilog("palio clients", "palio clients --json"),
}
AWAY = "away"
NO_LINK = "no link"
_LOOK_AGAIN = 0.2  # seconds: brief beside the start of a broker, which takes about one
OLDER = "came back older"
AsJson = Annotated[bool, flag("--json", "JSON lines.")]


class NotAtHome(PalioError):
    """A durable subscription that is not at home at a broker."""

    name: str
    broker: str
    sentence = (
        "There is no durable subscription {name!r} at {broker}; `palio subs --durable` lists those that are at "
        "home there. If it is at another broker, ask that one."
    )


def stats(server: Server = None, as_json: AsJson = False) -> None:
    """Show the counts of a broker: who is connected, and what came of events."""
    [[row]] = run(ask(server, "stats"))
    if as_json:
        write_json(row)
        return
    broker, router = row["broker"], row["router"]
    table = Table(
        Column(style="bold"), "", Column(justify="right"), box=None, pad_edge=False, show_header=False
    )
    keeps = {"keeps": "nothing, as it is a relay"} if row.get("relay") else {}
    groups: list[tuple[str, dict[str, Any]]] = [
        ("broker", {"name": broker["name"], "up for": brief_span(time.time() - broker["started"])} | keeps),
        # The one that asks is a client as well, and no news.
        ("connected", {"clients": broker["sessions"] - 1, "links": router["links"]}),
        ("filters", {"here": router["filters"], "known of others": router["rows_received"]}),
        ("events", events_of(router) | {"wasted": router["forwarding"]["wasted"]}),
        ("dropped", broker["dropped"] or {"none": ""}),
    ]
    if broker["refused"]:
        groups.append(("refused connections", broker["refused"]))
    if store := row.get("store"):
        names = {"last sequence": "head", "commits": "commits", "waiting bytes": "queued_bytes"}
        trouble = {"trouble": store["waiting"]} if store["waiting"] else {}
        groups.append(("journal", {name: store[key] for name, key in names.items()} | trouble))
    for group, numbers in groups:
        for key, value in numbers.items():
            table.add_row(group, key, f"{value:,}" if isinstance(value, int) else str(value))
            group = ""
    output_console().print(table)


def events_of(router: dict[str, Any]) -> dict[str, int]:
    """What came of events, as people count: whatever reaches a client is delivered, durable or not."""
    forwarding = router["forwarding"]
    return {
        "taken": forwarding["taken"],
        "matched": forwarding["matched"],
        "delivered": forwarding["delivered"] + router["handed"],
        "forwarded": forwarding["forwarded"],
    }


def peers(
    server: Server = None,
    as_json: AsJson = False,
    whole: Annotated[
        str | None, option("SPAN", "Wait so long, at most, until nobody is away and every link is there.")
    ] = None,
    watch: Annotated[bool, flag("--watch", "Go on with each change of a link, until Ctrl-C.")] = False,
) -> None:
    """Show the links of a broker to its neighbours, and those that cannot be made.

    Who sends more than the broker takes has to wait, for so long so far.
    A relay keeps nothing, and nobody waits for it.
    Brokers of the network that were heard of and do not answer now are away:
    journals keep what they may need until they are back, or forgotten. Journals
    that came back older than they were are named, with what may be missing.

    With --whole it waits for a network in which nobody is missing, also while
    the broker starts, and exits with 1 if the time is over before.

    With --watch a line follows for each change: links that are made, end in
    order, are found dead, refused or replaced; parts of the network that part
    and join; repairs that begin and are done, and how long they took.
    """
    if watch:
        run(_watch(server, as_json=as_json))
        return
    rows, gaps = run(_peers(server) if whole is None else _whole_peers(server, parse_span(whole)))
    _show_peers(rows, gaps, as_json=as_json)
    if whole is not None and not _is_whole(rows):
        raise typer.Exit(ExitCode.NO)


def _show_peers(rows: list[dict[str, Any]], gaps: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        for row in [*rows, *[{"state": OLDER, "name": gap["origin"]} | gap for gap in gaps]]:
            write_json(row)
        return
    shown = [
        (row["name"] or "?", _kind(row), row["state"], row["address"], *_traffic(row), _waited(row))
        for row in rows
    ]
    print_rows(("broker", "is a", "state", "address", "since", "received", "sent", "had to wait"), shown, 5)
    for row in rows:
        if "reason" in row:
            output_console().print(f"{row['address']}: {row['reason']}", style="red", soft_wrap=True)
    away = [row["name"] for row in rows if row["state"] == AWAY]
    if away:
        sentence = f"Away: {printable(', '.join(away))}. `palio forget NAME` is for one that never comes back."
        output_console().print(sentence, style="yellow", soft_wrap=True)
    for gap in gaps:
        output_console().print(_gap_sentence(gap), style="red", soft_wrap=True)
    count_of(rows[: len(rows) - len(away)], "link")


def _kind(row: dict[str, Any]) -> str:
    """What a neighbour is; brokers of earlier versions know no relays."""
    kind: str = row.get("kind", "")
    return f"{kind}, relay" if row.get("relay") else kind


def _gap_sentence(gap: dict[str, Any]) -> str:
    upto = "" if gap["upto"] is None else f" up to {gap['upto']:,}"
    return (
        f"The journal of {printable(gap['origin'])} came back older than it was: what it had after "
        f"{gap['after']:,}{upto} may be missing. Noticed {brief_span(time.time() - gap['noticed'])} ago."
    )


async def _peers(server: str | None) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Links, and brokers of the network that do not answer; and journals that came back older."""
    async with connected(server, connect_timeout=5.0, reconnect=False) as client:
        return await _links(client)


async def _watch(server: str | None, *, as_json: bool) -> None:
    async with connected(server, tell=True, connect_timeout=5.0) as client:
        after = (await client.overlay_changes())["onward"]
        _show_peers(*await _links(client), as_json=as_json)
        await follow_changes(client, after, as_json=as_json)


async def _links(client: Client) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    missing: tuple[str, ...] = ()
    with suppress(PalioError):  # it keeps no journal, or whoever asks may not know
        missing = (await client.journals(timeout=5.0)).missing
    rows: list[dict[str, Any]] = await client.inspect("peers", timeout=5.0)
    gaps = await client.inspect("gaps", timeout=5.0)
    linked = {row["name"] for row in rows}
    away = [{"name": name, "state": AWAY, "address": ""} for name in missing if name not in linked]
    return rows + away, gaps if isinstance(gaps, list) else []  # of a broker that does not know the question


async def _whole_peers(server: str | None, seconds: float) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """What `_peers` says once the network is whole, or at the end of the time."""
    until = time.monotonic() + seconds
    while True:
        left = until - time.monotonic()
        try:
            found = await _peers(server)
        except NoBroker:
            if left <= _LOOK_AGAIN:
                raise
        else:
            if left <= _LOOK_AGAIN or _is_whole(found[0]):
                return found
        await asyncio.sleep(_LOOK_AGAIN)


def _is_whole(rows: list[dict[str, Any]]) -> bool:
    return all(row["state"] not in (AWAY, NO_LINK) for row in rows)


def clients(server: Server = None, as_json: AsJson = False) -> None:
    """Show the clients that are connected to a broker."""
    [rows] = run(ask(server, "clients"))
    if as_json:
        for row in rows:
            write_json(row)
        return
    shown = [(printable(row["name"]), row["state"], row["address"], *_traffic(row)) for row in rows]
    print_rows(("client", "state", "address", "since", "received", "sent"), shown, 4)
    count_of(rows, "client")


def _traffic(row: dict[str, Any]) -> tuple[str, str, str]:
    if "since" not in row:
        return "", "", ""
    return (
        brief_span(time.time() - row["since"]),
        size_text(row["received_bytes"]),
        size_text(row["outgoing"]["bytes"]),
    )


def _waited(row: dict[str, Any]) -> str:
    """For how long a neighbour was not read from; a moment now and then is nothing to tell."""
    seconds = row.get("throttled", 0.0)
    return brief_span(seconds) if seconds >= 1.0 else ""


def labels(row: dict[str, Any]) -> list[str]:
    """What a subscription is called on the command line."""
    if "durable" in row:
        return [f"@{row['durable']}"]
    return [f"@{row['session']}/{handle}" for handle in row["handles"]]


def print_rows(headings: tuple[str, ...], rows: Iterable[tuple[Any, ...]], texts: int) -> None:
    """A table; numbers are between the texts of the beginning and a filter at the end."""
    table = Table(box=None, pad_edge=False)
    for number, heading in enumerate(headings):
        right = number >= texts - 1 and heading not in ("filter", "address", "state")
        table.add_column(heading, justify="right" if right else "left", overflow="fold")
    for row in rows:
        table.add_row(*[f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row])
    if table.row_count:
        output_console().print(table)


def count_of(rows: list[Any], noun: str) -> None:
    output_console().print(plural(len(rows), noun) if rows else f"No {noun}s.", style="dim")
