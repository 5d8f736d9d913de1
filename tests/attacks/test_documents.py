"""Documents, families, paths and envelopes that are made to hurt: refused by name, and nobody else notices."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

import palio
from palio.broker.gateway.settings import GatewaySettings
from palio.broker.memory import memory_bound
from palio.broker.settings import load
from tests.attacks.scene import LIMITS, MOST_MEMORY, Scene, attacked
from tests.broker.documents.cards import card
from tests.broker.documents.schema_of_cards import WANTED
from tests.documents.schemas import schema
from tests.documents.test_hostile_documents import DOCTYPES, FLOODS, Listener
from tests.documents.test_hostile_schemas import doubled, of_pattern
from tests.live.network import play
from tests.soap.speaking import S12, TYPES, envelope

pytest.importorskip("lxml")

# What one of them may take, on a machine that is busy with other things.
SOON = 15.0
OF_CARDS = 'xml.family = "card"'
WHO = {"shop": (OF_CARDS, OF_CARDS, "paths"), "keeper": ("true", "true", "families", "paths")}


@contextlib.asynccontextmanager
async def attacked_documents(folder: Path, memory: float = MOST_MEMORY) -> AsyncIterator[tuple[Scene, str]]:
    """With SOAP, the family of cards, somebody who may publish them, and somebody who may add families."""
    soap = {"enabled": True}
    async with attacked(folder, principals=WHO, memory=memory, http="127.0.0.1:0", soap=soap) as there:
        async with there.connect("keeper", connect_within=30.0) as keeper:
            await keeper.families.add("card", **WANTED)
        ready = json.loads((there.node.folder / "ready.json").read_text())
        yield there, f"http://127.0.0.1:{ready['http_port']}"


def test_documents_that_are_made_to_hurt(tmp_path: Path) -> None:
    """By the protocol and by HTTP: entities, depth, names, attributes, namespaces, XInclude, and keys."""

    async def scene() -> None:
        listener = Listener()
        async with attacked_documents(tmp_path) as (there, url), there.connect("shop") as shop:
            subscription = await shop.subscribe("true")
            token = {"Authorization": f"Bearer {there.world.tokens['shop']}", "Content-Type": "text/xml"}
            async with aiohttp.ClientSession(url, headers=token) as session:
                for name, content in hostile_documents(listener.port).items():
                    began = time.monotonic()
                    with pytest.raises(palio.RequestRefused) as refused:
                        await shop.publish_document(content)
                    assert refused.value.error in ("DocumentRefused", "DocumentTooLarge"), name
                    async with session.post("/documents", data=content) as answer:
                        assert answer.status in (400, 413), name
                        problem = await answer.json(content_type=None)
                    assert problem["error"] == refused.value.error, name
                    assert time.monotonic() - began < SOON, name
                async with session.post("/documents", data=card("good")) as answer:
                    assert answer.status == 200
            assert (await subscription.next(timeout=SOON))["xml.key"] == "good"
            assert not listener.came.is_set()

    play(scene)


def hostile_documents(port: int) -> dict[str, bytes]:
    """Each within what a frame takes."""
    made = {name: content.replace(b"%d", b"%d" % port) for name, content in DOCTYPES.items()}
    made |= {name: content[:1_000_000] for name, content in FLOODS.items()}
    including = b'<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="http://127.0.0.1:%d/x"/>' % port
    made["an include"] = card("inc").replace(b"<price>", including + b"<price>")
    made["a key of spaces"] = card(" \t ")
    made["a long key"] = card("k" * 5_000)
    made["no number"] = card(price="1e999")
    return made


@pytest.mark.parametrize("grows", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_families_that_are_made_to_hurt(tmp_path: Path, grows: bool) -> None:
    """Schemas that grow, that are slow, that refer elsewhere; who may add families may not harm others."""

    async def scene() -> None:
        listener = Listener()
        address = f"http://127.0.0.1:{listener.port}/x.xsd"
        including = schema(f"<xs:include schemaLocation='{address}'/><xs:element name='a' type='xs:int'/>")
        bombs = {
            "grows": doubled(40) if grows else doubled(3).replace("g3", "none", 1),
            "is slow": of_pattern("(x+x+)+y"),
            "refers to an address": including,
            "has entities": "<!DOCTYPE a [<!ENTITY b 'c'>]>" + schema("<xs:element name='a'/>"),
            "is deep": schema("<xs:element name='a'>" + "<xs:complexType>" * 300),
        }
        async with attacked_documents(tmp_path) as (there, _), there.connect("keeper") as keeper:
            for name, text in bombs.items():
                with pytest.raises(palio.RequestRefused) as refused:
                    await keeper.families.add("bomb", [("a.xsd", text.encode())], ["/a"], key=["/a"])
                assert refused.value.error in ("SchemaRefused", "DocumentRefused"), (name, refused.value)
            assert [one["name"] for one in await keeper.families.ls()] == ["card"]
            assert not listener.came.is_set()

    play(scene)


XPATH_BOMBS = (
    "//*[//*[//*]]",
    "//*[count(//*) > 5]",
    "//*/following::*/preceding::*",
    "(" * 500 + "/a" + ")" * 500,
    "/card" + "[code" * 200 + "]" * 200,
    " | ".join(["//code"] * 500),
    "//*" * 1_200,
    "document('file:///etc/passwd')",
    "/card/code[" + "9" * 4_000 + "]",
)


def test_paths_that_are_made_to_hurt(tmp_path: Path) -> None:
    """Refused where they would be added, since an evaluation cannot be stopped; and only so many are."""

    async def scene() -> None:
        async with attacked_documents(tmp_path) as (there, _), there.connect("shop") as shop:
            for text in XPATH_BOMBS:
                began = time.monotonic()
                with pytest.raises(palio.PalioError) as refused:
                    await shop.subscribe(f'family card where xpath("{text}") = "x"')
                assert not isinstance(refused.value, TimeoutError), text
                assert time.monotonic() - began < SOON, text
            added = 0
            with contextlib.suppress(palio.RequestRefused):
                while added < 300:
                    await shop.subscribe(f'family card where xpath("/card/brand[{added + 1}]") = "x"')
                    added += 1
            assert 100 < added < 256
            await shop.publish_document(card("after"))

    play(scene)


def test_envelopes_and_parts_without_end(tmp_path: Path) -> None:
    """SOAP that never stops, in one part or in many, is cut off at the limit of a request."""

    async def scene() -> None:
        async with attacked_documents(tmp_path) as (_, url):
            host, port = url.removeprefix("http://").split(":")
            related = 'multipart/related; type="application/soap+xml"; boundary="here"; start="<a>"'
            floods = [
                (TYPES[S12], envelope("<a>")[:-40], b"<a>" * 20_000),
                (TYPES[S12], envelope("<a>")[:-40], b"<a b='" + b"c" * 60_000),
                (related, b"--here\r\nContent-ID: <a>\r\n\r\n", b"x" * 60_000),
                (related, b"", b"--here\r\nContent-ID: <b>\r\n\r\n" * 2_000),
                (related, b"--here\r\n", b"X-Head: y\r\n" * 5_000),
            ]
            # So many at a time that all of them reach their own limit before the one of all together (503).
            assert len(floods) * GatewaySettings().body < GatewaySettings().bodies
            for _ in range(2):
                tasks = [endless(host, int(port), *flood) for flood in floods]
                statuses = await asyncio.wait_for(asyncio.gather(*tasks), 60)
                assert all(status in (b"413", b"") for status in statuses), statuses
            async with aiohttp.ClientSession(url) as session:
                for content, kind in hostile_envelopes(related):
                    async with session.post("/wsn", data=content, headers={"Content-Type": kind}) as answer:
                        assert 400 <= answer.status < 600, content[:80]
                        assert b"Fault" in await answer.read()

    play(scene)


def hostile_envelopes(related: str) -> list[tuple[bytes, str]]:
    good = envelope("<wsnt:Notify/>")
    return [
        (b'<!DOCTYPE a [<!ENTITY b "c">]>' + good, TYPES[S12]),
        (good.replace(b"<wsnt:Notify/>", FLOODS["depth"][:500_000]), TYPES[S12]),
        (good.replace(b"<wsnt:Notify/>", FLOODS["attributes"][:500_000]), TYPES[S12]),
        (b"--here\r\nContent-ID: <b>\r\n\r\nx\r\n" * 5_000 + b"--here--\r\n", related),
    ]


async def endless(host: str, port: int, kind: str, begins: bytes, again: bytes) -> bytes:
    """What is answered to a request that goes on until it is, or nothing if the connection just ends."""
    reader, writer = await asyncio.open_connection(host, port)
    head = ("POST /wsn HTTP/1.1", f"Host: {host}:{port}", f"Content-Type: {kind}", "Transfer-Encoding: chunked")
    writer.write("\r\n".join([*head, "", ""]).encode())
    answered = asyncio.ensure_future(reader.readline())
    try:
        for piece in (begins, *[again] * 2_000):
            if piece:
                writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
            if answered.done():
                break
        return (await answered).split(b" ")[1] if await answered else b""
    except ConnectionError:
        return b""
    finally:
        answered.cancel()
        writer.transport.abort()
        with contextlib.suppress(BaseException):
            await answered


def test_memory_is_within_what_is_said(tmp_path: Path) -> None:
    """A flood of the largest documents, from all that may come at a time: `M_base + T_max (S_max + k)`."""

    async def scene() -> None:
        async with attacked_documents(tmp_path, memory=2_000.0) as (there, _):
            file = there.node.folder / "palio.toml"
            bound = sum(part.bytes for part in memory_bound(load(str(file)), len(there.world.tokens)))
            over, most, read = asyncio.Event(), 0, 0
            content = card("big").replace(b"<price>", b"<!--" + b"x" * 900_000 + b"--><price>")

            async def publish(client: Any) -> None:
                nonlocal read
                while not over.is_set():
                    await client.publish_document(content, timeout=60)
                    read += 1

            async with contextlib.AsyncExitStack() as stack:
                clients = [
                    await stack.enter_async_context(there.connect("shop", name=f"shop {number}"))
                    for number in range(16)
                ]
                tasks = [asyncio.create_task(publish(client)) for client in clients]
                while read < 120 and not any(task.done() for task in tasks):
                    most = max(most, round(there.node.memory() * 1e6))
                    await asyncio.sleep(0.02)
                over.set()
                await asyncio.gather(*tasks)
            assert 0 < most < bound
            assert LIMITS["frame"] > len(content)

    play(scene)
