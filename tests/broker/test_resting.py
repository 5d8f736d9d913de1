"""Two reasons not to read what a client says: it has to rest, and there is no room. Both must be over."""

from __future__ import annotations

import asyncio

import palio
from palio import testing


async def test_who_rests_while_there_is_no_room_is_read_when_both_are_over() -> None:
    broker = testing.broker()
    async with broker as address, palio.connect(address, name="desk") as client:
        connection = broker.running.sessions["desk"]
        transport = connection._transport
        assert transport.is_reading()
        connection._rest(0.02)
        assert not transport.is_reading()
        connection.read(False)
        async with asyncio.timeout(10):
            while connection._resting:
                await asyncio.sleep(0.01)
        assert not transport.is_reading()
        connection.read(True)
        assert transport.is_reading()
        connection._rest(0.02)
        async with asyncio.timeout(10):
            while not transport.is_reading():
                await asyncio.sleep(0.01)
        await client.publish({"n": 1})
