"""The operation log: every request leaves a row, whoever made it, by whatever binding, and whatever came of it.

A request is noted when it comes in (`begin`), and its row is made when it is answered: who, when, what kind,
how many bytes, and the result. How rows come to the disk:

1. The row of a publish goes with its append, in one transaction: what is in the journal has its row, also after
   a crash, and nothing that was undone has one. It names the sequences; what was published is there already.
2. All other rows are gathered for a moment and written together, with the next append or alone; a crash may
   lose those of the last moment.
3. What waits to be written is bounded. Rows beyond that are left out, and counted in a row of their own.
4. What is refused at a door leaves a row as well: a connection, a request that cannot be read, one by HTTP that
   never came to the core. One by HTTP that did has the row of what it asked there, and no second one.
5. Acknowledgements, and what else only lets deliveries go on, are no requests: durable subscriptions know them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from palio.model.amounts import Positive, Seconds
from palio.model.errors import PalioError
from palio.protocol.durable import journals, subscriptions
from palio.protocol.inquiries import Inspect, Respond, Trace
from palio.protocol.requests import Published, Refused
from palio.protocol.vocabulary import FROM_CLIENTS
from palio.routing.durable.effects import OUT_OF_ORDER, Append, LogBounds, LoggedOperation
from palio.routing.occurrences import Failed, StoreMessage

if TYPE_CHECKING:
    from palio.broker.connection import BrokerConnection
    from palio.broker.storing import StoreBridge

# Seconds for which rows are gathered. They are looked at by people: nobody notices a tenth of a second, and ten
# more commits a second cost no publisher anything that could be measured (`palio bench broker`).
GATHERED_FOR = 0.1
# Rows that wait to be written at the most: some megabytes. At ten looks a second that is 100,000 requests.
MOST_WAITING = 10_000
# Requests of one session that are not answered: who has more has their rows made without an answer.
MOST_OPEN = 10_000
# Characters of what somebody else has written.
LONGEST_TEXT = 300
DONE, REFUSED, UNANSWERED = "done", "refused", "unanswered"

_GOING_ON = frozenset((subscriptions.Acknowledged, subscriptions.Rejected, journals.GoOn, Respond))
_LOGGED = FROM_CLIENTS - _GOING_ON
_LOOKING = frozenset((Inspect, Trace, journals.Survey, journals.Replay, journals.ListJournals))


def _called(kind: type) -> tuple[str, Callable[[Any], Any] | None]:
    """The name of a kind of request, and what it is about, if that has a name."""
    fields = kind.__struct_fields__  # type: ignore[attr-defined]
    names = ("handle", "name", "reader", "broker", "what")
    return kind.__name__.lower(), next((attrgetter(name) for name in names if name in fields), None)


class OperationSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the operation log has: all requests, those that may change something, or those that were refused."""

    level: Literal["all", "changes", "refused", "off"] = "all"
    keep: Seconds = LogBounds().keep
    size: Positive = LogBounds().size

    @property
    def bounds(self) -> LogBounds:
        return LogBounds(self.keep, self.size)


class OpenOperation(msgspec.Struct, eq=False, gc=False):
    """A request that is not answered yet. `written` is set when its row goes with an append."""

    time: float
    binding: str  # its connection's
    principal: str
    session: str
    kind: str
    subject: str
    number: int
    bytes: int
    written: bool = False

    def row(
        self, time: float, result: str, reason: str = "", *, sequence: int = 0, events: int = 0
    ) -> LoggedOperation:
        return LoggedOperation(
            time,
            self.binding,
            self.principal,
            self.session,
            self.kind,
            self.subject,
            self.bytes,
            result,
            reason[:LONGEST_TEXT],
            sequence,
            events,
        )


class OperationLog:
    """The rows of one broker on their way to its store. Without a journal, or if it is off, it does nothing."""

    def __init__(
        self, settings: OperationSettings, storing: StoreBridge, now: Callable[[], float], *, journal: bool
    ) -> None:
        self.is_on = journal and settings.level != "off"
        self.current: OpenOperation | None = None  # what the router is being told of
        self.has_looks = self.is_on and settings.level == "all"
        self._only_refused = settings.level == "refused"
        self._only_changes = settings.level == "changes"
        kinds = _LOGGED - _LOOKING if self._only_changes else _LOGGED
        self._logged = {kind: _called(kind) for kind in kinds} if self.is_on else {}
        self._storing = storing
        self._now = now
        self._open: dict[str, dict[int, OpenOperation]] = {}  # by session and number
        self._rows: list[LoggedOperation] = []
        self._timer: asyncio.TimerHandle | None = None
        self._under_way = 0  # rows that are being written
        self._left_out = 0

    # Requests to the core

    def begin(
        self, request: Any, connection: BrokerConnection, size: int, *, looks: bool = False
    ) -> OpenOperation | None:
        """Notes a request of so many bytes; None if it is not logged. What `looks` changes nothing."""
        if type(request) not in self._logged or (looks and self._only_changes):
            return None
        session, number = connection.name, request.number
        kind, named = self._logged[type(request)]
        subject = str(named(request))[:LONGEST_TEXT] if named is not None else ""
        who = connection.principal.name
        one = OpenOperation(self._now(), connection.binding, who, session, kind, subject, number, size)
        if number:
            waiting = self._open.get(session)
            if waiting is None:
                waiting = self._open[session] = {}
            if number in waiting or len(waiting) >= MOST_OPEN:
                self._end(waiting.pop(number if number in waiting else next(iter(waiting))), UNANSWERED)
            waiting[number] = one
        return one

    def with_row(self, effect: Append) -> Append:
        """The append of a publish, with the row of the request that the router is being told of (1)."""
        one = self.current
        if one is None or self._only_refused or not effect.envelopes:
            return effect
        row = one.row(one.time, DONE, sequence=effect.envelopes[0].sequence, events=len(effect.envelopes))
        one.written, one.bytes = True, 0  # a large request is appended in several parts
        return Append(effect.token, effect.envelopes, effect.publisher, effect.records, (*effect.log, row))

    def handled(self, one: OpenOperation) -> None:
        """Handles that the router has been told of a request: nobody waits for one without a number."""
        if not one.number and not one.written:
            one.written = True
            self._end(one, DONE, written=False)

    def answered(self, session: str, answer: Any) -> None:
        """Handles an answer of the router to a session."""
        number = getattr(answer, "number", 0)
        if number:
            waiting = self._open.get(session)
            one = None if waiting is None else waiting.pop(number, None)
        else:
            one = self.current if type(answer) is Refused else None
        if one is None:
            return
        if type(answer) is Refused:
            self._end(one, REFUSED, answer.reason, written=False)
            one.written = True
        else:
            self._end(one, DONE, sequence=answer.sequence if type(answer) is Published else 0)

    def refused(self, one: OpenOperation | None, problem: PalioError) -> None:
        """Handles a request that was refused at the door."""
        if one is not None:
            if one.number:
                self._open.get(one.session, {}).pop(one.number, None)
            self._end(one, REFUSED, str(problem))

    def told(self, one: OpenOperation | None) -> None:
        """Handles a request that was answered without the router."""
        if one is not None:
            self._open.get(one.session, {}).pop(one.number, None)
            self._end(one, DONE)

    def gone(self, session: str) -> None:
        """Handles the end of a session: what was not answered will not be."""
        for one in self._open.pop(session, {}).values():
            self._end(one, UNANSWERED)

    def _end(
        self,
        one: OpenOperation,
        result: str,
        reason: str = "",
        *,
        sequence: int = 0,
        written: bool | None = None,
    ) -> None:
        if not (one.written if written is None else written):
            now = self._now()
            came = one.time if result != UNANSWERED and now - one.time < OUT_OF_ORDER else now
            self._add(one.row(came, result, reason, sequence=sequence))

    # Everything else

    def note(
        self,
        connection: BrokerConnection,
        kind: str,
        subject: str = "",
        *,
        size: int = 0,
        problem: PalioError | str | None = None,
    ) -> None:
        """Something that a connection brought, and that is no request to the core."""
        name = connection.name or connection.address
        self.note_of(
            connection.binding, connection.principal.name, name, kind, subject, size=size, problem=problem
        )

    def note_of(
        self,
        binding: str,
        principal: str,
        session: str,
        kind: str,
        subject: str = "",
        *,
        size: int = 0,
        problem: PalioError | str | None = None,
    ) -> None:
        """Something that somebody has asked for, at any door; and what speaks against it, if anything."""
        if self.is_on:
            result = DONE if problem is None else REFUSED
            reason = "" if problem is None else str(problem)[:LONGEST_TEXT]
            who, subject = _plain(principal), _plain(subject[:LONGEST_TEXT])
            row = LoggedOperation(self._now(), binding, who, _plain(session), kind, subject, size, result)
            self._add(msgspec.structs.replace(row, reason=_plain(reason)))

    # To the store

    def _add(self, row: LoggedOperation) -> None:
        if self._only_refused and row.result != REFUSED:
            return
        if len(self._rows) + self._under_way >= MOST_WAITING:
            self._left_out += 1
            return
        self._rows.append(row)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(GATHERED_FOR, self._write)

    def take_along(self) -> Append | None:
        """What has gathered, to be written in the transaction of what comes next; None if it is nothing."""
        return self._storing.logging(self._gathered(), self._written) if self._rows else None

    def _write(self) -> None:
        if (effect := self.take_along()) is not None:
            self._storing.submit((effect,))

    def _gathered(self) -> tuple[LoggedOperation, ...]:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._left_out:
            reason = "They came faster than they could be written."
            row = LoggedOperation(self._now(), "", "", "", "left out", "", 0, UNANSWERED, reason)
            self._rows.append(msgspec.structs.replace(row, events=self._left_out))
            self._left_out = 0
        rows, self._rows = tuple(self._rows), []
        self._under_way += len(rows)
        return rows

    def _written(self, rows: tuple[LoggedOperation, ...], answer: StoreMessage) -> None:
        self._under_way -= len(rows)
        if isinstance(answer, Failed):  # there is no room at the moment
            self._rows[:0] = rows
            self._left_out += len(self._rows[MOST_WAITING:])
            del self._rows[MOST_WAITING:]
            if self._timer is None:
                self._timer = asyncio.get_running_loop().call_later(GATHERED_FOR, self._write)

    def close(self) -> None:
        """Hand over all rows that there are: the store is about to be closed."""
        for session in list(self._open):
            self.gone(session)
        if self.is_on:
            self._write()


def _plain(text: str) -> str:
    """A text that any store can keep."""
    return text.encode(errors="replace").decode()
