"""Brokers of a stateful set: all are told one name, at which there are more and more of them."""

from __future__ import annotations

import asyncio

import msgspec

from palio import testing
from palio.broker.host import all_addresses
from palio.broker.settings import Security
from palio.routing.overlay.settings import OverlaySettings
from palio.testing.broker import Broker


def test_they_find_each_other_though_the_name_led_nowhere_at_first():
    there: list[str] = []
    asked: list[str] = []

    async def resolver(name: str) -> list[str]:
        asked.append(name)
        if not there:
            raise OSError(-2, "Name or service not known")
        return list(there)

    async def member(number: int, port: int) -> Broker:
        """One on a machine of its own, at the port of all of them."""
        overlay = OverlaySettings(join=(f"dns://pods.example:{port}",), look_every=0.2)
        security = Security(insecure=True)  # other addresses of this machine count as others
        one = testing.broker(name=f"b{number}", overlay=overlay, resolver=resolver, security=security)
        one._settings = msgspec.structs.replace(one._settings, listen=f"127.0.0.{number}:{port}")
        return await one.start()

    async def grown(brokers: list[Broker]) -> None:
        while len({one.running.router.overlay().component for one in brokers}) > 1:
            await asyncio.sleep(0.005)

    async def scene() -> None:
        async with testing.broker() as free:
            port = int(free.rpartition(":")[2])
        brokers = [await member(number, port) for number in (1, 2)]
        there.extend(["127.0.0.1", "127.0.0.2"])
        await grown(brokers)
        there.append("127.0.0.3")
        brokers.append(await member(3, port))
        await grown(brokers)
        assert set(asked) == {"pods.example"}
        for one in brokers:
            await one.stop()

    asyncio.run(asyncio.wait_for(scene(), 30))


def test_the_system_is_asked_for_all_addresses():
    assert asyncio.run(all_addresses("127.0.0.1")) == ["127.0.0.1"]
    assert "127.0.0.1" in asyncio.run(all_addresses("localhost"))
