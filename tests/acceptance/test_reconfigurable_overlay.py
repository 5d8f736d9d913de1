"""An overlay that is changed while it runs: neighbours that come and go, by hand and by themselves."""

from __future__ import annotations

import asyncio

import pytest

import palio
from palio import testing
from palio.broker.dialling import NotRunning
from palio.broker.settings import Peer
from palio.routing.overlay.settings import OverlaySettings
from palio.testing.broker import Broker


def neighbours(one: Broker) -> set[str]:
    return set(one.running.router.neighbours())


def dialled(one: Broker) -> set[str]:
    return set(one.running._dialling._tasks)


async def until_linked(one: Broker, other: Broker, *, linked: bool = True) -> None:
    """Wait until both ends have, or have not, a link to each other."""
    await one.until(lambda: (other.name in neighbours(one)) is linked)
    await other.until(lambda: (one.name in neighbours(other)) is linked)


def brokers(*names: str, tree: bool = False) -> list[Broker]:
    overlay = OverlaySettings(kind="tree") if tree else OverlaySettings()
    return [testing.broker(name=name, overlay=overlay) for name in names]


@pytest.mark.parametrize("tree", [False, True])
async def test_neighbourhood_is_symmetric_and_there_is_no_link_twice(tree):
    one, other = brokers("one", "other", tree=tree)
    async with one as first, other as second, palio.connect(first) as here, palio.connect(second) as there:
        told = await here.add_link(second)
        assert told == {"broker": "one", "neighbour": "other", "changed": True, "reason": ""}
        await until_linked(one, other)
        for client, address, name in ((here, second, "other"), (there, first, "one")):
            with pytest.raises(palio.RequestRefused) as caught:
                await client.add_link(address)
            assert (caught.value.error, caught.value.broker) == ("AlreadyLinked", name)
            assert str(caught.value) == f"There is a link to {name} already."
        [row] = await here.inspect("peers")
        assert (row["name"], row["state"]) == ("other", "live")
        assert (await here.remove_link("other"))["changed"]
        await until_linked(one, other, linked=False)
        assert not dialled(one) | dialled(other)


async def test_both_ends_that_are_told_at_the_same_time_have_one_link():
    one, other = brokers("one", "other")
    async with one as first, other as second, palio.connect(first) as here, palio.connect(second) as there:
        adding = here.add_link(second, if_allowed=True), there.add_link(first, if_allowed=True)
        told = await asyncio.gather(*adding, return_exceptions=True)
        assert any(isinstance(one, dict) and one["changed"] for one in told), told
        await until_linked(one, other)
        [row] = [row for row in await here.inspect("peers") if row["name"]]
        assert row["name"] == "other"


async def test_a_link_by_hand_can_be_wrong_in_four_ways_and_close_a_cycle():
    one, other, third = brokers("one", "other", "third")
    async with one as first, other as second, third as last, palio.connect(first) as client:

        async def refused(address: str) -> palio.RequestRefused:
            with pytest.raises(palio.RequestRefused) as caught:
                await client.add_link(address)
            return caught.value

        for wrong in ("", "host:99999", "127.0.0.1:0", "ws://127.0.0.1:7080", "a b:7070", "x" * 1_000):
            problem = await refused(wrong)
            assert problem.error == "WrongLinkAddress", wrong
            assert str(problem).endswith((".", "TLS."))
        await other.stop()
        problem = await refused(second)
        assert problem.error == "CannotConnect"
        assert second in str(problem)
        await other.start()
        problem = await refused(first)
        assert "cannot be its own neighbour" in str(problem)
        await client.add_link(second)
        assert (await refused(second)).broker == "other"
        async with palio.connect(second) as there:
            await there.add_link(last)
        await third.until(lambda: "other" in neighbours(third))
        assert (await refused(last)).why == "cycle"
        assert dialled(one) == {second}, "what was refused is not kept"
        told = await client.add_link(last, if_allowed=True)
        assert not told["changed"]
        assert "cycle" in told["reason"]
        assert not (await client.add_link(second, if_allowed=True))["changed"]
        with pytest.raises(palio.RequestRefused):  # which no constraint forbids
            await client.add_link("127.0.0.1:1", if_allowed=True)
        dialling = one.running._dialling
        await one.stop()
        with pytest.raises(NotRunning):
            await dialling.add(Peer(last))


async def test_who_does_not_answer_is_tried_once_at_a_time_and_for_whom_it_is_wanted():
    asked = asyncio.Event()

    async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        asked.set()
        await reader.read()
        writer.close()

    server = await asyncio.start_server(mute, "127.0.0.1", 0)
    address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    (one,) = brokers("one")
    async with one as first, palio.connect(first) as there:
        async with palio.connect(first) as here:
            adding = asyncio.create_task(here.add_link(address))
            await asked.wait()
            with pytest.raises(palio.RequestRefused, match="tried at this moment"):
                await there.add_link(address)
            assert len(dialled(one)) == 1
        with pytest.raises(palio.PalioError):
            await adding
        while dialled(one):  # who wanted it is gone
            await there.flush(arrived=True)
    server.close()


async def test_removing_a_stranger_does_nothing():
    one, other, third = brokers("one", "other", "third")
    async with one as first, other as second, third as last, palio.connect(first) as client:
        await client.add_link(second)
        for stranger in ("nobody", "third", last, "127.0.0.1:1", "", "host:99999"):
            assert not (await client.remove_link(stranger))["changed"]
        assert neighbours(one) == {"other"}
        assert (await client.remove_link(second))["neighbour"] == "other", "by its address, too"
        await until_linked(one, other, linked=False)
        assert (await client.add_link(last))["changed"], "others may be linked"


async def test_an_added_link_is_kept_and_a_removed_one_is_not_made_again_until_it_is_added():
    one, other = brokers("one", "other")
    async with one as first, other as second, palio.connect(first) as client:
        await client.add_link(second)
        await until_linked(one, other)
        await other.crash()
        await one.until(lambda: not neighbours(one))
        await other.start()
        await until_linked(one, other)
        async with palio.connect(second) as there:
            await there.remove_link("one")
            await until_linked(one, other, linked=False)
            assert dialled(one) == set(), "who connects has heard that it shall not any more"
            with pytest.raises(palio.RequestRefused, match="removed this link at other") as caught:
                await client.add_link(second)
            assert caught.value.why == "removed"
            assert not (await client.add_link(second, if_allowed=True))["changed"]
            await there.add_link(first)
            await until_linked(one, other)


async def test_a_link_of_the_settings_is_removed_too_until_the_restart():
    one, other = brokers("one", "other")
    async with one as first, other:
        other.link_to(one)
        await other.stop()
        await other.start()
        await until_linked(one, other)
        async with palio.connect(first) as client:
            await client.remove_link("other")
        await until_linked(one, other, linked=False)
        assert dialled(other) == set()
        await other.stop()
        await other.start()
        await other.until(lambda: not dialled(other))
        assert neighbours(one) == set(), "who has removed it refuses it"
        await one.stop()
        await one.start()
        await other.stop()
        await other.start()
        await until_linked(one, other)


async def test_who_has_neighbours_enough_gets_no_more_unless_it_must():
    one, *others = [
        testing.broker(name=name, overlay=OverlaySettings(kind="tree", degree=2)) for name in "abcd"
    ]
    async with one as first, others[0] as b, others[1] as c, others[2] as d, palio.connect(first) as client:
        await client.add_link(b)
        await client.add_link(c)
        told = await client.add_link(d, if_allowed=True)
        assert not told["changed"]
        assert "as many as it should have" in told["reason"]
        assert (await client.add_link(d))["changed"]


async def test_a_broker_that_lost_its_parent_by_hand_finds_another_one():
    tree = [testing.broker(name=name, overlay=OverlaySettings(kind="tree")) for name in "abc"]
    a, b, c = tree
    async with a as first, b as second, c as last:
        async with palio.connect(second) as client:
            await client.add_link(first)
            await client.add_link(last)
        await until_linked(a, b)
        await until_linked(b, c)
        async with palio.connect(last) as client:
            await client.remove_link("b")
        await until_linked(a, c)
        assert neighbours(c) == {"a"}
        assert neighbours(b) == {"a"}


async def test_who_stops_looks_for_nobody():
    one, other, third = brokers("one", "other", "third", tree=True)
    async with (
        one as first,
        other as second,
        third,
        palio.connect(first) as here,
        palio.connect(second) as there,
    ):
        await here.add_link(second)
        await until_linked(one, other)
        await there.add_link(third.address)
        await until_linked(other, third)
        stopping = other.running
        await stopping.stop()
        await one.until(lambda: neighbours(one) == {"third"})
        assert not stopping._dialling._asking
        assert not one.running.statistics().refused | third.running.statistics().refused


def told(event: palio.Event) -> tuple[str, ...]:
    """Who says what of whom, and why."""
    names = ("palio.broker", "palio.overlay.event", "palio.overlay.neighbour", "palio.overlay.why")
    return tuple(str(event[name]) for name in names if name in event)


async def collected(subscription, *wanted: tuple[str, ...]) -> list[tuple[str, ...]]:
    """What was told, until all that is wanted was."""
    found: list[tuple[str, ...]] = []
    while not {*wanted} <= {*found}:
        event = await subscription.next(timeout=20)
        assert event["palio.notice"] == "overlay"
        await event.ack()
        found.append(told(event))
    return found


async def test_added_removed_and_dead_are_three_events_with_what_takes_the_place():
    def member(name: str, *join: str) -> Broker:
        overlay = OverlaySettings(kind="tree", join=join)
        return testing.broker(name=name, journal=True, overlay=overlay)

    a = member("a")
    async with a as first, palio.connect(first) as client:
        b = member("b", first)
        changes = await client.subscribe("exists(palio.overlay.event)", durable="changes", since="all")
        async with b as second:
            c = member("c", second)
            async with c:
                await c.until(lambda: neighbours(c) == {"b"})
                await collected(changes, ("b", "link made", "c"), ("c", "link made", "b"))
                await b.crash()
                dead = ("link dead", "b", "lost")
                found = await collected(changes, ("c", "repair done", "a"))
                assert {("a", *dead), ("c", *dead), ("c", "part parted", "b", "lost")} <= {*found}
                assert ("c", "repair begun", "b", "lost") in found
                assert ("c", "link replaced", "a", "lost") in found
                assert not [one for one in found if one[1] == "link removed"]
                [replaced] = [one async for one in client.replay('palio.overlay.event = "link replaced"')]
                assert (replaced["palio.overlay.former"], replaced["palio.overlay.neighbour"]) == ("b", "a")
                assert replaced["palio.overlay.seconds"] >= 0
            found = await collected(changes, ("a", "link removed", "c", "left"))
            assert ("a", "link dead", "c") not in [one[:3] for one in found]
        assert a.running.overlay_news.counts["link dead"] == 1


async def test_links_of_the_settings_are_told_of_where_that_is_wanted():
    quiet = testing.broker(name="quiet")
    async with quiet as first, palio.connect(first) as client:
        telling = testing.broker(name="telling", overlay=OverlaySettings(events="on"))
        everything = await client.subscribe("exists(palio.broker)", ready="network")
        async with telling as second:
            await client.add_link(second)
            changes = (await client.overlay_changes())["changes"]
            assert [(one["what"], one["broker"]) for one in changes][:1] == [("link made", "telling")]
            async with palio.connect(second) as there:
                await there.subscribe("exists(palio.broker)", ready="network")
                await there.remove_link("nobody")
                await there.add_link(first, if_allowed=True)
            waiting = asyncio.create_task(client.overlay_changes(len(changes), wait=10))
            await client.remove_link("telling")
            assert [one["what"] for one in (await waiting)["changes"]][:1] == ["link removed"]
        assert not everything.statistics().waiting, "a broker with links of its settings tells its log alone"
