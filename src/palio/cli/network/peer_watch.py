"""`palio peers --watch`: what happens to the links of a broker, as it happens."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import datetime
from typing import Any

from palio.cli.program.terminal import printable, write_json, write_line
from palio.client import Client
from palio.client.errors import ConnectionLost

# Seconds that the broker is asked to wait for the next change; and those of an answer that is late.
_WAITS, _LATE = 10.0, 30.0


async def follow_changes(client: Client, after: int, *, as_json: bool) -> None:
    """Write a line for each change after a number, until this is cancelled."""
    while True:
        page: dict[str, Any] = {"changes": (), "onward": after}
        with suppress(ConnectionLost):  # which is told, and made again
            page = await client.overlay_changes(after, wait=_WAITS, timeout=_WAITS + _LATE)
        for change in page["changes"]:
            if as_json:
                write_json(change)
            else:
                write_line(line_of(change))
        after = page["onward"]
        await asyncio.sleep(0)


def line_of(change: dict[str, Any]) -> str:
    """A change as people read it."""
    moment = datetime.fromtimestamp(change["time"]).astimezone().strftime("%H:%M:%S")
    words = [moment, f"{change['what']:<13}"]
    if change.get("broker"):
        words.append(printable(change["broker"]))
    if change.get("former"):
        words.append(f"instead of {printable(change['former'])}")
    if change.get("part"):
        words.append(f"part {printable(change['part'])}")
    if change.get("why"):
        words.append(f"({printable(change['why'])})")
    if change.get("looks"):
        words.append("looks for another one")
    if change.get("seconds") is not None:
        words.append(f"in {change['seconds']:.2f} s")
    if change.get("reason"):
        words.append(printable(change["reason"]))
    return " ".join(words)
