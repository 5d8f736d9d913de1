"""Positions as people type them: names of events, `siena/17,turin/5`, of which what follows is wanted."""

from __future__ import annotations

import time

from palio.client.attaching import Since
from palio.model.errors import PalioError
from palio.model.moments import parse_since
from palio.model.naming import SEPARATOR, read_event_name


class WrongPlace(PalioError):
    """A text that is no position."""


def parse_position(text: str) -> dict[str, int]:
    """Brokers and sequences. Raises `WrongPlace`."""
    found: dict[str, int] = {}
    for part in text.split(","):
        named = read_event_name(part.strip())
        if named is None:
            raise WrongPlace(f"{part!r} is no position; write BROKER/SEQUENCE, such as siena/17.")
        found[named[0]] = named[1]
    return found


def parse_beginning(text: str) -> Since:
    """A time, all, or a position. Raises `WrongTime` and `WrongPlace`."""
    if SEPARATOR in text and not text.replace(SEPARATOR, "").isdigit():  # which is more like a date
        return parse_position(text)
    return parse_since(text, now=time.time())
