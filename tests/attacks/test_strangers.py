"""Who is not known: nothing but hello, whatever is said, shown or stolen."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

import palio
from palio.broker.access.tokens import create_token, read_tokens, revoke_tokens
from palio.protocol.greeting import PROTOCOL, Greet, Role
from palio.protocol.heartbeat import Bye, Ping, Pong
from palio.protocol.requests import Refused
from tests.attacks.scene import attacked
from tests.live.malformed import VALID
from tests.live.network import play, until
from tests.live.talking import Talker

_HARMLESS = (Ping, Pong, Bye, Greet)


def test_unauthenticated_everything(tmp_path: Path) -> None:
    """Every message of the protocol, before any greeting and after one that was not enough."""

    async def scene() -> None:
        async with attacked(tmp_path) as there:
            for message in [one for one in VALID if not isinstance(one, _HARMLESS)]:
                talker = await Talker.connect(there.port)
                talker.say(message)
                try:
                    assert (await there.refusal(talker)).subject == "connection"
                except EOFError:
                    assert isinstance(message, Refused)  # who refuses is not argued with
            for role in Role:
                for token in (None, "", "let me in"):
                    talker = await there.greet(token, role=role)
                    talker.say(VALID[0])
                    assert (await there.refusal(talker)).error == "NotAuthenticated"
            counted = (await there.statistics())["refused"]
            assert counted["NotAuthenticated"] == 6

    play(scene)


def test_tokens_that_are_no_good(tmp_path: Path) -> None:
    """Expired, misspelt, of another broker, half of one and much of nothing; none says which part was wrong."""

    async def scene() -> None:
        async with attacked(tmp_path) as there:
            world = there.world
            good = world.tokens["alice"]
            other = create_token(tmp_path / "elsewhere", "alice", now=time.time())[1]
            id, secret = good.split("_", 2)[1:]
            wrong = [
                good[:-1],
                good + "A",
                good.upper(),
                f"palio_{id}_{'A' * 43}",
                f"palio_{'0' * 12}_{secret}",
            ]
            wrong += [other, secret, id, "palio__", "x" * 60_000, "' or 1=1 --", "\x00", good + "\n"]
            sentences = set()
            for token in wrong:
                refused = await there.refusal(await there.greet(token))
                assert refused.error == "NotAuthenticated", token
                sentences.add(refused.reason)
            assert len(sentences) == 1
            expired = world.token("alice", expires=time.time() - 1)
            assert (await there.refusal(await there.greet(expired))).error == "TokenExpired"
            with pytest.raises(palio.NotAuthenticated):
                await palio.connect(there.address, token=expired, connect_within=30.0)

    play(scene)


def test_a_stolen_token_is_revoked(tmp_path: Path) -> None:
    """The thief is sent away and does not come back; a token that expires ends what it has opened."""

    async def scene() -> None:
        async with attacked(tmp_path) as there:
            world, folder = there.world, there.world.folder
            stolen = world.tokens["alice"]
            thief = await palio.connect(there.address, token=stolen)
            loot = await thief.subscribe("true")
            world.tokens["alice"] = world.token("alice")
            revoke_tokens(folder, [stolen.split("_")[1]])
            with pytest.raises(palio.NotAuthenticated):
                await palio.connect(there.address, token=stolen)
            await until("the thief is out", lambda: thief.state.value == "closed", patience=10)
            with pytest.raises(palio.ClientClosed):
                [event async for event in loot]  # what came before is its own
            async with there.connect("alice") as alice:
                await alice.publish({"topic": "private"})
            soon = await palio.connect(there.address, token=world.token("alice", expires=time.time() + 1))
            await until("its time is over", lambda: soon.state.value == "closed", patience=10)
            assert len(read_tokens(folder)) == 6

    play(scene)


def test_a_stranger_who_says_to_be_a_broker(tmp_path: Path) -> None:
    """A client's token makes no neighbour, whatever name it gives itself."""

    async def scene() -> None:
        async with attacked(tmp_path) as there:
            for who in ("mallory", "alice"):
                for name in ("siena", "lucca"):
                    talker = await there.greet(there.world.tokens[who], name, Role.PEER)
                    assert (await there.refusal(talker)).error == "NotAllowed"
            talker = await Talker.connect(there.port)
            talker.say(Greet("palio/1", Role.PEER, "lucca", there.world.tokens["brokers"]))
            assert (await there.refusal(talker)).error == "ProtocolViolation"
            assert PROTOCOL == "palio/2"

    play(scene)


def test_a_flood_of_connections(tmp_path: Path) -> None:
    """Strangers who say nothing are limited by where they come from, and by time; principals by number."""

    async def scene() -> None:
        async with attacked(tmp_path) as there:
            open_ones = await asyncio.gather(*[Talker.connect(there.port) for _ in range(380)])
            refused = [await there.refusal(one) for one in open_ones[-60:]]
            assert {one.error for one in refused} == {"TooManyConnections"}
            for one in open_ones[:-60]:
                one.close()
            await there.until_few_connections()
            clients = [await there.greet(there.world.tokens["mallory"], f"m{n}") for n in range(45)]
            over = [await there.refusal(one) for one in clients[40:]]
            assert {one.error for one in over} == {"TooManyConnections"}
            assert "mallory" in over[0].reason
            for one in clients:
                one.close()

    play(scene)


def test_slow_writers(tmp_path: Path) -> None:
    """Half a greeting, byte by byte, is not waited for; nor is a frame that never ends a way to fill memory."""

    async def scene() -> None:
        async with attacked(tmp_path) as there:

            async def trickle() -> None:
                """Byte by byte, until the broker has enough of it."""
                talker = await Talker.connect(there.port)
                talker.writer.write(b"\x00\x00\xff\xff")
                async with asyncio.timeout(15):
                    while not talker.reader.at_eof() and not talker.writer.is_closing():
                        talker.writer.write(b"\x81")
                        await asyncio.sleep(0.1)

            async def is_cut_off() -> None:
                talker = await Talker.connect(there.port)
                talker.writer.write(b"\x00\x00\xff")
                assert await asyncio.wait_for(talker.reader.read(), 15) == b""

            await asyncio.gather(*[is_cut_off() for _ in range(50)], *[trickle() for _ in range(5)])

    play(scene)
