"""What a format is, what it reads from and writes to, and what whoever reads may ask for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from palio.model.errors import InvalidNotification, WrongParameter
from palio.model.notification import Notification


class Message(msgspec.Struct, frozen=True):
    """Bytes, and the headers that say what they are."""

    headers: tuple[tuple[str, str], ...]
    body: bytes

    @classmethod
    def of(cls, headers: Iterable[tuple[str, str]], body: bytes) -> Message:
        """As it came: the names of headers may be written in any case."""
        return cls(tuple([(name.lower(), value) for name, value in headers]), body)

    @property
    def content_type(self) -> str:
        return next((value for name, value in self.headers if name.lower() == "content-type"), "")

    @property
    def media_type(self) -> str:
        return media_type_of(self.content_type)

    def require_utf8(self) -> None:
        """Raises `WrongParameter` for a text in another charset."""
        found = re.search(r"charset\s*=\s*\"?([^\s;\"]+)", self.content_type, re.IGNORECASE)
        if found and found[1].lower() not in ("utf-8", "utf8", "us-ascii"):
            raise WrongParameter("Content-Type", "JSON is UTF-8; another charset is not known here.")


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """How notifications are to be read, whatever the format."""

    properties: Mapping[str, Any] = {}  # of what is no CloudEvent: id, priority, lifetime
    by_source: bool = False  # whether a CloudEvent is known by source and id together
    strict: bool = False  # whether content is refused that filters cannot see
    most: int | None = None  # events of one message

    def require_few(self, count: int) -> None:
        """Before events are made of something, so many that they would not fit are refused."""
        if self.most is not None and count > self.most:
            raise InvalidNotification("$", f"One request may have {self.most:,} events.")


class Occurrence(Protocol):
    """A notification, and where and when (seconds since 1970) it was published: an envelope, for example."""

    @property
    def notification(self) -> Notification: ...

    @property
    def origin(self) -> str: ...

    @property
    def sequence(self) -> int: ...

    @property
    def time(self) -> float: ...


class Format(Protocol):
    """A way to write notifications down in messages."""

    @property
    def media_types(self) -> tuple[str, ...]:
        """Those that say it; the first is the one that is sent."""

    def read(self, message: Message, reading: Reading) -> Iterator[Notification]:
        """What a message says. Raises `InvalidNotification` with the path, `WrongParameter` for a header."""

    def write(self, occurrences: Sequence[Occurrence]) -> list[Message]:
        """In as few messages as the format allows."""


# The place in a line, if that has several, and what is there.
Part = tuple[int | None, Notification]


class FileFormat(Protocol):
    """A way to write notifications down in files."""

    @property
    def suffixes(self) -> tuple[str, ...]:
        """Which files are written so."""

    @property
    def by_line(self) -> bool:
        """Whether a line can be read without those before it; otherwise a file is read as a whole."""

    def read_part(self, text: str, reading: Reading) -> list[Part]:
        """What a line, or the whole, says. Raises `InvalidNotification`."""


def media_type_of(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def is_json(media_type: str) -> bool:
    """Whether data of this type is JSON."""
    return media_type.endswith(("/json", "+json"))


def is_xml(media_type: str) -> bool:
    """Whether data of this type is XML (RFC 7303)."""
    return media_type in ("application/xml", "text/xml") or media_type.endswith("+xml")
