"""Journals from outside: how far they are, ranges of them, readers for whom they are kept, and trimming."""

import palio
import palio.testing


async def published(client, count, first=0):
    return await client.publish([{"x": number} for number in range(first, first + count)])


async def test_journals_and_ranges_of_them():
    async with palio.testing.network([("a", "b")], journal=True) as network:
        one, two = [await palio.connect(broker.address) for broker in network.brokers.values()]
        await published(one, 10)
        await published(two, 5, 100)
        listed = await one.journals()
        names = list(network.brokers)
        assert {(each.origin, each.trimmed, each.head) for each in listed.journals} == {
            (names[0], 0, 10),
            (names[1], 0, 5),
        }
        found = [event["x"] async for event in one.replay("true", ranges=[(names[0], 3, 6), (names[1], 4, 9)])]
        assert found == [3, 4, 5, 104]
        found = [event["x"] async for event in two.replay("x < 5", ranges=[(names[0], 3, 6)])]
        assert found == [3, 4]
        await one.close()
        await two.close()


async def test_a_journal_is_kept_for_a_reader_also_after_a_restart():
    broker = palio.testing.broker(journal=True)
    async with broker as address:
        async with palio.connect(address) as client:
            await published(client, 10)
            kept = await client.hold("lake", 4)
            assert (kept.trimmed, kept.head) == (0, 10)
            trimmed = await client.trim_journal()
            assert (trimmed.journal.trimmed, trimmed.needed_by) == (4, (("reader lake", 4),))
        await broker.crash()
        await broker.start()
        async with palio.connect(address) as client:
            assert (await client.trim_journal()).journal.trimmed == 4
            await client.hold("lake", 8)
            assert (await client.trim_journal(6)).journal.trimmed == 6
            assert (await client.trim_journal()).journal.trimmed == 8
            await client.hold("lake", -1)
            assert (await client.trim_journal()).journal.trimmed == 10


async def test_what_a_durable_subscription_needs_is_not_trimmed():
    async with palio.testing.broker(journal=True) as address, palio.connect(address) as client:
        await client.subscribe("x >= 0", durable="desk", since="all", ready="network")
        subscription_needs = (await client.trim_journal()).needed_by
        assert subscription_needs == ()
        await published(client, 3)
        trimmed = await client.trim_journal()
        assert trimmed.journal.trimmed <= 3


async def test_clients_that_speak_for_one_publisher_are_recognised():
    async with palio.testing.broker(journal=True) as address:
        sequences = []
        for name in ("worker 1", "worker 2"):
            async with palio.connect(address, name=name, publisher="sink") as client:
                sequences.append((await client.publish({"x": 1}, id="a")).sequence)
        async with palio.connect(address) as client:
            sequences.append((await client.publish({"x": 1}, id="a")).sequence)
        assert sequences == [1, 1, 2]
