"""A relay between brokers with journals, as processes: it passes on, keeps nothing, and may be killed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import palio
from palio.client.errors import RequestRefused
from tests.live.durable import Publisher, Taker, finished
from tests.live.network import Network, play, until
from tests.live.test_leaving import LINE, SETTINGS, called


@pytest.mark.parametrize("times", [1, pytest.param(5, marks=pytest.mark.slow)])
def test_a_relay_is_killed_while_events_pass_it(tmp_path: Path, times: int) -> None:
    async def scene() -> None:
        async with Network(tmp_path, **SETTINGS) as network:
            network.add("b", relay=True)  # in the middle
            await network.build(LINE)
            relay = network["b"]
            there, here = Publisher("there"), Publisher("here")
            taker, moved = Taker("taker", "count >= 0"), Taker("moved", "value < 80")
            await there.open(network["a"].address)
            await here.open(network["c"].address)
            await taker.open(network["c"].address, ready="network")
            await moved.open(network["a"].address, ready="network")
            for _ in range(times):
                await asyncio.gather(there.publish(60), here.publish(60))
                relay.kill()
                await asyncio.gather(there.publish(60), here.publish(60))
                relay.launch("--relay")
                await relay.up()
                await network.linked()
            await moved.close()
            await moved.open(network["c"].address, patience=60.0)
            await finished([there, here], [taker, moved])
            assert not list((relay.folder / "data").glob("*.db*")), "nothing is kept"
            assert "none: a relay passes on what the others keep" in relay.log
            code, said = await called(tmp_path, "peers", "--server", network["a"].address)
            assert code == 0
            assert "peer, relay" in said
            assert "Away" not in said
            code, said = await called(tmp_path, "pub", "--server", relay.address, "n=1")
            assert code != 0
            assert "is a relay" in said
            assert "Ask one with a journal: a, c." in said
            code, said = await called(tmp_path, "leave", relay.address, "--yes")
            assert code == 3
            assert "it is a relay, for which nobody waits" in said
            async with palio.connect(relay.address, name="edge") as client:
                events = await client.subscribe("n > 0")
                with pytest.raises(RequestRefused, match="is a relay"):
                    await client.subscribe("n > 0", durable="kept")
                async with palio.connect(network["c"].address, name="beyond") as other:
                    await until("it is known there", lambda: reaches(other, events))
            await relay.stop()
            async with palio.connect(network["a"].address, name="operator") as client:
                await until("nobody waits for it", lambda: only_the_broker_is_missing(client))

    play(scene)


async def reaches(client: palio.Client, events: palio.Subscription) -> bool:
    """Whether what is published elsewhere comes to who is connected with the relay."""
    await client.publish({"n": 1})
    try:
        return bool((await asyncio.wait_for(anext(events), 0.2))["n"] == 1)
    except TimeoutError:
        return False


async def only_the_broker_is_missing(client: palio.Client) -> bool:
    """Whether the journals say who is missing: the broker beyond the relay, and not the relay."""
    return (await client.journals()).missing == ("c",)
