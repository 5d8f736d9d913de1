"""`palio network`: several brokers on this machine, from one file."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from palio.cli.brokers.hosting import CannotStart
from palio.cli.network.broker_status import events_of
from palio.cli.network.file import NetworkPlan, read_network
from palio.cli.network.members import Member, MemberState, Supervisor
from palio.cli.program.connecting import NoBroker, ask
from palio.cli.program.dressing import argument, flag
from palio.cli.program.extras import missing_of
from palio.cli.program.loading import command_group
from palio.cli.program.terminal import ExitCode, error_console, help_epilog, output_console, plural, write_json

_UP = "palio network up examples/network.toml"
_STATUS = "palio network status examples/network.toml"
app = command_group(_UP, _STATUS)
_COLOURS = {
    "starting": "yellow",
    "up": "green",
    "silent": "bold yellow",
    "stopped": "dim",
    "failed": "bold red",
}
File = Annotated[str, argument("FILE", "A network: brokers and their links, as TOML.")]


@app.command("up", epilog=help_epilog(_UP, f"{_UP} --strict"))
def network_up(
    file: File,
    restart: Annotated[bool, flag("--restart", "Start a broker again that has ended.")] = False,
    strict: Annotated[bool, flag("--strict", "Stop all when one ends.")] = False,
    quiet: Annotated[bool, flag("--quiet", "Show no state.", "-q")] = False,
) -> None:
    """Start the brokers of a file, one process each, and run them until Ctrl-C.

    In a terminal a table shows how they are; elsewhere a line tells of each
    change. Each broker logs into broker.log in its data folder. Where they
    listen and what processes they are is in network.json in the data folder of
    the network, and in what palio network status shows.

    Exits with 0 if all brokers ended in order, and with 1 if one failed.
    """
    planned = read_network(file)
    if (missing := missing_of("broker")) is not None:
        raise missing
    Path(planned.data).mkdir(mode=0o700, parents=True, exist_ok=True)
    if not asyncio.run(_up(planned, restart=restart, strict=strict, quiet=quiet)):
        raise typer.Exit(ExitCode.NO)


async def _up(planned: NetworkPlan, *, restart: bool, strict: bool, quiet: bool) -> bool:
    console = error_console()
    live = console.is_terminal and not quiet
    plain = not live and not quiet

    def report(member: Member) -> None:
        if plain:
            console.print(_line(member), soft_wrap=True)

    try:
        supervisor = Supervisor(planned, restart=restart, strict=strict, report=report)
    except OSError as problem:
        raise CannotStart(f"No port can be had on this machine: {problem.strerror or problem}.") from None

    def interrupted() -> None:
        if stopping:
            supervisor.kill()
        stopping.append(True)
        supervisor.stop()

    stopping: list[bool] = []
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, interrupted)
    if not live:
        return await supervisor.run()
    with Live(console=console, auto_refresh=False) as view:
        showing = asyncio.create_task(_show(view, supervisor, planned, stopping))
        try:
            return await supervisor.run()
        finally:
            showing.cancel()
            view.update(_live_view(supervisor, planned, ""), refresh=True)


async def _show(view: Live, supervisor: Supervisor, planned: NetworkPlan, stopping: list[bool]) -> None:
    while True:
        caption = "stopping …" if stopping else "Ctrl-C stops them all"
        view.update(_live_view(supervisor, planned, caption), refresh=True)
        await asyncio.sleep(0.25)


def _line(member: Member) -> str:
    where = f" at {member.server}, process {member.pid}" if member.state is MemberState.UP else ""
    reason = f": {member.reason}" if member.reason else "."
    return f"{member.name} is {member.state.value}{where}{reason}"


def _live_view(supervisor: Supervisor, planned: NetworkPlan, caption: str) -> Group:
    members = supervisor.members.values()
    table, notes = _view(planned, [member.row() | {"facts": member.facts} for member in members])
    table.caption = caption
    return Group(table, notes)


def _degrees(planned: NetworkPlan) -> dict[str, int]:
    """How many links each broker should have."""
    return {name: sum(name in (link.source, link.target) for link in planned.links) for name in planned.brokers}


def _view(planned: NetworkPlan, rows: list[dict[str, Any]]) -> tuple[Table, Text]:
    """All brokers; and what is wrong, a line each: a broker's own reason, and why a link is missing."""
    title = f"{plural(len(planned.brokers), 'broker')}, {plural(len(planned.links), 'link')}"
    table = Table(title=title, title_justify="left", caption_justify="left", box=None, pad_edge=False)
    table.add_column("broker", style="bold", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("address", no_wrap=True)
    for heading in ("links", "clients", "filters", "taken", "given", "journal"):
        table.add_column(heading, justify="right", no_wrap=True)
    wanted, notes = _degrees(planned), Text()
    for row in rows:
        name, state = row["name"], row["state"]
        cells = _cells(row["facts"], wanted[name]) if row["facts"] else [""] * 6
        table.add_row(name, Text(state, style=_COLOURS[state]), row["server"], *cells)
        missing = [one["reason"] for one in row["facts"].get("peers", ()) if one["state"] == "no link"]
        for note in filter(None, [row["reason"], *missing]):
            notes.append(f"{name}: {note}\n", style="red")
    return table, notes


def _cells(facts: dict[str, Any], wanted: int) -> list[str]:
    router = facts["router"]
    events = events_of(router)
    # The one that asks is a client as well, and no news.
    numbers = (facts["broker"]["sessions"] - 1, router["filters"], events["taken"], events["delivered"])
    head = f"{facts['store']['head']:,}" if "store" in facts else "off"
    return [f"{router['links']}/{wanted}", *[f"{number:,}" for number in numbers], head]


@app.command("status", epilog=help_epilog(_STATUS))
def network_status(
    file: File, as_json: Annotated[bool, flag("--json", "All that is known, as a JSON object.")] = False
) -> None:
    """Show how the brokers of a file are that palio network up runs.

    Exits with 0 if all are up and have their links, else with 1.
    """
    planned = read_network(file)
    rows = asyncio.run(_ask_all(planned))
    wanted = _degrees(planned)
    well = all(
        row["state"] == MemberState.UP.value and row["facts"]["router"]["links"] == wanted[row["name"]]
        for row in rows
    )
    if as_json:
        write_json({"well": well, "brokers": rows})
    else:
        table, notes = _view(planned, rows)
        output_console().print(table)
        output_console().print(notes, end="", soft_wrap=True)
    if not well:
        raise typer.Exit(ExitCode.NO)


async def _ask_all(planned: NetworkPlan) -> list[dict[str, Any]]:
    try:
        known = {one["name"]: one for one in json.loads(planned.state_file.read_text())["brokers"]}
    except (OSError, ValueError, KeyError, TypeError):
        known = {}
    rows = []
    for name, settings in planned.brokers.items():
        row = {"name": name, "server": settings.listen, "state": "stopped", "reason": "", "pid": None}
        rows.append(row | known.get(name, {}) | {"facts": {}})
    await asyncio.gather(*[_ask_one(row) for row in rows])
    return rows


async def _ask_one(row: dict[str, Any]) -> None:
    if row["server"].endswith(":0"):
        return
    try:
        stats, peers = await ask(row["server"], "stats", "peers")
    except NoBroker:
        if row["state"] == MemberState.UP.value:
            row["state"] = MemberState.SILENT.value
        return
    row["facts"] = stats[0] | {"peers": peers}
    row["state"] = MemberState.UP.value
