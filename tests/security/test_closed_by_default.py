"""Closed by default: each kind of message passes a door because it is listed there, or is refused on purpose.

The kinds are those of the wire. One that is added to the protocol makes these tests fail until somebody has
decided: by listing it at the doors, or here among those that are refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from typing import Any, get_args

import msgspec
import pytest

from palio import Filter, PalioError
from palio.broker.access.principal import ANYONE
from palio.broker.border import Border
from palio.broker.request_guard import RequestGuard, answered
from palio.broker.settings import Settings
from palio.broker.unlisted import UnlistedMessage
from palio.protocol.deliveries import Events, Handed
from palio.protocol.durable.letters import Carry, Content, RelocationContent
from palio.protocol.inquiries import Inspect
from palio.protocol.invocations import Invoke
from palio.protocol.vocabulary import (
    Answer,
    AnyMessage,
    ClientMessage,
    ConnectionMessage,
    DurableAnswer,
    DurablePeerMessage,
    DurableRequest,
    InquiryAnswer,
    InquiryMessage,
    InquiryPeerMessage,
    OverlayMessage,
    PeerMessage,
    ReconfigurationMessage,
    SharingMessage,
)
from palio.routing.occurrences import Close, LinkMessage, Open, StoreMessage
from tests.routing.lying import Liar

TRIES = 5  # messages of each kind


def kinds(*unions: Any) -> set[type]:
    return {kind for union in unions for kind in get_args(union)}


# What happens to a broker is no message of the wire, and the doors are asked about it all the same.
INTERNAL = kinds(LinkMessage, StoreMessage) | {Open, Close}
ALL = kinds(AnyMessage) | INTERNAL
REQUESTS = kinds(ClientMessage, DurableRequest, InquiryMessage) - {Open, Close}
ANSWERS = kinds(Answer, DurableAnswer, InquiryAnswer)
BETWEEN_BROKERS = kinds(
    PeerMessage, DurablePeerMessage, InquiryPeerMessage, SharingMessage, OverlayMessage, ReconfigurationMessage
)
# What shells and stores tell the core, what connections deal with themselves, and what is put into frames
# without being an answer: deliveries, which have a right to be seen of their own.
OF_CONNECTIONS = kinds(ConnectionMessage)
DELIVERIES = {Events, Handed}


def listed(door: Callable[[Any], Any], of: Collection[type]) -> set[type]:
    """The kinds that a door knows, whatever it thinks of a message."""
    liar = Liar("closed", ("one", "two"))
    found = set()
    for kind in of:
        for _ in range(TRIES):
            try:
                door(liar.draw(kind))
            except UnlistedMessage:
                assert kind not in found
                break
            except PalioError:
                pass
            found.add(kind)
    return found


@pytest.fixture
def border() -> Border:
    public = Filter.parse("public")
    return Border(public, public, Counter())


def test_every_kind_of_message_is_somebodys() -> None:
    """Otherwise the doors below have not been asked about it."""
    assert REQUESTS | ANSWERS | BETWEEN_BROKERS | INTERNAL | OF_CONNECTIONS | DELIVERIES == ALL
    assert {Inspect, Invoke} < OF_CONNECTIONS  # answered without the router, with checks of their own


def test_clients_may_ask_what_is_listed_and_nothing_else() -> None:
    guard = RequestGuard(Settings(), lambda: 0.0)
    assert listed(lambda message: guard.check(message, ANYONE, "one"), ALL) == REQUESTS


def test_clients_are_answered_what_is_listed_and_nothing_else() -> None:
    assert listed(lambda message: answered(message, ANYONE), ALL) == ANSWERS


@pytest.mark.parametrize("way", ["leaving", "coming"])
def test_what_is_listed_crosses_a_border_and_nothing_else(border: Border, way: str) -> None:
    """Letters are looked into."""
    pass_border = getattr(border, way)
    assert listed(pass_border, ALL - {Carry}) == BETWEEN_BROKERS - {Carry}
    letters = kinds(Content)
    assert listed(lambda content: pass_border(Carry("a", "b", 1, content)), letters) == letters


class Surprise(msgspec.Struct, frozen=True):
    """A kind that nobody has heard of."""

    name: str = "one"


def test_a_kind_that_nobody_has_heard_of_is_refused_at_every_door(border: Border) -> None:
    guard = RequestGuard(Settings(), lambda: 0.0)
    letter = Carry("a", "b", 1, Surprise())  # type: ignore[arg-type]
    doors: list[tuple[Callable[[Any], Any], Any]] = [
        (lambda message: guard.check(message, ANYONE, "one"), Surprise()),
        (lambda message: answered(message, ANYONE), Surprise()),
        (border.leaving, Surprise()),
        (border.coming, Surprise()),
        (border.leaving, letter),
        (border.coming, letter),
    ]
    for door, message in doors:
        with pytest.raises(UnlistedMessage, match="'surprise' message may not pass") as caught:
            door(message)
        assert caught.value.kind == "surprise"


def test_where_durable_subscriptions_live_does_not_cross_a_border(border: Border) -> None:
    liar = Liar("letters", ("one",))
    for kind in kinds(Content):
        crosses = border.leaving(Carry("a", "b", 1, liar.draw(kind))) is not None
        about_homes = kind in kinds(RelocationContent)
        assert crosses is not about_homes
