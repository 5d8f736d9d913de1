"""A match as a line of JSON, for people and for programs; the same wherever it was found."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple

from palio.matching.patterns.match import PATTERN_KEY, PATTERN_NAME, PATTERN_TIME, PATTERN_TIMED_OUT
from palio.model.moments import format_time
from palio.model.notification import Notification


class Shown(NamedTuple):
    """An event of a match: the step that it was, its id and time, and where it is still known, what it says."""

    step: str
    id: str
    time: datetime
    content: Notification | None = None

    def line(self) -> dict[str, Any]:
        told: dict[str, Any] = {"step": self.step, "id": self.id, "time": format_time(self.time)}
        return told if self.content is None else told | {"event": json.loads(self.content.to_json())}


def match_line(said: Notification, id: str, events: Iterable[Shown]) -> dict[str, Any]:
    """From the notification about a match, its id, and its events."""
    line: dict[str, Any] = {"pattern": said[PATTERN_NAME], "id": id}
    if PATTERN_TIMED_OUT in said:
        line["timed_out"] = True
    content = json.loads(said.to_json())
    key = {name.removeprefix(PATTERN_KEY): content[name] for name in said if name.startswith(PATTERN_KEY)}
    if key:
        line["key"] = key
    line["time"] = format_time(said[PATTERN_TIME])  # type: ignore[arg-type]
    line["events"] = [one.line() for one in events]
    return line
