"""Takers see what the client library hears, from the first message on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from palio.client.durable import DurableSubscription
from tests.live.durable import WATCHING


@pytest.fixture(autouse=True)
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    hand, done = DurableSubscription.hand, DurableSubscription.done

    def handed(subscription: DurableSubscription, deliveries: list[Any]) -> None:
        if subscription.name in WATCHING:
            WATCHING[subscription.name].handed(deliveries)
        hand(subscription, deliveries)

    def answered(subscription: DurableSubscription, answer: Any) -> None:
        if subscription.name in WATCHING:
            WATCHING[subscription.name].answered(answer)
        done(subscription, answer)

    monkeypatch.setattr(DurableSubscription, "hand", handed)
    monkeypatch.setattr(DurableSubscription, "done", answered)
    yield
    WATCHING.clear()
