"""Worked examples of Siena: the tables of its data model."""

from datetime import UTC, datetime

import pytest

from palio import Advertisement, Filter, Notification

MOMENT = datetime(2001, 8, 1, 2, 40, 3, tzinfo=UTC)
ALARM = Notification({"what": "alarm", "date": MOMENT})
EXCHANGE = 'class >* "finance/exchanges/" & exchange = "NYSE" & symbol = "DIS" & change > 0'


def quote(change) -> Notification:
    return Notification(
        {
            "class": "finance/exchanges/stock",
            "date": MOMENT,
            "exchange": "NYSE",
            "symbol": "DIS",
            "prior": 105.25,
            "change": change,
            "earn": 2.04,
        }
    )


@pytest.mark.parametrize(
    ("text", "notification", "answer"),
    [
        ('string what = "alarm"', ALARM, True),
        ('what = "alarm" & int level > 3', ALARM, False),
        (EXCHANGE, quote(-4), False),
        (EXCHANGE, quote(4), True),
    ],
)
def test_filters_and_notifications(text, notification, answer):
    assert Filter.parse(text).matches(notification) is answer


def test_an_advertisement_covers_only_what_it_names():
    advertisement = Advertisement.parse('what = "alarm" | what = "login"; username *')
    assert advertisement.covers(Notification({"what": "alarm"}))
    assert advertisement.covers(Notification({"what": "login", "username": "ana"}))
    assert not advertisement.covers(ALARM)


OPERATORS = [
    ("x = 5", 5, 6),
    ("x != 5", 6, 5),
    ("x < 5", 4, 5),
    ("x <= 5", 5, 6),
    ("x > 5", 6, 5),
    ("x >= 5", 5, 4),
    ('x >* "fin"', "finance", "in fine"),
    ('x *< "ance"', "finance", "dances"),
    ('x contains "nan"', "finance", "fiance"),
    ("x *", "whatever", None),
]


@pytest.mark.parametrize(("text", "inside", "outside"), OPERATORS)
def test_every_operator(text, inside, outside):
    f = Filter.parse(text)
    assert f.matches(Notification({"x": inside, "other": 1}))
    assert not f.matches(Notification({"x": outside}))
    assert not f.matches(Notification({"other": inside})), "a mentioned attribute that is absent"


def test_several_constraints_on_one_attribute_all_hold():
    f = Filter.parse("change > 0 & change < 10")
    assert f.matches(Notification({"change": 5}))
    assert not f.matches(Notification({"change": 10}))


def test_covering_decides_what_an_unsubscribe_cancels():
    wide, narrow = Filter.parse("change > 0"), Filter.parse("change > 10")
    assert wide.covers(narrow)
    assert not narrow.covers(wide)


def test_overlap_of_filter_and_advertisement():
    advertisement = Advertisement.parse('airline = "UA"; price < 500')
    assert advertisement.overlaps(Filter.parse("airline *"))
    assert advertisement.overlaps(Filter.parse('airline = "UA" & price > 100'))
    assert not advertisement.overlaps(Filter.parse("price >= 500"))
    assert not advertisement.overlaps(Filter.parse('airline = "UA" & dest = "DEN"'))
