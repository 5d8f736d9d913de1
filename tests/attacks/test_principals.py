"""Who is known, and wants more than its rights: the events and subscriptions of others."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import palio
from palio import NotAllowed
from palio.protocol.durable.journals import Forget
from palio.protocol.durable.subscriptions import (
    Acknowledged,
    Attach,
    Detach,
    Discard,
    Finish,
    Rejected,
    Requeue,
)
from palio.protocol.inquiries import UNTOLD, Hop
from palio.protocol.requests import Refused
from tests.attacks.scene import attacked
from tests.live.network import play
from tests.security.world import World

PUBLIC, PRIVATE = {"topic": "public", "n": 1}, {"topic": "private", "n": 2}
ALL = palio.Filter.parse("true")


def test_the_durable_subscription_of_another(tmp_path: Path) -> None:
    """By any name, and by all that can be said about one: it stays with its owner, and so do its events."""

    async def scene() -> None:
        async with attacked(tmp_path) as there, there.connect("alice", name="desk") as alice:
            orders = await alice.subscribe("exists(topic)", durable="orders", ready="network")
            await alice.publish(PRIVATE)
            thief = await there.enter("mallory", "desk")  # by the name of her client, too
            for name in ("alice/orders", "/alice/orders", "mallory/../alice/orders"):
                for message in (
                    Acknowledged(name, (1,)),
                    Rejected(name, (1,)),
                    Detach(name),
                    Finish(name),
                    Requeue(name, (1,)),
                    Discard(name, (1,)),
                ):
                    thief.say(message)
                    refused = await thief.hear_a(Refused)
                    assert refused.error in ("NotTaker", "NotHome"), refused
            for name in ("orders", "alice/orders"):  # which makes one of its own
                thief.say(Attach(name, ALL, since="all"))
            async with there.connect("mallory") as mallory:
                own = await mallory.subscribe("true", durable="orders", since="all")
                await mallory.publish(PUBLIC)
                assert (await own.next(timeout=10))["topic"] == "public"
                assert [row["durable"] for row in await mallory.inspect("subs") if "durable" in row] == [
                    "mallory/alice/orders",
                    "mallory/orders",
                ]
            event = await orders.next(timeout=10)
            assert event["n"] == 2
            await event.ack(confirmed=True)
            assert alice.statistics().connections == 1
            thief.close()

    play(scene)


def test_everything_else_that_shows_events(tmp_path: Path) -> None:
    """Replays, counts, samples, traces, watches, requests, replies, dead letters, and what a broker tells."""

    async def scene() -> None:
        async with (
            attacked(tmp_path, durable={"patience": {"attempts": 1}}) as there,
            there.connect("alice") as alice,
            there.connect("mallory") as mallory,
            there.connect("admin") as admin,
        ):
            hers = await alice.subscribe("true", durable="hers", ready="network")
            await alice.publish([PUBLIC, PRIVATE])
            for _ in range(2):
                await (await hers.next(timeout=10)).reject()
            assert [event["topic"] async for event in mallory.replay("true")] == ["public"]
            with pytest.raises(NotAllowed):
                [event async for event in mallory.replay('topic = "private"')]
            survey = await mallory.survey("true", samples=10)
            assert (survey.count, [one["topic"] for one in survey.samples]) == (1, ["public"])
            with pytest.raises(NotAllowed):
                await mallory.survey('topic = "private"')
            # Who else would get something is for those who may know.
            assert _names(await mallory.trace(PUBLIC)) == set()
            assert _names(await alice.trace(PUBLIC)) == {"alice/hers"}
            assert _names(await admin.trace(PUBLIC)) == {"alice/hers"}
            with pytest.raises(NotAllowed):
                await mallory.trace(PRIVATE)
            with pytest.raises(NotAllowed):
                await mallory.watch('topic = "private"')
            # A request is a publication, and a reply something to be seen.
            with pytest.raises(NotAllowed):
                [one async for one in mallory.request(PRIVATE)]
            taking = await alice.subscribe('topic = "public" and exists(question)')
            asking = asyncio.create_task(_replies(mallory, PUBLIC | {"question": 1}))
            await (await taking.next(timeout=10)).reply({"topic": "private", "answer": 42})
            assert await asking == []
            # Nor is it told in the words of an error.
            asking = asyncio.create_task(_replies(mallory, PUBLIC | {"question": 2}))
            with pytest.raises(ValueError, match="42"):
                async with (await taking.next(timeout=10)).process():
                    raise ValueError("The answer is 42.")
            with pytest.raises(palio.ReplierFailed) as failed:
                await asking
            assert failed.value.problems == (UNTOLD,)
            # What a broker tells.
            assert await mallory.inspect("dlq") == []
            assert {row["event"] for row in await admin.inspect("dlq")} != set()
            for question in ("stats", "peers", "clients"):
                with pytest.raises(NotAllowed):
                    await mallory.inspect(question)
            assert await mallory.inspect("subs") == []
            [own] = await mallory.inspect("rights")
            assert own["subscribe"] == 'topic = "public"'
            with pytest.raises(NotAllowed):
                await mallory.inspect("rights", principal="alice")
            talker = await there.enter("mallory")
            talker.say(Forget("siena"))
            assert (await talker.hear_a(Refused)).error == "NotAllowed"
            talker.close()

    play(scene)


async def _replies(client: palio.Client, content: dict[str, Any]) -> list[Any]:
    return [one async for one in client.request(content, timeout=3.0)]


def _names(route: Hop) -> set[str]:
    return {one.name for one in route.recipients}.union(*map(_names, route.onward))


def test_a_publication_outside_ones_rights_says_which_condition_failed(tmp_path: Path) -> None:
    async def scene() -> None:
        async with attacked(tmp_path) as there, there.connect("mallory") as mallory:
            with pytest.raises(NotAllowed, match=r'topic = "public" does not hold \(topic is "private"\)'):
                await mallory.publish([PUBLIC, PRIVATE])
            assert [event async for event in mallory.replay("true")] == []  # nothing of the request

    play(scene)


async def _all_of(client: palio.Client) -> list[palio.Subscription]:
    return [
        await client.subscribe("true", ready="network"),
        await client.subscribe('topic = "private" or n > 0', ready="network"),
        await client.subscribe("true", durable="all", ready="network", since="all"),
    ]


def test_a_wider_subscription_over_several_brokers(tmp_path: Path) -> None:
    """What is asked for at one end is published at the other: no link carries it, and nobody gets it."""

    async def scene() -> None:
        world = World(tmp_path)
        world.add("mallory", None, 'topic = "public"')
        async with world.network([("a", "b"), ("b", "c")], journal=True) as network:
            admin = await world.connect(network["a"].address, "admin")
            await admin.publish(PRIVATE)
            mallory = await world.connect(network["c"].address, "mallory")
            subscriptions = await _all_of(mallory)
            sent = [str(filter) for filter in network["c"].running.router.sent("b").values()]
            assert sent == ['topic = "public"']
            await admin.publish([PRIVATE, PUBLIC])
            for subscription in subscriptions:
                event = await subscription.next(timeout=10)
                assert event["topic"] == "public"
                await event.ack()
            assert [event["topic"] async for event in mallory.replay("true")] == ["public"]
            survey = await mallory.survey("true", samples=10)
            assert (survey.count, [one["topic"] for one in survey.samples]) == (1, ["public"])
            # Rights that change count for what comes: for durable subscriptions without a gap, for others when
            # the network has heard of it.
            world.grant("mallory", None, 'topic = "other"')
            await admin.publish([PUBLIC, PRIVATE, {"topic": "other", "n": 3}])
            assert (await subscriptions[2].next(timeout=10))["n"] == 3
            await mallory.subscribe('topic = "other" and n = 0', ready="network")
            await admin.publish([PUBLIC, PRIVATE, {"topic": "other", "n": 4}])
            for subscription in subscriptions:
                assert (await subscription.next(timeout=10))["topic"] == "other"
            world.grant("mallory", None, None)
            with pytest.raises(NotAllowed):
                await mallory.subscribe("true")
            beside = await world.connect(network["c"].address, "admin")
            seen = await beside.subscribe('topic = "public"', ready="network")
            await admin.publish(PUBLIC)
            assert (await seen.next(timeout=10))["topic"] == "public"  # so it has come as far as this
            for subscription in subscriptions:
                while subscription.statistics().waiting:  # one that it could see already has got both
                    assert (await subscription.next(timeout=10))["topic"] == "other"
            for client in (mallory, admin, beside):
                await client.close()

    play(scene)


def test_a_wider_subscription_is_refused_where_that_is_asked_for(tmp_path: Path) -> None:
    async def scene() -> None:
        world = World(tmp_path)
        world.add("mallory", None, 'topic = "public"')
        async with world.broker(security={"when_wider": "refuse"}) as address:
            mallory = await world.connect(address, "mallory")
            with pytest.raises(NotAllowed, match="more than it may see, such as"):
                await mallory.subscribe("true")
            await mallory.subscribe('topic = "public" and n > 3')
            await mallory.close()

    play(scene)
