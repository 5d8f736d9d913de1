"""All formats, by media type and by the names of files.

Formats that need more than the model are made in the rooms above, and handed to these functions as `more`.

A media type of CloudEvents says all about a message. Otherwise `ce-…` headers make it one in binary mode,
whatever its data are; and without them its media type says what it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import TYPE_CHECKING

from palio.model.errors import PalioError, cut
from palio.model.formats.binary import BINARY
from palio.model.formats.form import FileFormat, Format, Message, Reading
from palio.model.formats.lines import JSON_LINES
from palio.model.formats.plain import JSON, PLAIN_JSON
from palio.model.formats.structured import BATCH, STRUCTURED
from palio.model.notification import Notification

if TYPE_CHECKING:
    from dataclasses import InitVar

FORMATS: tuple[Format, ...] = (PLAIN_JSON, JSON_LINES, STRUCTURED, BATCH)
FILE_FORMATS: tuple[FileFormat, ...] = (JSON_LINES,)
_CLOUDEVENTS = "application/cloudevents"


class WrongMediaType(PalioError):
    """A body of a kind that is not known here."""

    media_type: str = cut(80)
    expected: InitVar[str]

    def sentence(self, expected: str) -> str:
        this = repr(self.media_type) if self.media_type else "of no named type"
        some = f"--json, or -H 'Content-Type: {JSON}'" if JSON in expected else f"-H 'Content-Type: {expected}'"
        return f"This is {this}, and should be {expected}. With curl: {some}."


def _expected(formats: tuple[Format, ...]) -> str:
    *names, last = [one.media_types[0] for one in formats]
    return f"{', '.join(names)} or {last}, or have ce-… headers"


def format_of(message: Message, more: tuple[Format, ...] = ()) -> Format:
    """The format of a message. Raises `WrongMediaType`."""
    media_type = message.media_type
    formats = (*FORMATS, *more)
    named = next((one for one in formats if media_type in one.media_types), None)
    if named is not None and media_type.startswith(_CLOUDEVENTS):
        return named
    if BINARY.describes(message):
        return BINARY
    if named is None and re.fullmatch(r"application/[\w.-]+\+json", media_type):
        return PLAIN_JSON
    if named is None:
        raise WrongMediaType(media_type, _expected(formats))
    return named


def read_message(message: Message, reading: Reading, more: tuple[Format, ...] = ()) -> Iterator[Notification]:
    """What a message says. Raises `WrongMediaType`, and what its format does."""
    return format_of(message, more).read(message, reading)


def file_format(name: str) -> FileFormat | None:
    """The format of a file, by its suffix."""
    suffix = PurePath(name).suffix
    return next((one for one in FILE_FORMATS if suffix in one.suffixes), None)
