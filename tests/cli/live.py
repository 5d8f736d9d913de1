"""A broker in a thread of the test's own process, and what a test wants to do with it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import palio
from palio.broker.broker import BrokerServer
from palio.broker.settings import Settings

PATIENCE = 30.0


class LiveBroker:
    """A broker, or with `peer` one that is linked to another."""

    def __init__(self, folder: Path, name: str = "siena", **settings: Any) -> None:
        self._loop = asyncio.new_event_loop()
        self._begun: set[asyncio.Task[Any]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.broker = BrokerServer(
            Settings(name=name, listen="127.0.0.1:0", http="off", data=str(folder / name), **settings)
        )
        self.do(self.broker.start())

    @property
    def server(self) -> str:
        return f"127.0.0.1:{self.broker.port}"

    def begin(self, work: Coroutine[Any, Any, Any]) -> Future[Any]:
        """Work that goes on while the test does; it ends with the broker at the latest."""

        async def begun() -> Any:
            task = asyncio.current_task()
            assert task is not None
            self._begun.add(task)
            try:
                return await work
            finally:
                self._begun.discard(task)

        return asyncio.run_coroutine_threadsafe(begun(), self._loop)

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)

    def publish(self, *events: dict[str, Any]) -> None:
        self.do(self._publish(events))

    async def _publish(self, events: tuple[dict[str, Any], ...]) -> None:
        async with palio.connect(f"palio://{self.server}") as client:
            await client.publish(list(events))

    def publish_when_subscribed(self, *events: dict[str, Any]) -> Future[Any]:
        """Publish as soon as somebody has a transient subscription."""

        async def wait() -> None:
            async with palio.connect(f"palio://{self.server}") as client:
                while not any("handles" in row for row in await client.inspect("subs")):
                    await asyncio.sleep(0.01)
                await client.publish(list(events))

        return self.begin(wait())

    def stop(self) -> None:
        self.do(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()

    async def _end(self) -> None:
        """Whatever a test has begun here ends before the broker."""
        begun = list(self._begun)
        for task in begun:
            task.cancel()
        await asyncio.gather(*begun, return_exceptions=True)
        await self.broker.stop()


@contextmanager
def live_broker(folder: Path, name: str = "siena", **settings: Any) -> Iterator[LiveBroker]:
    broker = LiveBroker(folder, name, **settings)
    try:
        yield broker
    finally:
        broker.stop()
