"""QUIC beside TCP: clients and links over UDP, always protected, and whom they trust."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

import pytest

import palio
import palio.testing
from palio.broker.settings import Limits, Peer, Settings, WrongSetting, require_safe
from palio.client.address import parse_addresses
from palio.client.errors import UntrustedCertificate, WrongAddress
from palio.routing.overlay.settings import OverlaySettings
from palio.transport.tls import WrongCertificate
from tests.live.network import play, until
from tests.security.papers import Papers, secured
from tests.security.world import World
from tests.transport.udp_wire import UdpWire

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
            with pytest.raises(palio.NotAuthenticated, match="By QUIC nobody is asked for a certificate"):
                await palio.connect(address, tls=papers.of("admin"))
            nobody = address.replace(str(broker.running.quic_port), str(broker.running.http_port or 1))
            with pytest.raises(palio.NotConnected, match=r"quic://127\.0\.0\.1:\d+: "):
                await palio.connect(nobody, token=token, tls=papers.ca)  # TCP alone is there, or nothing
            with socket.socket(type=socket.SOCK_DGRAM) as silent:
                silent.bind(("127.0.0.1", 0))
                nowhere = f"quic://127.0.0.1:{silent.getsockname()[1]}"
                with pytest.raises(palio.NotConnected, match=r"did not answer within 0\.2 seconds"):
                    await palio.connect(nowhere, token=token, tls=papers.ca, connect_timeout=0.2)

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


def linked(world: World, papers: Papers, **settings: Any) -> palio.testing.Broker:
    return secured(world, papers, quic=ANY, **settings)


def peer(address: str, papers: Papers, **options: Any) -> Peer:
    return Peer(address, authority=papers.ca, **options)


def test_links_over_udp_and_tcp_in_one_network(tmp_path: Path, papers: Papers) -> None:
    async def scene() -> None:
        world = World(tmp_path / "access")
        token = world.tokens["admin"]
        middle = linked(world, papers, name="middle", journal=True)
        async with middle as address:
            left = linked(world, papers, name="left", journal=True, peers=(peer(over_quic(middle), papers),))
            right = linked(
                world,
                papers,
                name="right",
                journal=True,
                peers=(peer(address.replace("palio://", "palios://"), papers),),
            )
            async with left, right:
                neighbours = middle.running.router.neighbours
                await middle.until(lambda: set(neighbours()) == {"left", "right"})
                async with (
                    palio.connect(over_quic(left), token=token, tls=papers.ca) as far,
                    palio.connect(over_quic(right), token=token, tls=papers.ca) as near,
                ):
                    live = await far.subscribe("n >= 0", ready="network")
                    kept = await far.subscribe("n >= 0", durable="kept", ready="network")
                    for number in range(50):
                        await near.publish({"n": number, "text": "x" * 5_000})
                    for subscription in (live, kept):
                        heard = [await subscription.next(timeout=20) for _ in range(50)]
                        assert [event["n"] for event in heard] == list(range(50))

    play(scene)


def test_a_link_outlives_another_address_and_a_dead_one_is_noticed(tmp_path: Path, papers: Papers) -> None:
    async def scene() -> None:
        world = World(tmp_path / "access")
        token = world.tokens["admin"]
        one = linked(world, papers, name="one", heartbeat=0.1)
        async with one:
            with UdpWire(one.running.quic_port) as wire:
                address = f"quic://127.0.0.1:{wire.port}"
                other = linked(world, papers, name="other", heartbeat=0.1, peers=(peer(address, papers),))
                async with other:
                    for broker, neighbour in ((one, "other"), (other, "one")):
                        await broker.until(lambda broker=broker, who=neighbour: who in broker.running.links)
                    [link] = one.running.links.values()
                    async with (
                        palio.connect(over_quic(other), token=token, tls=papers.ca) as far,
                        palio.connect(over_quic(one), token=token, tls=papers.ca) as near,
                    ):
                        heard = await far.subscribe("true", ready="network")
                        for number in range(5):
                            await near.publish({"n": number})
                            assert (await heard.next(timeout=20))["n"] == number
                            wire.move()
                        assert one.running.links["other"] is link
                        wire.is_cut = True  # its machine has no power any more
                        await until("noticed", lambda: not one.running.links)
                        assert link.reason == "It was silent for too long."
                        wire.is_cut = False
                        await until("linked again", lambda: "other" in one.running.links)

    play(scene)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ("authority", "shows a certificate that cannot be trusted: unable to get local issuer certificate"),
        ("port", "cannot be reached: Connection refused"),
    ],
)
def test_why_there_is_no_link(tmp_path: Path, papers: Papers, wrong: str, reason: str) -> None:
    async def scene() -> None:
        world = World(tmp_path / "access")
        async with linked(world, papers, name="one") as tcp:
            one = world.brokers[0]
            address = over_quic(one) if wrong == "authority" else tcp.replace("palio://", "quic://")
            trusted = papers if wrong == "port" else Papers(tmp_path / "other")
            async with linked(world, papers, name="other", peers=(peer(address, trusted),)) as _:
                problems = world.brokers[1].running.dialling_problems
                await until("said", lambda: problems().get(address))
                assert problems()[address].startswith(f"{address} {reason}")

    play(scene)


def test_a_link_without_a_token_is_refused_whatever_certificate_is_there(
    tmp_path: Path, papers: Papers
) -> None:
    async def scene() -> None:
        world = World(tmp_path / "access")
        async with linked(world, papers, name="one"):
            address = over_quic(world.brokers[0])
            certificate, key = papers.sign("brokers", "127.0.0.1")
            security = {"certificate": certificate, "key": key, "token_file": ""}
            other = world.broker(name="other", security=security, peers=(peer(address, papers),))
            async with other:
                await until("said", lambda: other.running.dialling_problems().get(address))
                said = other.running.dialling_problems()[address]
                assert said.startswith("By QUIC nobody is asked for a certificate; a token says who connects.")
                assert not world.brokers[0].running.links

    play(scene)


def test_a_network_is_joined_by_udp(tmp_path: Path, papers: Papers) -> None:
    """The address that a broker tells may be one of QUIC, too: it is passed on, and dialled."""

    async def scene() -> None:
        world = World(tmp_path / "access")
        with socket.socket(type=socket.SOCK_DGRAM) as probe:
            probe.bind(("127.0.0.1", 0))
            at = f"127.0.0.1:{probe.getsockname()[1]}"
        told = OverlaySettings(kind="tree", address=f"quic://{at}")
        first = secured(world, papers, name="first", quic=at, overlay=told)
        async with first:
            joining = OverlaySettings(kind="tree", join=(f"quic://{at}",))
            async with linked(world, papers, name="second", overlay=joining) as _:
                second = world.brokers[1]
                await second.until(lambda: "first" in second.running.router.neighbours())
                [contact] = second.running.router.overlay().neighbours
                assert contact.address == f"quic://{at}"
                assert first.running.links["second"].is_by_quic

    play(scene)


@pytest.mark.slow
def test_who_does_not_read_is_dropped_from_and_disturbs_nobody(tmp_path: Path, papers: Papers) -> None:
    async def scene() -> None:
        world = World(tmp_path / "access")
        async with linked(world, papers, limits=Limits(outgoing=1 << 18)):
            broker = world.brokers[0]
            address, token = over_quic(broker), world.tokens["admin"]
            async with (
                palio.connect(address, token=token, tls=papers.ca, name="slow") as slow,
                palio.connect(address, token=token, tls=papers.ca, name="quick") as quick,
            ):
                await slow.subscribe("true")
                heard = await quick.subscribe("true")
                slow._session._connection._transport.pause_reading()
                for number in range(300):
                    await quick.publish({"n": number, "text": "x" * 10_000})
                    assert (await heard.next(timeout=20))["n"] == number
                assert broker.statistics().dropped["slow consumer, drop-newest"] > 100
                [left] = [one for one in broker.running.connections if one.name.endswith("slow")]
                assert left.statistics().outgoing.bytes < 2_000_000
                slow._session._connection._transport.resume_reading()

    play(scene)
