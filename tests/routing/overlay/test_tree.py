"""A broker that looks for its links, whose neighbours are imagined: whom it asks, and whom it believes."""

from __future__ import annotations

from collections import Counter

import pytest

from palio.broker.border import border
from palio.model.filter import Filter
from palio.model.form import VERSION as FORM
from palio.protocol.overlay import Contact, Nearby, Standing, Suggest
from palio.protocol.peers import Component, Goodbye, Hello, LinkKind
from palio.routing import Configuration, Router
from palio.routing.effects import CloseLink, Send, SetTimer
from palio.routing.occurrences import LinkDown, LinkUp, NotReached
from palio.routing.overlay.contacts import ContactBook
from palio.routing.overlay.effects import Dial
from palio.routing.overlay.settings import OverlaySettings, Passable, completed, normal

TERMS = "routing, subscription-based, transient"


def address(number: int) -> str:
    return f"palio://10.0.0.{number}:7070"


def broker(name: str = "m", **settings) -> Router:
    router = Router(Configuration(broker=name, overlay=OverlaySettings(kind="tree", **settings)))
    router.begin(address(100), 0.0)
    return router


def hello(name: str, standing: Standing | None = None, component: Component | None = None, path=()) -> Hello:
    part = component or Component(name)
    return Hello(LinkKind.PEER, 1.0, TERMS, part, path or (part.broker, name), FORM, standing=standing)


def sent(effects, kind):
    return [one.message for one in effects if isinstance(one, Send) and isinstance(one.message, kind)]


def dialled(effects):
    return [one.address for one in effects if isinstance(one, Dial)]


def asked_by(router: Router, name: str, size: int = 1, number: int = 1, **more):
    """A broker asks for a link. Returns what follows."""
    first = router.handle(LinkUp(asked=True, host=f"10.0.0.{number}"), name, 1.0)
    assert first == []  # who asks says hello first
    return router.handle(hello(name, Standing(":7070", size, asks=True, **more)), name, 1.0)


def joined(parent: str = "p", contacts=(), grandparent: str = "") -> Router:
    """A broker that has found a parent, which has told of others."""
    router = Router(Configuration(broker="m", overlay=OverlaySettings(join=(address(1),))))
    assert dialled(router.begin(address(100), 0.0)) == [address(1)]
    effects = router.handle(LinkUp(dialled=address(1)), parent, 0.1)
    [said] = sent(effects, Hello)
    assert said.standing.asks
    router.handle(hello(parent, Standing(address(1), 3), Component("root"), ("root", parent)), parent, 0.2)
    router.handle(Nearby(tuple(contacts), grandparent, 3), parent, 0.3)
    assert router.overlay().parent == parent
    return router


def test_a_newcomer_takes_the_name_of_whom_it_has_asked():
    router = joined()
    overlay = router.overlay()
    assert (overlay.component, overlay.path) == ("root", ("root", "p", "m"))
    assert not overlay.looking


def test_whoever_loses_its_parent_asks_it_again_then_its_parent_then_those_beside():
    router = joined(contacts=[Contact("s", address(3)), Contact("g", address(2))], grandparent="g")
    effects = router.handle(LinkDown(orderly=False), "p", 10.0)
    assert dialled(effects) == [address(1)]
    assert dialled(router.handle(NotReached(address(1), "no"), "", 10.1)) == [address(2)]
    assert dialled(router.handle(NotReached(address(2), "no"), "", 10.2)) == [address(3)]


@pytest.mark.parametrize("down", [LinkDown(orderly=True), LinkDown(orderly=False, silent=True)])
def test_who_has_left_or_fallen_silent_is_not_asked_first(down):
    router = joined(contacts=[Contact("s", address(3))])
    assert dialled(router.handle(down, "p", 10.0)) == [address(3)]


def test_a_full_broker_refuses_and_names_others_unless_it_is_insisted():
    router = broker(degree=2)
    for number, name in enumerate("ab", 1):
        assert sent(asked_by(router, name, number=number), Hello)
    effects = asked_by(router, "c", number=3)
    [goodbye] = sent(effects, Goodbye)
    assert goodbye.why == "full"
    assert {one.address for one in goodbye.others} == {address(1), address(2)}
    assert [one.broker for one in effects if isinstance(one, CloseLink)] == ["c"]
    assert sent(asked_by(router, "d", number=4, insists=True), Hello)
    assert set(router.neighbours()) == {"a", "b", "d"}


def test_the_root_of_the_smaller_part_asks_in_place_of_the_larger_one():
    router = broker()
    effects = asked_by(router, "big", size=5, number=9)
    assert sent(effects, Goodbye)[0].why == "smaller"
    assert dialled(effects) == [address(9)]


def test_a_broker_below_hands_the_suggestion_to_its_parent():
    router = joined()
    effects = asked_by(router, "big", size=50, number=9)
    assert sent(effects, Goodbye)[0].why == "smaller"
    [suggested] = sent(effects, Suggest)
    assert suggested.contact.address == address(9)
    assert dialled(effects) == []


def test_who_is_in_the_same_part_is_refused():
    router = joined()
    router.handle(LinkUp(asked=True, host="10.0.0.5"), "x", 1.0)
    effects = router.handle(
        hello("x", Standing(":7070", 1, asks=True), Component("root"), ("root", "x")), "x", 1.0
    )
    assert sent(effects, Goodbye)[0].why == "cycle"


def test_a_former_parent_is_not_taken_for_a_child_before_it_is_known_who_is_where():
    router = joined()
    router.handle(LinkUp(asked=True, host="10.0.0.7"), "root", 1.0)
    effects = router.handle(
        hello("root", Standing(":7070", 1, asks=True), Component("root", 5), ("root",)), "root", 1.0
    )
    assert sent(effects, Goodbye)[0].why == "later"


def test_an_answer_that_does_not_come_is_not_waited_for():
    router = Router(Configuration(broker="m", overlay=OverlaySettings(join=(address(1), address(2)))))
    effects = router.begin(address(100), 0.0)
    [first] = dialled(effects)
    [timer] = [one for one in effects if isinstance(one, SetTimer)]
    router.handle(LinkUp(dialled=first), "p", 0.1)  # it accepts, and says nothing
    effects = router.on_timer(timer.name, timer.at)
    assert [one.broker for one in effects if isinstance(one, CloseLink)] == ["p"]
    assert dialled(effects) == [{address(1), address(2)}.difference([first]).pop()]


def test_brokers_without_an_overlay_are_told_nothing_that_they_do_not_know():
    router = broker()
    router.handle(LinkUp(), "old", 1.0)
    router.handle(hello("old"), "old", 1.0)
    effects = asked_by(router, "new")
    assert {one.broker for one in effects if isinstance(one, Send) and isinstance(one.message, Nearby)} == {
        "new"
    }


def test_fixed_links_say_nothing_of_an_overlay():
    router = Router(Configuration(broker="m"))
    [said] = sent(router.handle(LinkUp(), "x", 0.0), Hello)
    assert said.standing is None
    assert router.begin(address(1), 0.0) == []


def test_nothing_of_the_overlay_passes_a_border():
    across = border(Filter.parse("x = 1"), None, Counter())
    assert across.leaving(Nearby((Contact("a", address(1)),))) is None
    assert across.coming(Suggest(Contact("a", address(1)))) is None
    assert across.leaving(hello("a", Standing(address(1)))).standing is None
    assert across.leaving(Goodbye("full", "full", (Contact("a", address(1)),))).others == ()


def test_addresses_that_others_tell_are_machines_in_networks_that_are_allowed():
    passable = Passable(("10.0.0.0/8",))
    assert passable("palio://10.1.2.3:7070")
    told = [
        "8.8.8.8:7070",
        "palio.example:7070",
        "10.1.2.3:0",
        "10.1.2.3:99999",
        "",
        "[::1]:7070",
        "10.1.2.3.4",
    ]
    assert not any(map(passable, told))
    book = ContactBook("m", ["broker.example"], passable)
    assert book.meet("x", "palio.example:7070", 0.0) is None
    assert [one.address for one in book.candidates((), 0.0)] == ["palio://broker.example:7070"]


def test_the_book_is_bounded():
    book = ContactBook("m", [address(1)], Passable(("10.0.0.0/8",)))
    for number in range(1_000):
        book.meet(f"b{number}", f"10.1.{number // 250}.{number % 250}:7070", float(number))
    assert len(book.contacts()) <= 66
    assert address(1) in {one.address for one in book.contacts()}


def test_an_address_without_a_host_gets_that_from_which_it_is_heard():
    assert completed("palio://0.0.0.0:7070", "10.0.0.9") == "palio://10.0.0.9:7070"
    assert completed("palios://[::]:1", "fd00::1") == "palios://[fd00::1]:1"
    assert completed("10.0.0.1:7070", "10.0.0.9") == "10.0.0.1:7070"
    assert completed("nonsense", "10.0.0.9") == ""
    assert normal("10.0.0.1") == normal("palio://10.0.0.1:7070/") == "palio://10.0.0.1:7070"
