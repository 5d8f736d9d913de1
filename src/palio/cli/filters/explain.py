"""`palio explain`: why does a filter match an event, or why not?"""

from __future__ import annotations

from dataclasses import InitVar
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from palio.cli.brokers.rights import allows, rights_of, show_rights
from palio.cli.input.events import EventText, LineNumber, read_event
from palio.cli.input.inputs import Dialect
from palio.cli.input.selections import FamilyFiles, FilterReader
from palio.cli.network.broker_status import labels
from palio.cli.program.connecting import Server, with_client
from palio.cli.program.dressing import argument, flag, option
from palio.cli.program.terminal import ExitCode, help_epilog, output_console, plural, write_json
from palio.client import Client
from palio.language import PALIO, read_filter
from palio.model import jsontext
from palio.model.errors import PalioError
from palio.model.explanation import Explanation
from palio.model.filter import Filter
from palio.model.notification import Notification

EPILOG = help_epilog(
    """palio explain 'price > 100 and not halted' '{"price": 101.5}'""",
    """palio explain 'symbol in ("ACME", "PALI")' examples/events.jsonl --line 2""",
    "palio explain @desk-7 examples/event.json",
    """echo '{"price": "101"}' | palio explain 'price > 100' - --json""",
    """palio explain --dialect mqtt 'a/+?n>10' '{"topic": "a/b", "n": 12}'""",
)


def explain(
    filter_text: Annotated[str, argument("FILTER", "The text of a filter, or @SUBSCRIPTION at a broker.")],
    event: EventText,
    *,
    line: LineNumber = None,
    dialect: Dialect = PALIO,
    as_json: Annotated[bool, flag("--json", "The explanation as a JSON object.")] = False,
    principal: Annotated[
        str | None, option("PRINCIPAL", "With the rights of this principal there.", "--as")
    ] = None,
    rights: Annotated[bool, flag("--rights", "With your own rights, and the limits, at the broker.")] = False,
    family: FamilyFiles = None,
    server: Server = None,
) -> None:
    """Show, condition by condition, why a filter matches an event or why not.

    Each condition is marked ✓ or ✗, with the value that decided. The event is
    a JSON object or a CloudEvent. Exits with 0 if the filter matches, else 1.

    What begins with @ is no filter but names a subscription as palio subs
    shows it, @NAME for a durable one and @SESSION/HANDLE for another; its filter
    is fetched from the broker. No filter begins with @.

    An EVENT that is an XML document (FILE.xml) is read by its family: one of the
    broker, or of --family, with the paths that the filter names.

    With --rights or --as, the answer says also whether the event may be
    published and seen there, and whether event and filter are within the
    limits; it is 0 then only if the event would be delivered.
    """
    reader = FilterReader(family, server)
    if filter_text.startswith("@") and dialect == PALIO:
        filter = read_filter(with_client(server, lambda client: _filter_of(client, filter_text)))
    else:
        filter = reader.read(filter_text, dialect)
    is_document = event.endswith(".xml") and not event.lstrip().startswith("{")
    notification = reader.document(event) if is_document else read_event(event, line)
    explanation = filter.explain(notification)
    there = None
    if rights or principal is not None:
        there = with_client(server, lambda client: _rights_of(client, principal))
    checks = [] if there is None else _checks(there, filter, notification)
    if as_json:
        document = _document(explanation) | {"contradiction": filter.contradiction}
        if there is not None:
            document["rights"] = there | {name: holds for name, holds, _ in checks}
        write_json(document)
    else:
        _show(output_console(), filter, explanation)
        if there is not None:
            show_rights(output_console(), there["principal"], rights_of(there), notification)
            for _, holds, sentence in checks[2:]:
                output_console().print(f"{'✓' if holds else '✗'} {sentence}", soft_wrap=True)
    if not explanation.holds or not all(holds for name, holds, _ in checks if name != "may_publish"):
        raise typer.Exit(ExitCode.NO)


async def _rights_of(client: Client, principal: str | None) -> dict[str, Any]:
    argument: dict[str, Any] = {} if principal is None else {"principal": principal}
    [row] = await client.inspect("rights", **argument)
    return dict(row)


def _checks(there: dict[str, Any], filter: Filter, notification: Notification) -> list[tuple[str, bool, str]]:
    """What speaks for and against at a broker: names, whether they hold, and sentences for the limits."""
    known, limits = rights_of(there), there["limits"]
    found = [
        ("may_publish", allows(known.publish, notification), ""),
        ("may_see", allows(known.subscribe, notification), ""),
    ]
    sizes = {
        "attributes": ("event", "attribute", len(notification.attributes)),
        "filter": ("filter", "character", len(filter.source or str(filter))),
    }
    for key, (what, noun, count) in sizes.items():
        sentence = f"the {what} has {plural(count, noun)}; the limit is {limits[key]:,}"
        found.append((f"{key}_within_limit", count <= limits[key], sentence))
    return found


class NoSubscription(PalioError):
    """A subscription that a broker does not have."""

    subscription: str
    broker: InitVar[str]
    sentence = (
        "There is no subscription {subscription} at {broker}; palio subs shows those that there are, and a "
        "durable one is known at its home only."
    )


async def _filter_of(client: Client, subscription: str) -> str:
    for row in await client.inspect("subs"):
        if subscription in labels(row):
            return str(row["filter"])
    raise NoSubscription(subscription, client.broker)


def _show(console: Console, filter: Filter, explanation: Explanation) -> None:
    for depth, part in explanation.walk():
        console.print(_line(depth, part), soft_wrap=True)
    console.print()
    if explanation.holds:
        console.print("The filter matches this event.", style="bold green")
    elif filter.contradiction is not None:
        sentence = f"The filter can match no event at all: {filter.contradiction}"
        console.print(sentence, style="bold red", soft_wrap=True)
    else:
        console.print("The filter does not match this event.", style="bold red")


def _line(depth: int, part: Explanation) -> Text:
    mark, colour = ("✓", "green") if part.holds else ("✗", "red")
    joins = part.join not in ("condition", "constant")
    text = Text("  " * depth)
    text.append(mark, style=f"bold {colour}")
    text.append(f" {part.headline}", style="italic" if joins else "")
    if part.note:
        text.append(f"  {part.note}", style="dim" if part.holds else colour)
    return text


def _document(part: Explanation) -> dict[str, Any]:
    """A part with its parts. Values are as in a notification's JSON, so that times and bytes can be told."""
    document: dict[str, Any] = {"text": part.text, "holds": part.holds, "join": part.join}
    if part.attribute is not None:
        document["attribute"] = part.attribute
        present = {} if part.value is None else {"value": part.value}
        document["value"] = jsontext.read(Notification(present).to_json()).get("value")
        document["note"] = part.note
    if part.parts:
        document["parts"] = [_document(one) for one in part.parts]
    return document
