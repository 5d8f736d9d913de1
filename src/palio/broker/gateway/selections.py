"""Filters about XML documents, wherever one is said over HTTP: read as for any client, by a plain request.

What they mean stands in their place before anything else looks at them, so what is kept is a plain filter.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from copy import deepcopy
from typing import Any

from palio.broker.gateway.visitor import Visitor
from palio.language import PALIO, is_selection
from palio.protocol.invocations import Invoke

# Seconds for what may read a schema, and waits until all brokers in reach extract a path.
PATIENCE = 60.0

Enter = Callable[[str], Awaitable[Visitor]]


async def plain_text(text: str, enter: Enter, dialect: str = PALIO) -> str:
    """A filter in our own words; one about documents once all brokers extract its paths.

    Raises what the broker refuses with.
    """
    if dialect != PALIO or not is_selection(text):
        return text
    visitor = await enter("filters")
    try:
        answer = await visitor.ask(Invoke(0, "filters.read", {"filter": text, "add": True}), PATIENCE)
    finally:
        visitor.leave()
    read: str = answer.result["filter"]
    return read


async def plain_document(document: Any, enter: Enter) -> Any:
    """The definition of a subscription, with plain filters. Raises what the broker refuses with."""
    if not any(is_selection(texts[key]) for texts, key in _filters(document)):
        return document
    document = deepcopy(document)
    for texts, key in _filters(document):
        texts[key] = await plain_text(texts[key], enter)
    return document


def _filters(document: Any) -> Iterator[tuple[dict[str, Any], str]]:
    """Where texts in our own language stand: an object, and the name of its member."""
    if not isinstance(document, dict):
        return
    if document.get("dialect") == PALIO and isinstance(document.get("filter"), str):
        yield document, "filter"
    waiting = [document.get("filters")]
    while waiting:
        match waiting.pop():
            case dict() as one:
                if isinstance(one.get(PALIO), str):
                    yield one, PALIO
                waiting += one.values()
            case list() as several:
                waiting += several
