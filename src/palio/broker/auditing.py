"""Asking for the operation log: by a request of clients (`palio audit`), and at `GET /operations`.

Who asks needs the right to inspect. A look is done in a thread, as it waits for the disk, and goes through a
bounded number of rows; who follows the log waits for the next ones here, and need not ask again and again.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from palio.broker.access.principal import Principal
from palio.broker.access.rights import Allowance
from palio.broker.extension import Extension, ExtensionRequest, Route
from palio.broker.gateway.openapi import COMMON, Operation, Parameter, good
from palio.model.errors import PalioError, WrongParameter
from palio.model.moments import parse_since
from palio.routing.clients import NoJournal
from palio.routing.durable.effects import LoggedOperation

if TYPE_CHECKING:
    from palio.broker.broker import BrokerServer
    from palio.broker.gateway.call import Call
    from palio.store import Store
    from palio.store.operation_reading import OperationPage

MOST = 1_000  # rows in an answer
USUAL = 100
LONGEST_WAIT = 10.0  # seconds
_LOOK_EVERY = 0.25

_Count = Annotated[int, msgspec.Meta(ge=1, le=MOST)]
_Number = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
_NUMBERS: dict[str, Any] = {"after": _Number, "before": _Number, "limit": _Count}


class WrongQuestion(PalioError):
    """A question about the operation log that cannot be answered."""

    reason: str
    sentence = "The operation log cannot be asked that: {reason}"


class AuditQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which rows are wanted; the last ones, unless it is said after or before which number."""

    principal: str | None = None
    kinds: tuple[str, ...] = ()
    results: tuple[Literal["done", "refused", "unanswered"], ...] = ()
    bindings: tuple[str, ...] = ()
    since: float | None = None
    until: float | None = None
    after: _Number | None = None
    before: _Number | None = None
    limit: _Count = USUAL
    wait: Annotated[float, msgspec.Meta(ge=0, le=LONGEST_WAIT)] = 0.0  # seconds, for rows after a number


class AuditAnswer(msgspec.Struct, frozen=True):
    """Rows of the operation log, in their order."""

    operations: tuple[LoggedOperation, ...]
    onward: Annotated[
        int | None,
        msgspec.Meta(description="After which number to go on, or before which; null if there is no more."),
    ]


_TEXT = "Only those of this "
LIST = Operation(
    summary="Who has asked this broker for what, and what came of it",
    description="The last rows of the operation log, or those after or before a number; for who may inspect.",
    parameters=(
        Parameter("principal", str, f"{_TEXT}principal."),
        Parameter("kind", str, f"{_TEXT}kind, such as publish; several with commas."),
        Parameter("result", str, f"{_TEXT}result: done, refused or unanswered; several with commas."),
        Parameter("binding", str, f"{_TEXT}binding: palio, websocket or http; several with commas."),
        Parameter("since", str, "Not older: a date, a time, 7d, or @ and seconds since 1970."),
        Parameter("until", str, "Older than that."),
        Parameter("after", _Number, "Those after this number, oldest first."),
        Parameter("before", _Number, "The last ones before this number."),
        Parameter("limit", _Count, f"So many at the most; by default {USUAL}."),
    ),
    answers=good("Rows, in their order.", AuditAnswer),
    problems=(400, 501, *COMMON),
)


class Auditing:
    """Answers who asks for the operation log of a broker."""

    def __init__(self, broker: BrokerServer) -> None:
        self._broker = broker

    def extension(self) -> Extension:
        link = "operations", "who has asked for what, and what came of it"
        return Extension(
            name="operations",
            routes=(Route("GET", "/operations", self._get, LIST, reads=True, link=link),),
            requests=(ExtensionRequest("operations.read", self._read, Allowance.INSPECT, reads=True),),
        )

    async def _read(self, argument: dict[str, Any], principal: Principal, session: str) -> dict[str, Any]:
        """Raises `WrongQuestion`, `NoJournal`, and what reading the store does."""
        try:
            question = msgspec.convert(argument, AuditQuestion)
        except msgspec.ValidationError as problem:
            raise WrongQuestion(f"{problem}.") from None
        found: dict[str, Any] = msgspec.to_builtins(await self._answer(question))
        return found

    async def _get(self, call: Call) -> AuditAnswer:
        call.principal.require(Allowance.INSPECT, "see the operation log")
        return await self._answer(_question_of(call.query, self._broker.now()))

    async def _answer(self, question: AuditQuestion) -> AuditAnswer:
        store = self._broker.store
        if store is None:
            raise NoJournal
        loop = asyncio.get_running_loop()
        until = loop.time() + question.wait
        while True:
            page = await asyncio.to_thread(_look, store, question)
            following = question.after is not None and not page.rows and page.onward is None
            if not following or loop.time() >= until:
                return AuditAnswer(page.rows, page.onward)
            await asyncio.sleep(_LOOK_EVERY)


def _look(store: Store, question: AuditQuestion) -> OperationPage:
    from palio.store.operation_reading import OperationQuery  # noqa: PLC0415 (there is a store, so it is loaded)

    one = question
    wanted = OperationQuery(one.principal, one.kinds, one.results, one.bindings, one.since, one.until)
    if one.after is not None:
        return store.operations(wanted, after=one.after, limit=one.limit)
    return store.last_operations(wanted, before=one.before, limit=one.limit)


def _question_of(query: Any, now: float) -> AuditQuestion:
    """What a query string asks. Raises `WrongParameter`."""
    known = {parameter.name for parameter in LIST.parameters}
    if unknown := set(query) - known:
        raise WrongParameter(
            min(unknown)[:80], f"There is no such parameter; there are {', '.join(sorted(known))}."
        )
    given: dict[str, Any] = {}
    for name, text in query.items():
        match name:
            case "kind" | "result" | "binding":
                given[f"{name}s"] = tuple(text.split(","))
            case "since" | "until":
                moment = parse_since(text, now=now)
                if moment != "all":
                    given[name] = moment
            case _:
                given[name] = text
        try:
            if name in _NUMBERS:  # not as a part of the question, which may also have none: `null` is no number
                given[name] = msgspec.convert(text, _NUMBERS[name], strict=False)
            msgspec.convert(given, AuditQuestion)
        except msgspec.ValidationError as problem:
            raise WrongParameter(name, f"{str(problem).partition(' - at')[0]}.") from None
    return msgspec.convert(given, AuditQuestion)
