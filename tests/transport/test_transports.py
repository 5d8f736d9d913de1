"""One body for every transport that listens and dials: bytes come in order, and an end is noticed."""

import asyncio
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from palio.transport.memory import Memory
from palio.transport.quic import Quic
from palio.transport.tcp import Tcp
from palio.transport.tls import client_context
from tests.security.papers import Papers


class End(asyncio.Protocol):
    """Keeps what comes."""

    def __init__(self):
        self.heard = bytearray()
        self.transport = None
        self.paused = False
        self.over = asyncio.get_running_loop().create_future()

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.heard += data

    def pause_writing(self):
        self.paused = True

    def resume_writing(self):
        self.paused = False

    def connection_lost(self, exception):
        self.over.set_result(exception)

    async def until(self, size):
        async with asyncio.timeout(10):
            while len(self.heard) < size:
                await asyncio.sleep(0.001)


@asynccontextmanager
async def tcp(make):
    server = await Tcp("127.0.0.1", 0).listen(make)
    yield Tcp("127.0.0.1", server.sockets[0].getsockname()[1])
    server.close()


@asynccontextmanager
async def memory(make):
    place = Memory()
    listening = await place.listen(make)
    yield place
    listening.close()
    await listening.wait_closed()


@asynccontextmanager
async def quic(make):
    with TemporaryDirectory() as folder:
        papers = Papers(Path(folder))
        server = await Quic("127.0.0.1", 0).listen(make, *papers.sign("siena", "127.0.0.1"), handshake=10)
        trusting = client_context(papers.ca)
    yield Quic("127.0.0.1", server.port, trusting)
    server.abort()


@asynccontextmanager
async def stream(transport):
    """Both ends of one stream."""
    taken = []

    def take():
        taken.append(End())
        return taken[-1]

    async with transport(take) as place:
        near = await place.dial(End)
        async with asyncio.timeout(10):
            while not taken or taken[0].transport is None:
                await asyncio.sleep(0.001)
        yield near, taken[0]
        for end in (near, taken[0]):
            end.transport.abort()


needs_quic = pytest.mark.skipif(find_spec("aioquic") is None, reason="palio[quic] is not installed")
every = pytest.mark.parametrize("transport", [tcp, memory, pytest.param(quic, marks=needs_quic)])


@every
def test_bytes_come_in_order_both_ways(transport):
    async def scene():
        async with stream(transport) as (near, far):
            there = [bytes([number % 256]) * number for number in range(200)]
            for piece in there:
                near.transport.write(piece)
                far.transport.write(piece[::-1])
            await far.until(sum(map(len, there)))
            await near.until(sum(map(len, there)))
            assert bytes(far.heard) == bytes(near.heard) == b"".join(there)

    asyncio.run(scene())


@every
def test_what_was_written_before_the_end_comes(transport):
    async def scene():
        async with stream(transport) as (near, far):
            near.transport.write(b"the last word")
            near.transport.close()
            async with asyncio.timeout(10):
                await asyncio.gather(near.over, far.over)
            assert bytes(far.heard) == b"the last word"

    asyncio.run(scene())


@every
def test_who_does_not_read_makes_the_other_wait(transport):
    async def scene():
        async with stream(transport) as (near, far):
            far.transport.pause_reading()
            near.transport.set_write_buffer_limits(high=1_024)
            pieces = 64 if transport is tcp else 8  # sockets grow
            for _ in range(pieces):
                near.transport.write(bytes(1 << 18))
                await asyncio.sleep(0)
            assert near.paused
            far.transport.resume_reading()
            await far.until(pieces << 18)
            await asyncio.sleep(0.01)
            assert not near.paused

    asyncio.run(scene())


def test_nobody_listens_in_memory_before_somebody_does():
    async def scene():
        with pytest.raises(ConnectionRefusedError):
            await Memory().dial(End)

    asyncio.run(scene())
