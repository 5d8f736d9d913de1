"""TLS by HTTP and WebSocket: the same tokens, certificates and refusals as on the native port."""

from __future__ import annotations

import asyncio
import html
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest

import palio
from palio.broker.access.rights import write_rights
from palio.broker.access.tokens import revoke_tokens
from palio.transport.tls import client_context
from tests.broker.gateway.calling import Stream, problem, streaming
from tests.live.network import play, until
from tests.security.papers import Papers, secured
from tests.security.world import World


class Place:
    """A broker over TLS, its authority and its principals: `desk` may ACME, `shop` may PALI."""

    def __init__(self, folder: Path) -> None:
        self.world = World(folder / "access")
        self.papers = Papers(folder / "papers")
        for name, symbol in (("desk", "ACME"), ("shop", "PALI")):
            self.world.add(name, f'symbol = "{symbol}"', f'symbol = "{symbol}"')
        self.broker = secured(self.world, self.papers, http=True, journal=True)

    @property
    def https(self) -> str:
        return self.broker.url.replace("http://", "https://")

    @property
    def wss(self) -> str:
        return self.broker.url.replace("http://", "wss://")

    @property
    def plain(self) -> ssl.SSLContext:
        """For who shows no certificate."""
        return client_context(self.papers.ca)

    @asynccontextmanager
    async def calling(
        self, tls: ssl.SSLContext | None = None, who: str | None = None
    ) -> AsyncIterator[aiohttp.ClientSession]:
        """A session of an HTTP client, with a certificate, a token, both or nothing."""
        headers = {"Authorization": f"Bearer {self.world.tokens[who]}"} if who else {}
        connector = aiohttp.TCPConnector(ssl=tls or self.plain)
        async with aiohttp.ClientSession(self.https, connector=connector, headers=headers) as session:
            yield session


def at_a_place(scene: Any) -> Any:
    """A test that is played at a place of its own."""

    def test(tmp_path: Path) -> None:
        async def played() -> None:
            place = Place(tmp_path)
            async with place.broker:
                await scene(place)

        play(played)

    test.__doc__ = scene.__doc__
    return test


async def publish(session: aiohttp.ClientSession, **event: Any) -> aiohttp.ClientResponse:
    return await session.post("/events", json=event)


@at_a_place
async def test_publishing_and_an_event_stream_by_https(place: Place) -> None:
    async with place.calling(who="desk") as desk, streaming(desk, filter="price > 100") as stream:
        assert (await publish(desk, symbol="ACME", price=101.5)).status == 200
        assert await stream.data() == {"symbol": "ACME", "price": 101.5}
        await problem(await publish(desk, symbol="PALI", price=101.5), 403, "NotAllowed")
    async with place.calling() as nobody:
        await problem(await publish(nobody, symbol="ACME"), 401, "NotAuthenticated")
        await problem(await nobody.get("/events"), 401, "NotAuthenticated")
    strangers = Papers(place.papers.folder / "strangers")
    for wrong in (client_context(strangers.ca), client_context()):  # who the broker is cannot be known so
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            async with place.calling(wrong, "desk") as session:
                await publish(session, symbol="ACME")
    with pytest.raises(aiohttp.ClientError):
        async with aiohttp.ClientSession() as session:
            await session.get(place.broker.url + "/health")  # without TLS there is no answer


@at_a_place
async def test_a_client_by_wss_with_a_token(place: Place) -> None:
    token = place.world.tokens["desk"]
    async with palio.connect(place.wss, token=token, tls=place.papers.ca) as client:
        subscription = await client.subscribe("true", durable="orders")
        await client.publish({"symbol": "ACME", "n": 1})
        event = await subscription.next(timeout=10)
        assert event["n"] == 1
        await event.ack()
        with pytest.raises(palio.NotAllowed):
            await client.publish({"symbol": "PALI"})
        revoke_tokens(place.world.folder, [token.split("_")[1]])
        place.world.refresh()
        with pytest.raises(palio.ClientClosed, match="was revoked"):
            await subscription.next(timeout=10)
    with pytest.raises(palio.NotAuthenticated):
        await palio.connect(place.wss, tls=place.papers.ca)
    with pytest.raises(palio.NotAuthenticated):
        await palio.connect(place.wss, token=token, tls=place.papers.ca)  # which was revoked
    strangers = Papers(place.papers.folder / "strangers")
    with pytest.raises(palio.NotConnected, match="cannot be trusted"):
        await palio.connect(place.wss, token=place.world.tokens["shop"], tls=strangers.ca)
    with pytest.raises(palio.NotConnected):
        await palio.connect(place.wss.replace("wss", "ws", 1), token=place.world.tokens["shop"])


@at_a_place
async def test_a_certificate_by_https(place: Place) -> None:
    """It is its principal, with all that belongs to it; two of them have nothing in common."""
    papers = place.papers
    async with (
        place.calling(papers.of("desk")) as desk,
        place.calling(papers.of("shop")) as shop,
        streaming(desk) as stream,
    ):
        for who, mine, others in ((desk, "ACME", "PALI"), (shop, "PALI", "ACME")):
            for _ in range(2):  # the second in the session of the first
                assert (await publish(who, symbol=mine)).status == 200
                found = await problem(await publish(who, symbol=others), 403, "NotAllowed")
            assert found["principal"] == ("desk" if who is desk else "shop")
        assert [(await stream.data())["symbol"] for _ in range(2)] == ["ACME", "ACME"]
        assert (await desk.post("/subscriptions", json={"id": "orders"})).status == 201
        await problem(await shop.get("/subscriptions/orders"), 404, "UnknownSubscription")
        assert (await desk.get("/subscriptions/orders")).status == 200
        await problem(await desk.get("/metrics"), 403, "NotAllowed")
    async with place.calling(papers.of("desk"), "shop") as both:  # the token is what is meant
        assert (await publish(both, symbol="PALI")).status == 200
        await problem(await publish(both, symbol="ACME"), 403, "NotAllowed")
    async with place.calling(papers.of("desk")) as wrong:  # and counts, even if it is worth nothing
        answer = await wrong.post("/events", json={"symbol": "ACME"}, headers={"Authorization": "Bearer x"})
        await problem(answer, 401, "NotAuthenticated")


@at_a_place
async def test_a_certificate_by_wss(place: Place) -> None:
    async with palio.connect(place.wss, tls=place.papers.of("desk")) as client:
        subscription = await client.subscribe("true")
        await client.publish({"symbol": "ACME"})
        assert (await subscription.next(timeout=10))["symbol"] == "ACME"
        with pytest.raises(palio.NotAllowed):
            await client.publish({"symbol": "PALI"})


@at_a_place
async def test_certificates_that_count_for_nothing(place: Place) -> None:
    """Expired, of another authority, of nobody, none: but who has a token as well comes in by that."""
    forged = Papers(place.papers.folder / "forged").sign("desk")
    yesterday = datetime.now(UTC) - timedelta(days=1)
    for wrong in (client_context(place.papers.ca, *forged), place.papers.of("desk", until=yesterday)):
        with pytest.raises(aiohttp.ClientError):  # the handshake fails, whatever is sent after it
            async with place.calling(wrong, "desk") as session:
                await publish(session, symbol="ACME")
        with pytest.raises(palio.PalioError):
            await palio.connect(place.wss, tls=wrong, connect_timeout=5.0)
    for unknown in (place.papers.of("nobody"), place.papers.of("../desk"), place.plain):
        async with place.calling(unknown) as session:
            await problem(await publish(session, symbol="ACME"), 401, "NotAuthenticated")
        with pytest.raises(palio.NotAuthenticated):
            await palio.connect(place.wss, tls=unknown)
        async with place.calling(unknown, "desk") as session:
            assert (await publish(session, symbol="ACME")).status == 200


@at_a_place
async def test_rights_that_are_taken_away_end_what_a_certificate_has_begun(place: Place) -> None:
    mine = place.papers.of("desk")
    async with place.calling(mine) as desk, palio.connect(place.wss, tls=mine) as client:
        stream = Stream(await desk.get("/events"))
        subscription = await client.subscribe("true")
        assert (await publish(desk, symbol="ACME")).status == 200
        assert (await stream.data())["symbol"] == (await subscription.next(timeout=10))["symbol"] == "ACME"
        write_rights(place.world.folder, "desk", None)
        place.world.refresh()
        fields = await stream.next()
        assert (fields["event"], json.loads(fields["data"])["error"]) == ("end", "NotAuthenticated")
        with pytest.raises(palio.ClientClosed, match="no rights here any more"):
            await subscription.next(timeout=10)
        await problem(await publish(desk, symbol="ACME"), 401, "NotAuthenticated")
        place.world.grant("desk", 'symbol = "ACME"', None)
        assert (await publish(desk, symbol="ACME")).status == 200


@at_a_place
async def test_a_certificate_that_expires_ends_its_connections(place: Place) -> None:
    short = place.papers.of("desk", until=datetime.now(UTC) + timedelta(seconds=3))
    native = place.broker.address.replace("palio://", "palios://")
    async with palio.connect(place.wss, tls=short) as web, palio.connect(native, tls=short) as client:
        await web.publish({"symbol": "ACME"})
        await client.publish({"symbol": "ACME"})
        sessions = place.broker.running.sessions
        await until("both are gone", lambda: not [name for name in sessions if name.startswith("desk/")])


@at_a_place
async def test_a_page_of_another_place_cannot_use_the_certificate_of_a_browser(place: Place) -> None:
    async with place.calling(place.papers.of("desk")) as browser:
        for headers, error in (
            ({"Origin": "https://evil.example"}, "StrangeOrigin"),
            ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, "StrangePage"),
            ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, "StrangePage"),
        ):
            answer = await browser.get("/events?durable=orders&last=siena:1", headers=headers)
            await problem(answer, 403, error)
            await problem(await browser.get("/subscriptions", headers=headers), 403, "StrangeOrigin")
        assert (await browser.get("/subscriptions", headers={"Sec-Fetch-Site": "same-origin"})).status == 200
        meant = {"Sec-Fetch-Site": "cross-site", "Authorization": f"Bearer {place.world.tokens['shop']}"}
        assert (await browser.get("/subscriptions", headers=meant)).status == 200
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await browser.ws_connect("/palio", headers={"Origin": "https://evil.example"})


@at_a_place
async def test_many_at_once_by_certificate_and_token(place: Place) -> None:
    """Requests of different principals at the same time: each is its own."""
    async with (
        place.calling(place.papers.of("desk")) as desk,
        place.calling(place.papers.of("shop")) as shop,
        place.calling(who="desk") as by_token,
        place.calling() as nobody,
    ):
        callers = ((desk, "ACME", 200), (desk, "PALI", 403), (shop, "PALI", 200), (shop, "ACME", 403))
        more = ((by_token, "ACME", 200), (by_token, "PALI", 403), (nobody, "ACME", 401))

        async def call(who: aiohttp.ClientSession, symbol: str, expected: int) -> None:
            answer = await publish(who, symbol=symbol)
            assert answer.status == expected, await answer.text()

        await asyncio.gather(*[call(*one) for one in (*callers, *more) * 8])


@at_a_place
async def test_the_page_says_how_to_come_in(place: Place) -> None:
    async with place.calling() as nobody:
        page = html.unescape(await (await nobody.get("/docs")).text())
    assert f'curl -H "Authorization: Bearer $TOKEN" -N \'{place.https}/events' in page
    assert f"{place.wss}/palio" in page
