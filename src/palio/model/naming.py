"""An event's name: `siena/17` is the event that the broker siena journaled as its seventeenth.

It is written so wherever an event without an id of its own has to be named, and wherever people read where
something is from; positions are names of events, joined by commas.
"""

from __future__ import annotations

import re

# A colon was written instead of the slash before, and is still read: streams are resumed with what was written.
SEPARATOR = "/"
_NAME = re.compile(r"(?P<origin>.+)[/:](?P<sequence>[0-9]{1,18})", re.DOTALL)


def event_name(origin: str, sequence: int) -> str:
    """The name of an event."""
    return f"{origin}{SEPARATOR}{sequence}"


def read_event_name(text: str) -> tuple[str, int] | None:
    """The origin and the sequence of a name; None if it is none."""
    found = _NAME.fullmatch(text)
    return None if found is None else (found["origin"], int(found["sequence"]))
