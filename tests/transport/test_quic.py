"""Streams over UDP: what a bad network, another address, a slow reader and an attacker do to them."""

import asyncio
import gc
import os
import random
import select
import socket
import weakref
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

pytest.importorskip("aioquic", reason="palio[quic] is not installed")

from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import StreamDataReceived
from aioquic.quic.rangeset import RangeSet

from palio.protocol.greeting import PROTOCOL
from palio.transport import quic_port, quic_streams
from palio.transport.quic import Quic
from palio.transport.quic_bounds import STREAM, WINDOW, BoundedQuic, bounded_configuration
from palio.transport.tls import client_context
from tests.security.papers import Papers
from tests.transport.test_transports import End
from tests.transport.udp_wire import UdpWire


@pytest.fixture(scope="module")
def papers(tmp_path_factory) -> Papers:
    made = Papers(tmp_path_factory.mktemp("papers"))
    made.sign("siena", "127.0.0.1")
    return made


@asynccontextmanager
async def listening(papers, make=End, handshake=10.0):
    """A server, and the ends that it has taken."""
    taken = []

    def take():
        taken.append(make())
        return taken[-1]

    certificate, key = (str(papers.folder / f"siena.{kind}") for kind in ("pem", "key"))
    server = await Quic("127.0.0.1", 0).listen(take, certificate, key, handshake=handshake)
    try:
        yield server, taken
    finally:
        server.abort()


@asynccontextmanager
async def cut_off(papers):
    """One end of a connection over a wire that is cut now, and the server with the other one."""
    async with listening(papers) as (server, taken):
        with UdpWire(server.port) as wire:
            near = await to(wire.port, papers).dial(End)
            await until(lambda: taken)
            wire.is_cut = True
            async with asyncio.timeout(20):
                yield near, taken[0], server


def to(port, papers):
    return Quic("127.0.0.1", port, client_context(papers.ca))


async def until(condition):
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.001)


def pieces(size, salt):
    """Bytes of which each place is told from others."""
    return b"".join((number * 7 + salt).to_bytes(4, "big") for number in range(size // 4))


# A bad network


@pytest.mark.parametrize(
    "seed", [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)]
)
def test_all_comes_once_and_in_order_through_a_bad_network(papers, seed):
    async def scene():
        async with listening(papers) as (server, taken):
            with UdpWire(server.port, seed, loss=0.05, doubled=0.05, late=0.2) as wire:
                near = await to(wire.port, papers).dial(End)
                await until(lambda: taken)
                far, there, back = taken[0], pieces(200_000, 1), pieces(100_000, 2)
                near.transport.write(there)
                await until(lambda: far.heard)
                far.transport.write(back)
                await until(lambda: len(far.heard) >= len(there) and len(near.heard) >= len(back))
                near.transport.close()
                assert await near.over is None
                assert (bytes(far.heard), bytes(near.heard)) == (there, back)

    asyncio.run(scene())


def test_whose_address_changes_stays_connected(papers):
    async def scene():
        async with listening(papers) as (server, taken):
            with UdpWire(server.port) as wire:
                near = await to(wire.port, papers).dial(End)
                await until(lambda: taken)
                far = taken[0]
                for time in range(1, 4):
                    near.transport.write(b"x" * 10_000)
                    await far.until(10_000 * time)
                    wire.move()
                    near.transport.write(b"")
                near.transport.write(b"last")
                await far.until(30_004)
                far.transport.write(b"back")  # what is sent goes where the other end is now
                await near.until(4)
                assert len(taken) == 1
                assert not near.over.done()

    asyncio.run(scene())


def test_nobody_hears_from_who_is_cut_off_and_both_give_up(papers, monkeypatch):
    monkeypatch.setattr("palio.transport.quic._IDLE", 0.3)

    async def scene():
        async with cut_off(papers) as (near, far, server):
            near.transport.write(b"nobody hears this")
            for end in (near, far):
                assert str(await end.over) == "the other end was silent for too long"
            assert server.ports[0].statistics() == (0, 0)

    asyncio.run(scene())


def test_the_other_end_is_told_that_it_was_given_up(papers):
    async def scene():
        async with listening(papers) as (_, taken), asyncio.timeout(20):
            near = await to(_.port, papers).dial(End)
            await until(lambda: taken)
            taken[0].transport.pause_reading()
            near.transport.write(bytes(WINDOW * 4))
            await until(lambda: near.transport.get_write_buffer_size() < WINDOW * 4)
            near.transport.abort()
            assert await near.over is None
            assert str(await taken[0].over) == "the other end has given it up"

    asyncio.run(scene())


# Who does not read


def test_a_window_stays_where_it_is_while_nobody_reads(papers):
    async def scene():
        async with listening(papers) as (server, taken):
            near = await to(server.port, papers).dial(End)
            await until(lambda: taken)
            far = taken[0]
            [end] = set(server.ports[0]._ends.values())
            size = 4 * WINDOW
            for _ in range(2):  # also after much was read
                began = len(far.heard)
                far.transport.pause_reading()
                near.transport.write(bytes(size))
                await until(lambda: len(end._unread) >= WINDOW // 2 - 2_000)
                for _ in range(50):
                    await asyncio.sleep(0)
                assert len(end._unread) <= WINDOW
                assert near.paused
                assert near.transport.get_write_buffer_size() >= size - 2 * WINDOW
                far.transport.resume_reading()
                await far.until(began + size)
            assert end.connection._streams[STREAM].max_stream_data_local <= len(far.heard) + WINDOW

    asyncio.run(scene())


def test_what_was_written_before_the_end_waits_for_who_does_not_read(papers):
    async def scene():
        async with listening(papers) as (server, taken), asyncio.timeout(20):
            near = await to(server.port, papers).dial(End)
            await until(lambda: taken)
            far = taken[0]
            far.transport.pause_reading()
            near.transport.write(pieces(WINDOW // 2, 1))
            near.transport.close()
            assert await near.over is None
            await until(lambda: not server.ports[0]._ends)
            assert not far.over.done()
            far.transport.resume_reading()
            assert await far.over is None
            assert bytes(far.heard) == pieces(WINDOW // 2, 1)

    asyncio.run(scene())


# Attacks


class Duel:
    """An attacker, who has aioquic and no manners, and a bounded connection, without a network between them."""

    def __init__(self, papers):
        self.now = 0.0
        mine = bounded_configuration(is_client=False, alpn_protocols=[PROTOCOL])
        mine.load_cert_chain(papers.folder / "siena.pem", papers.folder / "siena.key")
        theirs = QuicConfiguration(
            is_client=True, alpn_protocols=[PROTOCOL], server_name="127.0.0.1", cafile=papers.ca
        )
        self.attacker = QuicConnection(configuration=theirs)
        self.attacker.connect(("127.0.0.1", 1), now=0.0)
        self.bounded = BoundedQuic(
            mine, original_destination_connection_id=self.attacker.original_destination_connection_id
        )
        self.events = []
        self.talk()

    def talk(self, rounds=20):
        for _ in range(rounds):
            self.now += 0.01
            for one, other, address in ((self.attacker, self.bounded, 2), (self.bounded, self.attacker, 1)):
                for data, _ in one.datagrams_to_send(now=self.now):
                    other.receive_datagram(data, ("127.0.0.1", address), now=self.now)
            while (event := self.bounded.next_event()) is not None:
                self.events.append(event)


def test_a_window_does_not_grow_by_what_comes_beyond_a_gap(papers):
    duel = Duel(papers)
    duel.attacker.send_stream_data(STREAM, bytes(8 * WINDOW))
    sender = duel.attacker._streams[STREAM].sender
    sender._pending.subtract(0, 1)  # the first byte is never sent
    duel.talk(400)
    receiver = duel.bounded._streams[STREAM].receiver
    assert not [event for event in duel.events if isinstance(event, StreamDataReceived)]
    assert WINDOW // 2 < receiver.highest_offset <= WINDOW
    assert len(receiver._buffer) <= WINDOW
    assert not duel.bounded.is_unreasonable


def test_many_gaps_are_unreasonable(papers):
    duel = Duel(papers)
    duel.attacker.send_stream_data(STREAM, bytes(4_000))
    pending = RangeSet()
    for place in range(1, 2_000, 2):
        pending.add(place, place + 1)
    duel.attacker._streams[STREAM].sender._pending = pending
    duel.talk(300)
    assert duel.bounded.is_unreasonable


def test_crumbs_of_a_handshake_are_unreasonable(papers):
    duel = Duel(papers)
    crypto = duel.attacker._crypto_streams[next(reversed(duel.attacker._crypto_streams))]
    crypto.sender.write(bytes(100_000))
    crypto.sender._pending.subtract(0, 1)
    duel.talk(100)
    assert duel.bounded.is_unreasonable


@pytest.mark.parametrize("kind", ["second", "one way", "datagram"])
def test_whoever_wants_more_than_one_stream_is_cut_off(papers, kind):
    duel = Duel(papers)
    duel.attacker.send_stream_data(STREAM, b"hello")
    duel.talk()
    assert duel.bounded.ended_by is None
    duel.attacker._remote_max_streams_bidi = duel.attacker._remote_max_streams_uni = 10  # as if it were allowed
    duel.attacker._remote_max_stream_data_uni = WINDOW
    duel.attacker._remote_max_datagram_frame_size = 65_536
    match kind:
        case "second":
            duel.attacker.send_stream_data(4, b"hello")
        case "one way":
            duel.attacker.send_stream_data(2, b"hello")
        case "datagram":
            duel.attacker.send_datagram_frame(b"hello")
    duel.talk()
    assert duel.bounded.ended_by is not None
    assert duel.bounded.ended_by.error_code != 0


def test_a_flood_of_first_datagrams_leaves_nothing_behind(papers):
    """Each is answered with a token, which is worth something only to whom it was sent, and only once."""

    async def scene():
        async with listening(papers) as (server, taken):
            port = server.ports[0]
            mine, other = UdpWire._socket(), UdpWire._socket()
            address = "127.0.0.1", server.port
            trusting = QuicConfiguration(
                is_client=True, alpn_protocols=[PROTOCOL], server_name="127.0.0.1", cafile=papers.ca
            )
            attackers = {}
            for _ in range(90):
                attacker = QuicConnection(configuration=trusting)
                attackers[attacker.host_cid] = attacker
                attacker.connect(address, now=0.0)
                for data, _ in attacker.datagrams_to_send(now=0.0):
                    mine.sendto(data, address)
                await asyncio.sleep(0)
            mine.sendto(os.urandom(1_400), address)
            for size in (0, 1, 20, 1_200):
                mine.sendto(bytes([0xC0]) + os.urandom(size), address)
            answers = []

            def hear():
                for data, _ in _all(mine):
                    attackers[data[6:14]].receive_datagram(data, address, now=0.1)  # to whose id it is
                    answers.append(data)
                return len(answers) >= 90

            await until(hear)
            assert all(
                len(answer) < 1_200 for answer in answers
            )  # nobody is hit harder than the attacker could
            assert port.statistics() == (0, 0)
            # The token was for the other socket: from here it is worth nothing.
            again = [data for attacker in attackers.values() for data, _ in attacker.datagrams_to_send(now=0.2)]
            assert len(again) >= 90
            for data in again[:15]:
                other.sendto(data, address)
            near = await to(server.port, papers).dial(End)  # whoever means it comes in
            near.transport.write(b"hello")
            await until(lambda: taken and taken[0].heard)
            assert port.statistics() == (1, 0)
            # From where it was asked, it begins a handshake; more than some are not begun for one host.
            for data in again[15:]:
                mine.sendto(data, address)
            await until(lambda: port.statistics()[1] == quic_port._HANDSHAKES_OF_HOST)
            await asyncio.sleep(0)
            assert port.statistics() == (1 + quic_port._HANDSHAKES_OF_HOST, quic_port._HANDSHAKES_OF_HOST)
            mine.close()
            other.close()

    asyncio.run(scene())


def has_heard(own: socket.socket):
    """Whether something has come."""
    return select.select([own], [], [], 0)[0]


def _all(own: socket.socket):
    found = []
    while True:
        try:
            found.append(own.recvfrom(65_536))
        except BlockingIOError:
            return found


def test_the_oldest_handshake_gives_way_and_each_has_its_time(papers, monkeypatch):
    monkeypatch.setattr(quic_port, "_HANDSHAKES", 3)

    async def begun(server, own):
        """A handshake that never ends."""
        trusting = QuicConfiguration(
            is_client=True, alpn_protocols=[PROTOCOL], server_name="127.0.0.1", cafile=papers.ca
        )
        address = "127.0.0.1", server.port
        attacker = QuicConnection(configuration=trusting)
        attacker.connect(address, now=0.0)
        for moment in (0.1, 0.2):
            for data, _ in attacker.datagrams_to_send(now=moment):
                own.sendto(data, address)
            if moment == 0.1:
                await until(lambda: has_heard(own))
                attacker.receive_datagram(own.recv(65_536), address, now=moment)

    async def scene():
        async with listening(papers, handshake=0.5) as (server, _):
            port = server.ports[0]
            for number in range(5):
                own = UdpWire._socket()
                await begun(server, own)
                await until(lambda own=own: has_heard(own))
                assert port.statistics() == (min(number + 1, 3),) * 2
                own.close()
            await until(lambda: port.statistics() == (0, 0))
            assert not port._of_host

    asyncio.run(scene())


def test_a_program_that_stood_still_reads_before_it_takes_the_other_for_gone(papers, monkeypatch):
    monkeypatch.setattr("palio.transport.quic._IDLE", 0.6)
    monkeypatch.setattr(quic_streams, "_LATE", 0.2)

    async def scene():
        async with listening(papers) as (server, taken):
            near = await to(server.port, papers).dial(End)
            await until(lambda: taken)
            [end] = set(server.ports[0]._ends.values())
            handled = []
            with monkeypatch.context() as patched:
                patched.setattr(BoundedQuic, "handle_timer", lambda _, now: handled.append(now))
                end._on_timer(asyncio.get_running_loop().time() - 5.0)
                assert not handled  # what has come is read first
                end._on_timer(asyncio.get_running_loop().time() - 0.1)
                assert handled
            near.transport.write(b"here")
            await taken[0].until(4)
            assert not near.over.done()

    asyncio.run(scene())


def test_without_the_extra_it_is_said(monkeypatch, papers):
    from palio.model.errors import MissingDependency

    monkeypatch.setitem(__import__("sys").modules, "palio.transport.quic_bounds", None)

    async def scene():
        with pytest.raises(MissingDependency, match=r"needs aioquic.*palio\[quic\]"):
            await Quic("127.0.0.1", 1).dial(End)

    asyncio.run(scene())


def test_names_of_a_broker(papers):
    """A broker listens at all addresses of its host, and a name is tried at each of its."""
    assert Path(papers.ca).exists()

    async def scene():
        papers.sign("siena", "localhost")
        async with listening(papers) as (server, taken):
            near = await Quic("localhost", server.port, client_context(papers.ca)).dial(End)
            near.transport.write(b"hello")
            await until(lambda: taken and taken[0].heard)
        papers.sign("siena", "127.0.0.1")

    asyncio.run(scene())


@pytest.mark.parametrize(
    "seed", [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)]
)
def test_spoilt_datagrams_do_no_harm(papers, seed, caplog):
    """Some of what is sent is changed, cut short or made up on its way: who is well goes on as before."""
    chance = random.Random(seed)

    async def scene():
        async with listening(papers) as (server, taken):
            with UdpWire(server.port, seed) as wire:
                near = await to(server.port, papers).dial(End)
                await until(lambda: taken)
                own = wire._socket()

                def spoil(data):
                    spoilt = bytearray(data)
                    for _ in range(chance.randrange(1, 4)):
                        spoilt[chance.randrange(len(spoilt))] = chance.randrange(256)
                    for one in (
                        bytes(spoilt),
                        data[: chance.randrange(len(data))],
                        chance.randbytes(len(data)),
                    ):
                        own.sendto(one, wire.target)
                    return bytes(spoilt) if chance.random() < 0.05 else data

                wire.spoil = spoil
                for _ in range(3):
                    other = await to(wire.port, papers).dial(End)
                    other.transport.write(pieces(20_000, 3))
                    await until(lambda: bytes(taken[-1].heard) == pieces(20_000, 3))
                    other.transport.close()
                    await other.over
                near.transport.write(pieces(20_000, 4))
                await taken[0].until(20_000)
                assert bytes(taken[0].heard) == pieces(20_000, 4)
                own.close()

    asyncio.run(scene())
    assert "could not be handled" not in caplog.text


def test_what_nobody_acknowledges_any_more_is_given_up_after_a_while(papers, monkeypatch):
    monkeypatch.setattr(quic_streams, "_LINGER", 0.2)

    async def scene():
        async with cut_off(papers) as (near, _, _):
            near.transport.write(b"the last word")
            near.transport.close()
            assert str(await near.over) == "what was said last was not taken"

    asyncio.run(scene())


def test_who_is_no_broker_is_told_apart(papers):
    async def scene():
        async with listening(papers) as (server, _):
            server._configuration.alpn_protocols = ["h3"]
            with pytest.raises(ConnectionRefusedError, match="speaks QUIC, and is no broker"):
                await to(server.port, papers).dial(End)
            assert server.ports[0].statistics() == (0, 0)

    asyncio.run(scene())


def test_a_connection_that_has_ended_needs_no_collector(papers):
    async def scene():
        async with listening(papers) as (server, taken):
            near = await to(server.port, papers).dial(End)
            await until(lambda: taken)
            [end] = set(server.ports[0]._ends.values())
            held = weakref.ref(end.connection.tls)
            near.transport.close()
            await near.over
            await until(lambda: not server.ports[0]._ends)
            await asyncio.sleep(0)
            assert held() is None

    gc.disable()
    try:
        asyncio.run(scene())
    finally:
        gc.enable()
