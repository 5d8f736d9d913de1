"""A neighbour and a client that say what is well-formed and wrong: broker and store survive it."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import palio
from palio.protocol.greeting import Role
from palio.protocol.peers import Component, Hello
from tests.live.network import Network, Node, play
from tests.live.talking import Talker
from tests.routing.lying import OF_CLIENTS, OF_PEERS, Liar

MESSAGES = 4_000
AT_ONCE = 50  # messages between two looks at what the broker says
NAMES = ("a", "liar", "honest", "s0", "healthy", "1 a 1 1")


async def lie(node: Node, liar: Liar, role: Role) -> None:
    """Say so much, on as many connections as it takes."""
    left = MESSAGES
    while left > 0:
        with contextlib.suppress(OSError, EOFError):
            talker = await Talker.open(node.port, "liar", role=role)
            if role is Role.PEER:
                hello = await talker.hear_a(Hello)
                talker.say(Hello(hello.kind, hello.cost, hello.terms, Component("liar"), ("liar",), hello.form))
            while left > 0:
                for _ in range(AT_ONCE):
                    left -= 1
                    talker.say(liar.message(OF_PEERS if role is Role.PEER else OF_CLIENTS))
                await talker.writer.drain()
                await works(node)
                if talker.writer.transport.is_closing() or talker.reader.at_eof():
                    break
            talker.close()


async def works(node: Node) -> None:
    """Somebody else subscribes, publishes with confirmation, and gets it."""
    async with palio.connect(node.address, request_timeout=30) as client:
        subscription = await client.subscribe('whose = "mine"')
        await client.publish({"whose": "mine"})
        assert (await subscription.next(timeout=30))["whose"] == "mine"


def test_liars_do_not_bring_a_broker_down(tmp_path: Path) -> None:
    seed = random.randrange(1_000_000)
    print(f"seed {seed}")

    async def scene() -> None:
        async with Network(tmp_path, sync="off", log_level="error") as network:
            node = network.add("a")
            await node.start()
            for role in Role:
                await lie(node, Liar(f"{seed} {role}", NAMES), role)
            assert "Traceback" not in node.log
            node.kill()
            await node.start()  # whatever was believed, and written, can be read
            await works(node)

    play(scene)
