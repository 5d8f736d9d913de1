"""Times of documents never go back at a broker, also if its clock is set back while it is down.

Brokers that keep documents of others find out by the time which version of a document is the latest; where it
was published, that is the one with the highest sequence. Both are the same as long as times grow with
sequences. While a broker runs, its clock does not go back (`broker.clock`). When it begins with a clock that is
behind the last event of its journal, documents have the time of that event until the clock has caught up.
Everything else has the time of the clock: a clock that was wrong and is right again shall be right.

As events with earlier times follow, a record keeps that moment over further restarts.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec

from palio.model.errors import PalioError
from palio.routing.durable.effects import KeyedRecord

if TYPE_CHECKING:
    from palio.broker.storing import StoreBridge

KIND: Final = "document.times"
_KEY: Final = "after"


async def not_before(storing: StoreBridge, last: float, now: float) -> float:
    """The time that documents have at least, where the last event of the journal has that time."""
    assert storing.store is not None
    value = await asyncio.to_thread(storing.store.record, KIND, _KEY)
    known = 0.0 if value is None else msgspec.msgpack.decode(value, type=float)
    if last <= max(known, now):
        return max(known, last)
    with suppress(PalioError):  # there is no room: the next beginning may find less, and nothing else is wrong
        await storing.keep(KeyedRecord(KIND, _KEY, msgspec.msgpack.encode(last)))
    return last
