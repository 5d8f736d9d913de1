"""The blocking client, for programs without an event loop: a thread has one, and whoever calls waits for it.

What travels in great numbers does not wait: notifications are made into bytes by the caller and handed over
together, and events are fetched as many at a time as there are.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, TypeVar, Unpack

from palio.client.client import Client
from palio.client.content import Content, Properties, make_body
from palio.client.errors import ClientClosed
from palio.model.body import Body
from palio.model.errors import PalioError
from palio.model.plain import encode_plain

Result = TypeVar("Result")

# Notifications on their way to the thread before whoever publishes has to wait.
HANDED_OVER = 4_096


class LoopThread:
    """A thread with an event loop."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="palio", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        self.loop.close()

    def stop(self) -> None:
        """End the thread. It can be asked to more than once."""
        if self._thread.is_alive():
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join()

    def run(self, doing: Coroutine[Any, Any, Result]) -> Result:
        """Let the thread do something, and wait for it. Raises `ClientClosed` if it has ended."""
        if not self._thread.is_alive():
            doing.close()
            raise ClientClosed("Its thread has ended.")
        future = asyncio.run_coroutine_threadsafe(doing, self.loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # whoever waits was interrupted
            raise

    def iterate(self, source: AsyncIterator[Result]) -> Iterator[Result]:
        """What comes asynchronously, waiting for each."""

        async def following() -> Result:
            return await anext(source)

        while True:
            try:
                yield self.run(following())
            except StopAsyncIteration:
                return


class Worker(LoopThread):
    """A thread with a client in it."""

    def __init__(self, client: Client) -> None:
        super().__init__()
        self.client = client
        self._bodies: deque[Body] = deque()
        self._collecting = False
        self._problem: PalioError | None = None
        try:
            self.run(client.__aenter__())
        except BaseException:
            self.stop()
            raise

    # Publishing

    def soon(self, function: Callable[..., object], *arguments: Any) -> None:
        """Let the thread call something, without waiting. Raises `ClientClosed` if it has ended."""
        try:
            self.loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:
            raise ClientClosed("Its thread has ended.") from None

    def publish(self, content: Content, **properties: Unpack[Properties]) -> None:
        """Hand a notification over. Raises `InvalidNotification`, and what went wrong with an earlier one."""
        if self._problem is not None:
            problem, self._problem = self._problem, None
            raise problem
        plain = encode_plain(content) if type(content) is dict and not properties else None
        self._bodies.append(make_body(content, **properties) if plain is None else Body(plain))
        if not self._collecting:
            self._collecting = True
            self.soon(self.collect)
        if len(self._bodies) > HANDED_OVER:
            self.run(self.flush(arrived=False))

    def collect(self) -> None:
        """In the thread: take what was handed over."""
        self._collecting = False  # before it is looked at, so that nothing is overlooked
        while self._bodies:
            try:
                self.client.publish_body(self._bodies.popleft())
            except PalioError as problem:
                self._problem = problem
                self._bodies.clear()

    async def flush(self, *, arrived: bool, timeout: float | None = None) -> None:
        """In the thread: wait until all has left."""
        self.collect()
        await self.client.flush(arrived=arrived, timeout=timeout)

    async def end(self, *, drain: bool, timeout: float | None) -> None:
        """In the thread: close the client."""
        self.collect()
        await (self.client.drain(timeout) if drain else self.client.close())
