"""`Invoking`: requests of clients that extensions answer (`Invoke`), while they are under way.

A handler that is a plain function answers at once: it thinks under the meter, in the turn of whoever asks. What
has to wait for something is a coroutine function, and runs as a task.

1. What nobody has added is refused, and so is who lacks the right that the request needs.
2. So many are under way for one session, and in all, and no more. What an argument needs counts as held for who
   asks, until the answer.
3. Who has gone is not worked for any more: its tasks are cancelled. One that must not end in the middle shields
   itself.
4. An answer fits into a frame; one that does not is refused with its size. A mistake of an extension is its own
   (`extension`, 2).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from inspect import isawaitable
from typing import TYPE_CHECKING, Any

import msgspec

from palio.broker.accounts import Accounts
from palio.broker.counts import BrokerCounts
from palio.broker.extension import Extensions
from palio.broker.operations import OpenOperation, OperationLog
from palio.model.effort import Meter, metered
from palio.model.errors import PalioError
from palio.protocol.frames import MAX_EVENT
from palio.protocol.invocations import Invoke, Invoked
from palio.protocol.requests import Refused
from palio.protocol.subjects import subject_of

if TYPE_CHECKING:
    from palio.broker.connection import BrokerConnection

# Requests of one session that may be under way: more than anybody has questions at a time. And of all sessions:
# each may hold an argument, which is counted, and some kilobytes of a task, which are not.
OF_ONE = 32
IN_ALL = 1_024
_encode = msgspec.msgpack.Encoder().encode


class TooManyInvocations(PalioError):
    """As many requests to extensions are under way as may be: of a session, or in all."""

    limit: int
    whose: str
    sentence = (
        "{limit:,} requests of {whose} are under way, as many as may be; wait for some of their answers, and "
        "ask again."
    )


class AnswerTooLarge(PalioError, kw_only=True):
    """An answer that no frame can bring."""

    what: str
    limit: int
    got: int
    sentence = (
        "The answer to {what!r} has {got:,} bytes, and one may have {limit:,}; ask for less at a time, such as "
        "for pages or for single items."
    )


class Invoking:
    """Takes invocations and answers them."""

    def __init__(
        self, extensions: Extensions, accounts: Accounts, counts: BrokerCounts, operations: OperationLog
    ) -> None:
        self._operations = operations
        self._extensions = extensions
        self._accounts = accounts
        self._counts = counts
        self._under_way: dict[BrokerConnection, set[asyncio.Task[None]]] = {}
        self._in_all = 0

    def take(self, connection: BrokerConnection, message: Invoke, size: int, meter: Meter | None) -> None:
        """Handles a request, which came in so many bytes."""
        operation = self._operations.begin(
            message, connection, size, looks=self._extensions.only_looks(message.what)
        )
        try:
            self._require_room(connection)
            name, request = self._extensions.request(message.what, connection.principal)
            with metered(meter), self._extensions.careful(name, message.what):
                answer = request.handle(message.argument, connection.principal, connection.name)
                if not isawaitable(answer):
                    connection.say(_invoked(message, answer))
                    self._operations.told(operation)
                    return
        except PalioError as problem:
            self._refuse(connection, message, problem, operation)
            return
        self._begin(connection, size, self._answer(name, connection, message, answer, operation))

    def _require_room(self, connection: BrokerConnection) -> None:
        if len(self._under_way.get(connection, ())) >= OF_ONE:
            raise TooManyInvocations(OF_ONE, "this client")
        if self._in_all >= IN_ALL:
            raise TooManyInvocations(IN_ALL, "all clients of this broker")

    def _begin(self, connection: BrokerConnection, size: int, answer: Coroutine[Any, Any, None]) -> None:
        tasks = self._under_way.get(connection)
        if tasks is None:
            tasks = self._under_way[connection] = set()
            connection.closed.add_done_callback(lambda _: self._gone(connection))
        account = connection.account
        self._accounts.change(account, size)
        self._in_all += 1
        task = asyncio.get_running_loop().create_task(answer)
        tasks.add(task)

        def ended(task: asyncio.Task[None]) -> None:
            self._in_all -= 1
            self._accounts.change(account, -size)
            tasks.discard(task)

        task.add_done_callback(ended)

    async def _answer(
        self,
        name: str,
        connection: BrokerConnection,
        message: Invoke,
        answer: Awaitable[Any],
        operation: OpenOperation | None,
    ) -> None:
        try:
            with self._extensions.careful(name, message.what):
                connection.say(_invoked(message, await answer))
                self._operations.told(operation)
        except PalioError as problem:
            self._refuse(connection, message, problem, operation)

    def _refuse(
        self,
        connection: BrokerConnection,
        message: Invoke,
        problem: PalioError,
        operation: OpenOperation | None,
    ) -> None:
        self._counts.refused_requests[type(problem).__name__] += 1
        self._operations.refused(operation, problem)
        connection.say(Refused.of(subject_of(message), problem, message.number))

    def _gone(self, connection: BrokerConnection) -> None:
        for task in self._under_way.pop(connection, ()):
            task.cancel()


def _invoked(message: Invoke, result: Any) -> Invoked:
    encoded = _encode(result)
    if len(encoded) > MAX_EVENT:
        raise AnswerTooLarge(what=message.what, limit=MAX_EVENT, got=len(encoded))
    return Invoked(message.number, msgspec.Raw(encoded))
