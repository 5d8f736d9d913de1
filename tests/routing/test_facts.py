"""Facts: what a notification satisfies is the same whoever asks, and however often filters came and went."""

import random

import pytest

from palio import Filter, Notification
from palio.routing import facts
from palio.routing.facts import SharedMatches

TEXTS = [
    *[f"x > {n}" for n in range(6)],
    *[f"x between {n} and {n + 2} and y > {m}" for n in range(4) for m in range(3)],
    "x = 1 or y = 2",
    'name starts with "a"',
    "true",
]
NOTIFICATIONS = [
    Notification({"x": x, "y": y, "name": name}) for x in range(4) for y in (0, 2) for name in ("ab", "b")
]


def satisfied(matches: SharedMatches, notification: Notification) -> set[Filter]:
    return {node.item for node in matches if node.item.matches(notification)}


@pytest.mark.parametrize("seed", range(5))
def test_matches_are_those_of_the_filters_that_are_there(seed):
    choose = random.Random(f"matches {seed}")
    matches = SharedMatches()
    for _ in range(60):
        filter = Filter.parse(choose.choice(TEXTS))
        if matches.find(filter) is None:
            matches.insert(filter)
        else:
            matches.remove(filter)
        for notification in choose.sample(NOTIFICATIONS, 3) * 2:
            found = matches.match(notification)
            assert {node.item for node in found} == satisfied(matches, notification)
            assert len(found) == len(set(found))
    matches.check()


def test_a_notification_is_matched_once():
    matches = SharedMatches()
    matches.insert(Filter.parse("x > 1"))
    notification = NOTIFICATIONS[-1]
    assert matches.match(notification) is matches.match(notification)


def test_what_is_remembered_is_bounded(monkeypatch):
    monkeypatch.setattr(facts, "MAX_MATCHED", 4)
    matches = SharedMatches()
    matches.insert(Filter.parse("x > 1"))
    for notification in NOTIFICATIONS * 2:
        assert {node.item for node in matches.match(notification)} == satisfied(matches, notification)
        assert len(matches._matched) <= 4
