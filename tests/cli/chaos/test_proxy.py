"""What stands between brokers: whose wires are open, held or cut."""

from __future__ import annotations

import asyncio

import pytest

from palio.cli.chaos.proxy import LinkProxy, Passage, caller_of
from palio.protocol.encoding import encode
from palio.protocol.frames import frame
from palio.protocol.greeting import PROTOCOL, Greet, Role


def greeting(name, role=Role.PEER):
    return frame(encode(Greet(PROTOCOL, role, name)))


def test_who_connects_is_known_from_the_greeting_of_a_broker():
    assert caller_of(greeting("b01")) == "b01"
    assert caller_of(greeting("somebody", Role.CLIENT)) == ""
    for strange in (b"", b"GET / HTTP/1.1\r\n\r\n", b"\0\0\0\x01\xff", greeting("b01")[:9]):
        assert caller_of(strange) == ""


class Between:
    """A server that answers with what it is told, behind a proxy."""

    def __init__(self) -> None:
        self.passages: dict[str, Passage] = {}
        self.heard: list[bytes] = []
        self.ended = asyncio.Event()

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.proxy = LinkProxy(lambda: port, lambda caller: self.passages.get(caller, Passage.OPEN))
        await self.proxy.start()
        return self

    async def __aexit__(self, *problem):
        await self.proxy.close()
        self._server.close()

    async def _serve(self, reader, writer):
        while data := await reader.read(1_000):
            self.heard.append(data)
            writer.write(data)
        self.ended.set()
        writer.close()

    async def connect(self, name):
        reader, writer = await asyncio.open_connection("127.0.0.1", self.proxy.port)
        writer.write(greeting(name))
        return reader, writer

    def set(self, name, passage):
        self.passages[name] = passage
        self.proxy.look_again()


async def says(reader, what):
    assert await asyncio.wait_for(reader.readexactly(len(what)), 30) == what


def play(scene):
    async def within():
        async with Between() as between:
            await scene(between)

    asyncio.run(within())


def test_what_is_said_passes_in_both_directions_and_so_does_the_end():
    async def scene(between):
        reader, writer = await between.connect("a")
        await says(reader, greeting("a"))
        writer.close()
        await asyncio.wait_for(between.ended.wait(), 30)

    play(scene)


def test_a_wire_that_is_cut_ends_at_both_ends_and_those_of_others_do_not():
    async def scene(between):
        reader, writer = await between.connect("a")
        other, beside = await between.connect("b")
        await says(reader, greeting("a"))
        await says(other, greeting("b"))
        between.set("a", Passage.CUT)
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await asyncio.wait_for(reader.readexactly(1), 30)
        await asyncio.wait_for(between.ended.wait(), 30)
        again, _ = await between.connect("a")
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await asyncio.wait_for(again.readexactly(1), 30)
        beside.write(b"still here")
        await says(other, b"still here")
        writer.close()

    play(scene)


def test_what_is_said_on_a_wire_that_is_held_arrives_when_it_is_open_again():
    async def scene(between):
        reader, writer = await between.connect("a")
        await says(reader, greeting("a"))
        between.set("a", Passage.HELD)
        writer.write(b"later")
        other, beside = await between.connect("b")
        beside.write(b"now")
        await says(other, greeting("b") + b"now")
        assert b"later" not in b"".join(between.heard)
        between.set("a", Passage.OPEN)
        await says(reader, b"later")

    play(scene)


def test_who_has_given_up_while_it_was_held_is_not_let_through():
    async def scene(between):
        between.set("a", Passage.HELD)
        _, writer = await between.connect("a")
        writer.close()
        await writer.wait_closed()
        held = next(iter(between.proxy._wires), None)
        while held is None or held.caller != "a":
            await asyncio.sleep(0)
            held = next(iter(between.proxy._wires), None)
        other, beside = await between.connect("b")
        await says(other, greeting("b"))  # the end of the other one was heard before this
        between.set("a", Passage.OPEN)
        while held in between.proxy._wires:
            await asyncio.sleep(0)
        assert greeting("a") not in between.heard
        beside.close()

    play(scene)
