"""Between the event loop and the store: backpressure, completions in order, keyed records, the end."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

import palio
from palio import testing
from palio.broker.scheduling import Scheduler
from palio.broker.storing import NotKept, StoreBridge
from palio.routing.clients import NoJournal
from palio.routing.durable.effects import KeyedRecord, SaveFact
from palio.routing.durable.facts import FactKind
from palio.routing.occurrences import Failed, Stored
from palio.store.errors import StoreError

LIMIT = 1_000

READER = FactKind.READER.of("r")


class Slow:
    """A store that does what it is told to by the test."""

    def __init__(self) -> None:
        self.queued_bytes = 0
        self.submitted: list[Any] = []

    def submit(self, effects: Sequence[Any]) -> None:
        self.submitted += effects


class Bridged:
    """A bridge to a slow store, and what it says."""

    def __init__(self) -> None:
        self.heard: list[Any] = []
        self.readings: list[bool] = []
        self.store = Slow()
        self.bridge = StoreBridge(LIMIT, self.readings.append, Scheduler(), logging.getLogger("palio.tests"))
        self.bridge.store = self.store  # type: ignore[assignment]
        self.bridge.begin(self.heard.extend)

    async def complete(self, *messages: Any) -> None:
        """In another thread, as a store does."""
        thread = threading.Thread(target=self.bridge.completed, args=(messages,))
        thread.start()
        thread.join()
        await asyncio.sleep(0)


async def test_clients_are_not_read_from_while_too_much_waits() -> None:
    bridged = Bridged()
    bridged.bridge.submit([SaveFact(1, READER, 1)])
    bridged.store.queued_bytes = LIMIT
    bridged.bridge.submit([SaveFact(2, READER, 2)])
    bridged.bridge.submit([SaveFact(3, READER, 3)])
    assert bridged.readings == [False]
    bridged.store.queued_bytes = LIMIT // 2
    await bridged.complete(Stored(1))
    assert bridged.readings == [False]  # not to and fro
    bridged.store.queued_bytes = LIMIT // 2 - 1
    await bridged.complete(Stored(2), Stored(3))
    assert bridged.readings == [False, True]
    assert bridged.heard == [Stored(1), Stored(2), Stored(3)]


async def test_what_a_store_says_while_it_is_closed_is_not_handled(caplog) -> None:
    bridged = Bridged()

    def close() -> None:
        """The rest is written, and told, in the thread of whoever closes."""
        bridged.bridge.completed([Stored(1)])

    def complete(messages: Iterable[Any]) -> None:
        raise StoreError("The store is closed.")  # as it says to what follows from its completions

    bridged.store.close = close  # type: ignore[attr-defined]
    bridged.bridge.begin(complete)
    await bridged.bridge.close()
    await asyncio.sleep(0)
    assert bridged.bridge.failed is not None
    assert not bridged.bridge.failed.done()
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []


async def test_what_cannot_be_handled_is_the_end_of_the_broker() -> None:
    def complete(messages: Iterable[Any]) -> None:
        raise ValueError("never heard of it")

    bridged = Bridged()
    bridged.bridge.begin(complete)
    keeping = asyncio.create_task(bridged.bridge.keep(KeyedRecord("k", "a", b"1")))
    await asyncio.sleep(0)
    await bridged.complete(Stored(1))
    with pytest.raises(NotKept):  # and nobody waits for ever
        await keeping
    assert bridged.bridge.failed is not None
    assert "could not handle what its store says" in bridged.bridge.failed.result()


async def test_records_that_are_kept_are_no_business_of_the_router() -> None:
    bridged = Bridged()
    keeping = asyncio.create_task(bridged.bridge.keep(KeyedRecord("k", "a", b"1")))
    refused = asyncio.create_task(bridged.bridge.keep(KeyedRecord("k", "b", b"2")))
    await asyncio.sleep(0)
    one, other = bridged.store.submitted
    assert (one.envelopes, one.records) == ((), (KeyedRecord("k", "a", b"1"),))
    await bridged.complete(Stored(7), Stored(one.token), Failed(other.token, "The disk is full."), Stored(8))
    await keeping
    with pytest.raises(NotKept, match="The disk is full"):
        await refused
    assert bridged.heard == [Stored(7), Stored(8)]


async def test_records_are_there_after_a_restart_and_beside_events() -> None:
    broker = testing.broker(journal=True)
    async with broker as address, palio.connect(address) as client:
        confirming = asyncio.gather(*[client.publish({"n": n}) for n in range(5)])
        await broker.running.storing.keep(KeyedRecord("k", "a", b"1"), KeyedRecord("k", "b", b"2"))
        assert [one.sequence for one in await confirming] == [1, 2, 3, 4, 5]
        await broker.crash()
        await broker.start()
        assert broker.running.store is not None
        assert broker.running.store.record("k", "b") == b"2"
        await broker.running.storing.keep(KeyedRecord("k", "b", None))
        assert [record.key for record in broker.running.store.records("k")] == ["a"]


async def test_a_broker_without_a_journal_keeps_no_records() -> None:
    broker = testing.broker()
    async with broker:
        with pytest.raises(NoJournal):
            await broker.running.storing.keep(KeyedRecord("k", "a", b"1"))
