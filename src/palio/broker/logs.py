"""Structured logs: one event a line, its fields apart from its sentence, as text for people or as JSON."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

_KNOWN = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    return {name: value for name, value in record.__dict__.items() if name not in _KNOWN}


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")


def _printable(text: str) -> str:
    """With control characters escaped: what others chose must not look like lines of this log."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


class TextFormat(logging.Formatter):
    """`time level logger: sentence  field=value …`"""

    def format(self, record: logging.LogRecord) -> str:
        fields = "".join(f"  {name}={_printable(str(value))}" for name, value in _fields(record).items())
        message = _printable(record.getMessage())
        text = f"{_time(record)} {record.levelname.lower():7} {record.name}: {message}{fields}"
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


class JsonFormat(logging.Formatter):
    """An object a line."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        } | _fields(record)
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str, ensure_ascii=False)


def set_up(level: str, style: str) -> None:
    """Let all of Palio log to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormat() if style == "json" else TextFormat())
    logger = logging.getLogger("palio")
    logger.handlers[:] = [handler]
    logger.setLevel(level.upper())
    logger.propagate = False
