"""A broker whose neighbours lie, or talk without end: what it believes, whom it asks, what it passes on."""

from __future__ import annotations

import msgspec
import pytest

from palio.protocol.encoding import UnreadableMessage, decode, encode
from palio.protocol.overlay import MOST_CONTACTS, Contact, Nearby, Standing, Suggest
from palio.protocol.peers import Component, Goodbye, Hello, Joined
from palio.routing.effects import CloseLink, SetTimer
from palio.routing.links import MOST_HOPS, NAMES_AT_ONCE
from palio.routing.occurrences import LinkDown, LinkUp, NotReached
from palio.routing.overlay.beside import NEWS_AT_ONCE
from palio.routing.overlay.contacts import MOST_KNOWN, ContactBook
from palio.routing.overlay.look import MOST_ASKED, MOST_DETOURS
from palio.routing.overlay.manager import MOST_BEYOND
from palio.routing.overlay.settings import Passable
from palio.routing.overlay.tree import STALE_FOR
from tests.routing.overlay.test_tree import address, asked_by, broker, dialled, hello, joined, sent

LARGEST = 2**62


def far(number: int) -> str:
    return f"palio://10.66.{number // 250}.{number % 250 + 1}:7070"


def made_up(count: int, first: int = 0) -> tuple[Contact, ...]:
    return tuple([Contact(f"nobody{n}", far(n)) for n in range(first, first + count)])


# Numbers and names


def test_sizes_that_are_made_up_make_nothing_that_a_neighbour_cannot_read():
    router = joined()
    for number in range(2, 6):
        effects = asked_by(router, f"liar{number}", LARGEST, number=number, insists=True)
    for number in range(2, 6):
        effects += router.handle(Nearby((), "", LARGEST), f"liar{number}", 2.0 + number)
    told = sent(effects, Nearby)
    assert told
    for news in told:
        assert decode(encode(news)) == news
    assert decode(encode(sent(asked_by(router, "x", LARGEST, number=9, insists=True), Hello)[0]))


@pytest.mark.parametrize(
    "message",
    [
        Nearby(made_up(MOST_CONTACTS + 1)),
        Goodbye("full", "full", made_up(MOST_CONTACTS + 1)),
        Suggest(Contact("x" * 256, address(1))),
        Suggest(Contact("x", "1" * 256)),
        Nearby((), "p", LARGEST + 1),
        Nearby((), "p", -1),
        Joined(Component("x" * 256), ("y",)),
        Joined(Component("x"), ("y" * 256,)),
        Joined(Component("x", LARGEST + 1), ("y",)),
    ],
)
def test_lists_without_end_and_what_is_far_too_long_are_not_read(message):
    with pytest.raises(UnreadableMessage):
        decode(msgspec.msgpack.encode(message))


def test_a_path_without_end_is_cut_and_passed_on():
    router = broker()
    asked_by(router, "a", number=1)
    asked_by(router, "b", number=2)
    path = (*[f"nobody{n}" for n in range(5 * MOST_HOPS)], "a")
    [told] = sent(router.handle(Joined(Component("0"), path), "a", 2.0), Joined)
    assert len(told.path) == MOST_HOPS
    assert told.path[-2:] == ("a", "m")


def test_many_names_are_told_at_a_pace_and_the_last_one_counts():
    router = broker("z")
    for number, name in enumerate("abc", 1):
        asked_by(router, name, number=number)
    effects = []
    for count in reversed(range(500)):
        effects += router.handle(Joined(Component("0", count), ("0", "a")), "a", 2.0)
    told = sent(effects, Joined)
    assert 2 <= len(told) <= 2 * NAMES_AT_ONCE
    for _ in range(100):
        timers = [one for one in effects if isinstance(one, SetTimer) and one.name == "names"]
        if not timers:
            break
        effects = router.on_timer("names", timers[-1].at)
        told += sent(effects, Joined)
    assert {one.component for one in told[-2:]} == {Component("0", 0)}


def test_nobody_is_parted_from_a_neighbour_by_a_path_that_somebody_has_made_up():
    router = joined()
    effects = router.handle(Joined(Component("0"), ("m", "liar", "p")), "p", 5.0)
    assert not [one for one in effects if isinstance(one, CloseLink)]
    assert router.overlay().component == "0"
    # Who tells a name that we have told another neighbour does close a cycle.
    asked_by(router, "a", number=2)
    effects = router.handle(Joined(Component("0"), ("0", "m", "a", "p")), "p", 6.0)
    assert [one.broker for one in effects if isinstance(one, CloseLink)] == ["p"]


def test_a_path_that_somebody_has_made_up_keeps_nobody_out_for_long():
    router = joined()
    router.handle(Joined(Component("0"), ("victim", "liar", "p")), "p", 5.0)

    def asks(now: float):
        router.handle(LinkUp(asked=True, host="10.0.0.7"), "victim", now)
        return router.handle(hello("victim", Standing(":7070", asks=True)), "victim", now)

    assert sent(asks(6.0), Goodbye)[0].why == "later"
    assert sent(asks(6.0 + STALE_FOR), Hello)
    assert "victim" in router.neighbours()


def test_a_former_name_of_our_own_that_somebody_repeats_is_one_like_any_other():
    router = joined()
    router.handle(LinkDown(orderly=False), "p", 5.0)
    former = router.overlay()
    asked_by(router, "a", number=2)
    router.handle(Joined(Component("m", 0), ("m", "a")), "a", 6.0)
    assert (former.component, router.overlay().component) == ("m", "m")
    router.handle(LinkDown(), "a", 7.0)
    assert router.overlay().path == ("m",)


# Floods


def test_neighbours_whose_numbers_change_without_end_are_passed_on_at_a_pace():
    router = joined()
    asked_by(router, "a", number=2)
    effects = []
    for round_ in range(1_000):
        effects += router.handle(Nearby((), "m", 1 + round_ % 2 * LARGEST), "a", 2.0)
    assert len(sent(effects, Nearby)) <= 2 * NEWS_AT_ONCE
    timer = [one for one in effects if isinstance(one, SetTimer)][-1]
    [told] = sent(router.on_timer(timer.name, timer.at), Nearby)  # what was owed
    assert told.size > 2**30


def test_a_flood_of_suggestions_is_neither_passed_on_nor_dialled():
    below, root = joined(), broker()
    asked_by(below, "a", number=2)
    asked_by(root, "a", number=2)
    passed, attempts = [], []
    for contact in made_up(1_000):
        passed += sent(below.handle(Suggest(contact), "a", 3.0), Suggest)
        attempts += (found := dialled(root.handle(Suggest(contact), "a", 3.0)))
        for one in found:
            attempts += dialled(root.handle(NotReached(one, "no"), "", 3.0))
    assert len(passed) <= NEWS_AT_ONCE
    assert len(attempts) <= NEWS_AT_ONCE + MOST_ASKED
    assert not sent(below.handle(Suggest(Contact("x", address(9))), "p", 9.0), Suggest)  # back to who says it


def test_a_flood_of_hellos_has_a_broker_do_nothing_for_long():
    router = broker(degree=2)
    for name in ("a", "b"):
        asked_by(router, name)
    effects = []
    for number in range(1_000):
        effects += asked_by(router, f"liar{number}", LARGEST, number=number % 250)
    assert set(router.neighbours()) == {"a", "b"}
    assert len(dialled(effects)) == 1
    assert not sent(effects, Nearby)
    assert len(router.overlay().known) <= MOST_KNOWN


def test_nobody_has_more_neighbours_than_a_multiple_of_its_degree_whoever_insists():
    router = broker(degree=2)
    for number in range(100):
        asked_by(router, f"b{number}", number=number, insists=True)
    assert len(router.neighbours()) == 2 * MOST_BEYOND


def test_a_reason_without_end_is_cut():
    router = joined()
    effects = router.handle(Goodbye("no " * 1_000_000), "p", 5.0)
    assert all(len(one.reason) < 1_000 for one in effects if isinstance(one, CloseLink))


# Addresses


def test_what_a_neighbour_makes_up_takes_nobody_elses_place():
    book = ContactBook("m", [address(1)], Passable(("10.0.0.0/8",)))
    book.begin(address(100))
    honest = [Contact(f"s{n}", address(n)) for n in range(2, 10)]
    for contact in honest:
        book.meet(contact.broker, contact.address, 1.0, told_by="honest")
    for number, contact in enumerate(made_up(1_000)):
        book.meet(contact.broker, contact.address, 2.0 + number, told_by="liar")
    for number, contact in enumerate(made_up(1_000, 1_000)):
        book.meet(contact.broker, contact.address, 2_000.0 + number, told_by=contact.broker)
    assert {one.broker for one in honest} <= {one.broker for one in book.contacts()}
    assert len(book.contacts()) <= MOST_KNOWN + 1


def test_others_do_not_rename_who_has_said_its_name():
    book = ContactBook("m", [], Passable(("10.0.0.0/8",)))
    book.meet("s", address(2), 1.0, told_by="s")
    book.meet("neighbour", address(2), 2.0, told_by="liar")
    assert [one.broker for one in book.candidates({"neighbour", "liar"}, 3.0)] == ["s"]


def test_nobody_is_asked_at_our_own_address_nor_without_tls_where_there_is_tls():
    book = ContactBook("m", ["10.0.0.100:7070"], Passable(("10.0.0.0/8",)))
    book.begin("palios://10.0.0.100:7070")
    assert book.meet("x", "palios://10.0.0.100:7070", 1.0) is None
    assert book.meet("x", "palio://10.0.0.5:7070", 1.0) is None
    assert book.meet("x", "palios://10.0.0.5:7070", 1.0) is not None


def a_look(router, effects, now: float, answer) -> list[str]:
    """Whom a broker asks until its look is over, if each of them answers like this."""
    asked = []
    for _ in range(1_000):
        found = dialled(effects)
        if not found:
            break
        asked += found
        effects = answer(found[0], len(asked), now)
    return asked


def test_who_is_full_and_names_others_without_end_is_not_followed_without_end():
    router = broker(join=(address(1), address(2)))
    effects = router.begin(address(100), 0.0)

    def answer(at: str, count: int, now: float):
        name = f"full{at}"
        router.handle(LinkUp(dialled=at), name, now)
        return router.handle(Goodbye("full", "full", made_up(8, 8 * count)), name, now)

    asked = a_look(router, effects, 1.0, answer)
    assert {address(1), address(2)} <= set(asked)
    assert len(asked) <= 2 * (2 + MOST_DETOURS)


def test_addresses_where_nobody_answers_keep_nobody_from_being_asked():
    router = joined(contacts=made_up(MOST_CONTACTS))
    asked_by(router, "met", number=7)
    router.handle(LinkDown(), "met", 2.0)
    effects = router.handle(LinkDown(orderly=True), "p", 50.0)
    asked = a_look(router, effects, 50.0, lambda at, count, now: router.handle(NotReached(at, "no"), "", now))
    assert address(7) in asked[:4]


def test_who_always_says_that_its_part_is_the_smaller_one_is_not_waited_for_for_ever():
    router = broker(join=(address(1), address(2)))
    now, asked = 0.0, []
    effects = router.begin(address(100), now)
    for _ in range(4):
        for at in dialled(effects):
            asked.append(at)
            router.handle(LinkUp(dialled=at), "liar", now)
            effects = router.handle(Goodbye("smaller", "smaller"), "liar", now)
        timers = [one for one in effects if isinstance(one, SetTimer)]
        if not dialled(effects) and timers:
            now = timers[-1].at
            effects = router.on_timer(timers[-1].name, now)
    assert set(asked) == {address(1), address(2)}
