"""What owners may see, in the routing core alone."""

from __future__ import annotations

from palio import Advertisement, Filter, Notification
from palio.protocol.inquiries import Wanted, Watch
from palio.protocol.requests import Publish, Refused, Subscribe, Unsubscribe
from palio.routing.configuration import Configuration
from palio.routing.effects import Deliver, Reply
from palio.routing.occurrences import Open
from palio.routing.router import Router
from palio.routing.scopes import SetScope, owner_of


def scoped(**scopes: str | None) -> Router:
    router = Router(Configuration(broker="b", scoped=True))
    for owner, text in scopes.items():
        grant(router, owner, text)
    return router


def grant(router: Router, owner: str, text: str | None) -> None:
    filter = None if text is None else Filter.parse(text)
    router.handle(SetScope(owner, filter, filter), "", 0.0)


def delivered(router: Router, **attributes: int) -> dict[str, tuple[str, ...]]:
    effects = router.handle(Publish((Notification(attributes),)), "p/1", 0.0)
    return {one.session: one.handles for one in effects if isinstance(one, Deliver)}


def test_names_have_owners_or_none():
    assert [owner_of(name) for name in ("a/b", "a/b/c", "/b", "a")] == ["a", "a", "", ""]


def test_a_subscription_follows_the_scope_and_is_cancelled_as_it_was_asked_for():
    router = scoped(a="x > 5", p="true")
    for session in ("a/1", "p/1"):
        router.handle(Open(), session, 0.0)
    router.handle(Subscribe("h", Filter.parse("x > 0")), "a/1", 0.0)
    assert delivered(router, x=6) == {"a/1": ("h",)}
    assert delivered(router, x=3) == {}
    grant(router, "a", "x < 5")
    assert delivered(router, x=6) == {}
    assert delivered(router, x=3) == {"a/1": ("h",)}
    grant(router, "a", None)
    assert delivered(router, x=3) == {}
    grant(router, "a", "true")
    router.handle(Unsubscribe(Filter.parse("x > 2")), "a/1", 0.0)  # which does not cover what was asked for
    assert delivered(router, x=3) == {"a/1": ("h",)}
    router.handle(Unsubscribe(Filter.parse("x > -1")), "a/1", 0.0)
    assert delivered(router, x=3) == {}


def test_who_asks_for_nothing_that_it_may_see_is_told():
    router = scoped(a="x > 5")
    for session in ("a/1", "nobody/1", "a"):
        router.handle(Open(), session, 0.0)
        effects = router.handle(Subscribe("h", Filter.parse("x < 3")), session, 0.0)
        [answer] = [one.answer for one in effects if isinstance(one, Reply)]
        assert isinstance(answer, Refused)
        assert answer.error == "NotAllowed"


def test_what_cannot_be_narrowed_exactly_is_checked_as_it_leaves():
    """The filter and the scope are too large together: the network is told of more, and nobody gets it."""
    scope = " or ".join(f"(a{n} = 1 and b{n} = 2)" for n in range(40))
    router = scoped(a=scope, p="true")
    for session in ("a/1", "p/1"):
        router.handle(Open(), session, 0.0)
    wide = " or ".join(f"(c{n} = 1 and d{n} = 2)" for n in range(40))
    router.handle(Subscribe("h", Filter.parse(wide)), "a/1", 0.0)
    assert delivered(router, c3=1, d3=2) == {}
    assert delivered(router, c3=1, d3=2, a7=1, b7=2) == {"a/1": ("h",)}
    assert router.statistics().forwarding.dropped == {"rights, delivery": 1}


def test_interest_is_told_as_far_as_one_may_publish():
    router = scoped(a="true", w="x > 5")
    for session in ("a/1", "w/1"):
        router.handle(Open(), session, 0.0)
    watch = Watch("w", Advertisement.parse("exists(x)"))
    [told] = router.handle(watch, "w/1", 0.0)
    assert told == Reply("w/1", Wanted("w", False))
    assert _told(router, Subscribe("low", Filter.parse("x = 1"))) == []
    assert _told(router, Subscribe("high", Filter.parse("x = 9"))) == [True]
    effects = router.handle(SetScope("w", None, Filter.parse("x < 0")), "", 0.0)
    assert [one.answer.wanted for one in effects if isinstance(one, Reply)] == [False]


def _told(router: Router, message: Subscribe) -> list[bool]:
    answers = [one.answer for one in router.handle(message, "a/1", 0.0) if isinstance(one, Reply)]
    return [one.wanted for one in answers if isinstance(one, Wanted)]
