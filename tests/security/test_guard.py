"""The door between clients and the router: what each request is held to."""

from __future__ import annotations

from collections import Counter

import pytest

import palio
from palio.broker.access.principal import Holder, Principal
from palio.broker.access.rights import parse_rights
from palio.broker.border import Border
from palio.broker.limits import Rates, WrongName
from palio.broker.request_guard import RequestGuard
from palio.broker.settings import Limits, Settings
from palio.protocol.durable.journals import Replay, Survey
from palio.protocol.durable.subscriptions import Attach, Change, Finish
from palio.protocol.inquiries import UNTOLD, Answered, Respond, Watch
from palio.protocol.requests import Advertise, Publish, Subscribe, Unadvertise, Unsubscribe


def principal(publish: str | None, subscribe: str | None, *allow: str) -> Principal:
    return Principal("desk", Holder(parse_rights(publish, subscribe, allow, "desk")))


def test_what_may_not_be_published_is_named_by_its_place_and_condition():
    guard = RequestGuard(Settings(), lambda: 0.0)
    batch = Publish(tuple(palio.Notification({"level": level}) for level in (5, 4, 3)), 7)
    desk = principal("level > 3", None)
    with pytest.raises(palio.NotAllowed) as caught:
        guard.check(batch, desk, "desk/one")
    assert caught.value.principal == "desk"
    assert "notification 2 of the request" in str(caught.value)
    assert "level > 3 does not hold (level is 3)" in str(caught.value)
    assert guard.check(Publish(batch.notifications[:2], 7), desk, "desk/one")


def test_who_may_not_publish_everything_cannot_say_anything_as_a_problem():
    guard = RequestGuard(Settings(), lambda: 0.0)
    said = Respond("1 siena", problem="All that I know.")
    for rights in ("level > 3", None):
        told = guard.check(said, principal(rights, None), "desk/one")
        assert told == Respond("1 siena", problem=UNTOLD)
    assert guard.check(said, principal("true", None), "desk/one") == said


def test_no_free_text_crosses_a_border():
    public = palio.Filter.parse("public")
    at_border = Border(public, public, Counter())
    said = Answered("siena", 1, problem="All that I know.")
    assert at_border.leaving(said) == at_border.coming(said) == Answered("siena", 1, problem=UNTOLD)


def test_rights_are_those_of_the_moment():
    holder = Holder(parse_rights(None, None, (), "desk"))
    desk = Principal("desk", holder)
    guard = RequestGuard(Settings(), lambda: 0.0)
    publish = Publish((palio.Notification({"a": 1}),), 1)
    with pytest.raises(palio.NotAllowed):
        guard.check(publish, desk, "desk/one")
    holder.rights = parse_rights("a = 1", None, (), "desk")
    assert guard.check(publish, desk, "desk/one") is publish


def test_a_bucket_holds_what_a_second_gives():
    now = 0.0
    rates = Rates(10.0, lambda: now)
    rates.require("a", 10)
    with pytest.raises(palio.TooFast):
        rates.require("a", 1)
    rates.require("b", 10)
    now = 0.5
    rates.require("a", 5)
    now = 60.0
    rates.require("a", 25)  # more than it ever holds: once, and then it is owed
    now = 61.0
    with pytest.raises(palio.TooFast):
        rates.require("a", 1)
    now = 61.7
    rates.require("a", 1)


def test_principals_share_a_bucket_whatever_their_sessions():
    guard = RequestGuard(Settings(limits=Limits(publish_rate=2.0)), lambda: 0.0)
    publish = Publish((palio.Notification({"a": 1}),), 1)
    desk = principal("true", None)
    guard.check(publish, desk, "desk/one")
    guard.gone("desk/one")
    guard.check(publish, desk, "desk/two")
    with pytest.raises(palio.TooFast):
        guard.check(publish, desk, "desk/three")


# Limits are applied once, here: to what is asked, and to what of it may be seen

TEXT = "price > 100"
ANYTHING = principal("true", "true")
ASKED = [
    Subscribe("h", palio.Filter.parse(TEXT)),
    Unsubscribe(palio.Filter.parse(TEXT)),
    Attach("d", palio.Filter.parse(TEXT)),
    Change("d", palio.Filter.parse(TEXT)),
    Survey(1, palio.Filter.parse(TEXT)),
    Replay(1, palio.Filter.parse(TEXT)),
    Advertise("h", palio.Advertisement.parse(TEXT)),
    Unadvertise(palio.Advertisement.parse(TEXT)),
    Watch("h", palio.Advertisement.parse(TEXT)),
]


@pytest.mark.parametrize("message", ASKED, ids=lambda message: type(message).__name__)
def test_the_limit_on_filters_holds_for_all_that_have_one(message):
    RequestGuard(Settings(limits=Limits(filter=len(TEXT))), lambda: 0.0).check(message, ANYTHING, "desk/one")
    with pytest.raises(palio.FilterTooLarge, match=f"has {len(TEXT)} characters; the limit is {len(TEXT) - 1}"):
        RequestGuard(Settings(limits=Limits(filter=len(TEXT) - 1)), lambda: 0.0).check(
            message, ANYTHING, "desk/one"
        )


@pytest.mark.parametrize("length", [0, 256, 3_000_000])
@pytest.mark.parametrize("kind", [Subscribe, Attach, Change, Finish, Advertise, Watch])
def test_names_that_clients_choose_are_bounded(kind, length):
    content = {Finish: (), Advertise: (palio.Advertisement.parse(""),), Watch: (palio.Advertisement.parse(""),)}
    item = content.get(kind, (palio.Filter(),))
    guard = RequestGuard(Settings(), lambda: 0.0)
    assert guard.check(kind("n" * 255, *item), ANYTHING, "desk/one")
    with pytest.raises(WrongName, match=rf"1 to 255 characters; this one has {length:,}\."):
        guard.check(kind("n" * length, *item), ANYTHING, "desk/one")


def test_what_is_asked_and_allowed_together_must_not_be_too_large():
    guard = RequestGuard(Settings(), lambda: 0.0)
    forty = " and ".join(f'not a contains "x{number}"' for number in range(40))
    others = " and ".join(f'not a contains "y{number}"' for number in range(40))
    assert guard.check(Subscribe("h", palio.Filter.parse(forty)), principal(None, others), "desk/one")
    wide = " or ".join(f"a{number} = 1" for number in range(9))
    allowed = principal(None, " or ".join(f"b{number} = 1" for number in range(9)))
    for message in (Subscribe("h", palio.Filter.parse(wide)), Attach("h", palio.Filter.parse(wide))):
        with pytest.raises(palio.FilterTooLarge, match="81 conjunctions together with all that desk may see"):
            guard.check(message, allowed, "desk/one")
