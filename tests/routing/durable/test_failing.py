"""Appends that the store could not carry out: nothing of them is confirmed, numbered or remembered."""

from __future__ import annotations

from palio import Notification
from palio.routing.durable.desk import DurableSettings
from palio.routing.durable.effects import Append, Recovered
from palio.routing.durable.origin.journal import OriginJournal
from palio.routing.occurrences import PublishPart

RETENTION = 10.0


def journal() -> OriginJournal:
    return OriginJournal("a", Recovered(), DurableSettings(retention=RETENTION, remembered=1_000))


def publish(journal: OriginJournal, now: float, token: int, *ids: str) -> Append | None:
    notifications = tuple(Notification({"n": token}, id=id) for id in ids)
    return journal.publish("pat", PublishPart(notifications, token, "", True), now, token, "pat")


def sequences(append: Append | None) -> list[int]:
    assert append is not None
    return [envelope.sequence for envelope in append.envelopes]


def numbers(requests) -> list[int]:
    return [request.number for request in requests]


def test_what_failed_is_refused_with_all_after_it_and_its_numbers_are_given_again():
    one = journal()
    assert sequences(publish(one, 1.0, 1, "a")) == [1]
    assert sequences(publish(one, 1.0, 2, "b", "c")) == [2, 3]
    assert sequences(publish(one, 1.0, 3, "d")) == [4]
    one.appended(1)
    assert numbers(one.failed(2, "full")) == [2, 3]
    assert numbers(one.confirmed()) == [1]
    assert not one.is_appending(3)
    assert (one.head, one.stored) == (1, 1)
    assert sequences(publish(one, 2.0, 4, "b")) == [2]


def test_a_duplicate_of_what_failed_is_refused_with_it_and_one_of_what_is_stored_is_not():
    one = journal()
    publish(one, 1.0, 1, "a")
    one.appended(1)
    assert numbers(one.confirmed()) == [1]
    publish(one, 1.0, 2, "b")
    assert publish(one, 1.0, 3, "b") is None
    assert publish(one, 1.0, 4, "a") is None
    assert numbers(one.failed(2, "full")) == [2, 3]
    assert numbers(one.confirmed()) == [4]
    assert publish(one, 2.0, 5, "a") is None


def test_what_is_sent_again_is_known_for_the_whole_time_from_then_on():
    one = journal()
    publish(one, 1.0, 1, "a")
    one.failed(1, "full")
    assert sequences(publish(one, 6.0, 2, "a")) == [1]
    one.appended(2)
    assert publish(one, 6.0 + RETENTION, 3, "a") is None
    assert sequences(publish(one, 6.0 + RETENTION + 1.0, 4, "a")) == [2]
