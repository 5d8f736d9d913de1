"""Who may change the links of a broker: it shows its token to whom it is told to connect."""

import pytest

import palio
from tests.security.world import ADMIN, World


async def test_links_are_changed_by_those_who_may(tmp_path):
    world = World(tmp_path)
    world.add("desk", "true", "true", "inspect", "forget")
    one, other = world.broker(name="one"), world.broker(name="other")
    async with one as first, other as second:
        async with world.connect(first, "desk") as client:
            for changing in (client.add_link(second), client.remove_link("other")):
                with pytest.raises(palio.NotAllowed, match="'links'"):
                    await changing
        assert not one.running.router.neighbours()
        async with world.connect(first, ADMIN) as client:
            assert (await client.add_link(second))["neighbour"] == "other"
            world.grant("brokers", "true", "true")  # brokers may not link any more
            await client.remove_link("other")
            with pytest.raises(palio.RequestRefused, match="needs the right 'peer'") as caught:
                await client.add_link(second)
            assert caught.value.error == "CannotConnect"
