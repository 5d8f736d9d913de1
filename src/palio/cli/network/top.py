"""`palio top`: a broker, live."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Annotated, Any

import typer
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from palio.cli.network.broker_status import events_of, labels
from palio.cli.network.subs import state_of
from palio.cli.output.keys import ended_by
from palio.cli.program.connecting import Server, connected, run
from palio.cli.program.dressing import option
from palio.cli.program.terminal import error_console, help_epilog, output_console, plural, printable
from palio.model.amounts import brief_span, size_text
from palio.model.moments import parse_span

EPILOG = help_epilog("palio top --count 1", "palio top --every 200ms --count 3")
_SHOWN = 10  # links, and durable subscriptions: those for which most is waiting


def top(
    server: Server = None,
    every: Annotated[str, option("SPAN", "How often it is renewed.")] = "1s",
    count: Annotated[int | None, typer.Option("--count", "-n", min=1, help="End after so many looks.")] = None,
) -> None:
    """Watch a broker: rates, links, and the subscriptions for which most is waiting.

    q or Ctrl-C ends it. Where standard output is no terminal, each look is a block of
    lines.
    """
    run(_watch(server, parse_span(every), count))


async def _watch(server: str | None, every: float, count: int | None) -> None:
    console = output_console()
    before: tuple[float, dict[str, int]] | None = None
    looks = 0
    async with connected(server, tell=not console.is_terminal) as client:
        with ended_by("q") as ended, Live(console=console, auto_refresh=False) as live:
            while not ended.is_set():
                answers = [await client.inspect(one) for one in ("stats", "peers", "subs")]
                now = time.monotonic()
                events = events_of(answers[0][0]["router"])
                rates = _rates(before, now, events)
                before = now, events
                view = _view(answers, events, rates)
                looks += 1
                if console.is_terminal:
                    live.update(view, refresh=True)
                else:
                    console.print(view)
                if looks == count:
                    break
                with suppress(TimeoutError):
                    await asyncio.wait_for(ended.wait(), every)
    if not console.is_terminal:
        error_console().print(f"{plural(looks, 'look')}.", style="dim")


def _rates(before: tuple[float, dict[str, int]] | None, now: float, events: dict[str, int]) -> dict[str, float]:
    if before is None:
        return {}
    then, known = before
    return {key: (count - known[key]) / max(now - then, 1e-6) for key, count in events.items()}


def _view(answers: list[list[dict[str, Any]]], events: dict[str, int], rates: dict[str, float]) -> Group:
    [stats], peers, subs = answers
    broker, router = stats["broker"], stats["router"]
    head = Text(broker["name"], style="bold")
    head.append(f"  up {brief_span(time.time() - broker['started'])}", style="dim")
    head.append(f"  {plural(broker['sessions'] - 1, 'client')}, {plural(router['links'], 'link')}, ")
    head.append(f"{plural(router['filters'], 'filter')}")
    if dropped := sum(broker["dropped"].values()):
        head.append(f", {dropped:,} dropped", style="red")
    if (store := stats.get("store")) and store["waiting"]:
        head.append(f"\nThe store cannot be written: {store['waiting']}", style="bold red")
    flow = _columns("events", *events)
    flow.add_row("in all", *[f"{count:,}" for count in events.values()])
    flow.add_row("a second", *[f"{rates[key]:,.0f}" if rates else "" for key in events])
    parts: list[Any] = [head, Text(), flow]
    if peers:
        links = _columns("links", "state", "received", "sent", "waiting")
        for row in sorted(peers, key=_waiting_bytes, reverse=True)[:_SHOWN]:
            links.add_row(row["name"] or row["address"], row["state"], *_traffic(row))
        parts += [Text(), links, *_rest(peers)]
    waiting = sorted((row for row in subs if "durable" in row), key=lambda row: -row["pending"])
    if waiting:
        table = _columns("durable subscriptions", "state", "pending", "oldest", "delivered", "dead")
        for row in waiting[:_SHOWN]:
            oldest = "" if row["oldest"] is None else brief_span(time.time() - row["oldest"])
            numbers = f"{row['pending']:,}", oldest, f"{row['delivered']:,}", f"{row['dead_letters']:,}"
            table.add_row(printable(labels(row)[0]), state_of(row), *numbers)
        parts += [Text(), table, *_rest(waiting)]
    return Group(*parts)


def _columns(first: str, *others: str) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column(first, style="bold")
    for heading in others:
        table.add_column(heading, justify="right")
    return table


def _rest(rows: list[dict[str, Any]]) -> list[Text]:
    """That there are more than are shown."""
    more = len(rows) - _SHOWN
    return [Text(f"and {more:,} more", style="dim")] if more > 0 else []


def _waiting_bytes(row: dict[str, Any]) -> int:
    waiting: int = row["outgoing"]["waiting_bytes"] if "outgoing" in row else 0
    return waiting


def _traffic(row: dict[str, Any]) -> tuple[str, str, str]:
    if "outgoing" not in row:
        return "", "", ""
    outgoing = row["outgoing"]
    return size_text(row["received_bytes"]), size_text(outgoing["bytes"]), size_text(outgoing["waiting_bytes"])
