"""`Match`: what was found, with the events that it consists of; and as a notification that can be published."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from palio.model.notification import Notification
from palio.model.values import TIME_MAX, Value

# The attributes of a notification about a match begin with this; by the name a pattern knows its own.
PATTERN = "pattern"
PATTERN_NAME = "pattern.name"
PATTERN_TIME = "pattern.time"
PATTERN_KEY = "pattern.key."
PATTERN_TIMED_OUT = "pattern.timed_out"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Constituent(msgspec.Struct, frozen=True, array_like=True):
    """An event of a match, and the step that it was."""

    step: str
    id: str
    time: int
    position: int

    @property
    def moment(self) -> datetime:
        return moment_of(self.time)


class Match(msgspec.Struct, frozen=True):
    """A pattern found. `time` is when it was complete: its last event's, or when the window of an absence
    ended.

    With `timed_out` it is no match, but a part of one that nothing completed until `time`; only patterns that
    say `timeout tell` have such.
    """

    pattern: str
    key: dict[str, Value]
    time: int
    constituents: tuple[Constituent, ...]
    timed_out: bool = False

    @property
    def id(self) -> str:
        """The same for the same pattern and the same events, wherever and however often they are found."""
        named = [(one.step, one.id, one.position) for one in self.constituents]
        about = (self.pattern, named, "timed out") if self.timed_out else (self.pattern, named)
        return hashlib.sha256(msgspec.msgpack.encode(about)).hexdigest()[:32]

    @property
    def moment(self) -> datetime:
        return moment_of(self.time)

    def notification(self) -> Notification:
        """What is published about it: it names the pattern, the key, and the events."""
        content: dict[str, Any] = {
            "name": self.pattern,
            "steps": [one.step for one in self.constituents],
            "events": [one.id for one in self.constituents],
            "time": self.moment,
        }
        if self.timed_out:
            content["timed_out"] = True
        if self.key:
            content["key"] = dict(self.key)
        return Notification({PATTERN: content}, id=self.id)


def moment_of(time: int) -> datetime:
    """A time in microseconds since 1970, as values have it; what lies beyond all times is the last one."""
    try:
        return _EPOCH + timedelta(microseconds=time)
    except OverflowError:
        return TIME_MAX
