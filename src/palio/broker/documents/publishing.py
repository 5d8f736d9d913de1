"""`DocumentPublishing`: what clients publish as XML is read, and then published as any notification.

    PublishDocuments ──guard──> workers: stages, reading ──guard──> Publish, as of any client
                                    └──> on disk, confirmed ──> PublishDocuments again, for other stages

1. What has come behind a message on its connection waits until its documents are read: a session's events keep
   their order, whatever they are.
2. All documents of a message are published, or none; what is wrong with the first that is refuses them.
3. Rights are about content, so they are looked at when a document has been read; before, only whether somebody
   may publish at all, and how much.
4. A family may want to know its publishers beforehand; then whoever is not registered publishes none of it.
5. Attributes that say what was read (`RESERVED`) come from reading only: no client gives them.
6. If there are stages that nobody waits for, what one principal publishes as documents keeps its order: what
   goes through no stage is read when all before it has been.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import msgspec

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
    from palio.broker.documents.handing_on import HandedOnDocuments
    from palio.broker.intake import Intake
    from palio.broker.operations import OpenOperation
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
        *,
        before: DocumentStaging,
        queue: HandedOnDocuments | None,
    ) -> None:
        """`staging` says what comes of a document, in threads. `require` raises what is said to a principal who
        may not publish documents of a family. With a `queue`, documents wait there for `staging`, and have gone
        through `before`.
        """
        self._workers = workers
        self._staging = staging
        self._before = before
        self._queue = queue
        self._require = require
        self._guard = guard
        self._intake = intake

    def take(self, connection: BrokerConnection, message: PublishDocuments, size: int) -> None:
        """Handles a request, which came in so many bytes."""
        operation = self._intake.begin(message, connection, size)
        queue, principal = self._queue, connection.principal
        has_waited = queue is not None and queue.owns(connection)
        try:
            checked = self._guard.documents(message, principal, connection.name, counted=not has_waited)
        except PalioError as problem:
            self._intake.refuse(connection, message, problem, operation)
            return
        if queue is None or has_waited:
            self._read(connection, checked, size, operation, self._staging)
        elif self._before.concerns(message.notifications):
            own = message.publisher or principal.called(
                connection.name
            )  # as the session does that publishes it
            self._hand_on(connection, msgspec.structs.replace(message, publisher=own), size, operation)
        else:  # no stage is for it, but for what it follows
            connection.hold(size)
            queue.after(principal.name, lambda: self._read(connection, checked, size, operation, self._staging))

    def _read(
        self,
        connection: BrokerConnection,
        message: PublishDocuments,
        size: int,
        operation: OpenOperation | None,
        staging: DocumentStaging,
    ) -> None:
        """Have documents go through stages and be read, and publish what comes of them."""

        def done(read: list[list[Notification]], problem: Exception | None) -> None:
            made = [one for several in read for one in several]
            there = max(size, sum([one.body.size for one in made]))
            connection.go_on(partial(publish, read, made, there, problem), there)

        def publish(
            read: list[list[Notification]],
            made: list[Notification],
            there: int,
            problem: Exception | None,
            meter: Meter | None,
        ) -> None:
            try:
                if problem is not None:
                    raise problem
                for one in made:
                    self._require(one.attributes.get(FAMILY), connection.principal.name)
                counts = tuple(map(len, read))
                if not made:
                    self._intake.nothing_to_publish(connection, message, operation)
                    return
                if message.number and counts.count(1) < len(counts):
                    connection.made[message.number] = counts
                several = Publish(tuple(made), message.number, message.publisher)
                self._intake.publish_read(connection, several, there, meter, operation)
            except PalioError as refused:
                connection.made.pop(message.number, None)
                self._intake.refuse(connection, message, refused, operation)

        self._work(connection, message, size, staging, done)

    def _hand_on(
        self,
        connection: BrokerConnection,
        message: PublishDocuments,
        size: int,
        operation: OpenOperation | None,
    ) -> None:
        """Have documents go through the stages that wait, and confirm what is on disk before the others."""

        def done(staged: list[list[Notification]], problem: Exception | None) -> None:
            connection.go_on(lambda meter: put(staged, problem), size)

        def put(staged: list[list[Notification]], problem: Exception | None) -> None:
            assert self._queue is not None
            made = tuple([one for several in staged for one in several])
            try:
                if problem is not None:
                    raise problem
                if made:
                    handed = msgspec.structs.replace(message, notifications=made)
                    self._queue.put(connection.principal.name, handed, confirm)
                else:
                    confirm(None)
            except PalioError as refused:
                confirm(refused)

        def confirm(problem: PalioError | None) -> None:
            if problem is None:
                self._intake.nothing_to_publish(connection, message, operation)
            else:
                self._intake.refuse(connection, message, problem, operation)

        self._work(connection, message, size, self._before, done)

    def _work(
        self,
        connection: BrokerConnection,
        message: PublishDocuments,
        size: int,
        staging: DocumentStaging,
        done: Callable[[list[list[Notification]], Exception | None], None],
    ) -> None:
        connection.hold(size + staging.room(size))
        room, who = StageRoom(size), connection.principal.name
        steps = [partial(staging.run, one, who, room) for one in message.notifications]
        self._workers.add(ReadingJob(connection.owner, steps, done, size))

    def stop(self) -> None:
        """Nothing more is read."""
        self._workers.stop()
