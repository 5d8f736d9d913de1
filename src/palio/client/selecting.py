"""Filters as a client is given them. What is about XML documents is read by the broker, which knows their
families; everything else costs no round trip.
"""

from __future__ import annotations

from typing import Any

from palio.client.attaching import PALIO, as_filter
from palio.client.errors import BrokerTooOld
from palio.client.session import ClientSession
from palio.model.filter import Filter

# Seconds for what may read a schema, and waits until all brokers of a network extract a path.
PATIENCE = 60.0


async def filter_at(
    session: ClientSession,
    given: str | Filter,
    dialect: str = PALIO,
    timeout: float | None = None,
    *,
    add: bool = True,
) -> Filter:
    """A filter, of which the text may be given; with `add`, once all brokers extract the paths in it.

    Raises `FilterSyntaxError`, `ContradictoryFilter`, `UnknownDialect`, and what the broker refuses with.
    """
    if isinstance(given, Filter) or dialect != PALIO:
        return as_filter(given, dialect)
    from palio.language.selections import is_selection, needs_families  # noqa: PLC0415 (as in `as_filter`)

    if not is_selection(given):
        return as_filter(given)
    try:
        answer = await read_at(session, given, add=add, timeout=timeout)
    except BrokerTooOld:
        if needs_families(given):
            raise
        return as_filter(given)
    return as_filter(answer["filter"])


async def read_at(
    session: ClientSession, text: str, *, add: bool, timeout: float | None = None
) -> dict[str, Any]:
    """What a filter means (`filter`), and by family the paths that its documents are not read for yet
    (`new_paths`); with `add` they are, from then on.
    """
    argument = {"filter": text, "add": add}
    patience = PATIENCE if timeout is None else timeout
    found: dict[str, Any] = await session.invoke("filters.read", argument, on_loss="again", timeout=patience)
    return found
