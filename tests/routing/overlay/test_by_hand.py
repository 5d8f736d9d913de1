"""Links that operators remove and want again: what brokers say to each other, and whom they ask no more."""

from __future__ import annotations

from palio.protocol.overlay import Contact, Standing, Suggest
from palio.protocol.peers import Goodbye, Hello
from palio.routing import Configuration, Router
from palio.routing.effects import CloseLink
from palio.routing.occurrences import LinkDown, LinkUp, NotReached
from palio.routing.overlay.contacts import MOST_BARRED, ContactBook
from palio.routing.overlay.settings import Passable
from tests.routing.harness import Network
from tests.routing.overlay.test_tree import address, asked_by, broker, dialled, hello, joined, sent


def refusals(effects):
    return [one.why for one in sent(effects, Goodbye)]


def test_whose_link_was_removed_is_told_so_and_refused_until_an_operator_wants_it_again():
    router = broker()
    asked_by(router, "a")
    effects = router.remove_link("a", 2.0)
    assert refusals(effects) == ["removed"]
    assert [(one.broker, one.why) for one in effects if isinstance(one, CloseLink)] == [("a", "removed")]
    assert router.neighbours() == {}
    assert refusals(router.handle(LinkUp(asked=True, host="10.0.0.1"), "a", 3.0)) == ["removed"]
    assert sent(router.handle(LinkUp(by_hand=True), "a", 4.0), Hello)
    router.handle(hello("a", Standing(address(1))), "a", 4.1)
    assert set(router.neighbours()) == {"a"}


def test_to_remove_a_stranger_is_nothing():
    router = broker()
    assert router.remove_link("nobody", 1.0) == []
    assert sent(asked_by(router, "nobody"), Hello), "it may come"


def test_who_is_told_that_its_link_was_removed_asks_the_others_and_never_this_one():
    router = joined(contacts=[Contact("s", address(3))])
    effects = router.handle(Goodbye("An operator has removed this link.", "removed"), "p", 10.0)
    assert dialled(effects) == [address(3)]
    assert dialled(router.handle(NotReached(address(3), "no"), "", 10.1)) == []
    assert dialled(router.on_timer("overlay", 100.0)) == [address(3)]
    assert dialled(router.handle(NotReached(address(3), "no"), "", 100.1)) == []
    suggested = router.handle(LinkUp(), "n", 2_000.0)
    assert sent(suggested, Hello)
    router.handle(hello("n", Standing(address(9))), "n", 2_000.1)
    assert dialled(router.handle(Suggest(Contact("p", address(1))), "n", 2_001.0)) == []


def test_who_has_removed_its_parent_finds_another_one():
    router = joined(contacts=[Contact("s", address(3))])
    assert dialled(router.remove_link("p", 10.0)) == [address(3)]


def test_one_that_is_asked_and_turns_out_to_be_unwanted_is_let_go():
    router = Router(Configuration(broker="m"))
    router.handle(LinkUp(), "p", 0.0)
    router.handle(hello("p"), "p", 0.0)
    router.remove_link("p", 1.0)
    router.handle(LinkDown(), "p", 1.1)
    assert refusals(router.handle(LinkUp(), "p", 2.0)) == ["removed"]
    assert router.neighbours() == {}


def test_a_removed_link_of_a_network_is_gone_at_both_ends():
    network = Network([("a", "b"), ("b", "c")])
    network.subscribe("c", "s", "x > 1")
    network._carry_out("b", network.routers["b"].remove_link("c", 0.0))
    network.run()
    assert set(network.routers["b"].neighbours()) == {"a"}
    assert network.routers["c"].neighbours() == {}
    network.publish("a", "p", x=2)
    assert network.takers() == []
    network.connect("a", "c")
    network.run()
    network.publish("a", "p", x=2)
    assert network.takers() == ["s"], "what is left can be joined in another way"


def test_who_is_barred_is_no_candidate_and_these_are_bounded():
    book = ContactBook("m", [], Passable(("10.0.0.0/8",)))
    book.meet("x", address(1), 0.0)
    book.bar("x")
    assert book.candidates((), 0.0) == []
    book.unbar("x")
    assert [one.broker for one in book.candidates((), 0.0)] == ["x"]
    for number in range(MOST_BARRED + 5):
        book.bar(f"b{number}")
    assert len(book._barred) == MOST_BARRED
