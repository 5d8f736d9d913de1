"""What happens to links: told once, counted, remembered for a while, and published at a pace."""

from __future__ import annotations

import asyncio
import logging

import pytest

from palio.broker.access.principal import ANYONE
from palio.broker.overlay_news import AT_ONCE, MOST_REMEMBERED, OverlayNews, WrongNewsQuestion
from palio.routing.overlay.effects import FOUND_DEAD, MADE, NOT_REACHED, REFUSED, SENTENCES, OverlayEvent


class Telling:
    def __init__(self) -> None:
        self.now = 1_000.0
        self.published: list[OverlayEvent] = []
        log = logging.getLogger("palio.tests")
        self.news = OverlayNews(log, lambda: self.now, lambda event, at: self.published.append(event))

    async def ask(self, **question):
        return await self.news._read(question, ANYONE, "s")


def test_the_same_refusal_is_published_again_when_something_else_has_changed():
    telling = Telling()
    refused = OverlayEvent(REFUSED, "a", "full", "a has 8 neighbours.")
    silent = OverlayEvent(NOT_REACHED, "b", "not reached", "It did not answer.")
    for event in (refused, silent, refused, silent, OverlayEvent(MADE, "c"), refused):
        telling.news.tell(event)
    assert [one.what for one in telling.published] == [REFUSED, NOT_REACHED, MADE, REFUSED]
    assert telling.news.counts == {REFUSED: 3, NOT_REACHED: 2, MADE: 1}


def test_links_that_come_and_go_all_the_time_are_published_at_a_pace_and_remembered_for_a_while():
    telling = Telling()
    for number in range(2 * MOST_REMEMBERED):
        telling.news.tell(OverlayEvent((MADE, FOUND_DEAD)[number % 2], f"b{number}"))
    assert len(telling.published) == AT_ONCE
    telling.now += 3.0
    for number in range(10):
        telling.news.tell(OverlayEvent(MADE, f"c{number}"))
    assert len(telling.published) == AT_ONCE + 3
    page = asyncio.run(telling.ask())
    assert len(page["changes"]) == MOST_REMEMBERED
    assert page["changes"][-1] == {
        "number": page["onward"],
        "time": telling.now,
        "what": MADE,
        "broker": "c9",
    }
    assert telling.news.counts.total() == 2 * MOST_REMEMBERED + 10


def test_who_waits_hears_of_the_next_change_and_of_none_in_time():
    async def scene() -> None:
        telling = Telling()
        assert (await telling.ask(wait=0.01)) == {"changes": [], "onward": 0}
        waiting = [asyncio.create_task(telling.ask(after=0, wait=10.0)) for _ in range(3)]
        await asyncio.sleep(0)
        telling.news.tell(OverlayEvent(MADE, "b"))
        assert [len((await one)["changes"]) for one in waiting] == [1, 1, 1]
        assert (await telling.ask(after=1))["changes"] == []
        assert len((await telling.ask(after=77))["changes"]) == 1, "a broker that has begun anew counts anew"
        for wrong in ({"after": -1}, {"wait": 1e9}, {"more": 1}, {"after": "x"}):
            with pytest.raises(WrongNewsQuestion):
                await telling.ask(**wrong)

    asyncio.run(scene())


def test_all_that_can_happen_has_a_sentence():
    assert all(sentence.endswith(".") for sentence in SENTENCES.values())
