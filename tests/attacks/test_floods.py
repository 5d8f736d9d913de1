"""Too much of everything: filters, attributes, subscriptions, events, bytes, and lines of the log."""

from __future__ import annotations

import asyncio
import contextlib
import time
from pathlib import Path

import msgspec
import pytest

import palio
from palio import FilterError, Notification, TooFast
from palio.model.body import Body
from palio.protocol.frames import frame
from palio.protocol.greeting import PROTOCOL, Greet, Role, Welcome
from palio.protocol.requests import Accepted, Publish, Refused, Subscribe
from tests.attacks.scene import LIMITS, attacked
from tests.live.network import play, until
from tests.live.talking import Talker

BOMBS = {
    "deep": "(" * 1_500 + "a = 1" + ")" * 1_500,
    "not not": "not " * 1_000 + "a",
    "long": " or ".join(f"a{n} = {n}" for n in range(300)),
    "product": " and ".join(f"(a{n} = 1 or b{n} = 2)" for n in range(60)),
    "differences": " and ".join(f"not (a{n} = 1 and b{n} = 2 and c{n} = 3)" for n in range(40)),
    "patterns": " and ".join(f'name matches "*{n}*a*b*c*{n}*"' for n in range(60)),
    "contains": " and ".join(f'not name contains "{n}"' for n in range(90)),
    "too long": f'a = "{"x" * 4_100}"',
    "huge": f'a = "{"x" * 300_000}"',
}


def test_filter_bombs(tmp_path: Path) -> None:
    """Each is answered in time: with a refusal, or because it is less than it looks."""

    async def scene() -> None:
        async with attacked(tmp_path) as there, there.connect("alice") as alice:
            talker = await there.enter("alice", "bomber")
            for name, text in BOMBS.items():
                began = time.monotonic()
                message = {"type": "subscribe", "handle": name, "filter": text, "ready": False}
                talker.writer.write(frame(msgspec.msgpack.encode(message)))
                while not isinstance(answer := await talker.hear(), Refused | Accepted):
                    pass  # events, of those that were accepted
                if name in ("deep", "product", "too long", "huge"):
                    assert isinstance(answer, Refused), name
                    assert answer.error in ("FilterSyntaxError", "FilterTooLarge"), answer
                assert time.monotonic() - began < 4.0, name
            # Many that are hard to understand, all at once: their sender has to wait, and nobody else for long.
            hard = 'name starts with "a" and name ends with "b" and name contains "{}"'
            for number in range(20):
                filter = hard.format("é" * 200 + str(number) * 200)
                talker.writer.write(frame(msgspec.msgpack.encode(message | {"handle": "h", "filter": filter})))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(3.0):
                    for _ in range(20):
                        while not isinstance(await talker.hear(), Refused | Accepted):
                            pass
            await alice.publish([{"a": 1, "name": "abcabc" * 1_000, "n": n} for n in range(50)])
            with pytest.raises(FilterError):
                await alice.subscribe(f'a = "{"x" * 4_100}"')
            talker.close()

    play(scene)


def test_attribute_floods(tmp_path: Path) -> None:
    async def scene() -> None:
        async with attacked(tmp_path) as there, there.connect("alice") as alice:
            with pytest.raises(palio.PalioError, match=r"65 attributes; the limit"):
                await alice.publish({f"a{n}": n for n in range(65)})
            await alice.publish({f"a{n}": n for n in range(64)})
            talker = await there.enter("alice", "flooder")
            for count in (1_025, 40_000):
                attributes = msgspec.msgpack.encode({f"a{n}": n for n in range(count)})
                talker.say(Publish((Notification.of_body(Body(attributes)),), 1))
                assert (await talker.hear_a(Refused)).error in ("InvalidNotification", "TooManyAttributes")
            talker.close()
            assert (await there.statistics())["refused_requests"]["TooManyAttributes"] >= 1

    play(scene)


def test_subscription_floods(tmp_path: Path) -> None:
    async def scene() -> None:
        async with attacked(tmp_path) as there:
            talker = await there.enter("mallory", "flooder")
            for number in range(2_000):
                talker.say(Subscribe(f"h{number}", palio.Filter.parse(f"n > {number}")))
            answers = [await talker.hear() for _ in range(2_000)]
            assert sum(isinstance(one, Accepted) for one in answers) == LIMITS["subscriptions"]
            assert {one.error for one in answers if isinstance(one, Refused)} == {"TooManySubscriptions"}
            talker.close()

    play(scene)


def test_publishing_too_fast(tmp_path: Path) -> None:
    """One principal's flood is refused, counted, and no other's business."""

    async def scene() -> None:
        async with attacked(tmp_path) as there, there.connect("mallory") as mallory:
            refused = 0
            for _ in range(60):
                try:
                    await mallory.publish([{"topic": "public"}] * 200)
                except TooFast:
                    refused += 1
            assert refused > 20
            counted = (await there.statistics())["refused_requests"]
            assert counted["TooFast"] == refused

    play(scene)


def test_slow_readers(tmp_path: Path) -> None:
    """Who subscribes to everything and reads nothing costs its limit, and is told what it lost."""

    async def scene() -> None:
        async with attacked(tmp_path) as there, there.connect("alice") as alice:
            stalled = []
            for number in range(10):
                talker = await there.enter("alice", f"stalled {number}")
                talker.say(Subscribe("all", palio.Filter.parse("exists(blob)")))
                await talker.hear_a(Accepted)
                talker.writer.transport.pause_reading()  # type: ignore[attr-defined]
                stalled.append(talker)
            for number in range(50):
                await alice.publish([{"blob": "x" * 50_000, "n": number}] * 10, timeout=20)
            dropped = (await there.statistics())["dropped"]
            assert any(reason.startswith("slow consumer") for reason in dropped), dropped
            for talker in stalled:
                talker.close()

    play(scene)


def test_gigantic_and_empty_frames(tmp_path: Path) -> None:
    async def scene() -> None:
        async with attacked(tmp_path) as there:
            for head in (b"\xff\xff\xff\xff", b"\x00\x01\x00\x01", b"\x7f\xff\xff\xff"):
                talker = await Talker.connect(there.port)
                talker.writer.write(head + b"x" * 100)
                assert (await there.refusal(talker)).error == "FrameTooLarge"
            talker = await there.enter("mallory", "giant")
            talker.writer.write((LIMITS["frame"] + 1).to_bytes(4))  # type: ignore[operator]
            assert (await there.refusal(talker)).error == "FrameTooLarge"
            for greeted in (False, True):
                talker = await there.enter("mallory", "none") if greeted else await Talker.connect(there.port)
                talker.writer.write(b"\x00\x00\x00\x00" * 50_000)
                assert (await there.refusal(talker)).error == "UnreadableMessage"

    play(scene)


def test_log_injection(tmp_path: Path) -> None:
    """What attackers choose is in the log, and cannot look like a line of it or steer a terminal."""

    async def scene() -> None:
        forged = "x\n2026-01-01T00:00:00.000+00:00 info    palio.broker.siena: All is well.\x1b[2J\u2028\x85"
        async with attacked(tmp_path) as there:
            for name, protocol in ((forged, PROTOCOL), ("x", forged)):
                talker = await Talker.connect(there.port)
                talker.say(Greet(protocol, Role.CLIENT, name, there.world.tokens["mallory"]))
                if protocol == PROTOCOL:
                    await talker.hear_a(Welcome)
                    talker.writer.write(b"\xff\xff\xff\xff")
                await there.refusal(talker)
            await until("the name is in the log", lambda: "All is well." in there.node.log)
            for line in there.node.log.splitlines():
                assert not line.startswith("2026-01-01"), line
                assert line.isprintable(), line

    play(scene)
