"""Links between domains: the sender checks every event that would leave, by whatever way."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec

import palio
import palio.testing
from palio.broker.settings import Peer
from palio.protocol.greeting import PROTOCOL, Greet, Role, Welcome
from palio.protocol.requests import Refused
from tests.live.network import play
from tests.live.talking import Talker
from tests.security.world import World


class Domains:
    """Two domains with principals of their own: the ministry dials the press, and exports what is public."""

    def __init__(self, folder: Path) -> None:
        self.inside, self.outside = World(folder / "inside"), World(folder / "outside")
        self.outside.add("ministry", "true", "true", "peer")
        (folder / "inside" / "brokers.token").write_text(self.outside.tokens["ministry"])
        self.ministry = self.inside.broker(name="ministry", journal=True)
        self.press = self.outside.broker(name="press", journal=True)

    async def __aenter__(self) -> Domains:
        await self.press.start()
        peer = Peer(self.press.address, export="public = true")
        self.ministry._settings = msgspec.structs.replace(self.ministry._settings, peers=(peer,))
        await self.ministry.start()
        for one, other in ((self.ministry, "press"), (self.press, "ministry")):
            await one.until(lambda one=one, other=other: other in one.running.router.neighbours())
        self.civil_servant = await self.inside.connect(self.ministry.address, "admin")
        self.reporter = await self.outside.connect(self.press.address, "admin")
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.civil_servant.close()
        await self.reporter.close()
        await self.ministry.stop()
        await self.press.stop()


async def numbers(subscription: palio.Subscription, last: int) -> list[Any]:
    """What comes, up to the event of that number."""
    found = []
    while not found or found[-1] != last:
        event = await subscription.next(timeout=20)
        await event.ack()
        found.append(event["n"])
    return found


EVENTS = [{"n": 1}, {"n": 2, "public": True}, {"n": 3, "public": False}, {"n": 4, "public": True}]


def test_only_what_is_exported_leaves_by_whatever_way(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Domains(tmp_path) as there:
            live = await there.reporter.subscribe("true", ready="network", timeout=20)
            durable = await there.reporter.subscribe("true", durable="all", ready="network", timeout=20)
            await there.civil_servant.publish(EVENTS)
            assert await numbers(live, 4) == [2, 4]
            assert await numbers(durable, 4) == [2, 4]
            # From the journal: reaching back, replays and counts.
            back = await there.reporter.subscribe("true", since="all", timeout=20)
            assert await numbers(back, 4) == [2, 4]
            assert [event["n"] async for event in there.reporter.replay("true")] == [2, 4]
            survey = await there.reporter.survey("true", samples=10)
            assert survey.count == 2
            assert all(event["public"] for event in survey.samples)
            assert there.ministry.statistics().dropped["border"] >= 2
            # The other way there is nothing to keep back.
            heard = await there.civil_servant.subscribe("n > 10", ready="network", timeout=20)
            await there.reporter.publish({"n": 11})
            assert await numbers(heard, 11) == [11]

    play(scene)


def test_questions_do_not_cross_with_what_may_not(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Domains(tmp_path) as there:
            asked = await there.reporter.subscribe("exists(question)", ready="network", timeout=20)

            async def answer() -> None:
                async for event in asked:
                    await event.reply({"answer": event["question"]})

            answering = asyncio.create_task(answer())

            async def replies(content: dict[str, Any]) -> list[Any]:
                return [one["answer"] async for one in there.civil_servant.request(content, timeout=5.0)]

            assert await replies({"question": 1}) == []
            assert await replies({"question": 2, "public": True}) == [2]
            answering.cancel()
            # Nobody outside learns who is inside, and nobody inside is told what only the outside knows.
            await there.civil_servant.subscribe("true", durable="files", ready="network", timeout=20)
            route = await there.reporter.trace({"public": True})
            [hop] = route.onward
            assert (hop.broker, hop.recipients) == ("ministry", ())
            assert "another domain" in str(hop.problem)

    play(scene)


def test_durable_subscriptions_stay_in_their_domain(tmp_path: Path) -> None:
    """The same principal and name on the other side is another one, and neither moves nor retires this one."""

    async def scene() -> None:
        async with Domains(tmp_path) as there:
            await there.civil_servant.publish(EVENTS)
            mine = await there.civil_servant.subscribe(
                "true", durable="files", since="all", ready="network", timeout=20
            )
            assert await numbers(mine, 4) == [1, 2, 3, 4]
            theirs = await there.reporter.subscribe(
                "true", durable="files", since="all", ready="network", timeout=20
            )
            assert await numbers(theirs, 4) == [2, 4]
            await there.civil_servant.publish({"n": 5})
            assert await numbers(mine, 5) == [5]

    play(scene)


def test_nothing_that_leaves_names_a_durable_subscription_or_where_it_lives(tmp_path: Path) -> None:
    """Every byte that crosses the border is looked at, while subscriptions begin, catch up and end."""

    async def scene() -> None:
        said: list[bytes] = []
        async with Domains(tmp_path) as there:
            link = there.ministry.running.links["press"]
            put = link.put

            def listening(payload: bytes, events: int = 0) -> None:
                said.append(payload)
                put(payload, events)

            link.put = listening  # type: ignore[method-assign]
            await there.reporter.publish(EVENTS)
            files = await there.civil_servant.subscribe(
                "true", durable="secretfiles", since="all", ready="network", timeout=20
            )
            assert await numbers(files, 4) == [1, 2, 3, 4]
            # The journal over there wants to know all readers before it forgets anything.
            await there.reporter.publish({"n": 5})
            assert await numbers(files, 5) == [5]
            introductions = there.press.running.router.durable._introductions
            await there.press.until(lambda: not introductions.missing)
            readers = there.ministry.running.router.durable.homes.introduced()
            assert readers
            await files.unsubscribe()
        assert any(b"fetch" in payload for payload in said)
        assert any(b"introductions" in payload for payload in said)
        assert not [payload for payload in said if b"secretfiles" in payload]
        for payload in said:
            if b"introductions" in payload:
                assert not [identity for identity, _ in readers if identity.encode() in payload]

    play(scene)


def test_a_foreign_broker_cannot_take_the_name_of_one_that_is_linked(tmp_path: Path) -> None:
    async def scene() -> None:
        world = World(tmp_path)
        world.add("own", "true", "true", "peer")
        world.add("foreign", "public = true", "true", "peer")
        world.add("other", "public = true", "true", "peer")
        broker = world.broker(name="ministry", journal=True)
        async with broker:

            async def greet(principal: str, name: str) -> tuple[Talker, Any]:
                talker = await Talker.connect(broker.running.port)
                talker.say(Greet(PROTOCOL, Role.PEER, name, world.tokens[principal]))
                return talker, await talker.hear()

            archive, answer = await greet("own", "archive")
            assert isinstance(answer, Welcome)
            press, answer = await greet("foreign", "press")
            assert isinstance(answer, Welcome)
            for principal, name in (("foreign", "archive"), ("other", "press"), ("own", "press")):
                talker, answer = await greet(principal, name)
                assert isinstance(answer, Refused), (principal, name)
                assert answer.error == "AlreadyLinked"
                talker.close()
            assert set(broker.running.links) == {"archive", "press"}
            # Who was cut off without a word comes back as who it was.
            again, answer = await greet("foreign", "press")
            assert isinstance(answer, Welcome)
            assert broker.running.links["press"].principal.name == "foreign"
            for talker in (archive, press, again):
                talker.close()

    play(scene)
