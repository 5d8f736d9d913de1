"""Publishers of a family that wants to know them: registered at all brokers, again and again, and withdrawn."""

import asyncio
import random

import pytest

import palio
from palio import testing
from palio.broker.documents import registrations
from tests.security.world import World

NOTE = b'<note id="%d"><to>all</to></note>'


async def add_note(client, *, registered=True):
    await client.families.add("note", paths=["to=/note/to"], key=["/note/@id"], registered=registered)


async def published(client, number=1):
    """What is said about a document: nothing if it is taken."""
    try:
        await client.publish_document(NOTE % number)
    except palio.NotAllowed as problem:
        return str(problem)
    return ""


def test_only_who_is_registered_publishes_and_that_holds_at_every_broker():
    async def work():
        async with (
            testing.network([("a", "b")]) as network,
            palio.connect(network["a"].address) as one,
            palio.connect(network["b"].address) as two,
        ):
            await add_note(one)
            assert "register first" in await published(one)
            handle = await two.families.register("note")
            assert await published(one) == await published(two) == ""
            assert await one.families.register("note") == handle
            assert await one.families.publishers("note") == [{"handle": handle, "principal": "", "address": ""}]
            await one.families.withdraw("note")
            await one.families.withdraw("note")
            assert "register first" in await published(two)

    asyncio.run(work())


def test_a_family_that_does_not_ask_for_it_is_open_and_one_of_the_same_name_later_begins_anew():
    async def work():
        async with testing.broker(journal=True) as address, palio.connect(address) as client:
            await add_note(client, registered=False)
            assert await published(client) == ""
            handle = await client.families.register("note")
            await client.families.remove("note")
            await add_note(client)
            assert await client.families.publishers("note") == []
            assert "register first" in await published(client)
            assert await client.families.register("note") != handle

    asyncio.run(work())


def test_registrations_are_there_after_a_restart():
    async def work():
        broker = testing.broker(journal=True)
        async with broker as address, palio.connect(address) as client:
            await add_note(client)
            await client.families.register("note", "urn:desk")
        async with broker as address, palio.connect(address) as client:
            assert await published(client) == ""
            await client.families.withdraw("note", "urn:desk")
            assert "register first" in await published(client)

    asyncio.run(work())


def test_each_is_registered_for_themselves_and_needs_a_right_to_publish(tmp_path):
    world = World(tmp_path)
    world.add("keeper", None, None, "families", "inspect")
    world.add("writer", 'xml.family = "note"', None)
    world.add("other", 'xml.family = "note"', None)
    world.add("reader", None, "true")

    async def work():
        broker = world.broker(journal=True)
        async with broker as address:
            async with world.connect(address, "keeper") as keeper:
                await add_note(keeper)
                with pytest.raises(palio.NotAllowed):
                    await keeper.families.register("note")
            async with world.connect(address, "writer") as writer, world.connect(address, "other") as other:
                await writer.families.register("note")
                assert await published(writer) == ""
                await other.families.withdraw("note")
                assert await published(writer) == ""
                assert "register first" in await published(other)
                with pytest.raises(palio.NotAllowed):
                    await writer.families.publishers("note")
            async with world.connect(address, "reader") as reader:
                with pytest.raises(palio.NotAllowed):
                    await reader.families.register("note")

    asyncio.run(work())


def test_there_are_only_so_many(monkeypatch):
    monkeypatch.setattr(registrations, "MAX_REGISTRATIONS", 3)

    async def work():
        async with testing.broker() as address, palio.connect(address) as client:
            await add_note(client)
            for number in range(3):
                await client.families.register("note", str(number))
            await client.families.register("note", "2")
            with pytest.raises(palio.PalioError, match="as many as may be"):
                await client.families.register("note", "3")
            with pytest.raises(palio.PalioError, match="no family"):
                await client.families.register("none")

    asyncio.run(work())


@pytest.mark.parametrize("seed", range(5))
def test_any_order_of_registering_and_withdrawing_ends_as_a_set_would(seed):
    chance = random.Random(seed)
    steps = [(chance.choice("+-"), chance.choice("abc")) for _ in range(20)]

    async def work():
        async with testing.broker() as address, palio.connect(address) as client:
            await add_note(client)
            there = set()
            for what, where in steps:
                if what == "+":
                    await client.families.register("note", where)
                    there.add(where)
                else:
                    await client.families.withdraw("note", where)
                    there.discard(where)
                assert (await published(client) == "") == bool(there), steps
            found = {one["address"] for one in await client.families.publishers("note")}
            assert found == there, steps

    asyncio.run(work())
