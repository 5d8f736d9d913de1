"""`palio/2` over WebSocket: neither the client library nor the broker's bounds notice the difference."""

import asyncio

import aiohttp
import pytest

import palio
from palio.broker.gateway.protocols import BoundedSocket
from palio.broker.settings import Limits
from palio.client.dialling import Backoff
from palio.client.errors import WrongAddress
from palio.protocol.encoding import decode, encode
from palio.protocol.frames import Frames, frame
from palio.protocol.greeting import PROTOCOL, Greet, Role, Welcome
from palio.protocol.requests import Refused, Subscribe
from tests.broker.gateway.calling import calling


def ws(broker):
    return broker.url.replace("http", "ws", 1)


async def test_everything_goes_both_ways():
    async with (
        calling() as (broker, _),
        palio.connect(ws(broker)) as client,
        palio.connect(broker.address) as other,
    ):
        subscription = await client.subscribe("n >= 0", durable="desk")
        for n in range(2_000):
            other.publish_nowait({"n": n, "text": "x" * 2_000})
        await other.flush()
        for n in range(2_000):
            event = await subscription.next(timeout=10)
            assert event["n"] == n
            await event.ack()
        large = {"text": "é" * 30_000}
        assert (await client.publish(large, payload=b"\x00" * 1_000_000)).sequence == 2_001
        [trace] = [one async for one in client.replay("exists(text) and absent(n)")]
        assert (trace["text"], len(trace.payload)) == (large["text"], 1_000_000)


async def test_a_connection_that_is_cut_is_made_again():
    async with calling() as (broker, _), palio.connect(ws(broker), backoff=Backoff(first=0.01)) as client:
        subscription = await client.subscribe("true")
        broker.cut_off(client.name)
        await broker.until(lambda: client.name not in broker.running.sessions)
        await client.publish({"n": 1})
        assert (await subscription.next(timeout=5))["n"] == 1
        assert client.statistics().connections == 2


async def test_a_slow_reader_is_treated_as_on_a_socket():
    async with (
        calling(journal=False, limits=Limits(outgoing=100_000)) as (broker, session),
        palio.connect(broker.address) as client,
        # Who does not read does not hear that its connection is closed either, and need not wait for that.
        session.ws_connect("/palio", timeout=aiohttp.ClientWSTimeout(ws_close=0.1)) as socket,
    ):
        await socket.send_bytes(frame(encode(Greet(PROTOCOL, Role.CLIENT, "slow"))))
        await socket.send_bytes(frame(encode(Subscribe("s", palio.Filter.parse("true")))))
        await broker.until(lambda: broker.running.router.holds("slow") == 1)
        socket._reader._protocol.pause_reading()
        for _ in range(8_000):
            client.publish_nowait({"text": "x" * 5_000})
        await client.flush(arrived=True)
        slow = broker.running.sessions["slow"]
        assert slow.outgoing.statistics().waiting_bytes <= 150_000
        assert slow.outgoing.statistics().dropped


async def test_what_is_no_frame_ends_the_connection():
    async with calling() as (broker, session):
        async with session.ws_connect("/palio") as socket:
            await socket.send_str("hello")
            assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE
            assert socket.close_code == 1003
        async with session.ws_connect("/palio") as socket:
            await socket.send_bytes(b"\xff\xff\xff\xff")
            [payload] = Frames().feed((await socket.receive()).data)
            refused = decode(payload)
            assert isinstance(refused, Refused)
            assert refused.error == "FrameTooLarge"
            assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE
        await broker.until(lambda: not broker.running.connections)


async def test_a_broker_stops_while_a_connection_is_being_closed():
    """It was ended by its client, and is not gone yet: with TLS that takes a while."""
    async with calling() as (broker, session), session.ws_connect("/palio"):
        server = broker.running._http._server
        [protocol] = [one for one in server.server_state.connections if isinstance(one, BoundedSocket)]
        protocol.data_received(bytes([0x88, 0x80, 0, 0, 0, 0]))  # an empty close frame, masked by nothing
        assert protocol.transport.is_closing()
        assert protocol in server.server_state.connections
        protocol.shutdown()


async def test_frames_may_be_cut_anywhere():
    async with calling() as (_, session), session.ws_connect("/palio") as socket:
        for byte in frame(encode(Greet(PROTOCOL, Role.CLIENT, "piecemeal"))):
            await socket.send_bytes(bytes([byte]))
        [payload] = Frames().feed((await socket.receive()).data)
        assert isinstance(decode(payload), Welcome)


async def test_an_address_that_is_none():
    async with calling() as (broker, _):
        with pytest.raises(palio.NotConnected, match="no WebSocket of a broker"):
            await palio.connect(ws(broker) + "/elsewhere")
        with pytest.raises(palio.NotConnected):
            await palio.connect("ws://127.0.0.1:1")
    for wrong in ("ws://", "ws://u:p@h/", "wss://h:0", "ws://h/x?y"):
        with pytest.raises(WrongAddress):
            palio.connect(wrong)


async def test_brokers_and_sockets_in_one_address():
    async with calling() as (broker, _):
        async with palio.connect(f"palio://127.0.0.1:1,{ws(broker)}") as client:
            await client.publish({"n": 1})
        await asyncio.sleep(0)
