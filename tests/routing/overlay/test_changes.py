"""What a broker tells of its links: in which order, and what is known of what takes the place of a lost one."""

from __future__ import annotations

from palio.protocol.overlay import Contact, Standing
from palio.protocol.peers import Component, Goodbye, Joined
from palio.routing.effects import CloseLink
from palio.routing.occurrences import LinkDown, LinkUp, NotReached
from palio.routing.overlay.effects import OverlayEvent
from tests.routing.harness import router
from tests.routing.overlay.test_tree import address, asked_by, broker, hello, joined


def told(effects):
    return [one for one in effects if isinstance(one, OverlayEvent)]


def whats(effects):
    return [(one.what, one.broker) for one in told(effects)]


def test_a_dead_parent_is_told_of_with_what_takes_its_place():
    one = joined(contacts=[Contact("s", address(3))])
    effects = one.handle(LinkDown(orderly=False), "p", 10.0)
    assert told(effects) == [
        OverlayEvent("link dead", "p", "lost", looks=True),
        OverlayEvent("part parted", "p", "lost", part="m.1"),
        OverlayEvent("repair begun", "p", "lost"),
    ]
    effects = one.handle(NotReached(address(1), "Nobody is there."), "", 10.1)
    assert told(effects) == [OverlayEvent("not reached", "p", "not reached", "Nobody is there.")]
    one.handle(LinkUp(dialled=address(3)), "s", 10.2)
    part = Component("root", 4)
    effects = one.handle(hello("s", Standing(address(3), 3), part, ("root", "s")), "s", 10.5)
    assert told(effects) == [
        OverlayEvent("link made", "s"),
        OverlayEvent("parts joined", "s", part="root.4"),
        OverlayEvent("link replaced", "s", "lost", seconds=0.5, former="p"),
        OverlayEvent("repair done", "s", seconds=0.5, former="p"),
    ]
    assert one.overlay().repairs == 2


def test_who_has_nobody_left_to_ask_is_done_with_its_repair():
    one = joined()
    one.handle(LinkDown(orderly=True), "p", 10.0)
    one.handle(LinkUp(dialled=address(1)), "q", 10.1)
    effects = one.handle(Goodbye("We are connected already.", "cycle"), "q", 10.2)
    [refused, done] = told(effects)
    assert (refused.what, refused.why, refused.reason) == ("link refused", "cycle", "We are connected already.")
    assert (done.what, done.broker, done.why, done.former) == ("repair done", "", "nobody is left", "p")


def test_who_is_found_by_another_part_is_done_too():
    one = joined()
    one.handle(LinkDown(orderly=False), "p", 1.0)
    effects = asked_by(one, "a", number=3)
    assert whats(effects) == [("link made", "a"), ("link replaced", "a"), ("repair done", "a")]
    assert told(effects)[1].former == "p"
    assert whats(asked_by(one, "b", number=4)) == [("link made", "b")], "once"


def test_a_lost_child_is_its_own_business():
    one = broker()
    assert whats(asked_by(one, "a")) == [("link made", "a")]
    [dead] = told(one.handle(LinkDown(orderly=False, silent=True), "a", 9.0))
    assert dead == OverlayEvent("link dead", "a", "silent", looks=False)


def test_links_of_the_settings_are_told_of_too():
    one = router("b")
    one.handle(LinkUp(), "a", 0.0)
    assert whats(one.handle(hello("a"), "a", 0.1)) == [("link made", "a"), ("parts joined", "a")]
    [removed, parted] = told(one.handle(LinkDown(), "a", 1.0))
    assert removed == OverlayEvent("link removed", "a", "left", looks=False)
    assert (parted.what, parted.part) == ("part parted", "b.1")
    one.handle(LinkUp(), "c", 2.0)
    assert whats(one.handle(hello("c"), "c", 2.1)) == [("link made", "c")]
    assert told(one.remove_link("c", 3.0)) == [OverlayEvent("link removed", "c", "removed", looks=False)]


def test_a_link_that_was_never_in_use_is_no_news():
    one = router("b")
    one.handle(LinkUp(), "a", 0.0)
    assert told(one.handle(LinkDown(orderly=False), "a", 0.1)) == []


def test_a_loop_that_closes_is_told_of():
    one = joined()
    one.handle(LinkUp(), "z", 1.0)
    one.handle(hello("z", Standing(address(9))), "z", 1.1)
    effects = one.handle(Joined(Component("root"), ("root", "x", "z")), "z", 2.0)
    assert [each.broker for each in effects if isinstance(each, CloseLink)] == ["z"]
    assert told(effects) == [
        OverlayEvent("link given up", "z", "cycle"),
        OverlayEvent("link removed", "z", "given up", looks=False),
    ]
