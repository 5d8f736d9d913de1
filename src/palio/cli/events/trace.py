"""`palio trace`: who would get an event, over the whole network, hop by hop."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.text import Text
from rich.tree import Tree

from palio.cli.input.events import LineNumber, read_event
from palio.cli.input.templates import parse_event
from palio.cli.program.connecting import Server, with_client
from palio.cli.program.dressing import argument, flag
from palio.cli.program.terminal import ExitCode, help_epilog, output_console, plural, printable, write_json
from palio.model.formats import from_document
from palio.model.notification import Notification
from palio.protocol.inquiries import Hop, Recipient

EPILOG = help_epilog(
    "palio trace symbol=ACME price=101.5",
    "palio trace examples/event.json",
    """palio trace '{"symbol": "ACME", "price": 101.5}'""",
    "palio trace examples/events.jsonl --line 2 --json",
)


def trace(
    event: Annotated[
        list[str],
        argument(
            "EVENT", "Pairs: symbol=ACME price=101.5; a JSON object; a JSON file; or - for standard input."
        ),
    ],
    *,
    server: Server = None,
    line: LineNumber = None,
    as_json: Annotated[bool, flag("--json", "The way as a JSON object.")] = False,
) -> None:
    """Show who would get an event, without delivering it.

    It goes the way that it would go if it were published at this broker. Each
    broker on the way says who would get it there, by which filters, and to
    whom it goes on. Exits with 0 if somebody would get it, else with 1.
    """
    route = with_client(server, lambda client: client.trace(_event_of(event, line)))
    hops = list(walk(route))
    recipients = [one for hop in hops for one in hop.recipients]
    if as_json:
        write_json({"recipients": len(recipients), "brokers": len(hops), "route": msgspec.to_builtins(route)})
    else:
        console = output_console()
        console.print(tree_of(route), soft_wrap=True)
        takers = plural(len(recipients), "taker") if recipients else "Nobody would get it"
        problems = sum(hop.problem is not None for hop in hops)
        missing = f"; {plural(problems, 'part')} of the network did not answer" if problems else ""
        console.print(f"\n{takers}, {plural(len(hops), 'broker')}{missing}.", style="bold", soft_wrap=True)
    if not recipients:
        raise typer.Exit(ExitCode.NO)


def _event_of(arguments: list[str], line: int | None) -> Notification:
    """The event that arguments name: pairs as `palio pub` takes them, unless it is one file, or JSON."""
    first = arguments[0]
    if len(arguments) == 1 and (first.lstrip().startswith("{") or "=" not in first or Path(first).exists()):
        return read_event(first, line)
    if line is not None:
        raise typer.BadParameter("--line needs a file, and EVENT is pairs.")
    return from_document(parse_event(arguments))


def walk(hop: Hop) -> Iterator[Hop]:
    """Every broker on a way, each before those to which it goes on."""
    yield hop
    for onward in hop.onward:
        yield from walk(onward)


def tree_of(hop: Hop) -> Tree:
    """The way of an event as a tree: brokers, and under each who would get it there."""
    tree = Tree(_broker(hop), guide_style="dim")
    _grow(tree, hop)
    return tree


def _grow(tree: Tree, hop: Hop) -> None:
    for recipient in hop.recipients:
        tree.add(_recipient(recipient))
    for onward in hop.onward:
        _grow(tree.add(_broker(onward)), onward)


def _broker(hop: Hop) -> Text:
    text = Text(printable(hop.broker), style="bold cyan")
    if hop.problem is not None:
        text.append(f"  {printable(hop.problem)}", style="red")
    return text


def _recipient(recipient: Recipient) -> Text:
    text = Text("→ ", style="green")
    if recipient.durable:
        text.append(f"@{printable(recipient.name)}", style="bold green").append("  durable", style="dim")
    else:
        names = ", ".join(f"@{recipient.name}/{handle}" for handle in recipient.handles)
        text.append(printable(names or recipient.name), style="green")
    for filter in recipient.filters:
        text.append(f"  {printable(filter)}", style="not bold default")
    if recipient.more:
        text.append(f"  and {recipient.more:,} more", style="dim")
    return text
