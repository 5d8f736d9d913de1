"""Who may change the links of a broker: it shows its token to whom it is told to connect."""

import pytest

import palio
from palio.routing.overlay.settings import OverlaySettings
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


async def test_what_brokers_say_of_their_links_only_those_see_who_may_inspect(tmp_path):
    world = World(tmp_path)
    world.add("desk", "true", "true")
    world.add("watch", "true", "true", "inspect")
    overlay = OverlaySettings(events="on")
    one, other = [world.broker(name=name, journal=True, overlay=overlay) for name in ("one", "other")]
    async with one as first, other as second, world.connect(first, "desk") as desk:
        live, kept = await desk.subscribe("true"), await desk.subscribe("true", durable="kept")
        async with world.connect(first, "watch") as watch, world.connect(first, ADMIN) as admin:
            seen, seen_too = await watch.subscribe("true"), await watch.subscribe("true", durable="kept")
            await admin.add_link(second)
            for subscription in (seen, seen_too):
                event = await subscription.next(timeout=20)
                assert event["palio.overlay.event"] == "link made"
            await admin.publish({"n": 1})
        for subscription in (live, kept):
            event = await subscription.next(timeout=20)
            assert dict(event) == {"n": 1}
        assert [dict(event) async for event in desk.replay("true")] == [{"n": 1}]
        survey = await desk.survey("true")
        assert [dict(event) for event in survey.samples] == [{"n": 1}]
        with pytest.raises(palio.NotAllowed, match="'inspect'"):
            await desk.overlay_changes()
        for attribute in ("palio.overlay.event", "palio.overlay.x"):
            with pytest.raises(palio.RequestRefused, match="what brokers say of their links") as caught:
                await desk.publish({attribute: "link dead"})
            assert caught.value.error == "BrokersOnly"
        await desk.publish({"alio.ov": 1, "text": "palio.overlay."})  # it only looks like it
        world.grant("desk", "true", "true", "inspect")
        told = {event["palio.overlay.event"] async for event in desk.replay("exists(palio.broker)")}
        assert told == {"link made", "parts joined"}
