"""What is no request that a route could be asked for is refused with a problem, as everything else."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from palio import testing
from palio.broker.gateway.protocols import MAX_HEAD
from palio.broker.gateway.settings import GatewaySettings
from palio.broker.settings import Limits
from tests.broker.gateway.calling import calling
from tests.live.network import until

HOST = b"Host: localhost\r\n"
POST = b"POST /events HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n"


NO_REQUESTS = (
    b"\r\n\r\n",
    b"GET\r\n\r\n",
    b"GET /a b HTTP/1.1\r\n\r\n",
    b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /health HTTP/1.1\r\n\r\n",  # without a host
    b"GET /health HTTP/1.1\r\nHost: x\r\nno header\r\n\r\n",
    b"GET /health HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer my-secret\x00\r\n\r\n",
    b"POST /events HTTP/1.1\r\nHost: x\r\nContent-Length: some\r\n\r\n",
    b"POST /events HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: zip\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # TLS, where there is none
)


async def exchanged(broker: testing.Broker, *said: bytes) -> bytes:
    """All that is answered until the broker ends the connection."""
    reader, writer = await connected(broker)
    for part in said:
        writer.write(part)
    answer = await asyncio.wait_for(reader.read(), 30)
    writer.close()
    return answer


async def connected(broker: testing.Broker) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, port = broker.url.removeprefix("http://").split(":")
    return await asyncio.open_connection(host, int(port))


def refused(answer: bytes, status: int, error: str) -> dict[str, Any]:
    """The problem that an answer brings, which is the last on its connection."""
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines)
    assert first.split(" ")[:2] == ["HTTP/1.1", str(status)], first
    assert headers["content-type"] == "application/problem+json"
    assert (headers["connection"], int(headers["content-length"])) == ("close", len(body))
    document = json.loads(body)
    assert (document["status"], document["error"]) == (status, error)
    assert document["detail"].endswith(".")
    return document


async def test_an_address_that_is_too_long() -> None:
    async with calling(journal=False) as (broker, _):
        # Much more comes than is read; the answer is got all the same.
        for size in (2 * MAX_HEAD, 3_000_000):
            answer = await exchanged(broker, b"GET /" + b"x" * size + b" HTTP/1.1\r\n" + HOST + b"\r\n")
            assert refused(answer, 414, "RequestLineTooLong")["limit"] == MAX_HEAD


async def test_headers_that_are_too_large() -> None:
    async with calling(journal=False) as (broker, _):
        for lines in (b"X: " + b"x" * 2 * MAX_HEAD + b"\r\n", b"X: y\r\n" * 20_000):
            answer = await exchanged(broker, b"GET /health HTTP/1.1\r\n" + HOST + lines + b"\r\n")
            assert refused(answer, 431, "HeadersTooLarge")["limit"] == MAX_HEAD


async def test_what_is_no_request(caplog: pytest.LogCaptureFixture) -> None:
    async with calling(journal=False) as (broker, session):
        for said in NO_REQUESTS:
            reason = refused(await exchanged(broker, said), 400, "MalformedRequest")["reason"]
            assert reason
            assert "my-secret" not in reason
        assert broker.statistics().refused == {"MalformedRequest": len(NO_REQUESTS)}
        async with session.get("/health") as answer:
            assert answer.status == 200
    assert len(caplog.records) >= len(NO_REQUESTS)
    assert "my-secret" not in str([vars(record) for record in caplog.records])


@pytest.mark.parametrize(
    ("headers", "status", "error"),
    [
        (b"Connection: Upgrade\r\n", 400, "BadUpgrade"),
        (
            b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: short\r\n",
            400,
            "BadUpgrade",
        ),
        (b"Connection: Upgrade, Upgrade\r\nUpgrade: h2c\r\n", 426, "UpgradeRequired"),
    ],
)
async def test_a_websocket_that_cannot_be_opened(headers: bytes, status: int, error: str) -> None:
    async with calling(journal=False) as (broker, _):
        head = b"GET /palio HTTP/1.1\r\n" + HOST + headers + b"Upgrade: websocket\r\n\r\n"
        assert refused(await exchanged(broker, head), status, error)["reason"]


async def test_a_body_that_is_no_body() -> None:
    """Whoever reads it is told that the other side is gone, and no second answer is written."""
    async with calling(journal=False) as (broker, _):
        head = POST + b"Transfer-Encoding: chunked\r\n\r\n"
        refused(await exchanged(broker, head, b"many\r\n[]\r\n"), 400, "MalformedRequest")


async def test_what_follows_an_answer_and_is_no_request() -> None:
    async with calling(journal=False) as (broker, _):
        answer = await exchanged(broker, b"GET /health HTTP/1.1\r\n" + HOST + b"\r\n" + b"nonsense\r\n\r\n")
        good, _, bad = answer.partition(b"HTTP/1.1 400")
        assert good.startswith(b"HTTP/1.1 200")
        refused(b"HTTP/1.1 400" + bad, 400, "MalformedRequest")


async def test_who_is_refused_and_stays_is_sent_away() -> None:
    hasty = GatewaySettings(body_within=0.2)
    async with calling(journal=False, gateway=hasty, limits=Limits(connections=1)) as (broker, session):
        reader, writer = await connected(broker)
        writer.write(b"\r\n\r\n")
        refused(await asyncio.wait_for(reader.read(), 30), 400, "MalformedRequest")

        async def answers() -> bool:
            async with session.get("/health") as answer:
                return answer.status == 200

        await until("there is room for another one", answers, patience=30)
        writer.close()


async def test_as_many_connections_as_there_may_be_are_served() -> None:
    async with calling(journal=False, limits=Limits(connections=2)) as (broker, _):
        ends = [await connected(broker) for _ in range(2)]
        for reader, writer in ends:
            writer.write(b"GET /health HTTP/1.1\r\n" + HOST + b"\r\n")
            assert (await asyncio.wait_for(reader.readline(), 30)).startswith(b"HTTP/1.1 200")
        refused(await exchanged(broker), 503, "TooManyConnections")
        for _, writer in ends:
            writer.close()
