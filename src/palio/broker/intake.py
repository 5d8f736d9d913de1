"""`Intake`: what connections bring, on its way to the router: past the guard for clients, a border for others.

What a client may not ask is answered without the router, and so are questions about the broker itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from palio.broker.border import bounced
from palio.broker.connection import BrokerConnection
from palio.broker.counts import BrokerCounts
from palio.broker.inspection import Inspection
from palio.broker.limits import TooManySubscriptions, TooMuchSubscribed
from palio.broker.operations import OpenOperation, OperationLog
from palio.broker.request_guard import RequestGuard, require_deliverable
from palio.broker.runner import EffectRunner
from palio.broker.settings import Settings
from palio.broker.unlisted import UnlistedMessage
from palio.model.effort import Meter, metered
from palio.model.errors import InvalidNotification, PalioError, Throttled
from palio.protocol.durable.subscriptions import Attach
from palio.protocol.encoding import UnreadRequest
from palio.protocol.frames import MAX_EVENT
from palio.protocol.greeting import Role
from palio.protocol.inquiries import Inspect, Inspected, Watch
from palio.protocol.peers import Forward, Update
from palio.protocol.requests import Advertise, Publish, PublishDocuments, Published, Refused, Subscribe
from palio.protocol.subjects import subject_of
from palio.routing.considering import AT_ONCE, in_pieces
from palio.routing.occurrences import PublishPart
from palio.routing.scopes import owner_of

# What is held for a client until it gives it back.
_HELD = frozenset((Subscribe, Advertise, Watch))
# Rows of a neighbour that are taken at once: some milliseconds.
ROWS = 16
# Bytes of a batch that are published at once, where others wait, and where nobody does: they are written
# together, and matched against all that is subscribed to (`palio bench neighbours --attack taker`).
AT_ONCE_CROWDED = 32 << 10
AT_ONCE_ALONE = 256 << 10


@dataclass(eq=False, repr=False)
class Intake:
    """Takes messages of connections, and hands them to the router."""

    _settings: Settings
    _guard: RequestGuard
    _runner: EffectRunner
    _inspection: Inspection
    _counts: BrokerCounts
    _operations: OperationLog

    def take(self, message: Any, connection: BrokerConnection, size: int, meter: Meter | None) -> None:
        """Handles a message from a client or a neighbour, which came in so many bytes.

        What it means is found out first, under the meter; then it is acted upon in one go. Without a meter, it
        is something that asks nothing about filters, and is small.
        """
        most = self._at_once(connection)
        operation = None
        if connection.role is Role.CLIENT:
            operation = self.begin(message, connection, size)
            try:
                if size > MAX_EVENT:
                    require_deliverable(message)
                name, limit = connection.name, self._settings.limits.subscriptions
                if type(message) in _HELD:
                    self._require_room(name, limit)
                if meter is None:
                    parts = [self._guard.check(message, connection.principal, name)]
                else:
                    with metered(meter):
                        message = self._guard.check(message, connection.principal, name)
                        parts = _parts(message, size, most)
                        for part in parts:
                            self._runner.router.consider(part, name)
                if type(message) is Attach:
                    if not self._runner.router.has_room_for(name, message.name, limit):
                        raise TooManySubscriptions(limit)
            except PalioError as problem:
                self.refuse(connection, message, problem, operation)
                return
        elif (border := connection.border) is not None:
            try:
                taken = border.coming(message)
            except UnlistedMessage as problem:
                connection.refuse(problem)
                return
            if taken is None:
                if (answer := bounced(message, self._settings.name)) is not None:
                    connection.say(answer)
                return
            parts = _parts(taken, size, most)
        else:
            parts = _parts(message, size, most)
        self._act(parts, connection, meter, operation)

    def _act(
        self,
        parts: list[Any],
        connection: BrokerConnection,
        meter: Meter | None,
        operation: OpenOperation | None,
        *,
        are_documents: bool = False,
    ) -> None:
        """Let the router handle a message that was understood, part by part."""
        try:
            for part in parts:
                if connection.role is Role.PEER:
                    with metered(meter):
                        self._runner.router.consider(part, connection.name)
                self._operations.current = operation
                self._runner.are_documents = are_documents
                self._runner.handle(part, connection.name)
                self._runner.are_documents = False
                self._operations.current = None
                if len(parts) > 1 and meter is not None:
                    meter.pause()
        except InvalidNotification as problem:  # of a neighbour: those of clients are answered
            connection.refuse(problem)
        finally:
            self._operations.current = None
            self._runner.are_documents = False
        if operation is not None:
            self._operations.handled(operation)

    def publish_read(
        self,
        connection: BrokerConnection,
        read: Publish,
        size: int,
        meter: Meter | None,
        operation: OpenOperation | None,
    ) -> None:
        """Handles what a client has published as documents, of so many bytes, which have been read.

        Whether their attributes can be read is not asked: this broker has just written them.
        Raises `NotAllowed`, `TooManyAttributes` and `NotAdvertised`.
        """
        with metered(meter):
            self._guard.read(read.notifications, connection.principal)
            self._runner.router.require_advertised(connection.name, read.notifications)
        parts = _parts(read, size, self._at_once(connection))
        if parts == [read]:
            parts = [PublishPart(read.notifications, read.number, read.publisher, last=True)]
        self._act(parts, connection, meter, operation, are_documents=True)

    def nothing_to_publish(
        self, connection: BrokerConnection, message: PublishDocuments, operation: OpenOperation | None
    ) -> None:
        """Answers for documents of which nothing was made that could be published."""
        self._operations.told(operation)
        if message.number:
            none = (0,) * len(message.notifications)
            connection.say(Published(message.number, self._settings.name, 0, none))

    def _at_once(self, connection: BrokerConnection) -> int:
        return AT_ONCE_CROWDED if connection.broker.scheduler.is_crowded else AT_ONCE_ALONE

    def _require_room(self, session: str, limit: int) -> None:
        """Raises `TooManySubscriptions` or `TooMuchSubscribed` for who may hold nothing more."""
        router, limits = self._runner.router, self._settings.limits
        if router.is_full(session, limit):
            raise TooManySubscriptions(limit)
        own, all_of_them = router.kept(session)
        if own > limits.kept and owner_of(session):
            raise TooMuchSubscribed(limits.kept, "limits.kept")
        if all_of_them > limits.kept_in_all:
            raise TooMuchSubscribed(limits.kept_in_all, "limits.kept_in_all")

    def inspected(self, connection: BrokerConnection, message: Inspect, size: int, meter: Meter | None) -> None:
        """Handles an inspection: a question about this broker."""
        operation = self._operations.begin(message, connection, size)
        try:
            with metered(meter):
                for result, last in self._inspection.answer(message, connection.principal):
                    connection.say(Inspected(message.number, result, last))
        except PalioError as problem:
            self.refuse(connection, message, problem, operation)
        else:
            self._operations.told(operation)

    def throttled(self, connection: BrokerConnection, request: UnreadRequest, waited: float) -> None:
        """Refuses a request that has waited too long for its turn."""
        self._counts.refused_requests[Throttled.__name__] += 1
        about = request.subject.partition(" ")[2]
        self._operations.note(connection, request.kind, about, problem=Throttled(waited))
        connection.say(Refused.of(request.subject, Throttled(waited), request.number))

    def begin(self, request: Any, connection: BrokerConnection, size: int) -> OpenOperation | None:
        """Notes a request of a client, which came in so many bytes."""
        return self._operations.begin(request, connection, size)

    def refuse(
        self, connection: BrokerConnection, request: Any, problem: PalioError, operation: OpenOperation | None
    ) -> None:
        """Says, counts and notes that a request is not carried out."""
        self._operations.refused(operation, problem)
        self._counts.refused_requests[type(problem).__name__] += 1
        connection.say(Refused.of(subject_of(request), problem, request.number))


def _parts(message: Any, size: int, most: int) -> list[Any]:
    """A message, of so many bytes, in parts that are handled one after the other, as others wait meanwhile.

    Of rows of a neighbour, who may send very many, what is added comes first, and what goes with the last: in
    between there is more than there should be, never less. All parts of a large batch are considered before
    one of them is handled.
    """
    if type(message) is Update and len(message.add) > ROWS:
        rows = message.add
        some = [Update(message.version, rows[start : start + ROWS]) for start in range(0, len(rows), ROWS)]
        return [*some, msgspec.structs.replace(message, add=())]
    if type(message) is Publish and (size > most or len(message.notifications) > AT_ONCE):
        pieces = in_pieces(message.notifications, [one.body.size for one in message.notifications], most)
        if len(pieces) > 1:
            number, publisher = message.number, message.publisher
            *earlier, last = pieces
            parts = [PublishPart(piece, number, publisher, last=False) for piece in earlier]
            return [*parts, PublishPart(last, number, publisher, last=True)]
    if type(message) is Forward and (size > most or len(message.envelopes) > AT_ONCE):
        sizes = [one.notification.body.size for one in message.envelopes]
        return [Forward(piece) for piece in in_pieces(message.envelopes, sizes, most)]
    return [message]
