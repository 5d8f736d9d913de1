"""QUIC beside TCP: clients and links over UDP, always protected, and whom they trust."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import palio
import palio.testing
from palio.broker.settings import Settings, WrongSetting, require_safe
from palio.client.address import parse_addresses
from palio.client.errors import UntrustedCertificate, WrongAddress
from palio.transport.tls import WrongCertificate
from tests.live.network import play
from tests.security.papers import Papers, secured
from tests.security.world import World

pytest.importorskip("aioquic", reason="palio[quic] is not installed")

ANY = "127.0.0.1:0"


@pytest.fixture
def papers(tmp_path: Path) -> Papers:
    return Papers(tmp_path / "papers")


def over_quic(broker: palio.testing.Broker) -> str:
    return f"quic://127.0.0.1:{broker.running.quic_port}"


def test_clients_of_both_transports_hear_each_other(tmp_path: Path, papers: Papers) -> None:
    async def scene() -> None:
        world = World(tmp_path / "access")
        async with secured(world, papers, quic=ANY) as tcp:
            token, broker = world.tokens["admin"], world.brokers[0]
            udp = over_quic(broker)
            async with (
                palio.connect(udp, token=token, tls=papers.ca) as one,
                palio.connect(tcp.replace("palio://", "palios://"), token=token, tls=papers.ca) as other,
            ):
                for subscriber, publisher in ((one, other), (other, one)):
                    subscription = await subscriber.subscribe("true")
                    for number in range(100):
                        await publisher.publish({"n": number, "text": "x" * 2_000})
                    heard = [(await subscription.next(timeout=10))["n"] for _ in range(100)]
                    assert heard == list(range(100))
                    await subscription.unsubscribe()
            # The first address that answers is taken, of whichever scheme.
            async with palio.connect(f"palios://127.0.0.1:1,{udp}", token=token, tls=papers.ca) as client:
                await client.publish({"n": 1})

    play(scene)


def test_who_cannot_be_trusted_or_is_not_there(tmp_path: Path, papers: Papers) -> None:
    async def scene() -> None:
        world = World(tmp_path / "access")
        async with secured(world, papers, quic=ANY):
            broker = world.brokers[0]
            address, token = over_quic(broker), world.tokens["admin"]
            with pytest.raises(UntrustedCertificate, match="cannot be trusted: unable to get local issuer"):
                await palio.connect(address, token=token)  # the system does not know this authority
            with pytest.raises(UntrustedCertificate, match="localhost"):
                await palio.connect(address.replace("127.0.0.1", "localhost"), token=token, tls=papers.ca)
            with pytest.raises(palio.NotAuthenticated):
                await palio.connect(address, tls=papers.ca)
            with pytest.raises(palio.NotAuthenticated):  # nobody asks for a certificate here
                await palio.connect(address, tls=papers.of("admin"))
            nobody = address.replace(str(broker.running.quic_port), str(broker.running.http_port or 1))
            with pytest.raises(palio.NotConnected, match=r"quic://127\.0\.0\.1:\d+: "):
                await palio.connect(nobody, token=token, tls=papers.ca)  # TCP alone is there, or nothing

    play(scene)


def test_a_certificate_for_clients_is_none_of_a_broker(tmp_path: Path, papers: Papers) -> None:
    """Whoever has one for clients, of the same authority, shall not pass for a broker."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.x509.oid import ExtendedKeyUsageOID

    from palio.transport.quic import Quic
    from palio.transport.tls import client_context

    certificate, key = papers.sign("desk", "127.0.0.1")
    signed = x509.load_pem_x509_certificate(Path(certificate).read_bytes())
    authority = serialization.load_pem_private_key(papers.authority.private_key_pem.bytes(), None)
    made = (
        x509.CertificateBuilder(signed.issuer, signed.subject, signed.public_key(), signed.serial_number)
        .not_valid_before(signed.not_valid_before_utc)
        .not_valid_after(signed.not_valid_after_utc)
        .add_extension(
            x509.SubjectAlternativeName(
                [*signed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value]
            ),
            critical=False,
        )
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .sign(authority, hashes.SHA256())
    )
    Path(certificate).write_bytes(made.public_bytes(serialization.Encoding.PEM))

    async def scene() -> None:
        server = await Quic("127.0.0.1", 0).listen(asyncio.Protocol, certificate, key, handshake=10)
        with pytest.raises(OSError, match="not for servers"):
            await Quic("127.0.0.1", server.port, client_context(papers.ca)).dial(asyncio.Protocol)
        server.abort()

    play(scene)


def test_a_certificate_that_is_renewed_counts_here_too(tmp_path: Path, papers: Papers) -> None:
    async def scene() -> None:
        world = World(tmp_path / "access")
        async with secured(world, papers, quic=ANY):
            broker = world.brokers[0]
            address, token = over_quic(broker), world.tokens["admin"]
            async with palio.connect(address, token=token, tls=papers.ca) as before:
                other = Papers(tmp_path / "other")
                certificate, key = other.sign("siena", "127.0.0.1")
                for new, old in ((certificate, "siena.pem"), (key, "siena.key")):
                    (papers.folder / old).write_bytes(Path(new).read_bytes())
                broker.running.refresh_access()
                async with palio.connect(address, token=token, tls=other.ca) as after:
                    await after.publish({"n": 1})
                await before.publish({"n": 2})  # who was there stays

    play(scene)


def test_what_a_broker_without_a_certificate_is_told(tmp_path: Path, papers: Papers) -> None:
    with pytest.raises(WrongSetting, match="QUIC has TLS in it: give the broker a certificate"):
        require_safe(Settings(quic=ANY))
    certificate, _ = papers.sign("siena", "127.0.0.1")
    security = {"certificate": certificate, "key": papers.ca}

    async def scene() -> None:
        with pytest.raises(WrongCertificate):
            async with World(tmp_path / "access").broker(security=security, quic=ANY):
                raise AssertionError

    play(scene)


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("quic://one", ["quic://one:7070"]),
        ("quic://one:1,two:2", ["quic://one:1", "quic://two:2"]),
        ("quic://[::1]:1,palios://two", ["quic://[::1]:1", ("two", 7070)]),
        ("palios://two,quic://one", [("two", 7070), "quic://one:7070"]),
    ],
)
def test_addresses(text: str, places: list[Any]) -> None:
    assert parse_addresses(text) == places


def test_what_is_protected_is_not_mixed_with_what_is_not() -> None:
    for text in ("quic://one,palio://two", "palio://two,quic://one"):
        with pytest.raises(WrongAddress, match="write palios://"):
            parse_addresses(text)
