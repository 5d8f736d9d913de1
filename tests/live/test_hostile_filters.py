"""Requests that used to cost links and starts, sent by hand to a broker with a neighbour."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

import palio
from palio.protocol.durable.subscriptions import Attached
from palio.protocol.frames import frame
from palio.protocol.requests import Accepted, Refused
from tests.live.network import Network, play, until
from tests.live.talking import Talker
from tests.model.test_written_out import GLOBS, NEGATED

ADVERTISEMENT = (
    '(exists(string x) and not x contains "ba"), (exists(string x) and not x ends with "q"), n *, '
    "(price > 1 and price < 8), price = 20"
)


def test_one_client_costs_no_link_and_no_start(tmp_path: Path) -> None:
    async def ask(talker: Talker, **request: Any) -> Any:
        talker.writer.write(frame(msgspec.msgpack.encode(request)))
        return await talker.hear()

    async def scene() -> None:
        async with Network(tmp_path, sync="off", advertisements=True) as network:
            await network.build([("a", "b")])
            a, b = network["a"], network["b"]
            talker = await Talker.open(a.port, "foreign")
            assert isinstance(
                await ask(talker, type="advertise", handle="ad", advertisement=ADVERTISEMENT), Accepted
            )
            assert isinstance(await ask(talker, type="subscribe", handle="s", filter=GLOBS), Accepted)
            talker.writer.write(
                frame(msgspec.msgpack.encode({"type": "attach", "name": "d", "filter": NEGATED}))
            )
            await talker.hear_a(Attached)
            refused = await ask(talker, type="attach", name="d" * 3_000_000, filter="true")
            while not isinstance(refused, Refused):
                refused = await talker.hear()
            assert refused.error == "WrongName"
            # What was advertised is what may be published, here and as the neighbour knows it.
            async with palio.connect(b.address) as far, palio.connect(a.address, name="near") as near:
                subscription = await far.subscribe("price > 0", ready=True)
                await near.advertise(ADVERTISEMENT)
                await near.publish({"price": 20})
                assert (await subscription.next(timeout=30))["price"] == 20
                with pytest.raises(palio.PalioError, match="No advertisement of this session covers"):
                    await near.publish({"price": 100})
            talker.close()
            for node in (a, b):
                assert "A connection was refused" not in node.log
                assert "A link is down" not in node.log
            a.kill()
            await a.start()
            await network.linked()
            rows = await a.inspect("subs")
            assert [row["durable"] for row in rows if "durable" in row] == ["d"]
            async with palio.connect(a.address) as near:
                await near.advertise("n *")
                taker = await near.subscribe(NEGATED, durable="d")
                await near.publish({"n": 1})
                kept = await taker.next(timeout=30)  # while it had no taker
                await kept.ack()
                assert (kept["price"], (await taker.next(timeout=30))["n"]) == (20, 1)

    play(scene)


def test_the_limit_on_subscriptions_counts_durable_and_large_ones(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Network(tmp_path, sync="off", limits={"subscriptions": 5}) as network:
            node = network.add("a")
            await node.start()
            async with palio.connect(node.address, name="one") as client:
                for number in range(3):
                    await client.subscribe("true", durable=f"d{number}")
                await client.subscribe("n = 1")
                await client.subscribe("n = 2")
                for options in ({}, {"durable": "d3"}):
                    with pytest.raises(palio.PalioError, match=r"5 subscriptions, durable ones among them"):
                        await client.subscribe("n = 3", **options)

            async def gone() -> bool:
                return not [row for row in await node.inspect("subs") if row.get("session")]

            await until("the client is gone", gone)
            async with palio.connect(node.address, name="two") as client:
                await client.subscribe("true", durable="d0")  # what is there may be taken again
                await client.subscribe(f'n = "{"x" * 4_000}"')
                with pytest.raises(palio.PalioError, match="as many as it may"):
                    await client.subscribe(f'n = "{"y" * 4_000}"')

    play(scene)
