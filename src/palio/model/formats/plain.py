"""Plain JSON: an object is an event, an array several."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from palio.model import jsontext
from palio.model.formats.documents import plain_document, to_document, to_json
from palio.model.formats.form import Message, Occurrence, Reading
from palio.model.notification import Notification

JSON = "application/json"


class PlainJson(msgspec.Struct, frozen=True):
    """Objects, whatever they are about: a CloudEvent sent so is content like any other."""

    media_types: tuple[str, ...] = (JSON,)

    def read(self, message: Message, reading: Reading) -> Iterator[Notification]:
        message.require_utf8()
        document = jsontext.read(message.body)
        if isinstance(document, list):
            reading.require_few(len(document))
            yield from several(((f"$[{at}]", one) for at, one in enumerate(document)), reading)
        else:
            yield plain_document("$", document, reading)

    def write(self, occurrences: Sequence[Occurrence]) -> list[Message]:
        documents = [to_document(one.notification) for one in occurrences]
        body = to_json(documents[0] if len(documents) == 1 else documents)
        return [Message((("Content-Type", JSON),), body)]


def several(parts: Iterable[tuple[str, object]], reading: Reading) -> Iterator[Notification]:
    """Documents with their paths; the id of the request tells each event from the others by its place."""
    id = reading.properties.get("id")
    for at, (path, document) in enumerate(parts):
        own = reading
        if id is not None:
            own = msgspec.structs.replace(reading, properties={**reading.properties, "id": f"{id} {at}"})
        yield plain_document(path, document, own)


PLAIN_JSON = PlainJson()
