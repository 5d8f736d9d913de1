"""A line of a file of filters, wherever it is read: a bare text, or an object.

    {"id": "desk-7", "filter": "shop/+/books?price<10", "dialect": "mqtt"}

What is said in a line is said in its own dialect, or in that of the file. A filter may stand there as a
document, where its dialect is one of JSON; a whole pattern of EventBridge may be the line.
"""

from __future__ import annotations

from typing import Any

import msgspec

from palio.language.dialects import EVENTBRIDGE, PALIO
from palio.model import jsontext
from palio.model.errors import PalioError

FILTER = "filter"


class WrongLine(PalioError):
    """A line that does not hold what its file is for."""


class UnsaidEntry(WrongLine):
    """A line that has an id, or its number, and not what it is the id of."""

    id: str | int
    key: str
    sentence = 'This object needs "{key}": the text of the {key}, a string.'


class WrittenEntry(msgspec.Struct, frozen=True):
    """What a line says: a text with its id, and what the text is written in."""

    id: str | int
    text: str
    dialect: str = PALIO


def read_entry(line: str, number: str | int, dialect: str = PALIO, *, key: str = FILTER) -> WrittenEntry:
    """What a line says, be it of filters or of something else; without an id it has its number.

    Raises `WrongLine` and `InvalidNotification`.
    """
    text = line.strip()
    if not text.startswith("{"):
        return WrittenEntry(number, text, dialect)
    document = jsontext.read(text)
    if dialect == EVENTBRIDGE and key not in document:
        return WrittenEntry(number, text, dialect)
    id, written = document.get("id", number), written_text(document.get(key))
    if isinstance(id, bool) or not isinstance(id, (str, int)):
        raise WrongLine("An id is a string or an integer.")
    if written is None:
        raise UnsaidEntry(id, key)
    own = document.get("dialect", dialect) if key == FILTER else PALIO
    if not isinstance(own, str):
        raise WrongLine('"dialect" is the name of one, a string.')
    return WrittenEntry(id, written, own)


def written_text(written: Any) -> str | None:
    """The text of a filter in a document; where it is one itself, as JSON. None if it is neither."""
    if isinstance(written, (dict, list)):
        return jsontext.write(written).decode()
    return written if isinstance(written, str) else None
