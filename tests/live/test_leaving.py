"""A broker leaves its network, as processes: nothing is lost, it is forgotten, and it stops by itself."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import palio
from tests.cli.forks import forks
from tests.live.durable import Publisher, Taker, finished
from tests.live.network import ROOT, Network, play, until

LINE = [("b", "a"), ("c", "b")]
SETTINGS = {"heartbeat": 0.5, "durable": {"tick": 0.2, "settle_within": 0.1}}


async def called(folder: Path, *words: str) -> tuple[int, str]:
    """A call of the program, and what it says."""
    file = folder / "said.txt"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PALIO_")}
    with file.open("wb") as output:
        process = forks().start(*words, environment=environment, folder=ROOT, output=output)
    code = await asyncio.to_thread(process.wait, 60)
    return code, file.read_text()


async def first(subscription: Any, count: int) -> AsyncIterator[Any]:
    """So many events, acknowledged."""
    async with asyncio.timeout(60):
        while count:
            event = await anext(subscription)
            await event.ack()
            yield event
            count -= 1


def test_a_broker_that_leaves_takes_nothing_along(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Network(tmp_path, **SETTINGS) as network:
            await network.build(LINE)
            there, here = Publisher("there"), Publisher("here")
            moved, other = Taker("moved", "value < 80"), Taker("other", "count >= 0")
            await there.open(network["a"].address)
            await here.open(network["c"].address)
            await moved.open(network["c"].address, ready="network")
            await other.open(network["a"].address, ready="network")
            await asyncio.gather(there.publish(100), here.publish(100))
            await until("some have come", lambda: moved.first)
            await moved.close()
            leaving = network["c"]
            code, said = await called(tmp_path, "leave", leaving.address)
            assert code == 1
            assert "1 durable subscription to be handed over" in said
            assert "add --yes" in said
            assert await leaving.neighbours() == {"b"}, "nothing was done"
            code, said = await called(tmp_path, "leave", network["b"].address, "--yes")
            assert code == 3
            assert "the only way between a, c" in said
            code, said = await called(tmp_path, "leave", leaving.address, "--yes")
            assert code == 0, said
            assert json.loads(said.splitlines()[-1])["stage"] == "left"
            assert leaving.process is not None
            assert await asyncio.to_thread(leaving.process.wait, 30) == 0, "it has stopped by itself"
            async with palio.connect(network["a"].address, name="operator") as client:
                listed = await client.journals()
                assert not listed.missing, "nobody waits for it"
                notices = await client.subscribe('palio.notice = "forgotten"', durable="notices", since="all")
                told = {(event["palio.broker"], event["palio.why"]) async for event in first(notices, 2)}
                assert told == {("b", "left"), ("a", "told")}
                with pytest.raises(palio.PalioError, match="none of its neighbours"):
                    await client.leave("try", to="c")
            await moved.open(network["b"].address)
            await there.publish(50)
            await finished([there, here], [moved, other])

    play(scene)
