"""Notices: what is told once, by whom, and what it says."""

from datetime import UTC, datetime

import pytest

from palio.broker.notices import PUBLISHER, SESSION, Notices
from palio.model.filter import Filter
from palio.protocol.durable.lineage import JournalGap
from palio.protocol.requests import Advertise, Publish
from palio.routing.durable.effects import ReportForgotten, ReportGap
from palio.routing.occurrences import Open

NOTICED = 1_700_000_000.0


def report(after, upto=None, *, durable="desk", fork="x", origin="siena", what="older"):
    return ReportGap(JournalGap(origin, after, upto, NOTICED, what), durable, fork)


@pytest.fixture
def said():
    return []


def notices(said, *, advertises=False):
    def handle(message, session):
        assert session == SESSION
        said.append(message)

    return Notices("pisa", handle, advertises=lambda: advertises)


def published(said):
    several = [message.notifications for message in said if type(message) is Publish]
    return [dict(one.attributes) for notifications in several for one in notifications]


def test_a_gap_is_told_once_with_the_first_place(said):
    told = notices(said)
    assert told.gap(report(30, durable="desk"))
    assert not told.gap(report(20, durable="shelf")), "what waits is told together"
    assert not told.gap(report(25, durable=""))
    told.publish()
    assert [type(message) for message in said] == [Open, Publish]
    (publish,) = said[1:]
    assert (publish.number, publish.publisher) == (0, PUBLISHER)
    assert published(said) == [
        {
            "palio.notice": "gap",
            "palio.broker": "pisa",
            "palio.origin": "siena",
            "palio.after": 20,
            "palio.why": "came back older",
            "palio.noticed": datetime.fromtimestamp(NOTICED, UTC),
        }
    ]
    assert Filter.parse('palio.notice = "gap"').matches(publish.notifications[0])
    assert not told.gap(report(10)), "it was told"


def test_another_fork_another_journal_and_what_was_trimmed_are_others(said):
    told = notices(said, advertises=True)
    for one in (
        report(1),
        report(2, fork="y"),
        report(3, origin="turin"),
        report(4, 9),
        report(5, 8, durable=""),
    ):
        told.gap(one)
    told.publish()
    assert [type(message) for message in said] == [Open, Advertise, Publish]
    found = [(one["palio.after"], one.get("palio.upto"), one["palio.why"]) for one in published(said)]
    assert found == [
        (1, None, "came back older"),
        (2, None, "came back older"),
        (3, None, "came back older"),
        (4, 9, "trimmed"),
    ]
    told.gap(report(7, fork="z"))
    for after in (7, 9, 7):  # each of what is damaged, by itself
        told.gap(report(after, after + 1, what="damaged"))
    told.publish()
    found = [(one["palio.after"], one["palio.why"]) for one in published(said)[4:]]
    assert found == [(7, "came back older"), (7, "damaged"), (9, "damaged")]


def test_who_is_forgotten_is_told_beside_gaps(said):
    told = notices(said)
    assert told.forgotten(ReportForgotten("turin", "away", 2, 17, 20, NOTICED))
    assert not told.gap(report(30)), "one publishes both"
    told.publish()
    gap, forgotten = published(said)
    assert gap["palio.notice"] == "gap"
    assert forgotten == {
        "palio.notice": "forgotten",
        "palio.broker": "pisa",
        "palio.forgotten": "turin",
        "palio.why": "away",
        "palio.subscriptions": 2,
        "palio.after": 17,
        "palio.upto": 20,
        "palio.noticed": datetime.fromtimestamp(NOTICED, UTC),
    }
    assert told.forgotten(ReportForgotten("turin", "told", 0, 20, 20, NOTICED)), "and once more, if it is"
