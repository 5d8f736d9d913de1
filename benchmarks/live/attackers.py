"""What one client can do to make a broker slow or large for all others. Each attack is a process of its own.

They speak the protocol by hand, byte by byte: what our own client would refuse to say, or would wait with, is
the point. An attack goes on until its process is ended, or (`Attack.stays`) has done what it does once, and
stays connected. Whatever becomes of a connection, the attacker opens the next one.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import os
import struct
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, TypeAlias

import msgspec

from palio.broker.gateway.websocket import PATH
from palio.model.notification import Notification
from palio.protocol.encoding import encode
from palio.protocol.frames import frame
from palio.protocol.greeting import PROTOCOL, Greet, Role
from palio.protocol.requests import Publish

TOPIC = "attack"  # in all that attackers publish: the others do not ask for it
_FLOOD = {"topic": TOPIC, "text": "x" * 1_000}
_BREATH = 0.05  # seconds, until a connection that was ended is opened again


class Target(msgspec.Struct, frozen=True):
    """The broker that is attacked, and as whom."""

    port: int
    http_port: int
    token: str


Attacker: TypeAlias = Callable[[Target], Coroutine[Any, Any, None]]


class Attack(msgspec.Struct, frozen=True):
    """One row of the table."""

    what: str
    attacker: Attacker
    idle: bool = False  # it is about memory: the attacker has done all before others are looked at


def said(kind: str, **fields: Any) -> bytes:
    """A message in a frame, of whatever content."""
    return frame(msgspec.msgpack.encode({"type": kind, **fields}))


def flood(count: int, content: dict[str, Any] | None = None, number: int = 0) -> bytes:
    """Very many events in one message."""
    notification = Notification(_FLOOD if content is None else content)
    return frame(encode(Publish((notification,) * count, number)))


@contextlib.asynccontextmanager
async def entered(
    target: Target, name: str
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection that was greeted."""
    reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
    try:
        writer.write(frame(encode(Greet(PROTOCOL, Role.CLIENT, name, target.token, heartbeat=60.0))))
        await reader.readexactly(4)
        yield reader, writer
    finally:
        writer.transport.abort()


async def _drain(reader: asyncio.StreamReader) -> None:
    """Read until the end, however the broker ends it."""
    with contextlib.suppress(OSError):
        while await reader.read(1 << 20):
            pass


async def _again(one: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Do something for ever, whatever the broker does about it."""
    while True:
        with contextlib.suppress(OSError, EOFError, asyncio.IncompleteReadError):
            await one()
        await asyncio.sleep(_BREATH)


async def _subscribe_many(writer: asyncio.StreamWriter, filters: list[str]) -> None:
    for number, filter in enumerate(filters):
        writer.write(said("subscribe", handle=f"h{number}", filter=filter, ready=False, number=number + 1))
        if not number % 100:
            await writer.drain()


def _suffixes(count: int) -> list[str]:
    return [f't ends with "{number:05}" and t contains "q{number % 97}"' for number in range(count)]


_HARD = " and ".join(f'not t contains "{letter}{letter}x"' for letter in "abcdefgh")


async def unsubscribe(target: Target) -> None:
    async def one() -> None:
        async with entered(target, "unsubscriber") as (reader, writer):
            reading = asyncio.ensure_future(_drain(reader))
            await _subscribe_many(writer, _suffixes(20_000))
            for number in itertools.count(30_000):
                writer.write(said("unsubscribe", filter=_HARD, number=number))
                await writer.drain()
                if reading.done():
                    return

    await _again(one)


async def watch(target: Target) -> None:
    async def one() -> None:
        async with entered(target, "watcher") as (reader, writer):
            reading = asyncio.ensure_future(_drain(reader))
            await _subscribe_many(writer, _suffixes(20_000))
            for number in itertools.count(30_000):
                advertisement = f'(exists(string t) and {_HARD} and not t contains "{number}")'
                writer.write(
                    said("watch", handle=f"w{number % 60}", advertisement=advertisement, number=number)
                )
                writer.write(said("release", handle=f"w{number % 60}", number=number))
                await writer.drain()
                if reading.done():
                    return

    await _again(one)


async def globs(target: Target) -> None:
    async def one() -> None:
        async with entered(target, "globber") as (reader, writer):
            reading = asyncio.ensure_future(_drain(reader))
            for number in itertools.count(1):
                filter = " and ".join(f'not name matches "*{part}{number % 60}*{part}*"' for part in range(40))
                writer.write(said("subscribe", handle=f"h{number}", filter=filter, ready=False, number=number))
                await writer.drain()
                if reading.done():
                    return

    await _again(one)


async def inspections(target: Target) -> None:
    async def one() -> None:
        async with entered(target, "inspector") as (_, writer):
            for number in itertools.count(1):
                writer.write(said("inspect", number=number, what="stats", argument={}))
                if not number % 100:
                    await writer.drain()

    await _again(one)


async def _websocket(target: Target) -> asyncio.StreamWriter:
    _, writer = await asyncio.open_connection("127.0.0.1", target.http_port)
    key = base64.b64encode(os.urandom(16)).decode()
    lines = (
        f"GET {PATH} HTTP/1.1", "Host: 127.0.0.1", "Upgrade: websocket", "Connection: Upgrade",
        f"Authorization: Bearer {target.token}", f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13",
    )  # fmt: skip
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
    return writer


async def pings(target: Target) -> None:
    ping = b"\x89\xfd" + bytes(4) + b"p" * 125

    async def one() -> None:
        writer = await _websocket(target)
        try:
            while True:
                writer.write(ping * 200)
                await writer.drain()
                await asyncio.sleep(0)
        finally:
            writer.transport.abort()

    await asyncio.gather(*[_again(one) for _ in range(50)])


async def _publish_flood(target: Target) -> None:
    batch = flood(200)

    async def one() -> None:
        async with entered(target, "flooder") as (reader, writer):
            reading = asyncio.ensure_future(_drain(reader))
            while not reading.done():
                writer.write(batch)
                await writer.drain()

    await _again(one)


async def streams(target: Target) -> None:
    lines = ("GET /events HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {target.token}")
    request = ("\r\n".join(lines) + "\r\n\r\n").encode()

    async def one() -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", target.http_port, limit=1)
        try:
            writer.write(request)
            await asyncio.sleep(3_600)
        finally:
            writer.transport.abort()

    await asyncio.gather(_publish_flood(target), *[_again(one) for _ in range(100)])


async def taker(target: Target) -> None:
    async def one() -> None:
        async with entered(target, "taker") as (reader, writer):
            writer.write(said("attach", name="never", filter="exists(topic)", in_flight=100_000, number=1))
            reader._transport.pause_reading()  # type: ignore[attr-defined]
            await asyncio.sleep(3_600)

    await asyncio.gather(_publish_flood(target), _again(one))


async def unfinished(target: Target) -> None:
    size = 15 * 1024 * 1024
    part = bytes(64 * 1024)

    async def one(number: int) -> None:
        async with entered(target, f"unfinished {number}") as (_, writer):
            writer.write(struct.pack(">I", size + 1))
            for _ in range(size // len(part)):
                writer.write(part)
                await writer.drain()
            await asyncio.sleep(3_600)

    await asyncio.gather(*[_again(lambda number=number: one(number)) for number in range(100)])  # type: ignore[misc]


async def texts(target: Target) -> None:
    many = ["*a*a*a*a*b", "*ab*ab*ab*aa", "*aab*aab*", "*" + "ab" * 20 + "aa*"]
    filters = [f'topic = "{TOPIC}" and body matches "{glob}{number}*"' for glob in many for number in range(50)]
    batches = [
        flood(5, {"topic": TOPIC, "body": body}) for body in ("a" * 60_000, "ab" * 30_000, "aab" * 20_000)
    ]

    async def one() -> None:
        async with entered(target, "writer of texts") as (reader, writer):
            reading = asyncio.ensure_future(_drain(reader))
            await _subscribe_many(writer, filters)
            while not reading.done():
                for batch in batches:
                    writer.write(batch)
                    await writer.drain()

    await _again(one)


async def large_filters(target: Target) -> None:
    async def one(connection: int) -> None:
        async with entered(target, f"large {connection}") as (reader, writer):
            reading = asyncio.ensure_future(_drain(reader))
            for number in range(12):
                parts = [
                    f'(a{part} > {part + number} and t{part % 7} contains "{connection}x{part}y{number}")'
                    for part in range(60)
                ]
                filter = (
                    " or ".join(parts) + " or " + " or ".join(f'a{n} = "{"z" * 150}{number}"' for n in range(4))
                )
                writer.write(
                    said("subscribe", handle=f"h{number}", filter=filter, ready=False, number=number + 1)
                )
            await writer.drain()
            await asyncio.wait((reading,), timeout=2.0)

    await asyncio.gather(*[_again(lambda connection=connection: one(connection)) for connection in range(24)])  # type: ignore[misc]


async def idle_subscriptions(target: Target) -> None:
    """60 durable subscriptions that nobody reads, and 10,000 events that all of them want."""
    async with entered(target, "idler") as (reader, writer):
        reading = asyncio.ensure_future(_drain(reader))
        for number in range(60):
            writer.write(said("attach", name=f"idle-{number}", filter=f'topic = "{TOPIC}"', number=number + 1))
            writer.write(said("detach", name=f"idle-{number}", number=number + 100))
        await writer.drain()
        await asyncio.sleep(1.0)
        for number in range(100):
            writer.write(flood(100, {"topic": TOPIC, "text": "y" * 200}, 1_000 + number))
            await writer.drain()
        await reading


async def all_at_once(target: Target) -> None:
    await asyncio.gather(*[attack.attacker(target) for name, attack in ATTACKS.items() if name != "all"])


ATTACKS = {
    "unsubscribe": Attack("20,000 subscriptions, ended by a filter that is hard to compare", unsubscribe),
    "watch": Attack("an advertisement that is hard to compare, watched against 20,000 filters", watch),
    "globs": Attack("filters of 40 negated globs", globs),
    "inspect": Attack("inspections without reading the answers", inspections),
    "pings": Attack("50 WebSockets that send pings and do not read", pings),
    "streams": Attack("100 event streams by HTTP that never read, under a flood", streams),
    "taker": Attack("a durable taker that does not read, under a flood", taker),
    "unfinished": Attack("100 connections with 15 MB of an unfinished frame each", unfinished),
    "texts": Attack("texts of aaaa… and abab… against 200 globs", texts),
    "large": Attack("24 connections that subscribe 288 large filters, leave and come again", large_filters),
    "idle": Attack("60 idle durable subscriptions with 10,000 events each", idle_subscriptions, idle=True),
    "all": Attack("all of these at once", all_at_once),
}
