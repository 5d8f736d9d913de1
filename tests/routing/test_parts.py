"""A large batch is published in parts, between which others are served, and answered as one."""

from __future__ import annotations

import pytest

from palio import Advertisement, Filter, Notification
from palio.model.body import Body
from palio.model.errors import InvalidNotification
from palio.protocol.requests import Advertise, Publish, Published, Refused, Subscribe
from palio.routing import Configuration, Router
from palio.routing.considering import AT_ONCE, in_pieces
from palio.routing.durable.desk import DurableSettings
from palio.routing.durable.effects import Append
from palio.routing.effects import Deliver, Reply
from palio.routing.occurrences import Close, Failed, Open, PublishPart, Stored
from palio.routing.sessions import NotAdvertised


def router(*, durable: bool, advertisements: bool = False) -> Router:
    settings = DurableSettings() if durable else None
    made = Router(Configuration(broker="b", durable=settings, advertisements=advertisements))
    for session in ("s", "t"):
        made.handle(Open(), session, 0.0)
    return made


def events(first: int, count: int = 2, **properties: object) -> tuple[Notification, ...]:
    return tuple([Notification({"n": n}, **properties) for n in range(first, first + count)])


def part(first: int, last: bool = False, number: int = 7, **properties: object) -> PublishPart:
    return PublishPart(events(first, **properties), number, "", last)


def answers(effects: list[object]) -> list[object]:
    return [effect.answer for effect in effects if isinstance(effect, Reply)]


def test_parts_without_a_journal_are_numbered_as_they_come():
    made = router(durable=False)
    assert answers(made.handle(part(1), "s", 1.0)) == []
    assert answers(made.handle(Publish(events(9), 1), "t", 1.0)) == [Published(1, "b", 3)]
    assert answers(made.handle(part(3, last=True), "s", 1.0)) == [Published(7, "b", 1, (1, 2, 5, 6))]
    made.handle(part(5), "s", 1.0)
    assert answers(made.handle(part(7, last=True), "s", 1.0)) == [Published(7, "b", 7)]


def test_parts_with_a_journal_are_confirmed_when_the_last_is_on_disk():
    made = router(durable=True)
    made.handle(Subscribe("h", Filter()), "t", 1.0)
    tokens = []
    for message, session in (
        (part(1), "s"),
        (Publish(events(9), 1), "t"),
        (part(3), "s"),
        (part(5, last=True), "s"),
    ):
        effects = made.handle(message, session, 1.0)
        assert answers(effects) == []
        tokens += [effect.token for effect in effects if isinstance(effect, Append)]
    told, delivered = [], []
    for token in tokens:
        effects = made.handle(Stored(token), "", 2.0)
        told.append(answers(effects))
        delivered += [
            one.notification["n"]
            for effect in effects
            if isinstance(effect, Deliver)
            for one in effect.envelopes
        ]
    assert told == [[], [Published(1, "b", 3)], [], [Published(7, "b", 1, (1, 2, 5, 6, 7, 8))]]
    assert delivered == [1, 2, 9, 10, 3, 4, 5, 6]


def test_what_is_known_by_its_id_has_its_first_sequence_in_parts_too():
    made = router(durable=True)
    [append] = [one for one in made.handle(part(1, last=True, id="x"), "s", 1.0) if isinstance(one, Append)]
    made.handle(Stored(append.token), "", 1.0)
    assert append.envelopes[0].sequence == 1
    made.handle(part(1, id="x"), "s", 1.0)
    effects = made.handle(part(3, last=True), "s", 1.0)
    [append] = [one for one in effects if isinstance(one, Append)]
    assert answers(made.handle(Stored(append.token), "", 1.0)) == [Published(7, "b", 1, (1, 1, 2, 3))]


def test_a_part_that_cannot_be_written_is_the_end_of_the_whole_request():
    made = router(durable=True)
    [append] = [one for one in made.handle(part(1), "s", 1.0) if isinstance(one, Append)]
    assert answers(made.handle(Failed(append.token, "The disk is full."), "", 1.0)) == []
    assert made.handle(part(3), "s", 1.0) == []
    effects = made.handle(part(5, last=True), "s", 1.0)
    assert effects == [Reply("s", Refused("publish 7", "NotStored", "The disk is full.", number=7))]
    effects = made.handle(part(7, last=True, number=8), "s", 1.0)
    [append] = [one for one in effects if isinstance(one, Append)]
    assert answers(made.handle(Stored(append.token), "", 1.0)) == [Published(8, "b", 1)]


def test_a_part_that_cannot_be_written_after_the_last_has_come_is_refused_as_ever():
    made = router(durable=True)
    [first] = [one for one in made.handle(part(1), "s", 1.0) if isinstance(one, Append)]
    [second] = [one for one in made.handle(part(3, last=True), "s", 1.0) if isinstance(one, Append)]
    made.handle(Stored(first.token), "", 1.0)
    effects = made.handle(Failed(second.token, "The disk is full."), "", 1.0)
    assert answers(effects) == [Refused("publish 7", "NotStored", "The disk is full.", number=7)]


@pytest.mark.parametrize("durable", [False, True])
def test_of_a_session_that_leaves_in_the_middle_nothing_is_remembered(durable):
    made = router(durable=durable)
    effects = made.handle(part(1), "s", 1.0)
    made.handle(Close(), "s", 1.0)
    made.handle(Open(), "s", 1.0)
    effects += made.handle(part(3, last=True), "s", 1.0)
    for append in [one for one in effects if isinstance(one, Append)]:
        effects += made.handle(Stored(append.token), "", 1.0)
    assert answers(effects) == [Published(7, "b", 3)]


@pytest.mark.parametrize("durable", [False, True])
def test_what_is_wrong_in_a_part_is_found_when_it_is_considered(durable):
    made = router(durable=durable, advertisements=True)
    made.handle(Advertise("a", Advertisement.parse("int n < 1000")), "s", 0.0)
    made.consider(part(0), "s")
    with pytest.raises(NotAdvertised):
        made.consider(PublishPart((*events(0), Notification({"n": 5_000})), 1, "", last=False), "s")
    broken = Notification.of_body(Body(b"\xc1"))
    with pytest.raises((InvalidNotification, NotAdvertised)):
        made.consider(PublishPart((*events(0), broken), 1, "", last=False), "s")


@pytest.mark.parametrize(
    ("sizes", "pieces"),
    [
        ([], [0]),
        ([10] * AT_ONCE, [AT_ONCE]),
        ([10] * (2 * AT_ONCE + 1), [AT_ONCE, AT_ONCE, 1]),
        ([25_000] * 7, [4, 3]),
        ([30_000] * 7, [3, 3, 1]),
        ([200_000] * 3, [1, 1, 1]),
        ([10, 200_000, 10, 10], [1, 1, 2]),
    ],
)
def test_a_batch_is_cut_by_number_and_by_bytes(sizes, pieces):
    several = tuple(range(len(sizes)))
    cut = in_pieces(several, sizes, 100_000)
    assert [len(piece) for piece in cut] == pieces
    assert tuple([one for piece in cut for one in piece]) == several
