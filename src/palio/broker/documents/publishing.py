"""`DocumentPublishing`: what clients publish as XML is read, and then published as any notification.

    PublishDocuments ──guard──> workers: stages, reading ──guard──> Publish, as of any client

1. What has come behind a message on its connection waits until its documents are read: a session's events keep
   their order, whatever they are.
2. All documents of a message are published, or none; what is wrong with the first that is refuses them.
3. Rights are about content, so they are looked at when a document has been read; before, only whether somebody
   may publish at all, and how much.
4. A family may want to know its publishers beforehand; then whoever is not registered publishes none of it.
5. Attributes that say what was read (`RESERVED`) come from reading only: no client gives them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from palio.broker.documents.staging import DocumentStaging
from palio.broker.documents.workers import DocumentWorkers, ReadingJob
from palio.documents.reserved import FAMILY
from palio.documents.stages import StageRoom
from palio.model.effort import Meter
from palio.model.errors import PalioError
from palio.model.notification import Notification
from palio.model.values import Value
from palio.protocol.requests import Publish, PublishDocuments

if TYPE_CHECKING:
    from palio.broker.connection import BrokerConnection
    from palio.broker.intake import Intake
    from palio.broker.request_guard import RequestGuard


class DocumentPublishing:
    """Takes documents of clients, has them read, and hands on what they say."""

    def __init__(
        self,
        workers: DocumentWorkers,
        staging: DocumentStaging,
        require: Callable[[Value | None, str], None],
        guard: RequestGuard,
        intake: Intake,
    ) -> None:
        """`staging` says what comes of a document, in threads. `require` raises what is said to a principal who
        may not publish documents of a family.
        """
        self._workers = workers
        self._staging = staging
        self._require = require
        self._guard = guard
        self._intake = intake

    def take(self, connection: BrokerConnection, message: PublishDocuments, size: int) -> None:
        """Handles a request, which came in so many bytes."""
        operation = self._intake.begin(message, connection, size)
        try:
            message = self._guard.documents(message, connection.principal, connection.name)
        except PalioError as problem:
            self._intake.refuse(connection, message, problem, operation)
            return

        def done(read: list[list[Notification]], problem: Exception | None) -> None:
            connection.go_on(lambda meter: publish(read, problem, meter))

        def publish(read: list[list[Notification]], problem: Exception | None, meter: Meter) -> None:
            try:
                if problem is not None:
                    raise problem
                made = [one for several in read for one in several]
                for one in made:
                    self._require(one.attributes.get(FAMILY), connection.principal.name)
                counts = tuple(map(len, read))
                if not made:
                    self._intake.nothing_to_publish(connection, message, operation)
                    return
                if message.number and counts.count(1) < len(counts):
                    connection.made[message.number] = counts
                several = Publish(tuple(made), message.number, message.publisher)
                there = max(size, sum([one.body.size for one in made]))
                self._intake.publish_read(connection, several, there, meter, operation)
            except PalioError as refused:
                connection.made.pop(message.number, None)
                self._intake.refuse(connection, message, refused, operation)

        connection.hold(size + self._staging.room(size))
        room, who = StageRoom(size), connection.principal.name
        steps = [partial(self._staging.run, one, who, room) for one in message.notifications]
        self._workers.add(ReadingJob(connection.owner, steps, done, size))

    def stop(self) -> None:
        """Nothing more is read."""
        self._workers.stop()
