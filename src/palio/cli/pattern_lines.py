"""A match as a line of JSON, for people and for programs; the same wherever it was found."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from palio.matching.patterns.match import PATTERN_KEY, PATTERN_NAME, PATTERN_TIME, PATTERN_TIMED_OUT
from palio.model.notification import Notification
from palio.model.values import format_time


def match_line(said: Notification, id: str, events: Iterable[tuple[str, str, datetime]]) -> dict[str, Any]:
    """From the notification about a match, its id, and the step, id and time of each of its events."""
    line: dict[str, Any] = {"pattern": said[PATTERN_NAME], "id": id}
    if PATTERN_TIMED_OUT in said:
        line["timed_out"] = True
    content = json.loads(said.to_json())
    key = {name.removeprefix(PATTERN_KEY): content[name] for name in said if name.startswith(PATTERN_KEY)}
    if key:
        line["key"] = key
    line["time"] = format_time(said[PATTERN_TIME])  # type: ignore[arg-type]
    line["events"] = [{"step": step, "id": one, "time": format_time(time)} for step, one, time in events]
    return line
