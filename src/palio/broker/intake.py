"""`Intake`: what connections bring, on its way to the router: past the guard for clients, a border for others.

What a client may not ask is answered without the router, and so are questions about the broker itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from palio.broker.border import bounced
from palio.broker.connection import BrokerConnection
from palio.broker.counts import BrokerCounts
from palio.broker.inspection import Inspection
from palio.broker.limits import TooManySubscriptions
from palio.broker.request_guard import RequestGuard, require_deliverable
from palio.broker.runner import EffectRunner
from palio.broker.settings import Settings
from palio.broker.unlisted import UnlistedMessage
from palio.model.errors import InvalidNotification, PalioError
from palio.protocol.durable.subscriptions import Attach
from palio.protocol.frames import MAX_EVENT
from palio.protocol.greeting import Role
from palio.protocol.inquiries import Inspect, Inspected, Watch
from palio.protocol.requests import Advertise, Refused, Subscribe
from palio.protocol.subjects import subject_of

# What is held for a client until it gives it back.
_HELD = frozenset((Subscribe, Advertise, Watch))


@dataclass(eq=False, repr=False)
class Intake:
    """Takes messages of connections, and hands them to the router."""

    _settings: Settings
    _guard: RequestGuard
    _runner: EffectRunner
    _inspection: Inspection
    _counts: BrokerCounts

    def take(self, message: Any, connection: BrokerConnection, size: int) -> None:
        """Handles a message from a client or a neighbour, which came in so many bytes."""
        if connection.role is Role.CLIENT:
            try:
                if size > MAX_EVENT:
                    require_deliverable(message)
                name, limit = connection.name, self._settings.limits.subscriptions
                if type(message) in _HELD and self._runner.router.is_full(name, limit):
                    raise TooManySubscriptions(limit)
                message = self._guard.check(message, connection.principal, name)
                if type(message) is Attach:
                    if not self._runner.router.has_room_for(name, message.name, limit):
                        raise TooManySubscriptions(limit)
            except PalioError as problem:
                self._refuse(connection, message, problem)
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
            message = taken
        try:
            self._runner.handle(message, connection.name)
        except InvalidNotification as problem:  # of a neighbour: those of clients are answered
            connection.refuse(problem)

    def inspected(self, connection: BrokerConnection, message: Inspect) -> None:
        """Handles an inspection: a question about this broker."""
        try:
            for result, last in self._inspection.answer(message, connection.principal):
                connection.say(Inspected(message.number, result, last))
        except PalioError as problem:
            self._refuse(connection, message, problem)

    def _refuse(self, connection: BrokerConnection, request: Any, problem: PalioError) -> None:
        self._counts.refused_requests[type(problem).__name__] += 1
        connection.say(Refused.of(subject_of(request), problem, request.number))
