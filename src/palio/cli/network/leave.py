"""`palio leave`: a broker leaves its network for good, in order, and says what it waits for."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from palio.cli.output.progress import MovingBar
from palio.cli.program.confirming import Yes, want_yes
from palio.cli.program.connecting import Server, connected, run
from palio.cli.program.dressing import argument, flag, option
from palio.cli.program.terminal import ExitCode, error_console, help_epilog, plural, printable, say, write_json
from palio.client import Client
from palio.client.errors import ClientClosed, ConnectionLost, NotConnected

EPILOG = help_epilog(
    "palio leave", "palio leave 127.0.0.1:7171 --yes", "palio leave --to siena --yes", "palio leave --stay"
)
# Seconds between two looks. When it has left it stays for a second, so nobody misses that.
_LOOK_EVERY = 0.25
_NAMED = 5


def leave(
    address: Annotated[
        str | None, argument("ADDRESS", "The broker that is to leave, if not that of --server.")
    ] = None,
    *,
    server: Server = None,
    to: Annotated[
        str | None, option("NAME", "The neighbour that is to have its durable subscriptions; any.")
    ] = None,
    parting: Annotated[
        bool, flag("--parting", "Leave, though neighbours lose sight of each other by it.")
    ] = False,
    no_wait: Annotated[bool, flag("--no-wait", "Do not wait until it has left.")] = False,
    stay: Annotated[bool, flag("--stay", "Let it stay after all, if it is not too late.")] = False,
    yes: Yes = False,
) -> None:
    """Let a broker leave its network for good, and lose nothing by it.

    It takes nothing new any more, hands its durable subscriptions to a neighbour,
    waits until everybody has read what was published there, lets itself be
    forgotten by all others, and stops. What it waits for is told; Ctrl-C ends
    only the telling: call it again to see how far it is, or --stay to keep it.

    Without --yes nothing is done: it is told what there would be to wait for.
    For a broker that is gone already there is palio forget.
    """
    wish = {"to": to or "", "parting": parting}
    status = run(_leave(address or server, wish, stay=stay, wait=not no_wait, yes=yes))
    write_json(status)
    if not (yes or stay) and status["stage"] == "member":
        want_yes(f"{status['broker']} would leave its network, and stop.")


async def _leave(
    server: str | None, wish: dict[str, Any], *, stay: bool, wait: bool, yes: bool
) -> dict[str, Any]:
    async with connected(server, reconnect=False) as client:
        if stay:
            status = await client.leave("stay")
            say(f"{status['broker']} stays. What it has handed over stays where it is.")
            return status
        if not yes:
            status = await client.leave("try", **wish)
            for sentence in waits_for(status):
                say(sentence)
            return status
        return await _see_it_off(client, wish, wait=wait)


async def _see_it_off(client: Client, wish: dict[str, Any], *, wait: bool) -> dict[str, Any]:
    """Let it leave, and tell what it waits for until it has left."""
    told: list[str] = []
    status = await client.leave("leave", **wish)
    with MovingBar(error_console()) as bar:
        while wait and status["stage"] != "left":
            sentences = list(waits_for(status))
            for sentence in sentences:
                if sentence not in told:
                    say(sentence)
            told = sentences
            lowest = min([at for _, at in status["behind"]], default=status["head"])
            bar.show("waiting for readers", lowest, max(1, status["head"]))
            await asyncio.sleep(_LOOK_EVERY)
            try:
                status = await client.leave("leave", **wish)
            except (ConnectionLost, NotConnected, ClientClosed):
                if status["stage"] != "going":
                    say("The broker has stopped before it had left. Start it again: it goes on.", "yellow")
                    raise typer.Exit(ExitCode.NO_BROKER) from None
                status["stage"] = "left"  # it was about to, and is gone
    if status["stage"] == "left":
        say(f"{status['broker']} has left the network, and stops.", "green")
    else:
        say(f"{status['broker']} is leaving. The same command shows how far it is; --stay keeps it.")
    return status


def waits_for(status: dict[str, Any]) -> Iterator[str]:
    """What a broker has to wait for, in sentences."""
    if status["problem"]:
        yield status["problem"]
    if status["here"]:
        to = f" to {status['to']}" if status["to"] else ""
        yield f"{plural(status['here'], 'durable subscription')} to be handed over{to}."
    if status["away"]:
        names = ", ".join(map(printable, status["away"]))
        yield f"Waiting for {names}, which must answer. `palio forget NAME` is for one that never comes back."
    if status["older"]:
        names = ", ".join(map(printable, status["older"]))
        yield f"{names} cannot answer: they run an earlier version. Upgrade them first."
    for name, at in status["behind"][:_NAMED]:
        yield f"{printable(name)} has not read {plural(status['head'] - at, 'event')} of its journal."
    if status["unread"] > _NAMED:
        yield f"{plural(status['unread'] - _NAMED, 'other')} have not read all of it, either."
    for broker, count in status["believed"]:
        subscriptions = plural(count, "durable subscription")
        yield f"{printable(broker)} has still to hear where {subscriptions} went."
    if status["stage"] == "going":
        yield "Everybody is being told that it leaves."
    elif status["stage"] == "member" and status["kept"]:
        kept = plural(status["kept"], "event")
        yield f"Its journal goes with it: {kept} that who looks back would not find any more, unless archived."
