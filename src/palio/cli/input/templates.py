"""Events as they are typed: JSON or `name=value` pairs, with places that are filled in anew for each event.

A string may contain {n} (1, 2, 3 …), {uuid}, {now} and {random:1:100}. A string that is nothing but one of
these becomes what it stands for: a number, or a time. Whatever else is in braces stays as it is.
"""

from __future__ import annotations

import re
import uuid
from datetime import UTC, datetime
from typing import Any

from palio.model import jsontext
from palio.model.errors import InvalidNotification, PalioError
from palio.model.moments import format_time

_NUMBER = r"-?\d+(?:\.\d+)?"
_PLACE = re.compile(rf"\{{(?:(n)|(uuid)|(now)|random:({_NUMBER}):({_NUMBER}))\}}")


class NotAnEvent(PalioError):
    """Arguments that are no event."""


def parse_event(arguments: list[str]) -> dict[str, Any]:
    """The event that arguments describe. Raises `NotAnEvent` and `InvalidNotification`."""
    if len(arguments) == 1 and arguments[0].lstrip().startswith("{"):
        document = jsontext.read(arguments[0])
        assert isinstance(document, dict)
        return document
    event: dict[str, Any] = {}
    for argument in arguments:
        name, equals, text = argument.partition("=")
        if not equals or not name:
            raise NotAnEvent(
                f"{argument!r} is no event: write a JSON object, or pairs such as symbol=ACME price=101.5."
            )
        if name in event:
            raise NotAnEvent(f"{name!r} is there twice; an attribute has one value.")
        event[name] = _guess(text)
    return event


def _guess(text: str) -> Any:
    """A value as in JSON; what is none is a text."""
    try:
        value = jsontext.read(text)
    except InvalidNotification:
        return text
    return text if isinstance(value, float) and value - value != 0 else value


def has_places(document: Any) -> bool:
    """Whether anything in it is to be filled in."""
    if isinstance(document, str):
        return _PLACE.search(document) is not None
    if isinstance(document, dict):
        return any(map(has_places, document.values()))
    return isinstance(document, list) and any(map(has_places, document))


def fill(document: Any, number: int) -> Any:
    """The document for the event of that number."""
    if isinstance(document, str):
        place = _PLACE.fullmatch(document)
        return fill_text(document, number) if place is None else _value(place, number)
    if isinstance(document, dict):
        return {name: fill(value, number) for name, value in document.items()}
    return [fill(value, number) for value in document] if isinstance(document, list) else document


def fill_text(text: str, number: int) -> str:
    """A text with its places filled in, always a text."""
    return _PLACE.sub(lambda found: _text(_value(found, number)), text)


def _value(place: re.Match[str], number: int) -> Any:
    count, identity, now, low, high = place.groups()
    if count:
        return number
    if identity:
        return str(uuid.uuid4())
    if now:
        return datetime.now(UTC)
    import random  # noqa: PLC0415 (few events ask for it, and it brings a library of hashes)

    if "." in low + high:
        return round(random.uniform(float(low), float(high)), 6)
    first, last = sorted((int(low), int(high)))
    return random.randint(first, last)


def _text(value: Any) -> str:
    return format_time(value) if isinstance(value, datetime) else str(value)
