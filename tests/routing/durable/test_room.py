"""What a home keeps for the subscriptions of one owner is shared by them, however many there are."""

from __future__ import annotations

import pytest

from palio import Filter
from palio.model.notification import Notification
from palio.protocol.envelope import Envelope
from palio.routing.durable.desk import DurableSettings
from palio.routing.durable.home.homes import Homes
from palio.routing.durable.home.outbox import Outbox
from palio.routing.durable.home.room import LEAST, Room
from palio.routing.durable.home.subscription import Durable

SETTINGS = DurableSettings(outbox=100, outbox_bytes=1 << 20, outboxes=600, outboxes_bytes=4 << 20)


def kept(homes: Homes, room: Room, durable: Durable, size: int = 10) -> int:
    """How many events are kept of very many."""
    event = Envelope("b", 1, 0.0, 0, "b", Notification({"t": "x" * size}))
    for number in range(1, 10_000):
        if room.is_full(durable):
            return len(durable.outbox)
        durable.outbox.add(number, 0, event)
    raise AssertionError("There is no bound.")


def subscribed(homes: Homes, name: str) -> Durable:
    durable = Durable(name, Filter(), 0.0, name, 1, Outbox(SETTINGS.patience))
    homes.add(durable)
    return durable


@pytest.mark.parametrize(("several", "each"), [(1, 100), (6, 100), (12, 50), (1_000, LEAST)])
def test_subscriptions_of_an_owner_share_what_is_kept_for_it(several, each):
    homes = Homes()
    room = Room(SETTINGS)
    mine = [subscribed(homes, f"me/{n}") for n in range(several)]
    alone = subscribed(homes, "you/one")
    assert {kept(homes, room, one) for one in mine} == {each}
    assert kept(homes, room, alone) == 100
    for one in mine[1:]:
        homes.remove(one)
    assert not room.is_full(mine[0]) or each == 100


def test_bytes_are_shared_as_well():
    homes = Homes()
    room = Room(SETTINGS)
    mine = [subscribed(homes, f"me/{n}") for n in range(16)]
    total = sum(kept(homes, room, one, 20_000) for one in mine)
    assert 200 <= total <= 4 * (1 << 20) // 20_000 + 16
