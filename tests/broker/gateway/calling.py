"""Calling a broker over HTTP, reading its streams, and a webhook to be called by it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from aiohttp import web

from palio import testing
from palio.broker.gateway.settings import GatewaySettings

# Webhooks of tests are on this machine.
LOCAL = GatewaySettings(sinks=("127.0.0.0/8",), push_first_pause=0.05, push_longest_pause=0.2, push_within=2.0)


@asynccontextmanager
async def calling(
    *, journal: bool = True, gateway: GatewaySettings = LOCAL, **settings: Any
) -> AsyncIterator[tuple[testing.Broker, aiohttp.ClientSession]]:
    """A broker with a gateway, and a session of an HTTP client with it."""
    broker = testing.broker(journal=journal, http=True, gateway=gateway, **settings)
    await broker.start()
    try:
        async with aiohttp.ClientSession(broker.url) as session:
            yield broker, session
    finally:
        await broker.stop()


class Stream:
    """A reader of server-sent events."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response = response

    async def next(self) -> dict[str, str]:
        """The next event, as its fields; comments are passed over."""
        while True:
            block = (await self.response.content.readuntil(b"\n\n", max_size=2**20)).decode()
            fields = dict(line.split(": ", 1) for line in block.split("\n") if line and line[0] != ":")
            if "data" in fields:
                return fields

    async def data(self) -> Any:
        return json.loads((await self.next())["data"])


@asynccontextmanager
async def streaming(
    session: aiohttp.ClientSession, last: str | None = None, **parameters: str
) -> AsyncIterator[Stream]:
    """A stream that has begun."""
    headers = {"Last-Event-ID": last} if last is not None else {}
    async with session.get("/events", params=parameters, headers=headers) as response:
        assert response.status == 200, await response.text()
        assert (await response.content.readuntil(b"\n\n")).startswith(b": subscribed")
        yield Stream(response)


class Webhook:
    """Somebody who is called. `status` is what is answered; what came is in `requests`."""

    def __init__(self) -> None:
        self.status = 200
        self.allowed: str | None = "*"
        self.rate: str | None = None
        self.requests: asyncio.Queue[tuple[dict[str, str], bytes]] = asyncio.Queue()
        self.asked: list[dict[str, str]] = []
        self.url = ""
        self._runner: web.AppRunner | None = None

    async def _handle(self, request: web.Request) -> web.Response:
        if request.method == "OPTIONS":
            self.asked.append(dict(request.headers))
            headers = {"WebHook-Allowed-Origin": self.allowed} if self.allowed else {}
            return web.Response(headers=headers | ({"WebHook-Allowed-Rate": self.rate} if self.rate else {}))
        self.requests.put_nowait((dict(request.headers), await request.read()))
        if self.status in (301, 302, 307, 308):
            return web.Response(status=self.status, headers={"Location": self.url + "/elsewhere"})
        return web.Response(status=self.status)

    async def __aenter__(self) -> Webhook:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._runner is not None
        await self._runner.cleanup()


async def problem(response: aiohttp.ClientResponse, status: int, error: str) -> dict[str, Any]:
    """A problem document, which says what is expected."""
    assert response.content_type == "application/problem+json", await response.text()
    document: dict[str, Any] = json.loads(await response.read())
    assert (response.status, document["status"], document["error"]) == (status, status, error), document
    assert document["type"] == f"urn:palio:error:{error}"
    assert document["detail"].endswith((".", "?")), document
    assert document["title"]
    return document
