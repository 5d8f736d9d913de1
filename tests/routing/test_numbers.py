"""Answers and refusals carry the number of their request."""

from typing import get_args

import msgspec
import pytest

from palio.model.advertisement import Advertisement
from palio.model.filter import Filter
from palio.model.notification import Notification
from palio.protocol.durable.journals import Forget
from palio.protocol.durable.subscriptions import Acknowledged, Change, Detach, Finish, Rejected
from palio.protocol.inquiries import Watch
from palio.protocol.requests import Advertise, Publish, Refused, Release, Subscribe, Unadvertise, Unsubscribe
from palio.protocol.subjects import subject_of
from palio.protocol.vocabulary import ClientMessage
from palio.routing import Configuration, Router
from palio.routing.effects import Reply
from palio.routing.occurrences import Open
from tests.protocol.test_encoding import FILTER, MESSAGES

MORE = [
    Acknowledged("s", (1,)),
    Change("s", FILTER),
    Detach("s"),
    Finish("s"),
    Forget("b"),
    Rejected("s", (1,)),
]
REQUESTS = {type(one): one for one in (*MESSAGES, *MORE) if type(one) in get_args(ClientMessage)}


def answers(router: Router, message: object) -> list:
    return [effect.answer for effect in router.handle(message, "ann", 0.0) if isinstance(effect, Reply)]


def test_no_kind_of_request_is_forgotten_here():
    assert set(REQUESTS) == set(get_args(ClientMessage))


@pytest.mark.parametrize("kind", REQUESTS, ids=lambda kind: kind.__name__)
def test_every_refusal_names_its_request(kind):
    request = msgspec.structs.replace(REQUESTS[kind], number=9)
    (refused,) = answers(Router(Configuration(broker="a")), request)  # in a session that is not open
    assert isinstance(refused, Refused)
    assert (refused.number, refused.error, refused.kind) == (9, "NoSession", kind.__name__.lower())
    assert refused.subject == subject_of(request)


def test_every_answer_has_the_number_of_its_request():
    router = Router(Configuration(broker="a"))
    router.handle(Open(), "ann", 0.0)
    filter, advertisement = Filter.parse("x > 3"), Advertisement.parse("x > 0")
    requests = [
        Subscribe("s", filter, number=1),
        Advertise("a", advertisement, number=2),
        Watch("w", advertisement, number=3),
        Publish((Notification({"x": 1}),), 4),
        Release("w", number=5),
        Unsubscribe(filter, number=6),
        Unadvertise(advertisement, number=7),
    ]
    assert [answer.number for request in requests for answer in answers(router, request)] == [
        1,
        2,
        3,
        4,
        5,
        6,
        7,
    ]


def test_the_same_subject_may_be_asked_about_twice():
    router = Router(Configuration(broker="a"))
    router.handle(Open(), "ann", 0.0)
    first, second = Subscribe("s", Filter.parse("x > 3"), number=1), Release("gone", number=2)
    third = Subscribe("s", Filter.parse("x > 4"), number=3)
    told = [answer for request in (first, second, third) for answer in answers(router, request)]
    assert [(type(one).__name__, one.number) for one in told] == [
        ("Accepted", 1),
        ("Refused", 2),
        ("Refused", 3),
    ]
