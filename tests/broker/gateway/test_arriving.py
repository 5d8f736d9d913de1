"""Bodies of requests while they come: in memory as long as they are small, and then in files."""

import asyncio
from pathlib import Path

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palio.broker.gateway.arriving import ArrivingBody, BodyRoom, NotNow
from palio.broker.gateway.settings import GatewaySettings
from tests.broker.gateway.calling import calling, problem
from tests.broker.gateway.files import nameless

KIB = 1024


@given(st.lists(st.binary(max_size=40), max_size=20), st.integers(1, 100), st.integers(0, 20))
def test_what_came_is_what_is_read_and_nothing_stays(parts, most, stops):
    room = BodyRoom(10_000, 10_000)

    async def scene():
        body = ArrivingBody(room, most, Path("/tmp"))
        try:
            for number, part in enumerate(parts):
                if number == stops:
                    return
                await body.add(part)
                assert room.held <= most + max(map(len, parts))
                assert room.held + room.filed == sum(map(len, parts[: number + 1]))
            assert await body.whole() == b"".join(parts)
            assert (room.held, room.filed) == (sum(map(len, parts)), 0)
        finally:
            body.release()

    before = len(nameless())
    asyncio.run(scene())
    assert (room.held, room.filed) == (0, 0)
    assert len(nameless()) == before


async def test_who_waits_for_room_gets_it_in_turn_or_gives_up():
    room = BodyRoom(100, 1_000)
    await room.hold(60)
    waiting = [asyncio.create_task(room.wait(size)) for size in (50, 30, 30, 80)]
    await asyncio.sleep(0)
    assert not any(one.done() for one in waiting)  # the second has room, but is not the first
    waiting[1].cancel()
    room.free(60, 0)
    await asyncio.gather(waiting[0], waiting[2])
    assert room.held == 80
    waiting[3].cancel()
    await asyncio.gather(waiting[3], return_exceptions=True)
    last = asyncio.create_task(room.wait(100))
    await asyncio.sleep(0)
    room.free(80, 0)
    last.cancel()  # when its turn has come already
    await asyncio.gather(last, return_exceptions=True)
    assert room.held == 0
    with pytest.raises(NotNow):
        room.file(1_001)


async def test_nobody_waits_for_ever(monkeypatch):
    for name in ("_ROOM_WITHIN", "_MOMENT"):
        monkeypatch.setattr(f"palio.broker.gateway.arriving.{name}", 0.05)
    room = BodyRoom(100, 1_000)
    with pytest.raises(NotNow):
        await room.wait(101)
    await room.hold(100)
    with pytest.raises(NotNow):
        await room.wait(1)
    with pytest.raises(NotNow):
        await room.hold(1)
    room.free(100, 0)
    await room.wait(100)


async def sending(url, size, go_on):
    """A large event, of which the last bytes come when somebody says so."""

    async def pieces():
        yield b'{"n": 1'
        for _ in range(size // KIB // 40):
            yield b" " * 40 * KIB
        await go_on.wait()
        yield b"}"

    headers = {"Content-Type": "application/json"}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{url}/events", data=pieces(), headers=headers) as answer,
    ):
        await answer.read()
        return answer.status


async def until(condition):
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.01)


async def test_slow_senders_hold_files_and_not_memory(caplog):
    small = GatewaySettings(body_in_memory=16 * KIB, bodies=1_000 * KIB)
    async with calling(gateway=small) as (broker, session):
        go_on = asyncio.Event()
        slow = [asyncio.create_task(sending(broker.url, 400 * KIB, go_on)) for _ in range(12)]
        counts = broker.running.gateway_statistics
        whole = 12 * 400 * KIB
        await until(lambda: counts().filed_bytes >= whole - 12 * 16 * KIB)
        await until(lambda: counts().held_bytes <= 12 * 16 * KIB)
        assert len([one for one in nameless() if "/tmp/" in one]) >= 12
        assert (await session.post("/events", json={"n": 1})).status == 200
        slow.pop().cancel()
        await until(lambda: counts().filed_bytes < whole - 300 * KIB)
        go_on.set()
        assert await asyncio.gather(*slow) == [200] * 11  # though memory has room for four at a time
        await until(lambda: (counts().held_bytes, counts().filed_bytes) == (0, 0))
    assert "has failed" not in caplog.text  # because somebody has gone


async def test_files_have_a_bound_and_may_be_impossible(monkeypatch):
    few = GatewaySettings(body_in_memory=KIB, bodies_in_files=200 * KIB)
    async with calling(gateway=few) as (broker, session):
        text = [{"text": "x" * KIB}] * 250
        await problem(await session.post("/events", json=text), 503, "NotNow")
        full = OSError(28, "No space left on device")

        def refuse(*_, **__):
            raise full

        with monkeypatch.context() as patch:
            patch.setattr("palio.broker.gateway.arriving.tempfile.TemporaryFile", refuse)
            text = text[:100]
            found = await problem(await session.post("/events", json=text), 503, "SpoolUnusable")
            assert "No space left" in found["detail"]
        assert (await session.post("/events", json=text)).status == 200
        counts = broker.running.gateway_statistics()
        assert (counts.held_bytes, counts.filed_bytes) == (0, 0)


@pytest.mark.parametrize("size", [100, 300 * KIB])
async def test_documents_come_the_same_way(size):
    async with calling() as (broker, session):
        document = b"<none>" + b"x" * size + b"</none>"
        headers = {"Content-Type": "application/xml"}
        await problem(await session.post("/documents", data=document, headers=headers), 400, "NoFamily")
        assert broker.running.gateway_statistics().filed_bytes == 0
