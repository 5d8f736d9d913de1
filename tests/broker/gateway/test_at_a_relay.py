"""What a relay says over HTTP, and which settings go with it."""

import pytest

from palio.broker.settings import Settings, WrongSetting, checked
from tests.broker.gateway.calling import calling, problem


async def test_what_lasts_is_refused_and_what_passes_is_not():
    async with calling(relay=True) as (_, session):
        for answer in (
            await session.post("/events", json={"n": 1}),
            await session.get("/events", params={"since": "all"}),
            await session.get("/events", params={"durable": "desk"}),
            await session.post("/subscriptions", json={"id": "a"}),
        ):
            found = await problem(answer, 501, "KeepsNothing")
            assert "is a relay" in found["detail"]
        async with session.get("/events", params={"filter": "n > 0"}) as answer:
            assert answer.status == 200


@pytest.mark.parametrize("key", ["journal", "store", "lake"])
def test_a_relay_goes_with_nothing_that_is_kept(key):
    with pytest.raises(WrongSetting, match=f"leave out `{key}`"):
        checked({"relay": True, key: True if key == "journal" else "there"}, {}, "palio.toml")


def test_a_relay_has_no_journal():
    assert checked({"relay": True, "journal": False}, {}, "palio.toml").delivery is None
    assert Settings(relay=True).delivery is None
    assert Settings().delivery is not None
