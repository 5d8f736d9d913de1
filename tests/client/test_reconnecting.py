"""A client comes back by itself, and says what it cannot do."""

import asyncio
import contextlib
import os
import re

import pytest

import palio
from palio import testing
from palio.client.dialling import Backoff
from palio.client.states import TRANSITIONS, State
from palio.protocol import encoding
from palio.protocol.frames import Frames, frame
from palio.protocol.greeting import PROTOCOL, Greet, Welcome

QUICK = Backoff(first=0.001, longest=0.01)


async def test_it_subscribes_again_without_its_user():
    broker = testing.broker()
    states = []
    async with broker as address:
        async with palio.connect(
            address, backoff=QUICK, on_state=lambda state, reason: states.append((state, reason))
        ) as client:
            subscription = await client.subscribe("n >= 0")
            await client.advertise("n >= 0")
            watch = await client.watch("n >= 0")
            await client.publish({"n": 1})
            await broker.crash()
            await broker.start()
            await client.publish({"n": 2})
            assert [(await subscription.next(timeout=10))["n"] for _ in range(2)] == [1, 2]
            assert watch.wanted
            assert client.statistics().connections == 2
        assert [state.value for state, _ in states] == ["live", "suspended", "live", "closed"]
        assert all(reason.endswith(".") for _, reason in states)


async def test_of_several_addresses_the_first_that_answers_is_taken():
    one, other = testing.broker(name="one"), testing.broker(name="other")
    async with one as first, other as second:
        both = f"{first},{second.removeprefix('palio://')}"
        async with palio.connect(both, backoff=QUICK) as client:
            assert client.broker == "one"
            subscription = await client.subscribe("n >= 0")
            await one.stop()
            await client.publish({"n": 1})
            assert client.broker == "other"
            assert (await subscription.next(timeout=10))["n"] == 1


async def test_nobody_is_there():
    async with testing.broker() as address:
        pass
    with pytest.raises(palio.NotConnected) as caught:
        await palio.connect(address)
    assert list(caught.value.problems) == [address.removeprefix("palio://")]
    assert "palio up" in str(caught.value)


async def test_the_first_connection_may_be_waited_for():
    broker = testing.broker()
    async with broker as address:
        await broker.stop()
        connecting = asyncio.ensure_future(
            palio.connect(address, connect_within=20, backoff=QUICK).__aenter__()
        )
        await asyncio.sleep(0)
        await broker.start()
        client = await connecting
        assert client.state is State.LIVE
        await client.close()


async def test_it_gives_up_when_it_shall():
    broker = testing.broker()
    async with broker as address:
        client = await palio.connect(address, give_up_after=0.02, backoff=QUICK)
        subscription = await client.subscribe("n >= 0")
        await broker.stop()
        with pytest.raises(palio.ClientClosed):
            await subscription.next(timeout=10)
        with pytest.raises(palio.ClientClosed):
            await client.publish({"n": 1})
        assert client.state is State.CLOSED


async def test_it_need_not_come_back():
    broker = testing.broker()
    async with broker as address:
        client = await palio.connect(address, reconnect=False)
        subscription = await client.subscribe("n >= 0")
        await broker.crash()
        with pytest.raises(palio.ClientClosed):
            await subscription.next(timeout=10)


async def test_two_of_one_name_do_not_fight():
    async with testing.broker() as address:
        one = await palio.connect(address, name="me", backoff=QUICK)
        reading = asyncio.create_task((await one.subscribe("n >= 0")).next(timeout=10))
        async with palio.connect(address, name="me") as other:
            with pytest.raises(palio.ClientClosed, match="connected again"):
                await reading
            assert one.state is State.CLOSED
            await other.publish({"n": 1})
            assert other.state is State.LIVE


class Mute(asyncio.Protocol):
    """A broker that welcomes and then says nothing any more."""

    def connection_made(self, transport):
        self.transport = transport
        self.frames = Frames()

    def data_received(self, data):
        for payload in self.frames.feed(data):
            if isinstance(encoding.decode(payload), Greet):
                self.transport.write(frame(encoding.encode(Welcome(PROTOCOL, "mute", heartbeat=0.1))))


@contextlib.asynccontextmanager
async def mute_broker():
    server = await asyncio.get_running_loop().create_server(Mute, "127.0.0.1", 0)
    yield f"palio://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    server.close()


async def test_a_silent_broker_is_noticed():
    lost = asyncio.get_running_loop().create_future()

    def on_state(state, reason):
        if state is State.SUSPENDED and not lost.done():
            lost.set_result(reason)

    async with mute_broker() as address, palio.connect(address, on_state=on_state):
        assert await lost == "The broker was silent for too long."


async def test_every_request_has_its_time():
    async with mute_broker() as address, palio.connect(address, request_timeout=0.02) as client:
        for request in (
            client.subscribe("n > 1"),
            client.subscribe("n > 1", durable="desk"),
            client.publish({"n": 1}),
            client.advertise("n > 1"),
            client.watch("n > 1"),
            client.trace({"n": 1}),
            client.inspect("stats"),
            client.flush(arrived=True),
        ):
            with pytest.raises(palio.RequestTimeout):
                await request
        with pytest.raises(palio.RequestTimeout):
            await client.drain()
        assert client.state is State.CLOSED


async def test_whoever_is_told_of_states_cannot_do_harm():
    broker = testing.broker()
    problems = []
    asyncio.get_running_loop().set_exception_handler(
        lambda loop, context: problems.append(context["exception"])
    )

    def on_state(state, reason):
        raise ValueError(state)

    async with broker as address, palio.connect(address, on_state=on_state, backoff=QUICK) as client:
        await broker.crash()
        await broker.start()
        await client.publish({"n": 1})
    assert [problem.args[0].value for problem in problems][:3] == ["live", "suspended", "live"]


async def test_draining_ends_subscriptions_when_they_are_read_and_confirms_what_was_published():
    async with testing.broker() as address, palio.connect(address) as other:
        theirs = await other.subscribe("n >= 0")
        client = await palio.connect(address)
        mine = await client.subscribe("n >= 0")
        await client.publish([{"n": 0}, {"n": 1}])
        for n in range(2, 50):
            client.publish_nowait({"n": n})
        draining = asyncio.create_task(client.drain())
        await asyncio.sleep(0)
        with pytest.raises(palio.ClientClosed):
            await client.publish({"n": 50})
        assert [event["n"] async for event in mine][:2] == [0, 1]
        await draining
        assert [(await theirs.next(timeout=10))["n"] for _ in range(50)] == list(range(50))


def test_every_state_can_be_left_for_the_end():
    assert set(TRANSITIONS) == set(State)
    assert all(table["closed"] is State.CLOSED for table in TRANSITIONS.values())


async def test_a_client_without_a_name_says_which_program_on_which_machine_it_is(monkeypatch):
    async with testing.broker() as address:
        for argument, program in (
            ("/srv/orders.py", "orders.py"),
            ("/x/my tool/__main__.py", "my-tool"),
            ("-c", "python"),
        ):
            monkeypatch.setattr("sys.argv", [argument])
            async with palio.connect(address) as one, palio.connect(address) as other:
                assert re.fullmatch(rf"{program}@[A-Za-z0-9._-]+:{os.getpid()}-[0-9a-f]{{8}}", one.name)
                assert one.name != other.name
                [row] = [row for row in await one.inspect("clients") if row["name"] == one.name]
                assert row["state"] == "live"
