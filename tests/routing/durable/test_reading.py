"""What a page has to be so that a subscription takes it: one of its journal, from its place, and asked for."""

import pytest
from msgspec.structs import replace

from palio.protocol.durable.letters import Carry, Page
from palio.protocol.durable.lineage import Incarnation
from palio.protocol.durable.peers import Head
from palio.routing.durable.home.subscription import HomeState
from tests.routing.durable.test_rare import publish
from tests.routing.durable.world import World


class Delayed(World):
    """Pages do not come, but are kept."""

    def __init__(self, *arguments) -> None:
        self.pages = []
        super().__init__(*arguments)

    def post(self, name, message, source) -> None:
        if isinstance(message, Carry) and isinstance(message.content, Page):
            self.pages.append(message.content)
        else:
            super().post(name, message, source)


@pytest.fixture
def world() -> Delayed:
    """The home `a` was cut off from the origin `b`, has heard how far its journal is, and waits for a page."""
    world = Delayed("pages", ["a", "b"], [("a", "b")])
    world.run()
    world.attach("one", "a", "s0", "n > 0")
    world.run()
    world.cut(frozenset(("a", "b")))
    publish(world, "b", 1, 2)
    world.heal()
    while not world.pages:
        world.step() or world.wait()
    world.routers["a"].durable.homes.subscriptions["s0"].interrupt()
    return world


def taken(world, page) -> int:
    """How far the subscription is in the journal of `b` once a page has come."""
    router = world.routers["a"]
    effects = router.handle(Carry("b", "a", 0, page), "b", world.now)
    world.carry_out("a", effects)
    return router.durable.homes.subscriptions["s0"].position["b"]


def test_who_is_behind_takes_what_was_asked_for_in_another_epoch(world):
    assert world.routers["a"].durable.homes.subscriptions["s0"].state is HomeState.BEHIND
    assert taken(world, world.pages[0]) == 2


def test_a_page_of_another_journal_is_not_taken(world):
    assert taken(world, replace(world.pages[0], incarnation="b of another disk")) == 0


def test_a_page_is_taken_once_and_for_nothing_else(world):
    page = world.pages[0]
    assert taken(world, replace(page, reader="1")) == 0
    assert taken(world, replace(page, after=page.after + 1)) == 0
    assert taken(world, replace(page, upto=page.upto + 1)) == 0
    assert taken(world, page) == 2
    assert taken(world, replace(page, envelopes=())) == 2


def test_what_was_read_for_another_place_is_not_taken(world):
    world.routers["a"].durable.homes.subscriptions["s0"].stop()
    assert taken(world, world.pages[0]) == 0


def test_a_page_that_is_long_on_its_way_is_not_asked_for_again_and_again():
    world = Delayed("slow", ["a", "b"], [("a", "b")])
    world.run()
    world.attach("one", "a", "s0", "n > 0")
    world.run()
    world.cut(frozenset(("a", "b")))
    publish(world, "b", 1, 2)
    world.heal()
    began = world.now
    while world.now < began + 60.0:
        world.step() or world.wait()
    asked_once_a_tick = 60.0 / world.routers["a"].durable.parts.reading._desk.settings.tick
    assert 4 <= len(world.pages) <= 8 < asked_once_a_tick / 5
    assert taken(world, world.pages[-1]) == 2


def test_what_was_said_in_an_earlier_life_is_not_news():
    world = Delayed("lives", ["a", "b"], [("a", "b")])
    world.run()
    world.attach("one", "a", "s0", "n > 0")
    world.run()
    service = world.routers["a"].durable
    durable = service.homes.subscriptions["s0"]
    known = durable.lineages["b"]
    assert known
    earlier = (Incarnation(known[-1].number - 1, "before", 0),)
    is_present = service.parts.catching_up._is_present
    assert is_present(durable, Head("b", 3, 0, lineage=known))
    assert not is_present(durable, Head("b", 3, 0, lineage=earlier))
    assert not is_present(durable, Head("b", 3, 0)), "a broker of an earlier version tells no lineage"
