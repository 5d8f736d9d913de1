"""How events are shown, one a line: as JSON, as text for people, or as a template says."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any

import typer

from palio.cli.program.dressing import option
from palio.cli.program.terminal import printable
from palio.client import Event
from palio.model import jsontext
from palio.model.moments import format_time
from palio.model.naming import event_name

FormatText = Annotated[str, option("FORMAT", "json, full, text, or a template: '{price}'.", "--format")]
Format = Callable[[Event], str]
_PLACE = re.compile(r"\{(\$?[^{}]+)\}")


def format_of(text: str) -> Format:
    match text:
        case "json":
            return lambda event: event.notification.to_json()
        case "full":
            return lambda event: jsontext.write(full(event)).decode()
        case "text":
            return _text
        case _ if _PLACE.search(text):
            return lambda event: _PLACE.sub(lambda place: _filled(event, place[1]), text)
    raise typer.BadParameter(f"{text!r} is no format: json, full, text, or a template such as '{{price}}'.")


def full(event: Event) -> dict[str, Any]:
    """All that there is to say about an event, as plain data."""
    document: dict[str, Any] = {"event": jsontext.read(event.notification.to_json())}
    document |= {name: read(event) for name, read in _PROPERTIES.items() if name != "event"}
    return {name: value for name, value in document.items() if value is not None}


_PROPERTIES: dict[str, Callable[[Event], Any]] = {
    "id": lambda event: event.id,
    "time": lambda event: format_time(event.time),
    "origin": lambda event: event.origin,
    "sequence": lambda event: event.sequence,
    "attempt": lambda event: event.attempt,
    "priority": lambda event: event.priority,
    "event": lambda event: event.notification.to_json(),
}


def _text(event: Event) -> str:
    clock = event.time.astimezone().strftime("%H:%M:%S.%f")[:-3]
    content = jsontext.read(event.notification.to_json())
    pairs = " ".join(f"{name}={_plain(value)}" for name, value in content.items())
    again = f"  (attempt {event.attempt})" if event.redelivered else ""
    return printable(f"{clock} {event_name(event.origin, event.sequence)}  {pairs}{again}")


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else jsontext.write(value).decode()


def _filled(event: Event, name: str) -> str:
    if name.startswith("$"):
        read = _PROPERTIES.get(name[1:])
        value = read(event) if read else None
    else:
        value = event.get(name)
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
