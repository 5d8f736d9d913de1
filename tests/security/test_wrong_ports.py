"""Whoever comes to the wrong port hears what is spoken there, and what to write instead. On real sockets."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import palio
import palio.testing
from palio.broker.settings import Peer, Security
from palio.transport.tls import client_context
from tests.live.network import play, until
from tests.security.papers import Papers


class Ports:
    """Those of two brokers, one of which speaks TLS."""

    def __init__(self, papers: Papers, plain: palio.testing.Broker, secure: palio.testing.Broker) -> None:
        self.papers = papers
        self.plain, self.secure = plain, secure
        self.named = {
            "plain": plain.running.port,
            "plain HTTP": plain.running.http_port,
            "TLS": secure.running.port,
            "TLS HTTP": secure.running.http_port,
        }

    async def connect(self, scheme: str, port: str, *, trusting: bool = True) -> None:
        tls = self.papers.ca if scheme in ("palios", "wss") and trusting else None
        address = f"{scheme}://127.0.0.1:{self.named[port]}"
        async with palio.connect(address, tls=tls, connect_within=0.0, connect_timeout=10.0):
            pass


@asynccontextmanager
async def all_ports(folder: Path) -> AsyncIterator[Ports]:
    papers = Papers(folder)
    certificate, key = papers.sign("siena", "127.0.0.1")
    plain = palio.testing.broker(http=True)
    secure = palio.testing.broker(http=True, security=Security(certificate=certificate, key=key))
    async with plain, secure:
        yield Ports(papers, plain, secure)


NO_TLS, TLS = "does not speak TLS", "speaks TLS, and the address does not"
HTTP, CLIENTS = "speaks HTTP", "port for clients, not the one for HTTP"


def test_every_address_at_every_port(tmp_path: Path) -> None:
    """What fits connects; anything else is a `WrongPort` that says which address to write instead."""
    expected = {
        ("palio", "plain"): None,
        ("palios", "TLS"): None,
        ("ws", "plain HTTP"): None,
        ("wss", "TLS HTTP"): None,
        ("palio", "TLS"): (TLS, "palios://"),
        ("palio", "TLS HTTP"): (TLS, "palios://"),
        ("ws", "TLS"): (TLS, "wss://"),
        ("ws", "TLS HTTP"): (TLS, "wss://"),
        ("palios", "plain"): (NO_TLS, "palio://"),
        ("palios", "plain HTTP"): (NO_TLS, "palio://"),
        ("wss", "plain"): (NO_TLS, "ws://"),
        ("wss", "plain HTTP"): (NO_TLS, "ws://"),
        ("palio", "plain HTTP"): (HTTP, "ws://"),
        ("palios", "TLS HTTP"): (HTTP, "wss://"),
        ("ws", "plain"): (CLIENTS, "palio://"),
        ("wss", "TLS"): (CLIENTS, "palios://"),
    }

    async def scene() -> None:
        async with all_ports(tmp_path) as ports:
            for (scheme, port), told in expected.items():
                if told is None:
                    await ports.connect(scheme, port)
                    continue
                with pytest.raises(palio.WrongPort) as caught:
                    await ports.connect(scheme, port)
                problem, (spoken, instead) = caught.value, told
                address = f"127.0.0.1:{ports.named[port]}"
                assert problem.address == address, (scheme, port)
                assert f"{address} " in str(problem)
                assert spoken in str(problem), (scheme, port)
                assert f" {instead}{address}" in problem.advice, (scheme, port)
                assert "palio up" not in str(problem)
                assert str(problem).endswith(".")

    play(scene)


def test_a_certificate_that_is_not_trusted_is_called_so(tmp_path: Path) -> None:
    async def scene() -> None:
        async with all_ports(tmp_path) as ports:
            for scheme, port in (("palios", "TLS"), ("wss", "TLS HTTP")):
                with pytest.raises(palio.UntrustedCertificate, match="--authority") as caught:
                    await ports.connect(scheme, port, trusting=False)
                assert caught.value.address == f"127.0.0.1:{ports.named[port]}"
                assert "palio up" not in str(caught.value)
            with pytest.raises(palio.UntrustedCertificate, match="not valid for 'localhost'"):
                await palio.connect(f"palios://localhost:{ports.named['TLS']}", tls=ports.papers.ca)

    play(scene)


def test_nobody_there_is_told_as_before() -> None:
    async def scene() -> None:
        with pytest.raises(palio.NotConnected, match="`palio up` starts one") as caught:
            await palio.connect("palio://127.0.0.1:1")
        assert type(caught.value) is palio.NotConnected

    play(scene)


def test_http_at_the_port_for_clients_is_answered_with_the_way(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def ask(port: int, words: bytes, **tls: object) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, **tls)  # type: ignore[arg-type]
        writer.write(words)
        answer = await asyncio.wait_for(reader.read(), 10)
        writer.transport.abort()
        return answer

    async def scene() -> None:
        async with all_ports(tmp_path) as ports:
            for words in (
                b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
                b"POST /events HTTP/1.1\r\n",
                b"DELETE /",
            ):
                answer = await ask(ports.named["plain"], words)
                assert answer.startswith(b"HTTP/1.1 421 "), answer
                assert f"HTTP is at http://127.0.0.1:{ports.named['plain HTTP']}/.".encode() in answer
            context = client_context(ports.papers.ca)
            answer = await ask(ports.named["TLS"], b"GET / HTTP/1.1\r\n\r\n", ssl=context)
            assert f"HTTP is at https://127.0.0.1:{ports.named['TLS HTTP']}/.".encode() in answer
            reasons = [getattr(record, "reason", "") for record in caplog.records]
            assert any("this is HTTP" in reason and "HTTP is at" in reason for reason in reasons)
            assert not any("bytes" in reason for reason in reasons)
        async with palio.testing.broker() as address:
            answer = await ask(int(address.rpartition(":")[2]), b"HEAD / HTTP/1.1\r\n\r\n")
            assert b"no port for HTTP" in answer

    with caplog.at_level(logging.WARNING):
        play(scene)


@pytest.mark.parametrize(
    ("scheme", "port", "told"),
    [
        ("palio", "TLS", "speaks TLS; write palios://"),
        ("palios", "plain", "does not speak TLS; write palio://"),
        ("palio", "plain HTTP", "this is HTTP"),
    ],
)
def test_a_neighbour_at_the_wrong_port_is_told_so(tmp_path: Path, scheme: str, port: str, told: str) -> None:
    async def scene() -> None:
        async with all_ports(tmp_path) as ports:
            peer = Peer(f"{scheme}://127.0.0.1:{ports.named[port]}", authority=ports.papers.ca)
            broker = palio.testing.broker(name="lost", peers=(peer,))
            async with broker:
                problems = broker.running.dialling_problems
                await until("the problem is known", lambda: any(told in one for one in problems().values()))

    play(scene)
