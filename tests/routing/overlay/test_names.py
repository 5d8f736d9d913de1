"""Names to join at which several brokers are: asked for all addresses, again and again."""

from __future__ import annotations

import pytest

from palio.broker.settings import WrongSetting, load
from palio.protocol.overlay import Standing
from palio.protocol.peers import Component
from palio.routing import Configuration, Router
from palio.routing.effects import SetTimer
from palio.routing.occurrences import LinkDown, LinkUp, NotReached, Resolved
from palio.routing.overlay.contacts import MOST_KNOWN, ContactBook
from palio.routing.overlay.effects import OverlayEvent, Resolve
from palio.routing.overlay.names import read_name
from palio.routing.overlay.settings import OverlaySettings, Passable
from tests.routing.overlay.test_tree import address, dialled, hello

NAME = "dns://pods.example:7070"


def named(*join: str) -> tuple[Router, list]:
    router = Router(Configuration(broker="m", overlay=OverlaySettings(join=join or (NAME,))))
    return router, router.begin(address(100), 0.0)


def looked_up(effects) -> list[str]:
    return [one.name for one in effects if isinstance(one, Resolve)]


def next_timer(effects) -> float:
    return min(one.at for one in effects if isinstance(one, SetTimer))


def resolved(router: Router, *numbers: int, at: float = 0.1, **more):
    return router.handle(Resolved(NAME, tuple(map(address, numbers)), **more), "", at)


def join(router: Router, number: int, at: float, name: str = "p") -> None:
    """One that was dialled takes this broker."""
    router.handle(LinkUp(dialled=address(number)), name, at)
    router.handle(hello(name, Standing(address(number), 3), Component("root"), ("root", name)), name, at)
    assert router.overlay().parent == name


def test_all_addresses_are_asked_for_but_ones_own():
    router, effects = named()
    assert looked_up(effects) == [NAME]
    assert dialled(effects) == []
    [first] = dialled(resolved(router, 100, 1, 2))
    [second] = dialled(router.handle(NotReached(first, "no"), "", 0.2))
    assert {first, second} == {address(1), address(2)}
    assert dialled(router.handle(NotReached(second, "no"), "", 0.3)) == []


def test_a_root_looks_it_up_again_and_again_and_one_with_a_parent_does_not():
    router, effects = named()
    at, pauses = 0.0, []
    for _ in range(12):
        effects = [*effects, *resolved(router, 100, at=at)]
        due = next_timer(effects)
        while not looked_up(effects := router.on_timer("overlay", due)):
            due = next_timer(effects)
        pauses.append(due - at)
        at = due
    assert pauses[0] <= 0.5
    assert pauses == sorted(pauses)
    assert pauses[-1] == 30.0, "as often as it looks for others"
    assert dialled(resolved(router, 100, 7, at=at + 0.1)) == [address(7)], "who has come meanwhile"
    join(router, 7, at + 0.2)
    assert looked_up(router.on_timer("overlay", at + 1_000.0)) == []
    effects = router.handle(LinkDown(orderly=False), "p", at + 2_000.0)
    assert looked_up(effects) == [NAME]


def test_who_does_not_lead_anywhere_any_more_is_forgotten_and_a_failure_changes_nothing():
    router, _ = named(NAME, address(50))
    resolved(router, 1, 2)
    assert {one.address for one in router.overlay().known} == {address(1), address(2), address(50)}
    router.on_timer("overlay", 5.0)
    effects = resolved(router, at=5.1, reason="It leads nowhere.")
    assert [one.why for one in effects if isinstance(one, OverlayEvent)][:1] == ["no address"]
    assert len(router.overlay().known) == 3
    router.on_timer("overlay", 10.0)
    resolved(router, 2, 3, at=10.1)
    assert {one.address for one in router.overlay().known} == {address(2), address(3), address(50)}


def test_what_was_not_asked_for_is_not_heard_and_answers_are_bounded():
    router, _ = named()
    assert router.handle(Resolved("dns://other:7070", (address(9),)), "", 0.1) == []
    many = tuple(f"palio://10.1.{number // 250}.{number % 250}:7070" for number in range(5_000))
    router.handle(Resolved(NAME, many), "", 0.2)
    assert len(router.overlay().known) == MOST_KNOWN
    assert router.handle(Resolved(NAME, (address(9),)), "", 0.3) == []


def test_who_finds_itself_does_not_ask_there_again():
    router, _ = named()
    assert dialled(resolved(router, 1)) == [address(1)]
    router.handle(NotReached(address(1), "The broker m cannot be its own neighbour.", is_own=True), "", 0.2)
    assert router.overlay().known == ()
    router.on_timer("overlay", 5.0)
    assert dialled(resolved(router, 1, at=5.1)) == []


def test_the_first_look_is_not_over_before_it_is_known_where_a_name_leads_to():
    router, _ = named()
    assert router._neighbours.overlay.is_seeking()
    effects = resolved(router)
    assert not router._neighbours.overlay.is_seeking()
    assert dialled(effects) == []


def test_addresses_of_a_name_are_dialled_wherever_they_are():
    book = ContactBook("m", [], Passable(("10.0.0.0/8",)))
    assert book.lead(NAME, ["palio://8.8.8.8:7070"]), "an operator has said so"
    assert not book.lead(NAME, ["palio://8.8.8.8:7070"])


@pytest.mark.parametrize("wrong", ["dns://", "dns://:7070", "dns://a:0", "dns://a:99999", "dns://a/b:7070"])
def test_names_that_are_none(wrong):
    with pytest.raises(WrongSetting, match=r"overlay.join\[0\]"):
        load(environment={}, flags={"overlay": {"join": [wrong]}})


def test_names_are_read():
    assert read_name("dnss://pods.example").address("10.0.0.1") == "palios://10.0.0.1:7070"
    assert read_name("dns://pods.example:1").address("fd00::1") == "palio://[fd00::1]:1"
    assert load(environment={}, flags={"overlay": {"join": [NAME]}}).overlay.is_tree
