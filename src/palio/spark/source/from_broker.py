"""Journals of a network, read by its brokers: what a filter selects there is all that comes here.

A broker confirms ranges of any journal in reach. It does not say who published an event; and it reads with the
rights of whoever asks, so what they do not cover does not come, and is not missed.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Mapping

import pyarrow as pa

from palio.client.blocking import LoopThread
from palio.client.client import Client, connect
from palio.client.environment import credentials
from palio.client.event import Event
from palio.client.replay import Replay
from palio.matching.projection import properties_of
from palio.model.filter import Filter
from palio.protocol.durable.lineage import Lineage
from palio.spark.arrow import Batches, batch_of
from palio.spark.errors import JournalMissing
from palio.spark.source.journals import (
    Journals,
    JournalStanding,
    Span,
    WantedEvents,
    require_kept,
    require_same,
)
from palio.spark.source.rows import EVENT, Damage

# Events that a broker reads for one answer; it may give fewer.
PAGE = 1_000
# Seconds within which a page has to come: a broker may look through much of a journal for a few events.
WITHIN = 60.0


class BrokerJournals(Journals):
    """The journals in reach of a broker."""

    def __init__(self, url: str) -> None:
        """Raises `NotConnected`, and what the broker refuses with."""
        self._thread = LoopThread()
        try:
            self._client = self._thread.run(connected(url))
        except BaseException:
            self._thread.stop()
            raise

    def standings(self, *, lossy: bool = False) -> list[JournalStanding]:
        listed = self._thread.run(self._client.journals())
        if listed.missing and not lossy:
            raise JournalMissing(listed.missing)
        return [JournalStanding(one.origin, one.trimmed, one.head, one.lineage) for one in listed.journals]

    def read(self, span: Span, wanted: WantedEvents, damage: Damage | None = None) -> Batches:
        replay = self._thread.run(self._replay(span, wanted))
        events = aiter(replay)
        while some := self._thread.run(_next(events, wanted.rows)):
            # An end is inclusive there and exclusive here.
            chosen = [event for event in some if event.taken.timestamp() < wanted.until]
            if chosen:
                yield _batch(span.journal, chosen)
        if replay.missing and not wanted.lossy:
            raise JournalMissing(replay.missing)
        for standing in self.standings(lossy=wanted.lossy):
            if standing.journal == span.journal:
                require_kept(span, standing.trimmed, lossy=wanted.lossy)
                require_same(span, standing.lineage)

    async def _replay(self, span: Span, wanted: WantedEvents) -> Replay:
        return self._client.replay(
            wanted.filter or Filter.parse("true"),
            since=wanted.since or None,
            until=None if wanted.until == math.inf else wanted.until,
            page=PAGE,
            ranges=[(span.journal, span.after, span.upto)],
        )

    def hold(self, reader: str, positions: Mapping[str, int], lineages: Mapping[str, Lineage]) -> None:
        """Only the journal of the broker itself is kept; others are kept by asking there."""
        own = self._client.broker
        if own in positions:
            held = self._client.hold(reader, positions[own], lineage=lineages.get(own, ()))
            self._thread.run(held)

    def close(self) -> None:
        self._thread.run(self._client.close())
        self._thread.stop()


async def connected(url: str) -> Client:
    """A client with the environment's credentials. Raises `NotConnected`, and what the broker refuses with."""
    return await connect(url, **credentials(url), connect_within=10.0, request_timeout=WITHIN)


async def _next(events: AsyncIterator[Event], count: int) -> list[Event]:
    """So many events, or what is left."""
    found: list[Event] = []
    async for event in events:
        found.append(event)
        if len(found) == count:
            break
    return found


def _batch(journal: str, events: list[Event]) -> pa.RecordBatch:
    bodies = [event.notification.body for event in events]
    return batch_of(
        EVENT,
        pa.repeat(journal, len(events)),
        [event.sequence for event in events],
        [body.id for body in bodies],
        [event.taken for event in events],
        pa.nulls(len(events)),
        [body.attributes for body in bodies],
        [properties_of(body) for body in bodies],
    )
