"""Spark over `palios://`: what it reads is what its principal may see, and no more."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import palio
from palio.client.environment import TOKEN
from palio.model.notification import Notification
from tests.live.network import play
from tests.security.papers import Papers, secured
from tests.security.world import World

pytest.importorskip("pyarrow", reason="Spark's part needs pyarrow")


def test_reading_with_the_rights_of_whoever_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from palio.spark.source.from_broker import BrokerJournals
    from palio.spark.source.journals import Span, WantedEvents

    async def scene() -> None:
        world, papers = World(tmp_path / "access"), Papers(tmp_path / "papers")
        world.add("report", None, "level > 3")
        world.add("nobody", "true", None)
        broker = secured(world, papers, journal=True, name="siena")
        async with broker:
            url = broker.address.replace("palio://", "palios://")
            async with palio.connect(url, token=world.tokens["admin"], tls=papers.ca) as admin:
                await admin.publish([{"level": level} for level in range(8)])

            def read(who: str | None, filter: str = "true") -> list[object]:
                monkeypatch.setenv("SSL_CERT_FILE", papers.ca)
                monkeypatch.delenv(TOKEN, raising=False)
                if who is not None:
                    monkeypatch.setenv(TOKEN, world.tokens[who])
                journals = BrokerJournals(url)
                try:
                    [standing] = journals.standings()
                    span = Span(standing.journal, 0, standing.head)
                    wanted = WantedEvents(filter=palio.Filter.parse(filter))
                    bodies = [body for batch in journals.read(span, wanted) for body in batch["payload"]]
                    return [Notification.decode(body.as_py())["level"] for body in bodies]
                finally:
                    journals.close()

            assert await asyncio.to_thread(read, "admin") == [*range(8)]
            assert await asyncio.to_thread(read, "report") == [4, 5, 6, 7]
            assert await asyncio.to_thread(read, "report", "level < 6") == [4, 5]
            with pytest.raises(palio.NotAllowed):
                await asyncio.to_thread(read, "report", "level < 2")
            with pytest.raises(palio.NotAllowed):
                await asyncio.to_thread(read, "nobody")
            with pytest.raises(palio.NotAuthenticated):
                await asyncio.to_thread(read, None)
            world.grant("report", None, "level > 6")
            assert await asyncio.to_thread(read, "report") == [7]

    play(scene)
