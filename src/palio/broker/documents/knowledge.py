"""`KnowledgeBase`: who asks a broker for current documents, as a client (`Invoke`) or by HTTP.

1. What may be read is what may be subscribed to. A document that somebody may not see is none for that one.
2. With `at_least`, which is the confirmation of a publish, an answer is not older than what was published: it
   waits for that, so long and no longer (`NotHeardYet`).
3. Texts of filters are read under the meter, before anything is waited for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from email.utils import formatdate
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import quote

import msgspec
from msgspec import Meta

from palio.broker.access.principal import Principal, sees
from palio.broker.documents.errors import (
    DocumentWithdrawn,
    NoSuchDocument,
    NotHeardYet,
    WrongDocumentQuestion,
)
from palio.broker.documents.keeping import DocumentKeeper
from palio.broker.documents.requests import require_sees
from palio.broker.documents.retroactive import RetroactiveBeginnings
from palio.broker.extension import Extension, ExtensionRequest, Route
from palio.broker.gateway.openapi import COMMON, Given, Operation, Parameter, good
from palio.broker.gateway.parameters import read_number
from palio.documents.reserved import FAMILY
from palio.language import DIALECTS, PALIO, read_filter, require_dialect
from palio.language.selections import needs_families
from palio.model.cloudevents import flat_content_of
from palio.model.errors import NotAllowed, WrongParameter
from palio.model.filter import Filter
from palio.model.naming import event_name, read_event_name
from palio.model.notification import Notification
from palio.routing.documents.current import CurrentDocument
from palio.routing.documents.pulling import MOST_DOCUMENTS, DocumentPage

if TYPE_CHECKING:
    from starlette.responses import Response

    from palio.broker.broker import BrokerServer
    from palio.broker.gateway.call import Call

USUAL: Final = 100  # documents of a page
LONGEST_WAIT: Final = 10.0  # seconds, for what was published and is not here yet
_LOOK_EVERY = 0.02
XML = "application/xml"

_Text = Annotated[str, Meta(min_length=1, max_length=4_096)]
_Count = Annotated[int, Meta(ge=1, le=MOST_DOCUMENTS)]
_Seconds = Annotated[float, Meta(ge=0, le=LONGEST_WAIT)]
_Sequence = Annotated[int, Meta(ge=0, le=2**62)]
_AtLeast = tuple[str, _Sequence]


class DocumentQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which document is wanted; not older than what (origin and sequence), and how long to wait for that."""

    family: _Text
    key: _Text
    at_least: _AtLeast | None = None
    wait: _Seconds = LONGEST_WAIT


class SelectionQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which documents are wanted; `after` is where the page before ended."""

    filter: str = "true"
    dialect: str = PALIO
    after: str | None = None
    limit: _Count = USUAL
    at_least: _AtLeast | None = None
    wait: _Seconds = LONGEST_WAIT
    upto: dict[str, _Sequence] | None = None  # a position: only what was published up to there


class DocumentShown(msgspec.Struct, frozen=True):
    """What is said of a document beside its content."""

    family: str
    key: str
    origin: Annotated[str, Meta(description="The broker where this version was published.")]
    sequence: Annotated[int, Meta(description="Its number there.")]
    time: Annotated[float, Meta(description="When it was, in seconds since 1970.")]
    bytes: int
    attributes: Annotated[dict[str, Any], Meta(description="What its paths find, and what else goes with it.")]
    href: Annotated[str, Meta(description="Where the document itself is.")]


class DocumentsShown(msgspec.Struct, frozen=True):
    """Some of the current documents, in the order of their families and keys."""

    documents: tuple[DocumentShown, ...]
    onward: Annotated[str | None, Meta(description="After what to go on; null if there are no more.")]


_FAMILY = Parameter("family", _Text, "Of which family.", "path")
_KEY = Parameter("key", _Text, "Its key: the values of the key paths, joined by slashes.", "path")
_AT_LEAST = Parameter(
    "at_least", str, "Not older than what was published as this: a broker and a sequence, such as siena/17."
)
_WAIT = Parameter("wait", _Seconds, f"Seconds to wait for that; by default {LONGEST_WAIT:g}.")
_HEADERS = {
    "ETag": "Which version it is.",
    "Last-Modified": "When it was published.",
    "Palio-Event": "What names the version: the broker and the sequence.",
}
GET = Operation(
    summary="The current version of a document",
    description="The document, byte for byte. With If-None-Match, nothing if it is still the same.",
    parameters=(
        _FAMILY,
        _KEY,
        _AT_LEAST,
        _WAIT,
        Parameter("If-None-Match", str, "The ETag of the version that is known.", "header"),
    ),
    answers={200: Given("The document.", {XML: str}, _HEADERS), 304: Given("It is still the same.")},
    problems=(400, 404, 410, 501, *COMMON),
)
_SELECTED = (
    Parameter("filter", str, "What is wanted; without it all that may be seen."),
    Parameter(
        "dialect",
        Annotated[str, Meta(extra_json_schema={"default": PALIO, "enum": list(DIALECTS)})],
        "What the filter is written in.",
    ),
    Parameter("after", str, "`onward` of the page before."),
    Parameter("limit", _Count, f"So many at the most; by default {USUAL}."),
    _AT_LEAST,
    _WAIT,
)
LIST = Operation(
    summary="The current documents that a filter selects",
    description="What is known of them; the documents themselves are where `href` says.",
    parameters=_SELECTED,
    answers=good("Some of them, and where to go on.", DocumentsShown),
    problems=(400, 501, *COMMON),
)
LIST_FAMILY = Operation(
    summary="The current documents of a family",
    description="As all documents are listed. The filter may say the family's short names and XPaths alone.",
    parameters=(_FAMILY, *_SELECTED),
    answers=good("Some of them, and where to go on.", DocumentsShown),
    problems=(400, 404, 501, *COMMON),
)


class KnowledgeBase:
    """Answers who asks for current documents, and has them kept if the settings want that."""

    def __init__(self, broker: BrokerServer) -> None:
        self._broker = broker
        self._name = broker.settings.name
        self._keeper: DocumentKeeper | None = None

    @property
    def own_subscription(self) -> str:
        """The durable subscription by which documents of others come here, if there is one."""
        durable = None if self._keeper is None else self._keeper.subscription()
        return "" if durable is None else durable.name

    def extension(self) -> Extension:
        """What a broker is asked, and does by itself. Raises the errors of filters."""
        settings = self._broker.settings.documents
        if settings.keep:
            self._keeper = DocumentKeeper(self._broker, settings.keep, settings.dialect)
        self.beginnings = RetroactiveBeginnings(self._broker, self._keeper)
        one = "/documents/{family}/{key:path}"
        link = "documents", "the current versions of XML documents"
        return Extension(
            name="knowledge base",
            routes=(
                Route("GET", "/documents", self._list_shown, LIST, reads=True, link=link),
                Route("GET", "/documents/{family}", self._list_shown, LIST_FAMILY, reads=True),
                Route("GET", one, self._get_shown, GET, reads=True),
            ),
            requests=(
                ExtensionRequest("documents.get", self._get, None, reads=True),
                ExtensionRequest("documents.list", self._list, None, reads=True),
                *self.beginnings.requests(),
            ),
            start=None if self._keeper is None else self._keeper.start,
            stop=None if self._keeper is None else self._keeper.stop,
        )

    # Of clients

    def _get(
        self, argument: dict[str, Any], principal: Principal, session: str
    ) -> Coroutine[Any, Any, dict[str, Any]]:
        """Raises `WrongDocumentQuestion`, `NoSuchDocument`, `DocumentWithdrawn`, `NotHeardYet`."""
        question = _converted(argument, DocumentQuestion)

        async def answer() -> dict[str, Any]:
            return {"document": (await self.document(question, principal)).encoded}

        return answer()

    def _list(
        self, argument: dict[str, Any], principal: Principal, session: str
    ) -> Coroutine[Any, Any, dict[str, Any]]:
        """Raises `WrongDocumentQuestion`, errors of filters, `NotAllowed`, `NotHeardYet`."""
        question = _converted(argument, SelectionQuestion)
        wanted = read_wanted_filter(question)

        async def answer() -> dict[str, Any]:
            page = await self.select(question, wanted, principal)
            return {"documents": [one.encoded for one in page.documents], "onward": page.onward}

        return answer()

    # By HTTP

    async def _get_shown(self, call: Call) -> Response:
        from starlette.responses import Response  # noqa: PLC0415 (only with HTTP)

        more = _question_of(call, GET)
        question = _converted(
            {"family": call.path["family"], "key": call.path["key"]} | more, DocumentQuestion, parameters=True
        )
        found = await self.document(question, call.principal)
        tag = f'"{quote(found.envelope.origin)}/{found.envelope.sequence}"'
        headers = {
            "ETag": tag,
            "Last-Modified": formatdate(found.envelope.time, usegmt=True),
            "Palio-Event": quote(event_name(found.envelope.origin, found.envelope.sequence)),
            "Cache-Control": "no-cache",  # whoever has it asks whether it is still the current one
        }
        known = [one.strip().removeprefix("W/") for one in call.headers.get("if-none-match", "").split(",")]
        if tag in known or "*" in known:
            return Response(None, 304, headers)
        return Response(found.envelope.notification.payload or b"", 200, headers, XML)

    async def _list_shown(self, call: Call) -> DocumentsShown:
        from palio.broker.gateway.selections import plain_text  # noqa: PLC0415 (only with HTTP)

        given, family = _question_of(call, LIST), call.path.get("family")
        if family is not None and "filter" in given and given.get("dialect", PALIO) == PALIO:
            given["filter"] = f"family {family} where ({given['filter']})"
        if needs_families(given.get("filter", "")):
            given["filter"] = await plain_text(given["filter"], call.enter, given.get("dialect", PALIO))
        question = _converted(given, SelectionQuestion, parameters=True)
        wanted = read_wanted_filter(question)
        if family is not None:
            wanted = wanted.intersect(Filter.template({FAMILY: family})).require_satisfiable()
        page = await self.select(question, wanted, call.principal)
        if family is not None and not page.documents:
            require_sees(self._broker.documents.families, call.principal, family)
        return await asyncio.to_thread(_shown_page, page)

    # Both

    async def document(self, question: DocumentQuestion, principal: Principal) -> CurrentDocument:
        """Raises `NoSuchDocument`, `DocumentWithdrawn`, `NotHeardYet`, `NoJournal`."""
        documents = self._broker.documents.current()
        await self._wait_for(question.at_least, question.wait)
        found = await asyncio.to_thread(documents.get, question.family, question.key)
        if found is None or not sees(principal.rights.subscribe, found.envelope.notification):
            raise NoSuchDocument(question.family, question.key, self._name)
        if found.is_withdrawn:
            envelope = found.envelope
            raise DocumentWithdrawn(question.family, question.key, envelope.origin, envelope.sequence)
        return found

    async def newest(self, family: str, principal: Principal) -> CurrentDocument | None:
        """What was published last of a family, as far as somebody may see it; it may be a withdrawal.

        Raises `NotAllowed`, `NoJournal`, `TooManyDocuments`.
        """
        allowed = _allowed(principal)
        return await self._broker.newest_documents.find(family, self._broker.documents.current(), allowed)

    async def select(self, question: SelectionQuestion, wanted: Filter, principal: Principal) -> DocumentPage:
        """Raises `NotAllowed`, `NotHeardYet`, `NoJournal`."""
        allowed = _allowed(principal)
        documents = self._broker.documents.current()
        await self._wait_for(question.at_least, question.wait)
        look = partial(documents.select, upto=question.upto)
        return await asyncio.to_thread(look, wanted, allowed, question.after, question.limit)

    async def _wait_for(self, published: _AtLeast | None, wait: float) -> None:
        """Waits until what was published is here (2)."""
        if published is None:
            return
        loop = asyncio.get_running_loop()
        until = loop.time() + wait
        origin, sequence = published
        while True:
            heard = self._heard_of(origin)
            if heard is not None and heard >= sequence:
                return
            if heard is None or loop.time() >= until:
                raise NotHeardYet(origin, sequence, self._name, 0.0 if heard is None else wait)
            await asyncio.sleep(_LOOK_EVERY)

    def _heard_of(self, origin: str) -> int | None:
        """Up to which sequence all documents of a broker are here; None if those do not come here."""
        if origin == self._name:
            store = self._broker.store
            return None if store is None else store.statistics().head
        return None if self._keeper is None else self._keeper.heard(origin) or 0


def _allowed(principal: Principal) -> Filter:
    """What somebody may see. Raises `NotAllowed`."""
    allowed = principal.rights.subscribe
    if allowed is None:
        raise NotAllowed(principal.name, "look at documents", "it has no right to see anything.")
    return allowed


def read_wanted_filter(question: SelectionQuestion) -> Filter:
    """The filter of a question. Raises the errors of filters, and `UnknownDialect`."""
    return read_filter(question.filter, require_dialect(question.dialect, "dialect")).require_satisfiable()


def _converted(given: dict[str, Any], kind: Any, *, parameters: bool = False) -> Any:
    try:
        return msgspec.convert(given, kind, strict=not parameters)
    except msgspec.ValidationError as problem:
        reason, _, place = str(problem).partition(" - at `$")
        if parameters:
            raise WrongParameter(place.strip(".`") or "documents", f"{reason}.") from None
        raise WrongDocumentQuestion(f"{problem}.") from None


def _question_of(call: Call, operation: Operation) -> dict[str, Any]:
    """What a query string says. Raises `WrongParameter`."""
    known = {one.name for one in operation.parameters if one.place == "query"}
    if unknown := set(call.query) - known:
        said = f"There is no such parameter; there are {', '.join(sorted(known))}."
        raise WrongParameter(min(unknown)[:80], said)
    given: dict[str, Any] = dict(call.query)
    if "at_least" in given:
        named = read_event_name(given["at_least"])
        if named is None:
            raise WrongParameter("at_least", "It is a broker and a sequence, such as siena/17.")
        given["at_least"] = named
    if "wait" in given:
        given["wait"] = read_number("wait", given["wait"], 0, LONGEST_WAIT)
    return given


def _shown_page(page: DocumentPage) -> DocumentsShown:
    return DocumentsShown(tuple([_shown(one) for one in page.documents]), page.onward)


def _shown(document: CurrentDocument) -> DocumentShown:
    family, key = document.name
    envelope = document.envelope
    notification = envelope.notification
    plain = flat_content_of(Notification.of_values(dict(notification.attributes)))
    size = len(notification.payload or b"")
    href = f"/documents/{quote(family, safe='')}/{quote(key)}"
    return DocumentShown(family, key, envelope.origin, envelope.sequence, envelope.time, size, plain, href)
