"""Attacks on the HTTP port of a broker that wants to know who comes: by strangers, and by who may little."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

import palio
from palio.protocol.encoding import encode
from palio.protocol.frames import frame
from palio.protocol.greeting import PROTOCOL, Greet, Role
from palio.protocol.requests import Subscribe
from tests.attacks.scene import LIMITS, Scene, attacked
from tests.broker.gateway.calling import problem
from tests.live.network import play, until

_HEAD = b"GET /palio HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
# What three bytes of text can become, and how long it takes to say no to it.
BOMBS = {
    "objects": b"[" + b"{}," * 2_600_000 + b"{}]",
    "lists": b'{"a":[' + b"[]," * 2_600_000 + b"[]]}",
    "numbers": b"[" + b"1," * 3_900_000 + b"1]",
    "one key twice": b"{" + b",".join(b'"%x":1' % n for n in range(200_000)) + b',"30d3f":1}',
    "depth": b"[" * 400_000,
    "lines": b"{}\n" * 2_600_000,
}


class Web:
    """The HTTP port of a broker under attack."""

    def __init__(self, scene: Scene, session: aiohttp.ClientSession, port: int) -> None:
        self.scene = scene
        self.session = session
        self.port = port

    def bearing(self, who: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.scene.world.tokens[who]}", "Content-Type": "application/json"}

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def socket(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A WebSocket that is spoken by hand."""
        reader, writer = await self.open()
        key = base64.b64encode(os.urandom(16))
        writer.write(_HEAD + b"Sec-WebSocket-Key: " + key + b"\r\nSec-WebSocket-Version: 13\r\n\r\n")
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101")
        return reader, writer


@asynccontextmanager
async def attacked_by_http(folder: Path, **settings: Any) -> AsyncIterator[Web]:
    async with attacked(folder, http="127.0.0.1:0", **settings) as scene:
        port = json.loads((scene.node.folder / "ready.json").read_text())["http_port"]
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
            yield Web(scene, session, port)


def part(data: bytes, opcode: int, *, final: bool = True) -> bytes:
    """A part of a message of a WebSocket, masked by nothing."""
    length = bytes([0x80 | len(data)]) if len(data) < 126 else b"\xfe" + len(data).to_bytes(2)
    return bytes([(0x80 if final else 0) | opcode]) + length + bytes(4) + data


def test_of_a_stranger_nothing_is_read(tmp_path: Path) -> None:
    """Neither a filter nor a body: what is wrong with them is not found out, and no work is done for them."""

    async def scene() -> None:
        async with attacked_by_http(tmp_path) as web:
            hard = 'name starts with "a" and name contains "' + "é" * 150 + '" and name ends with "b"'
            for query in ({"filter": "("}, {"filter": hard}, {"since": "never"}, {"unknown": "1"}):
                await problem(await web.session.get("/events", params=query), 401, "NotAuthenticated")
            for method, path in (("POST", "/events"), ("POST", "/subscriptions"), ("PUT", "/subscriptions/x")):
                reader, writer = await web.open()
                head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                writer.write(head.encode() + b"Content-Length: 8000000\r\n\r\n")  # of which nothing comes
                answer = await asyncio.wait_for(reader.readuntil(b"\r\n"), 5)
                assert answer.startswith(b"HTTP/1.1 401"), answer
                writer.transport.abort()
            assert (await web.scene.statistics())["refused"]["NotAuthenticated"] == 7

    play(scene)


def test_json_that_would_be_much_more_than_its_text(tmp_path: Path) -> None:
    async def scene() -> None:
        async with attacked_by_http(tmp_path) as web:
            headers = web.bearing("alice")
            for name, bomb in BOMBS.items():
                began = time.monotonic()
                headers["Content-Type"] = "application/x-ndjson" if name == "lines" else "application/json"
                answer = await web.session.post("/events", data=bomb, headers=headers)
                await problem(answer, 400, "InvalidNotification")
                answer = await web.session.post("/subscriptions", data=bomb, headers=headers)
                assert answer.status in (400, 413, 415)
                assert time.monotonic() - began < 10.0, name

    play(scene)


def test_tokens_that_are_no_good_by_http(tmp_path: Path) -> None:
    """Expired, revoked, misspelt, or another way to say who one is."""

    async def scene() -> None:
        async with attacked_by_http(tmp_path) as web:
            good = web.scene.world.tokens["alice"]
            expired = web.scene.world.token("alice", expires=time.time() - 1)
            for given, error in (
                (f"Bearer {good[:-1]}", "NotAuthenticated"),
                (f"Bearer {good} {good}", "NotAuthenticated"),
                (f"Basic {good}", "NotAuthenticated"),
                (f"Bearer {expired}", "TokenExpired"),
            ):
                for path in ("/events", "/subscriptions", "/metrics"):
                    answer = await web.session.get(path, headers={"Authorization": given})
                    web.scene.said.append(json.dumps(await problem(answer, 401, error)))
            in_address = await web.session.get("/events", params={"token": good})
            web.scene.said.append(json.dumps(await problem(in_address, 401, "NotAuthenticated")))

    play(scene)


def test_what_is_anothers_by_http(tmp_path: Path) -> None:
    """By its name in a stream, in a resource, and with the last id that somebody else has got."""

    async def scene() -> None:
        async with attacked_by_http(tmp_path) as web, web.scene.connect("alice") as alice:
            orders = await alice.subscribe("exists(topic)", durable="orders")
            await alice.publish({"topic": "private"})
            mallory = web.bearing("mallory")
            for name in ("orders", "alice/orders", "../alice/orders", "/alice/orders"):
                query = {"durable": name, "since": "all", "wait": "0.2", "last": "siena:1"}
                answer = await web.session.get("/events", params=query, headers=mallory)
                assert "data: " not in await answer.text()
            past = {"since": "all", "wait": "0.2", "format": "cloudevents"}
            answer = await web.session.get("/events", params=past, headers=mallory)
            assert "private" not in await answer.text()
            wish = {"id": "x", "filters": [{"any": [{"palio": "true"}, {"exact": {"topic": "private"}}]}]}
            assert (await web.session.post("/subscriptions", json=wish, headers=mallory)).status == 201
            await alice.publish({"topic": "private"})
            answer = await web.session.get("/events?durable=x&wait=0.5", headers=mallory)
            assert "data: " not in await answer.text()
            for _ in range(2):
                event = await orders.next(timeout=10)
                assert event["topic"] == "private"
                await event.ack()

    play(scene)


def test_a_flood_of_connections_by_http(tmp_path: Path) -> None:
    """One address has as many as it may; the others are told so, and go."""

    async def scene() -> None:
        async with attacked_by_http(tmp_path) as web:
            most = int(str(LIMITS["connections_per_address"]))
            ends = [await web.open() for _ in range(most + 40)]
            refused = [await asyncio.wait_for(reader.read(), 10) for reader, _ in ends[-40:]]
            assert {answer.partition(b"\r\n")[0] for answer in refused} == {b"HTTP/1.1 503 Service Unavailable"}
            assert json.loads(refused[0].partition(b"\r\n\r\n")[2])["error"] == "TooManyConnections"
            for _, writer in ends:
                writer.transport.abort()

            async def answers() -> bool:
                async with web.session.get("/health") as answer:
                    return answer.status == 200

            await until("there is room again", answers, patience=10)
            assert (await web.scene.statistics())["refused"]["TooManyConnections"] >= 40

    play(scene)


def test_a_websocket_that_takes_nothing_and_ends_nothing(tmp_path: Path) -> None:
    """Pings whose answers nobody takes, a message of parts without end: both are cut off, of strangers too."""

    async def scene() -> None:
        async with attacked_by_http(tmp_path) as web:
            ping, nothing = part(b"x" * 125, 9), part(b"", 0, final=False)
            for start, flood in ((b"", ping * 500), (part(b"x", 2, final=False), nothing * 5_000)):
                _, writer = await web.socket()
                writer.write(start)
                writer.transport.pause_reading()  # type: ignore[attr-defined]
                with pytest.raises(ConnectionError):
                    await _pour(writer, flood)
                writer.transport.abort()

    play(scene)


async def _pour(writer: asyncio.StreamWriter, flood: bytes) -> None:
    for _ in range(1_000):
        writer.write(flood)
        await asyncio.wait_for(writer.drain(), 10)


def test_a_websocket_that_does_not_read_is_gone_when_it_is_given_up(tmp_path: Path) -> None:
    """What was to be said to it goes with it."""

    async def scene() -> None:
        async with (
            attacked_by_http(tmp_path, when_slow="disconnect") as web,
            web.scene.connect("alice") as alice,
        ):
            greeting = encode(Greet(PROTOCOL, Role.CLIENT, "slow", web.scene.world.tokens["alice"]))
            wanted = encode(Subscribe("all", palio.Filter.parse("exists(blob)")))
            before = _descriptors(web.scene.node.pid)
            ends = []
            for _ in range(20):
                _, writer = await web.socket()
                writer.write(part(frame(greeting.replace(b"slow", b"%04d" % len(ends))), 2))
                writer.write(part(frame(wanted), 2))
                writer.transport.pause_reading()  # type: ignore[attr-defined]
                ends.append(writer)
            assert _descriptors(web.scene.node.pid) >= before + 20

            async def given_up() -> bool:
                await alice.publish([{"blob": "x" * 50_000}] * 10, timeout=20)
                await asyncio.sleep(0.05)
                return _descriptors(web.scene.node.pid) < before + 5

            await until("all are gone", given_up, patience=30)
            for writer in ends:
                writer.transport.abort()

    play(scene)


def _descriptors(process: int) -> int:
    return len(os.listdir(f"/proc/{process}/fd"))
