"""Brokers that find each other, and somebody among them who has the right to be a peer, and abuses it."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pytest

from palio.model.form import VERSION as FORM
from palio.protocol.greeting import PROTOCOL, Greet, Role, Welcome
from palio.protocol.overlay import Contact, Nearby, Standing, Suggest
from palio.protocol.peers import Component, Goodbye, Hello, Joined, LinkKind
from palio.routing.overlay.manager import MOST_BEYOND
from tests.attacks.scene import Scene, attacked
from tests.live.network import play, until
from tests.live.talking import Talker
from tests.security.world import BROKERS

DEGREE = 3
OVERLAY = {"kind": "tree", "degree": DEGREE, "look_every": 2.0, "ask_within": 0.5}
FLOOD = 150
LARGEST = 2**62


async def peer(there: Scene, name: str, *, asks: bool = True) -> Talker:
    """A connection of somebody who may be a neighbour, spoken by hand."""
    talker = await Talker.connect(there.port)
    token = there.world.tokens[BROKERS]
    talker.say(Greet(PROTOCOL, Role.PEER, name, token, LinkKind.PEER, asks=asks))
    await talker.hear_a(Welcome)
    return talker


async def terms_of(there: Scene) -> str:
    talker = await peer(there, "curious", asks=False)
    said = await talker.hear_a(Hello)
    talker.close()
    return said.terms


def hello(name: str, terms: str, **standing: Any) -> Hello:
    told = Standing(asks=True, **standing)
    return Hello(LinkKind.PEER, 1.0, terms, Component(name), (name,), FORM, standing=told)


async def insist(there: Scene, terms: str, addresses: list[str]) -> list[Talker]:
    """Many want to be neighbours whatever it costs, and then tell things without end."""
    inside = []
    for number in range(MOST_BEYOND * DEGREE + 10):
        name = f"insists{number:02}"
        talker = await peer(there, name)
        talker.say(hello(name, terms, address="127.0.0.1:9", size=LARGEST, insists=True))
        inside.append(talker)
    for talker in inside:
        for number in range(FLOOD):
            contacts = tuple([Contact(f"{number}.{n}", addresses[n % 2]) for n in range(32)])
            talker.say(Nearby(contacts, "nobody", number % 2 * LARGEST))
            talker.say(Suggest(Contact(f"{number}", addresses[number % 2])))
            talker.say(Joined(Component("0", FLOOD - number), ("trieste", "siena", "0")))
    return inside


async def overlay_of(there: Scene, port: int) -> dict[str, Any]:
    async with there.world.connect(f"palio://127.0.0.1:{port}", "admin", connect_within=30.0) as admin:
        [row] = await admin.inspect("overlay")
    return dict(row)


@pytest.mark.slow
def test_a_peer_that_lies_and_floods_disturbs_no_other(tmp_path: Path) -> None:
    """Hellos, sizes, names, suggestions without end; where it says that brokers are, others are."""

    async def scene() -> None:
        heard: list[bytes] = []

        async def other_service(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            heard.append(await reader.read(10_000))
            writer.write(b"220 smtp.example ESMTP ready\r\n" * 100)
            with contextlib.suppress(ConnectionError):
                await reader.read()
            writer.close()

        async def nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(ConnectionError):
                while await reader.read(65_536):
                    pass
            writer.close()

        loud = await asyncio.start_server(other_service, "127.0.0.1", 0)
        quiet = await asyncio.start_server(nothing, "127.0.0.1", 0)
        services = [f"127.0.0.1:{one.sockets[0].getsockname()[1]}" for one in (loud, quiet)]
        async with attacked(tmp_path, overlay=OVERLAY) as there:
            folder = tmp_path / "access"
            security = {
                "authentication": True,
                "folder": str(folder),
                "token_file": str(folder / "brokers.token"),
            }
            below = there.network.add(
                "trieste", security=security, overlay=OVERLAY | {"join": [there.node.address]}
            )
            await below.start()

            async def is_linked() -> bool:
                return (await overlay_of(there, below.port))["parent"] == "siena"

            await until("there are two brokers", is_linked)
            terms = await terms_of(there)
            for number in range(FLOOD):  # larger parts: whoever they name is asked in their place
                talker = await peer(there, f"larger{number}")
                address = services[number % 2]
                talker.say(hello(f"larger{number}", terms, address=address, size=LARGEST))
                assert (await talker.hear_a(Goodbye)).why == "smaller"
                talker.close()
            inside = await insist(there, terms, services)
            silent = [await peer(there, f"silent{number}") for number in range(8)]
            said = await overlay_of(there, there.port)
            assert len(said["links"]) <= MOST_BEYOND * DEGREE
            assert said["asked"] < FLOOD
            await until("another service was asked", lambda: bool(heard))
            assert await is_linked()
            for talker in (*inside, *silent):
                talker.close()

            async def are_alone() -> bool:
                return (await overlay_of(there, there.port))["links"] == ["trieste"]

            await until("the attacker is gone", are_alone)
            told = await overlay_of(there, below.port)
            assert (told["lost"], told["links"]) == (0, ["siena"])
        for server in (loud, quiet):
            server.close()

    play(scene)
