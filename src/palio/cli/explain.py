"""`palio explain`: why does a filter match an event, or why not?"""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from palio.cli.inputs import BadLine, notification_of
from palio.cli.lines import LineFile
from palio.cli.terminal import ExitCode, help_epilog, output_console, write_json
from palio.model import jsontext
from palio.model.explanation import Explanation
from palio.model.filter import Filter
from palio.model.notification import Notification

EPILOG = help_epilog(
    """palio explain 'price > 100 and not halted' '{"price": 101.5}'""",
    """palio explain 'symbol in ("ACME", "PALI")' examples/events.jsonl --line 2""",
    """echo '{"price": "101"}' | palio explain 'price > 100' - --json""",
)


def explain(
    filter_text: Annotated[str, typer.Argument(metavar="FILTER", help="The text of a filter.")],
    event: Annotated[
        str,
        typer.Argument(metavar="EVENT", help="A JSON file, - for standard input, or JSON that starts with {."),
    ],
    line: Annotated[
        int | None, typer.Option("--line", min=1, metavar="NUMBER", help="EVENT is JSON lines; take this one.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The explanation as a JSON object.")] = False,
) -> None:
    """Show, condition by condition, why a filter matches an event or why not.

    Each condition is marked ✓ or ✗, with the value that decided. The event is
    a JSON object or a CloudEvent. Exits with 0 if the filter matches, else 1.
    """
    filter = Filter.parse(filter_text)
    notification = _read_event(event, line)
    explanation = filter.explain(notification)
    if as_json:
        write_json(_document(explanation) | {"contradiction": filter.contradiction})
    else:
        _show(output_console(), filter, explanation)
    if not explanation.holds:
        raise typer.Exit(ExitCode.NO)


def _read_event(event: str, line: int | None) -> Notification:
    if event.lstrip().startswith("{"):
        if line is not None:
            raise typer.BadParameter("--line needs a file, and EVENT is JSON itself.")
        return notification_of(jsontext.read(event))
    with LineFile(event) as file:
        if line is None:
            return notification_of(jsontext.read(file.document()))
        for found in file.lines():
            if found.number == line:
                if found.problem is not None:
                    raise BadLine(found.problem)
                return notification_of(jsontext.read(found.text))
        raise BadLine(f"{file.name} has no line {line:,}.")


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
