"""Attacks by HTTP: each is refused, costs little time and memory, and healthy clients do not notice."""

import asyncio
import gzip
import ipaddress
import json
import resource
import socket
import time
import zlib
from contextlib import asynccontextmanager

import pytest

import palio
from palio.broker.gateway.settings import GatewaySettings
from palio.broker.gateway.sinks import Sinks, is_public
from palio.broker.settings import Limits
from tests.broker.gateway.calling import Webhook, calling, problem, streaming

# What an attack may add to the memory of this process, in which the broker and the attacker both are.
MEMORY = 150 * 1024 * 1024
# Seconds in which a healthy client's event is there, on a machine that is busy with other things.
HEALTHY = 5.0


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@asynccontextmanager
async def beside(broker):
    """A healthy client, which publishes and reads all the time, and must not have to wait."""
    async with palio.connect(broker.address, name="healthy") as client:
        subscription = await client.subscribe('who = "healthy"')
        rounds, slowest = 0, 0.0

        async def work():
            nonlocal rounds, slowest
            while True:
                began = time.monotonic()
                await client.publish({"who": "healthy", "n": rounds})
                assert (await subscription.next(timeout=HEALTHY))["n"] == rounds
                rounds, slowest = rounds + 1, max(slowest, time.monotonic() - began)
                await asyncio.sleep(0.01)

        before = peak()
        working = asyncio.ensure_future(work())
        try:
            yield client
            await asyncio.sleep(0.05)
            assert not working.done(), working.exception()
            assert rounds > 0
            assert slowest < HEALTHY
            assert peak() - before < MEMORY
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)


def port_of(broker) -> int:
    return int(broker.url.rpartition(":")[2])


async def raw(broker, data: bytes, *, limit: int = 100_000) -> bytes:
    """Everything that is answered to some bytes, until the connection ends or says no more."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port_of(broker))
    try:
        writer.write(data)
        answer = b""
        while len(answer) < limit:
            part = await asyncio.wait_for(reader.read(65_536), 10)
            if not part:
                break
            answer += part
            if b"\r\n\r\n" in answer and b"ontent-length" in answer.lower():
                head, _, body = answer.partition(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
                if len(body) >= length:
                    break
        return answer
    except ConnectionError:
        return b""
    finally:
        writer.transport.abort()


@pytest.mark.parametrize(
    "encoding", ["gzip", "deflate", "br", "zstd", "gzip, gzip", "identity, gzip", "x-gzip"]
)
async def test_compressed_bombs_are_not_unpacked(encoding):
    bomb = (gzip.compress if "gzip" in encoding else zlib.compress)(b"[" + b'{"a": 1},' * 1_000_000)
    async with calling() as (broker, session), beside(broker):
        for path in ("/events", "/subscriptions"):
            headers = {"Content-Encoding": encoding, "Content-Type": "application/json"}
            await problem(await session.post(path, data=bomb, headers=headers), 415, "EncodedBody")


async def test_gigantic_bodies_are_refused_as_soon_as_they_are_known_to_be():
    limited = GatewaySettings(body=100_000)
    async with calling(gateway=limited) as (broker, session), beside(broker):
        head = b"POST /events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        for length in (b"100001", b"99999999999999", b"9" * 40):
            answer = await raw(broker, head + b"Content-Length: " + length + b"\r\n\r\n")
            assert answer.startswith((b"HTTP/1.1 413", b"HTTP/1.1 400")), answer

        async def endless():
            while True:
                yield b"x" * 65_536

        async with session.post(
            "/events", data=endless(), headers={"Content-Type": "application/json"}
        ) as answer:
            await problem(answer, 413, "BodyTooLarge")


async def test_many_bodies_together_have_a_bound_too():
    limited = GatewaySettings(body=1_000_000, bodies=2_000_000, body_in_memory=1_000_000)
    async with calling(gateway=limited) as (broker, session), beside(broker):
        go_on = asyncio.Event()

        async def slow():
            yield b" " * 500_000
            await go_on.wait()
            yield b"{}"

        headers = {"Content-Type": "application/json"}
        posts = [asyncio.ensure_future(session.post("/events", data=slow(), headers=headers)) for _ in range(8)]
        while sum(post.done() for post in posts) < 4:
            assert broker.running.gateway_statistics().held_bytes <= 2_000_000
            await asyncio.sleep(0.01)
        go_on.set()
        answers = sorted([(await post).status for post in posts])
        assert answers.count(503) >= 4
        assert set(answers) <= {200, 503}
        assert broker.running.gateway_statistics().held_bytes == 0


async def test_slow_writers_do_not_keep_their_place():
    hasty = GatewaySettings(body_within=0.4)
    async with calling(gateway=hasty) as (broker, _), beside(broker):

        async def drip(data: bytes) -> float:
            reader, writer = await asyncio.open_connection("127.0.0.1", port_of(broker))
            began = time.monotonic()
            try:
                for byte in data:
                    writer.write(bytes([byte]))
                    await asyncio.sleep(0.05)
                    if reader.at_eof() or writer.transport.is_closing():
                        break
                await asyncio.wait_for(reader.read(), 10)
            except ConnectionError:
                pass
            writer.transport.abort()
            return time.monotonic() - began

        head = b"POST /events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        slow = [b"", head, b"GET /events HTTP/1.1\r\nX: " + b"x" * 10_000, b"\r\n" * 1_000]
        spent = await asyncio.gather(*[drip(data) for data in slow * 5])
        assert max(spent) < 10
        answer = await raw(broker, head + b"Content-Length: 100\r\n\r\n{")
        assert answer.startswith(b"HTTP/1.1 408"), answer


async def test_header_floods():
    async with calling() as (broker, _), beside(broker):
        many = b"".join(b"X-%d: y\r\n" % n for n in range(50_000))
        for flood in (
            b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + many + b"\r\n",
            b"GET /health HTTP/1.1\r\nX: " + b"x" * 1_000_000,
            b"GET /" + b"x" * 1_000_000,
            b"\x00" * 100_000,
            b"GET /health HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + b"f" * 100_000,
        ):
            answer = await raw(broker, flood)
            statuses = (b"HTTP/1.1 400", b"HTTP/1.1 414", b"HTTP/1.1 431", b"HTTP/1.1 200")
            assert answer == b"" or answer.startswith(statuses), answer[:200]
        long = b"GET /events?filter=" + b"x" * 60_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"
        assert (await raw(broker, long)).startswith(b"HTTP/1.1 400")


async def test_requests_that_could_be_read_in_two_ways():
    async with calling() as (broker, _), beside(broker):
        head = b"POST /events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        for wrong in (
            b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
            b"Content-Length: -1\r\n\r\n",
            b"Content-Length: +2\r\n\r\n{}",
            b"Content-Length : 2\r\n\r\n{}",
            b"Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n",
        ):
            answer = await raw(broker, head + wrong)
            assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 501")), (wrong, answer)
        both = head + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
        assert (await raw(broker, both)).startswith((b"HTTP/1.1 400", b"HTTP/1.1 200"))


@pytest.mark.parametrize(
    "path",
    [
        "/../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "//evil.example/events",
        "/subscriptions/..%2f..%2fsubscriptions.json",
        "/subscriptions/%00",
        "/subscriptions/a%0d%0aSet-Cookie:%20x",
        "/subscriptions/" + "a" * 10_000,
        "/events/../subscriptions",
        "/docs/..;/metrics",
        "/openapi.json%3f",
        "/%c0%ae%c0%ae/",
    ],
)
async def test_path_tricks_lead_nowhere(path):
    async with calling() as (broker, _), beside(broker):
        answer = await raw(
            broker, f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
        )
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith((b"HTTP/1.1 404", b"HTTP/1.1 400")), head
        assert b"Set-Cookie" not in head
        assert b"passwd" not in head
        assert json.loads(body)["status"] in (400, 404)


INSIDE = [
    "127.0.0.1",
    "127.1",
    "2130706433",
    "0x7f000001",
    "0177.0.0.1",
    "0.0.0.0",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "169.254.169.254",
    "192.0.0.1",
    "198.18.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "localhost",
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b::a9fe:a9fe]",
    "[2002:7f00:1::]",
    "[fe80::1]",
    "[fc00::1]",
    "[fd00:ec2::254]",
    "[ff02::1]",
    "[2001:db8::1]",
    "192.0.0.8",
    "[fec0::1]",
    "[64:ff9b:1::1]",
]


@pytest.mark.parametrize("host", INSIDE)
async def test_webhooks_that_point_inside_are_refused(host):
    async with Webhook() as hook, calling(gateway=GatewaySettings(push_within=2.0)) as (broker, session):
        port = hook.url.rpartition(":")[2]
        for scheme in ("http", "https"):
            answer = await session.post(
                "/subscriptions", json={"id": "x", "sink": f"{scheme}://{host}:{port}/"}
            )
            found = json.loads(await answer.read())
            assert answer.status == 400, found
            assert found["error"] in ("SinkNotAllowed", "SinkNotReached"), found
        assert not hook.asked
        assert "x" not in broker.running.router.durable.homes.subscriptions
        assert await (await session.get("/subscriptions")).json() == []


async def test_a_name_that_points_inside_is_refused_whenever_it_does(monkeypatch):
    """A name resolves to a public address while its webhook is asked for, and to this machine afterwards."""
    answers = {"moving.example": ["127.0.0.1"]}
    resolve = socket.getaddrinfo

    def getaddrinfo(host, port, *arguments, **more):
        if host in answers:
            found = answers[host]
            families = [socket.AF_INET6 if ":" in one else socket.AF_INET for one in found]
            return [
                (
                    family,
                    socket.SOCK_STREAM,
                    6,
                    "",
                    (one, port) if family is socket.AF_INET else (one, port, 0, 0),
                )
                for family, one in zip(families, found, strict=True)
            ]
        return resolve(host, port, *arguments, **more)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    async with Webhook() as hook, calling(gateway=GatewaySettings()) as (_, session):
        sink = f"http://moving.example:{hook.url.rpartition(':')[2]}/"
        for found in (["127.0.0.1"], ["::1"], ["::ffff:127.0.0.1"], ["10.0.0.1", "127.0.0.1"]):
            answers["moving.example"] = found
            refused = await problem(
                await session.post("/subscriptions", json={"id": "x", "sink": sink}), 400, "SinkNotAllowed"
            )
            assert found[0] in refused["reason"]
        assert not hook.asked
    local = GatewaySettings(sinks=("127.0.0.1/32",), push_first_pause=0.02, push_longest_pause=0.05)
    async with Webhook() as hook, calling(gateway=local) as (_, session):
        sink = f"http://moving.example:{hook.url.rpartition(':')[2]}/"
        answers["moving.example"] = ["127.0.0.1"]
        assert (await session.post("/subscriptions", json={"id": "x", "sink": sink})).status == 201
        await session.post("/events", json={"n": 1})
        await asyncio.wait_for(hook.requests.get(), 5)
        answers["moving.example"] = ["127.0.0.2"]  # not one that is allowed
        await hook._runner.sites.copy().pop().stop()  # so that the connection that was good is not used again
        await hook._runner.cleanup()
        await session.post("/events", json={"n": 2})
        while True:
            status = (await (await session.get("/subscriptions/x")).json())["status"]
            if status["failed"].get("SinkNotAllowed"):
                break
            await asyncio.sleep(0.02)


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("8.8.8.8", True),
        ("2001:4860:4860::8888", True),
        ("::ffff:8.8.8.8", True),
        ("::ffff:10.0.0.1", False),
        ("64:ff9b::808:808", True),
        ("64:ff9b::a00:1", False),
        ("2002:a00:1::", False),
        ("2001:0:a00:1::", False),
        ("2002:808:808::", False),
        ("2001:0:808:808::", False),
        ("2001:2::1", False),
        ("2001:10::1", False),
        ("2001:200::1", True),
        ("169.254.169.254", False),
        ("fe80::1%eth0", False),
        ("fec0::1", False),
        ("5f00::1", False),
        ("3fff::1", False),
        ("100::1", False),
        ("64:ff9b:1::808:808", False),
        ("::8.8.8.8", False),
        ("4000::1", False),
        ("0.1.2.3", False),
        ("192.0.0.1", False),
        ("192.0.0.9", False),
        ("192.0.0.170", False),
        ("192.0.1.1", True),
        ("192.0.2.1", False),
        ("192.88.99.1", False),
        ("192.88.98.1", True),
        ("198.51.100.1", False),
        ("198.20.0.1", True),
        ("203.0.113.1", False),
        ("100.63.255.255", True),
        ("100.128.0.0", True),
        ("172.15.255.255", True),
        ("172.32.0.0", True),
        ("223.255.255.255", True),
        ("224.0.0.1", False),
        ("255.255.255.255", False),
    ],
)
def test_which_addresses_are_public(address, public):
    assert is_public(ipaddress.ip_address(address.partition("%")[0])) is public
    assert Sinks(GatewaySettings(), "b").allows(address) is public


async def test_a_webhook_that_answers_without_end_or_not_at_all():
    async def endless(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nWebHook-Allowed-Origin: *\r\nContent-Encoding: gzip\r\n\r\n")
        try:
            while True:
                writer.write(b"\x00" * 65_536)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    async def silent(reader, writer):
        await reader.read()
        writer.close()

    async def flood(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 100_000 + b"X: " + b"y" * 1_000_000)
        await reader.read()
        writer.close()

    hasty = GatewaySettings(sinks=("127.0.0.1/32",), push_within=0.5)
    async with calling(gateway=hasty) as (broker, session), beside(broker):
        for handle, status in ((endless, 201), (silent, 400), (flood, 400)):
            server = await asyncio.start_server(handle, "127.0.0.1", 0)
            wish = {"sink": f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"}
            async with asyncio.timeout(10):
                answer = await session.post("/subscriptions", json=wish)
                assert answer.status == status, await answer.text()
                await session.post("/events", json={"n": 1})
            server.close()


async def test_streams_that_nobody_reads_are_bounded_and_end():
    limited = GatewaySettings(stalled=0.5)
    limits = Limits(outgoing=2_000_000)
    async with (
        calling(gateway=limited, limits=limits, journal=False) as (broker, _),
        beside(broker) as client,
    ):
        ends = []
        for _ in range(10):
            reader, writer = await asyncio.open_connection("127.0.0.1", port_of(broker), limit=1_024)
            writer.write(b"GET /events?filter=exists(text) HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await reader.readuntil(b"subscribed")
            ends.append(writer)
        while broker.running.gateway_statistics().streams_cut_off < 10:
            for _ in range(20):
                client.publish_nowait({"text": "x" * 20_000})
            await client.flush(arrived=True)
        for writer in ends:
            writer.transport.abort()


async def test_connections_that_say_nothing_are_ended():
    hasty = GatewaySettings(body_within=0.3)
    async with calling(gateway=hasty) as (broker, session), beside(broker):
        idle = [await asyncio.open_connection("127.0.0.1", port_of(broker)) for _ in range(200)]
        ended = await asyncio.wait_for(
            asyncio.gather(*[reader.read() for reader, _ in idle], return_exceptions=True), 10
        )
        assert all(one == b"" or isinstance(one, ConnectionError) for one in ended)
        for _, writer in idle:
            writer.close()
        assert (await session.get("/health")).status == 200


async def test_nothing_that_was_sent_can_forge_a_line_of_the_log(caplog):
    async with calling() as (broker, session):
        hostile = "x\r\n2026-01-01 info palio: All is well"
        await session.get("/events", params={"durable": hostile, "filter": "("})
        await session.post("/subscriptions", json={"id": hostile, "sink": hostile})
        await raw(broker, b"GET /%0d%0aforged HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert "All is well" not in caplog.text
        assert "\nforged" not in caplog.text


async def test_secrets_are_not_told():
    async with calling() as (_, session):
        headers = {"Authorization": "Bearer very-secret-token", "Content-Type": "application/json"}
        answers = [
            await session.post("/events", data=b"{", headers=headers),
            await session.post("/subscriptions", json={"sinkcredential": {"accesstoken": "very-secret\n"}}),
            await session.post("/subscriptions", json={"sink": "http://user:very-secret@example.com/"}),
            await session.get("/metrics", headers=headers),
        ]
        for answer in answers:
            assert "very-secret" not in await answer.text()


MOZILLA = {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"}


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},  # another port, or another name of the same domain
        {"Sec-Fetch-Site": "CROSS-SITE"},
        {"Sec-Fetch-Site": "something new"},
        {"Sec-Fetch-Site": "cross-site", "Referer": "http://{host}/"},
        MOZILLA,
        MOZILLA | {"Referer": "http://evil.example/"},
        MOZILLA | {"Referer": "http://{host}.evil.example/"},
        MOZILLA | {"Referer": "http://evil.example/http://{host}/"},
        MOZILLA | {"Referer": "http://[/"},
        {"Origin": "null", "Sec-Fetch-Site": "cross-site"},
    ],
)
async def test_a_page_elsewhere_changes_nothing_by_a_get(headers):
    """As an image or a script is fetched: no Origin, and nothing of the answer is for the page."""
    async with calling() as (broker, session):
        async with streaming(session, durable="orders", filter="n >= 0") as stream:
            await session.post("/events", json={"n": 1})
            last = (await stream.next())["id"]
        homes = broker.running.router.durable.homes
        host = broker.url.removeprefix("http://")
        headers = {name: value.replace("{host}", host) for name, value in headers.items()}
        for parameters in ({"durable": "orders", "last": last}, {"durable": "new"}, {"since": "all"}, {}):
            answer = await session.get("/events", params=parameters, headers=headers)
            assert answer.status == 403, await answer.text()
            found = json.loads(await answer.read())
            assert found["error"] in ("StrangePage", "StrangeOrigin")
        for method in ("POST", "PUT", "DELETE"):
            assert (await session.request(method, "/subscriptions/orders", headers=headers)).status == 403
        assert set(homes.subscriptions) == {"orders"}
        assert len(homes.subscriptions["orders"].outbox) == 1


@pytest.mark.parametrize(
    "headers",
    [
        {},  # curl
        {"User-Agent": "curl/8.5.0"},
        {"Sec-Fetch-Site": "none"},  # typed into the address bar
        {"Sec-Fetch-Site": "same-origin"} | MOZILLA,  # EventSource of a page of this broker
        MOZILLA | {"Referer": "http://{host}/docs"},  # the same, of a browser that does not say more
        MOZILLA | {"Origin": "http://{host}"},
        MOZILLA | {"Origin": "https://app.example", "Sec-Fetch-Site": "cross-site"},  # which the settings name
    ],
)
async def test_programs_and_own_pages_go_on(headers):
    async with calling(gateway=GatewaySettings(origins=("https://app.example",))) as (broker, session):
        host = broker.url.removeprefix("http://")
        headers = {name: value.replace("{host}", host) for name, value in headers.items()}
        answer = await session.get("/events", params={"durable": "orders"}, headers=headers)
        assert answer.status == 200, await answer.text()
        answer.close()


async def test_a_link_from_elsewhere_leads_to_the_pages():
    async with calling() as (_, session):
        for path in ("/docs", "/openapi.json", "/health"):
            assert (await session.get(path, headers={"Sec-Fetch-Site": "cross-site"} | MOZILLA)).status == 200
