"""A broker of a mesh whose neighbours are imagined: whom it takes, whom it drops, and for whom it looks."""

from __future__ import annotations

import pytest

from palio.model.form import VERSION as FORM
from palio.protocol.overlay import Contact, Nearby, Standing
from palio.protocol.peers import Component, Goodbye, Hello, LinkKind, LinkState
from palio.routing import Configuration, Router
from palio.routing.effects import CloseLink, SetTimer
from palio.routing.occurrences import LinkDown, LinkUp, NotReached, Resolved
from palio.routing.overlay.effects import Dial, Resolve
from palio.routing.overlay.manager import MOST_BEYOND, TIMER
from palio.routing.overlay.settings import SPARE, OverlaySettings
from tests.routing.overlay.test_tree import TERMS, address, dialled, sent


def mesh(name: str = "m", **settings) -> Router:
    settings = {"links": 2} | settings
    router = Router(Configuration(broker=name, overlay=OverlaySettings(kind="mesh", **settings)))
    router.begin(address(100), 0.0)
    return router


def graph_hello(name: str, number: int = 0, kind: LinkKind = LinkKind.GRAPH, **standing) -> Hello:
    told = Standing(address(number), **standing) if number else None
    return Hello(kind, 1.0, TERMS, Component(name), (name,), FORM, standing=told)


def asked_by(router: Router, name: str, number: int, now: float = 1.0, **standing):
    router.handle(LinkUp(LinkKind.GRAPH, asked=True, host=f"10.0.0.{number}"), name, now)
    return router.handle(graph_hello(name, number, asks=True, **standing), name, now)


def told_of_links(router: Router, links: dict[str, str], now: float = 2.0, version: int = 1) -> list:
    """Who is linked with whom, as the first neighbour passes it on."""
    source = min(router.neighbours())
    effects = []
    for name, others in links.items():
        state = LinkState(name, version, tuple([(other, 1.0) for other in sorted(others)]), Component(name))
        effects += router.handle(state, source, now)
    return effects


def after_a_while(router: Router, effects: list) -> list:
    """What the timer brings that was set last."""
    timer = [one for one in effects if isinstance(one, SetTimer)][-1]
    return router.on_timer(timer.name, timer.at)


def test_a_newcomer_asks_for_links_of_the_graph_until_it_has_enough():
    router = Router(Configuration(broker="m", overlay=OverlaySettings(kind="mesh", join=(address(1),))))
    effects = router.begin(address(100), 0.0)
    assert [one for one in effects if isinstance(one, Dial)] == [Dial(address(1), LinkKind.GRAPH)]
    router.handle(LinkUp(LinkKind.GRAPH, dialled=address(1)), "a", 0.1)
    router.handle(graph_hello("a", 1), "a", 0.2)
    router.handle(Nearby((Contact("b", address(2), 0.1), Contact("c", address(3), 0.01))), "a", 0.3)
    told_of_links(router, {"a": "bcm", "b": "a", "c": "a"}, 0.3)
    assert dialled(router.on_timer(TIMER, 0.5)) == [address(3)]  # the nearest


def test_whoever_has_twice_as_many_names_others_and_takes_who_insists_up_to_a_bound():
    router = mesh()
    for number, name in enumerate("abcd", 1):
        asked_by(router, name, number)
    assert len(router.neighbours()) == SPARE * 2
    [goodbye] = sent(asked_by(router, "e", 5), Goodbye)
    assert goodbye.why == "full"
    assert {one.broker for one in goodbye.others} == set("abcd")
    for number in range(10, 40):
        asked_by(router, f"i{number}", number, insists=True)
    assert len(router.neighbours()) <= MOST_BEYOND * 2


def test_who_has_too_many_drops_the_longest_link_but_one_that_nobody_needs():
    router = mesh()
    for number, (name, distance) in enumerate(zip("abcd", (0.5, 0.1, 0.4, 0.3), strict=True), 1):
        asked_by(router, name, number, distance=distance)
    told_of_links(router, {"a": "bdm", "b": "acdm", "c": "bm", "d": "abm"})
    effects = asked_by(router, "e", 5, distance=0.2, insists=True)
    # The longest, to a, is the far one; the next, to c, would leave that one with too few.
    assert [one.broker for one in effects if isinstance(one, CloseLink)] == ["d"]


def test_nobody_is_dropped_whom_no_other_way_leads_to():
    router = mesh()
    for number, name in enumerate("abcd", 1):
        asked_by(router, name, number, distance=0.1 * number)
    told_of_links(router, {name: f"m{name}x{name}y" for name in "abcd"})
    effects = asked_by(router, "e", 5, distance=0.2, insists=True)
    assert not [one for one in effects if isinstance(one, CloseLink)]


@pytest.mark.parametrize(("name", "looks"), [("k", True), ("m", False)])
def test_who_is_missing_is_looked_for_by_the_first_of_its_former_neighbours(name, looks):
    router = mesh(name)
    for number, other in enumerate("lqz", 1):
        asked_by(router, other, number)
    told_of_links(router, {"l": f"{name}zq", "q": f"{name}lz", "z": f"{name}lq"})
    effects = router.handle(LinkDown(orderly=False, silent=True), "z", 5.0)
    effects += told_of_links(router, {"l": f"{name}q", "q": f"{name}l"}, 5.1, version=2)
    assert dialled(effects) == []  # perhaps it is linked with others still
    assert dialled(after_a_while(router, effects)) == [address(3)] * looks


def test_a_broker_of_a_tree_is_told_that_this_is_a_mesh():
    router = mesh()
    router.handle(LinkUp(asked=True, host="10.0.0.9"), "t", 1.0)
    effects = router.handle(graph_hello("t", 9, LinkKind.PEER, asks=True), "t", 1.0)
    [goodbye] = sent(effects, Goodbye)
    assert (goodbye.why, goodbye.reason) == (
        "terms",
        "m keeps a mesh, t does not; give both the same overlay.",
    )


def test_neighbours_of_a_general_graph_without_an_overlay_are_taken():
    router = mesh()
    router.handle(LinkUp(LinkKind.GRAPH), "old", 1.0)
    effects = router.handle(graph_hello("old"), "old", 1.0)
    assert "old" in router.neighbours()
    assert not sent(effects, Nearby)


def test_a_name_to_join_is_looked_up_and_all_that_it_leads_to_are_asked():
    settings = OverlaySettings(kind="mesh", join=("dns://brokers.example:7070",))
    router = Router(Configuration(broker="m", overlay=settings))
    effects = router.begin(address(100), 0.0)
    assert [one.name for one in effects if isinstance(one, Resolve)] == ["dns://brokers.example:7070"]
    found = Resolved("dns://brokers.example:7070", (address(1), address(2), address(100)))
    [first] = dialled(router.handle(found, "", 0.1))
    [second] = dialled(router.handle(NotReached(first, "no"), "", 0.2))
    assert {first, second} == {address(1), address(2)}
