"""A broker of its own process that is attacked, and somebody who means well and must not notice.

`Scene` starts the broker, and keeps a healthy publisher and subscriber going beside the attack: every event
comes, in order, and none takes long. At the end the broker's memory is looked at, and its log.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import palio
from palio.protocol.greeting import PROTOCOL, Greet, Role, Welcome
from palio.protocol.requests import Refused
from tests.live.network import Network, Node, until
from tests.live.talking import Talker
from tests.security.world import World

LIMITS = {
    "frame": 1_048_576,
    "connections": 400,
    "connections_per_address": 300,
    "connections_per_principal": 40,
    "subscriptions": 200,
    "attributes": 64,
    "filter": 4_000,
    "publish_rate": 2_000.0,
    "outgoing": 1_048_576,
    "greeting": 1.5,
}
# No event of the healthy client may take longer, and no attack may cost more memory (in MB).
LONGEST = 5.0
MOST_MEMORY = 120.0


class Scene:
    """The broker, its principals, and what the healthy client has seen."""

    def __init__(self, network: Network, node: Node, world: World) -> None:
        self.network = network
        self.node = node
        self.world = world
        self.said: list[str] = []  # every answer that an attacker got

    @property
    def port(self) -> int:
        return self.node.port

    @property
    def address(self) -> str:
        return self.node.address

    def connect(self, who: str, **options: Any) -> palio.Client:
        return self.world.connect(self.address, who, **options)

    async def greet(self, token: str | None, name: str = "attacker", role: Role = Role.CLIENT) -> Talker:
        """A connection on which somebody greeted; what comes back is for the caller."""
        talker = await Talker.connect(self.port)
        talker.say(Greet(PROTOCOL, role, name, token))
        return talker

    async def enter(self, who: str, name: str = "attacker") -> Talker:
        """A connection of somebody who may come in, spoken by hand."""
        talker = await self.greet(self.world.tokens[who], name)
        await talker.hear_a(Welcome)
        return talker

    async def refusal(self, talker: Talker) -> Refused:
        """What a connection is refused with; it ends then."""
        refused = await talker.hear_a(Refused)
        self.said.append(f"{refused}")
        with contextlib.suppress(EOFError, ConnectionError):
            while True:
                await talker.hear()
        talker.close()
        return refused

    async def until_few_connections(self) -> None:
        """Wait until the broker has noticed that those are gone who are."""

        async def few() -> bool:
            return (await self.statistics())["connections"] < 10

        await until("few connections are left", few)

    async def statistics(self) -> dict[str, Any]:
        async with self.connect("admin", connect_within=30.0) as admin:
            [row] = await admin.inspect("stats")
        return dict(row["broker"])


async def _keep_going(client: palio.Client, subscription: palio.Subscription, over: asyncio.Event) -> int:
    number = 0
    while not over.is_set() or not number:
        number += 1
        began = time.monotonic()
        await client.publish({"healthy": number}, timeout=LONGEST)
        event = await subscription.next(timeout=LONGEST)
        assert event["healthy"] == number
        assert time.monotonic() - began < LONGEST
        await asyncio.sleep(0.01)
    return number


@contextlib.asynccontextmanager
async def attacked(
    folder: Path,
    *,
    principals: Mapping[str, tuple[str | None, ...]] = MappingProxyType({}),
    memory: float = MOST_MEMORY,
    **settings: Any,
) -> AsyncIterator[Scene]:
    """A broker under attack. Fails if the healthy client notices, memory grows, or a secret is in the log.

    Further `principals` have what they may publish and see, and other rights.
    """
    world = World(folder / "access")
    world.add("healthy", "exists(healthy)", "exists(healthy)")
    world.add("mallory", 'topic = "public"', 'topic = "public"')
    world.add("alice", "true", "true")
    for name, (publish, subscribe, *allowed) in principals.items():
        world.add(name, publish, subscribe, *[one for one in allowed if one is not None])
    async with Network(folder) as network:
        security = {"authentication": True, "folder": str(folder / "access")}
        node = network.add("siena", limits=LIMITS, security=security, **settings)
        await node.start()
        scene = Scene(network, node, world)
        async with scene.connect("healthy", name="healthy") as client:
            subscription = await client.subscribe("exists(healthy)")
            over = asyncio.Event()
            healthy = asyncio.create_task(_keep_going(client, subscription, over))
            before = node.memory()
            try:
                yield scene
            finally:
                over.set()
                assert await healthy > 0
            assert client.statistics().connections == 1
        assert node.memory() - before < memory
        assert "Traceback" not in node.log
        for secret in [token.split("_", 2)[2] for token in world.tokens.values()]:
            assert secret not in node.log
            assert not any(secret in text for text in scene.said)
