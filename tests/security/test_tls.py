"""TLS on every port: who is who, what cannot be trusted, and certificates that are renewed."""

from __future__ import annotations

import asyncio
import ssl
import urllib.request
from pathlib import Path

import msgspec
import pytest

import palio
import palio.sync
import palio.testing
from palio.broker.settings import Peer
from palio.protocol.frames import frame
from palio.transport.tls import WrongCertificate, client_context
from tests.live.network import play, until
from tests.security.papers import Papers, secured
from tests.security.world import World


@pytest.fixture
def papers(tmp_path: Path) -> Papers:
    return Papers(tmp_path / "papers")


def over_tls(broker: palio.testing.Broker) -> str:
    return broker.address.replace("palio://", "palios://")


def test_a_token_over_tls(tmp_path: Path, papers: Papers) -> None:
    async def scene() -> None:
        world = World(tmp_path / "access")
        broker = secured(world, papers)
        async with broker:
            address, token = over_tls(broker), world.tokens["admin"]
            async with palio.connect(address, token=token, tls=papers.ca) as client:
                subscription = await client.subscribe("true")
                await client.publish({"n": 1})
                assert (await subscription.next(timeout=10))["n"] == 1
            with pytest.raises(palio.NotConnected, match="cannot be trusted"):
                await palio.connect(address, token=token)  # the system does not know this authority
            with pytest.raises(palio.NotConnected):
                await palio.connect(broker.address, token=token, connect_timeout=1.0)  # without TLS

            def synchronously() -> None:
                with palio.sync.connect(address, token=token, tls=papers.ca) as client:
                    client.publish({"n": 2})

            await asyncio.to_thread(synchronously)

    play(scene)


def test_a_certificate_instead_of_a_token(tmp_path: Path, papers: Papers) -> None:
    async def scene() -> None:
        world = World(tmp_path / "access")
        world.grant("desk", "level > 3", None)
        broker = secured(world, papers)
        async with broker:
            mine = papers.of("desk")
            async with palio.connect(over_tls(broker), tls=mine) as client:
                await client.publish({"level": 4})
                with pytest.raises(palio.NotAllowed):
                    await client.publish({"level": 3})
            with pytest.raises(palio.NotAuthenticated):
                await palio.connect(over_tls(broker), tls=papers.ca)  # shows nothing
            forged = client_context(papers.ca, *Papers(tmp_path / "forged").sign("desk"))
            with pytest.raises((palio.NotConnected, palio.NotAuthenticated)):
                await palio.connect(over_tls(broker), tls=forged)
            for strange in ("desk admin", "nobody"):  # no principal can have that name; none has this one
                with pytest.raises(palio.NotAuthenticated):
                    await palio.connect(over_tls(broker), tls=papers.of(strange))

    play(scene)


def test_a_certificate_that_is_renewed(tmp_path: Path, papers: Papers) -> None:
    """New connections see the new one; those that are there stay, and a broken file changes nothing."""

    async def scene() -> None:
        world = World(tmp_path / "access")
        broker = secured(world, papers)
        async with broker:
            token = world.tokens["admin"]
            client = await palio.connect(over_tls(broker), token=token, tls=papers.ca)
            before = await _shown(broker.port, papers.ca)
            (papers.folder / "siena.pem").write_text("nothing of value")
            broker.running.refresh_access()
            assert await _shown(broker.port, papers.ca) == before
            papers.sign("siena", "127.0.0.1")
            broker.running.refresh_access()
            assert await _shown(broker.port, papers.ca) != before
            await client.publish({"n": 1})
            await client.close()

    play(scene)


async def _shown(port: int, authority: str) -> bytes:
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client_context(authority))
    shown: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.transport.abort()
    return shown


def test_links_between_brokers(tmp_path: Path, papers: Papers) -> None:
    """Over TLS, by a token or by the broker's certificate; a stranger gets no link."""

    async def scene() -> None:
        world = World(tmp_path / "access")
        siena = secured(world, papers, name="siena")
        world.grant("lucca", "true", "true", "peer")
        certificate, key = papers.sign("lucca", "127.0.0.1")
        security = {"certificate": certificate, "key": key, "authority": papers.ca, "token_file": ""}
        lucca = world.broker(name="lucca", security=security)
        arezzo = world.broker(name="arezzo", security={"authority": papers.ca, "token_file": ""})
        async with siena:
            peer = Peer(over_tls(siena))
            for one in (lucca, arezzo):
                one._settings = msgspec.structs.replace(one._settings, peers=(peer,))
            async with lucca, arezzo:
                await lucca.until(lambda: "siena" in lucca.running.router.neighbours())
                problems = arezzo.running.dialling_problems
                await until("arezzo is refused", lambda: "wants to know" in "".join(problems().values()))
                assert list(siena.running.links) == ["lucca"]

    play(scene)


def test_plain_bytes_on_a_tls_port(tmp_path: Path, papers: Papers) -> None:
    async def scene() -> None:
        world = World(tmp_path / "access")
        broker = secured(world, papers)
        async with broker:
            for data in (frame(b"\x80"), b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01" + b"\xff" * 500):
                reader, writer = await asyncio.open_connection("127.0.0.1", broker.port)
                writer.write(data)
                said = await asyncio.wait_for(reader.read(), 15)
                assert b"palio" not in said
                writer.transport.abort()
            async with palio.connect(over_tls(broker), token=world.tokens["admin"], tls=papers.ca) as client:
                await client.publish({"n": 1})

    play(scene)


def test_http_speaks_tls_and_shows_metrics_to_who_may_inspect(tmp_path: Path, papers: Papers) -> None:
    async def scene() -> None:
        world = World(tmp_path / "access")
        world.add("desk", "true", "true")
        broker = secured(world, papers)
        broker._settings = msgspec.structs.replace(broker._settings, http="127.0.0.1:0")
        async with broker:

            def get(path: str, who: str | None) -> tuple[int, str]:
                headers = {} if who is None else {"Authorization": f"Bearer {world.tokens[who]}"}
                url = f"https://127.0.0.1:{broker.running.http_port}{path}"
                request = urllib.request.Request(url, headers=headers)
                try:
                    with urllib.request.urlopen(request, context=client_context(papers.ca)) as answer:
                        return answer.status, answer.read().decode()
                except urllib.error.HTTPError as problem:
                    return problem.code, problem.read().decode()

            assert (await asyncio.to_thread(get, "/health", None))[0] == 200
            assert (await asyncio.to_thread(get, "/metrics", None))[0] == 401
            assert (await asyncio.to_thread(get, "/metrics", "desk"))[0] == 403
            status, text = await asyncio.to_thread(get, "/metrics", "admin")
            assert status == 200
            assert "palio_connections" in text

    play(scene)


def test_files_that_cannot_be_used(tmp_path: Path, papers: Papers) -> None:
    certificate, _ = papers.sign("one")
    _, other_key = papers.sign("two")
    for arguments in ((str(tmp_path / "none.pem"),), ("", certificate, other_key), (other_key,)):
        with pytest.raises(WrongCertificate, match="cannot be used for TLS"):
            client_context(*arguments)
    assert isinstance(client_context(), ssl.SSLContext)
