"""Shared records between brokers with sockets: everywhere, confirmed, on disk, and to those that come later."""

import asyncio
import logging
from itertools import pairwise

import pytest

from palio import testing
from palio.protocol.peers import LinkKind
from palio.routing.shared import TooMuchShared


def line(*names, **settings):
    """Brokers in a row; those after the first connect to the one before."""
    return [testing.broker(name=name, **settings) for name in names]


async def start(brokers, kind=LinkKind.PEER):
    for number, broker in enumerate(brokers):
        await broker.start()
        if number + 1 < len(brokers):
            brokers[number + 1].link_to(broker, kind=kind)
    for one, other in pairwise(brokers):
        await other.until(lambda one=one, other=other: one.name in other.running.router.neighbours())


async def stop(brokers):
    for broker in reversed(brokers):
        await broker.stop()


@pytest.mark.parametrize("journal", [False, True])
async def test_what_is_put_everywhere_is_at_all_brokers_when_that_returns(journal):
    brokers = line("a", "b", "c", journal=journal)
    await start(brokers)
    try:
        sharing = [broker.running.sharing for broker in brokers]
        told = []
        sharing[2].listen("kind", told.append)
        async with asyncio.timeout(10):
            await sharing[0].put(("kind", "key", b"v"), ("kind", "large", b"x" * 3_000_000), everywhere=True)
        assert [one.of("kind") for one in sharing] == [{"key": b"v", "large": b"x" * 3_000_000}] * 3
        assert [(one.key, one.broker) for one in told] == [("key", "a"), ("large", "a")]
        await sharing[2].put(("kind", "key", None), everywhere=True)
        assert [one.get("kind", "key") for one in sharing] == [None] * 3
    finally:
        await stop(brokers)


async def test_a_broker_that_joins_later_is_told_and_what_was_kept_outlives_a_crash():
    brokers = line("a", "b", journal=True)
    await brokers[0].start()
    await brokers[0].running.sharing.put(("kind", "key", b"v"))
    await brokers[0].crash()
    await start(brokers)
    try:
        assert brokers[0].running.sharing.get("kind", "key") == b"v"
        other = brokers[1]
        await other.until(lambda: other.running.sharing.get("kind", "key") == b"v")
    finally:
        await stop(brokers)


async def test_a_store_on_disk_has_them_at_the_next_start(tmp_path):
    from palio.broker.broker import BrokerServer
    from palio.broker.settings import Settings

    settings = Settings(name="a", listen="127.0.0.1:0", http="off", journal=True, data=str(tmp_path))
    for number in range(2):
        broker = BrokerServer(settings)
        await broker.start()
        assert broker.sharing.of("kind") == ({"key": b"v"} if number else {})
        await broker.sharing.put(("kind", "key", b"v"), ("kind", "gone", b"v"))
        await broker.sharing.put(("kind", "gone", None))
        await broker.stop()


async def test_a_mistake_of_a_listener_concerns_nobody_else(caplog):
    broker = testing.broker()
    async with broker:
        told = []
        broker.running.sharing.listen("kind", lambda record: 1 / 0)
        broker.running.sharing.listen("kind", told.append)
        with caplog.at_level(logging.ERROR):
            await broker.running.sharing.put(("kind", "key", b"v"))
        assert len(told) == 1
        assert "could not be handled" in caplog.text


async def test_what_is_too_large_is_refused_and_nothing_waits():
    broker = testing.broker()
    async with broker:
        with pytest.raises(TooMuchShared):
            await broker.running.sharing.put(("kind", "key", b"x" * (4 * 1024 * 1024 + 1)))
        assert not broker.running.sharing._waiting
