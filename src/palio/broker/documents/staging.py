"""`DocumentStaging`: notifications that bring documents go through the stages, and come back as any number.

1. What is made of a document has its priority and lifetime, and ids that follow from its own: if it comes
   again, what is made of it is known.
2. A publisher gets one confirmation for each document, whatever has become of it: that of the last event that
   was made of it, or sequence 0 if there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b

from palio.broker.documents.readers import is_cloudevent
from palio.documents.stages import StageChain, StageDocument, StageRoom
from palio.model.body import MAX_ID_CHARACTERS
from palio.model.notification import Notification
from palio.protocol.requests import Published


class DocumentStaging:
    """Has documents go through stages, and then read; in any thread."""

    def __init__(self, stages: StageChain, read: Callable[[Notification], Notification]) -> None:
        self._stages = stages
        self._read = read

    def room(self, size: int) -> int:
        """Bytes that may be made of a message of so many."""
        return StageRoom(size).limit if self._stages else 0

    def run(self, notification: Notification, publisher: str, room: StageRoom) -> list[Notification]:
        """What comes of a document. Raises what stages do, and what reading does."""
        return [self._read(one) for one in self._staged(notification, publisher, room)]

    @staticmethod
    def concerns(notifications: Iterable[Notification]) -> bool:
        """Whether stages are for any of these. A withdrawal, and a CloudEvent, goes through none."""
        return any(one.payload is not None and not is_cloudevent(one) for one in notifications)

    def _staged(self, notification: Notification, publisher: str, room: StageRoom) -> list[Notification]:
        content = notification.payload
        if not self._stages or content is None or not self.concerns((notification,)):
            return [notification]
        name = notification.id or blake2b(content, digest_size=8).hexdigest()
        document = StageDocument(content, dict(notification.attributes), publisher, name)
        made = self._stages.run(document, room)
        if len(made) == 1 and made[0] == document:
            return [notification]
        return [
            Notification(
                one.attributes,
                id=notification.id if len(made) == 1 else _id_of(notification.id, place),
                lifetime=notification.lifetime,
                priority=notification.priority,
                payload=one.content,
            )
            for place, one in enumerate(made, 1)
        ]


def _id_of(id: str | None, place: int) -> str | None:
    """The id of the document that was made as so-manieth of one with an id."""
    if id is None:
        return None
    made = f"{id}#{place}"
    if len(made) <= MAX_ID_CHARACTERS:
        return made
    return f"{blake2b(id.encode(), digest_size=16).hexdigest()}#{place}"


def confirmed_documents(answer: Published, counts: Sequence[int]) -> Published:
    """The confirmation of documents, of each of which so many events have come (2)."""
    sequences = answer.sequences or range(answer.sequence, answer.sequence + sum(counts))
    confirmed, at = [], 0
    for count in counts:
        at += count
        confirmed.append(sequences[at - 1] if count else 0)
    return Published(answer.number, answer.origin, confirmed[0], tuple(confirmed))
