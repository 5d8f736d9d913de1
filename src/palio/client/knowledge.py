"""Current documents, as a client asks a broker for them: one by its name, or those that a filter selects."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

import msgspec

from palio.client.attaching import PALIO
from palio.client.event import Event
from palio.client.publishing import Confirmation
from palio.client.selecting import filter_at
from palio.client.session import ClientSession
from palio.model.filter import Filter

# Documents of a page: a few are enough not to wait for the next one long.
PAGE: Final = 100
_read = msgspec.msgpack.Decoder(Event).decode


async def current_document(
    session: ClientSession, family: str, key: str, at_least: Confirmation | None, timeout: float | None
) -> Event:
    """The current version of a document."""
    asked = {"family": family, "key": key} | _not_older(session, at_least, timeout)
    answer = await session.invoke("documents.get", asked, on_loss="again", timeout=timeout)
    return _read(answer["document"])


async def current_documents(
    session: ClientSession,
    filter: str | Filter,
    dialect: str,
    at_least: Confirmation | None,
    timeout: float | None,
) -> AsyncIterator[Event]:
    """The current documents that a filter selects, page by page."""
    if isinstance(filter, str) and dialect == PALIO:
        from palio.language.selections import needs_families  # noqa: PLC0415 (as in `filter_at`)

        if needs_families(filter):
            filter = await filter_at(session, filter, dialect, timeout)
    text = filter.source or str(filter) if isinstance(filter, Filter) else filter
    asked: dict[str, Any] = {"filter": text or "true", "dialect": dialect}
    asked |= _not_older(session, at_least, timeout)
    onward: dict[str, Any] | None = asked
    while onward is not None:
        page, onward = await page_of(session, onward, timeout)
        for one in page:
            yield one


async def page_of(
    session: ClientSession, asked: dict[str, Any], timeout: float | None
) -> tuple[list[Event], dict[str, Any] | None]:
    """A page of the documents of a question, and what to ask for the next one, if there are more."""
    answer = await session.invoke("documents.list", {"limit": PAGE} | asked, on_loss="again", timeout=timeout)
    onward = None if answer["onward"] is None else asked | {"after": answer["onward"]}
    return [_read(one) for one in answer["documents"]], onward


def withdrawal(family: str, key: str) -> dict[str, Any]:
    """What is published to withdraw a document."""
    from palio.documents.reserved import FAMILY, KEY, WITHDRAWN  # noqa: PLC0415 (few clients need documents)

    return {FAMILY: family, KEY: key, WITHDRAWN: True}


def _not_older(session: ClientSession, at_least: Confirmation | None, timeout: float | None) -> dict[str, Any]:
    """What is said of how old an answer may be. The broker gives up before the client does."""
    if at_least is None:
        return {}
    seconds = session.options.request_timeout if timeout is None else timeout
    return {"at_least": (at_least.origin, at_least.sequence), "wait": min(10.0, max(0.0, seconds * 0.8))}
