"""JSON lines: a document in each line. In messages these are objects; in files also CloudEvents and batches."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence

import msgspec

from palio.model import jsontext
from palio.model.errors import InvalidNotification
from palio.model.formats.documents import from_document, to_document, to_json
from palio.model.formats.form import Message, Occurrence, Part, Reading
from palio.model.formats.plain import several
from palio.model.notification import Notification


class JsonLines(msgspec.Struct, frozen=True):
    """A line can be read without those before it."""

    media_types: tuple[str, ...] = ("application/x-ndjson", "application/jsonl", "application/json-lines")
    suffixes: tuple[str, ...] = (".jsonl", ".ndjson", ".json", ".txt", ".gz")
    by_line: bool = True

    def read(self, message: Message, reading: Reading) -> Iterator[Notification]:
        message.require_utf8()
        return several(_documents(message.body, reading), reading)

    def write(self, occurrences: Sequence[Occurrence]) -> list[Message]:
        lines = [to_json(to_document(one.notification)) + b"\n" for one in occurrences]
        return [Message((("Content-Type", self.media_types[0]),), b"".join(lines))]

    def read_part(self, text: str, reading: Reading) -> list[Part]:
        """An object, a CloudEvent, or an array of CloudEvents."""
        document = jsontext.read(text)
        if isinstance(document, list):
            return list(enumerate(Notification.from_cloudevents(document, strict=reading.strict)))
        return [(None, from_document(document, strict=reading.strict))]


def _documents(body: bytes, reading: Reading) -> Iterator[tuple[str, object]]:
    count = 0
    for number, line in enumerate(io.BytesIO(body), 1):
        if line.strip():
            count += 1
            reading.require_few(count)
            try:
                yield f"line {number}: $", jsontext.read(line)
            except InvalidNotification as problem:
                raise InvalidNotification(f"line {number}: {problem.path}", problem.reason) from None


JSON_LINES = JsonLines()
