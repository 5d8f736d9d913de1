"""Journals from outside: who may say how long one is kept, and in whose name one publishes."""

from __future__ import annotations

import pytest

from palio import NotAllowed
from palio.protocol.durable.lineage import Incarnation
from tests.security.world import World


async def test_keeping_and_trimming_need_the_right_to_it(tmp_path):
    world = World(tmp_path)
    world.add("reader", None, "true")
    world.add("writer", "true", None)
    world.add("keeper", None, None, "journal")
    async with world.broker(journal=True) as address:
        async with world.connect(address, "reader") as reader:
            assert (await reader.journals()).journals[0].head == 0
            with pytest.raises(NotAllowed, match="journal"):
                await reader.hold("lake", 0)
            with pytest.raises(NotAllowed, match="journal"):
                await reader.trim_journal()
        async with world.connect(address, "writer") as writer:
            with pytest.raises(NotAllowed, match="journal"):
                await writer.journals()
        async with world.connect(address, "keeper") as keeper:
            await keeper.hold("lake", 0)
            assert (await keeper.trim_journal()).journal.trimmed == 0


async def test_nobody_publishes_in_anothers_name(tmp_path):
    """Else what another publishes under an id that one has guessed would be taken for a repetition."""
    world = World(tmp_path)
    world.add("one", "true", None)
    world.add("two", "true", None)
    async with world.broker(journal=True) as address:
        sequences = []
        for who, publisher in [("one", "sink"), ("two", "sink"), ("two", "one/sink"), ("one", "sink")]:
            async with world.connect(address, who, publisher=publisher) as client:
                sequences.append((await client.publish({"x": 1}, id="a")).sequence)
        assert sequences == [1, 2, 3, 1]


async def test_a_gap_is_told_to_those_who_may_see_it(tmp_path):
    world = World(tmp_path)
    world.add("operator", None, "exists(palio.notice)")
    world.add("reader", None, "absent(palio.notice)")
    world.add("writer", "absent(palio.notice)", None)
    world.add("keeper", None, None, "journal")
    async with (
        world.broker(journal=True) as address,
        world.connect(address, "operator") as operator,
        world.connect(address, "reader") as reader,
    ):
        told = await operator.subscribe("true")
        hidden = await reader.subscribe("true")
        async with world.connect(address, "keeper") as keeper:
            await keeper.hold("lake", 5, lineage=(Incarnation(1, "another", 0),))
        assert (await told.next(10.0))["palio.origin"] == operator.broker
        async with world.connect(address, "writer") as writer:
            with pytest.raises(NotAllowed):
                await writer.publish({"palio.notice": "gap"})
            await writer.publish({"n": 1})
        assert (await hidden.next(10.0))["n"] == 1, "which came later than the notice"
