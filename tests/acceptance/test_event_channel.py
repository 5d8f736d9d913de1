"""Worked examples of the service-based event channel: its content part."""

from datetime import UTC, datetime

import pytest

from palio import Advertisement, Filter, MatchIndex, Notification
from palio.language import read_filter


def test_at1_prefix_and_range_on_typed_attributes():
    load = "opterećenje poslužitelja"
    n1 = Notification({"opis": load, "trenutak": datetime(2005, 6, 1, 5, 1, 3, tzinfo=UTC), "razina": 3})
    n2 = Notification({"opis": load, "razina": 10})
    assert Filter.parse('string opis >* "opterećenje" and int razina > 2').matches(n1)
    narrow = Filter.parse('opis >* "opterećenje" and razina > 2 and razina < 7')
    assert not narrow.matches(n2)
    failed = [part.text for _, part in narrow.explain(n2).walk() if part.join == "condition" and not part]
    assert failed == ["razina < 7"]


def test_at2_the_stock_predicate():
    f = Filter.parse('(razred="dionica")&(ime="ERNT")&(cijena>1800)&(cijena<2200)')
    assert f.matches(Notification({"razred": "dionica", "ime": "ERNT", "cijena": 2000, "promjena": -10}))
    assert not f.matches(Notification({"razred": "dionica", "ime": "ERNT", "cijena": -10, "promjena": 2000}))


def test_at8_a_message_selector_of_jms():
    f = read_filter("symbol='IBM' AND količina>1000", "jms")
    assert f == Filter.parse('symbol = "IBM" and količina > 1000')
    index = MatchIndex([("P1", f)])
    assert index.match(Notification({"symbol": "IBM", "količina": 1001})) == ["P1"]
    for other in (
        {"symbol": "IBM", "količina": 1000},
        {"symbol": "SUNW", "količina": 5000},
        {"symbol": "IBM"},
        {"symbol": "IBM", "količina": "5000"},
    ):
        assert index.match(Notification(other)) == []


def test_at3_an_advertisement_with_alternatives():
    advertisement = Advertisement.parse(
        'razred = "dionica"; cijena > 0; promjena *; ime = "ERNT"; ime = "MSFT"'
    )
    for name in ("ERNT", "MSFT"):
        for change in (-10, 0.5, "up"):
            assert advertisement.covers(
                Notification({"razred": "dionica", "ime": name, "cijena": 5, "promjena": change})
            )
    assert not advertisement.covers(Notification({"razred": "dionica", "ime": "IBM", "cijena": 5}))
    assert not advertisement.covers(Notification({"razred": "dionica", "ime": "ERNT", "cijena": 0}))


@pytest.mark.parametrize(
    ("naziv", "cijena", "quantity", "expected"),
    [
        ("IBM", 1500, 6000, {"s1", "s2"}),
        ("IBM", 1500, 4000, {"s2"}),
        ("Dell", 9999, 7000, {"s3"}),
        ("Dell", 1, 6000, set()),
    ],
)
def test_at4_subscriptions_that_share_tests(naziv, cijena, quantity, expected):
    index = MatchIndex(
        [
            ("s1", 'naziv = "IBM" and cijena < 2000 and količina > 5000'),
            ("s2", 'naziv = "IBM" and cijena < 2000'),
            ("s3", 'naziv = "Dell" and količina > 6000'),
        ]
    )
    n = Notification({"naziv": naziv, "cijena": cijena, "količina": quantity})
    assert set(index.match(n)) == expected


def test_at5_topics_include_their_subtopics():
    p1 = Filter.parse('topic matches "/e-Kupovina/**"')
    p2 = Filter.parse('topic matches "/e-Kupovina/Knjige/**"')
    d1 = Notification({"topic": "/e-Kupovina/Knjige"})
    d2 = Notification({"topic": "/e-Kupovina"})
    assert [f.matches(d1) for f in (p1, p2)] == [True, True]
    assert [f.matches(d2) for f in (p1, p2)] == [True, False]
    assert p1.covers(p2)

    computing = Filter.parse('topic matches "/e-Kupovina/*/Rač*"')
    assert computing.matches(Notification({"topic": "/e-Kupovina/Knjige/Računarstvo"}))
    assert computing.matches(Notification({"topic": "/e-Kupovina/Uređaji/Računala"}))
    assert not computing.matches(Notification({"topic": "/e-Kupovina/Knjige/Romani"}))
    assert not computing.matches(Notification({"topic": "/e-Kupovina/Računala"}))


def test_at6_a_narrower_content_filter_is_covered():
    p1 = Filter.parse('razred = "knjige" & cijena < 220')
    p2 = Filter.parse('razred = "knjige" & cijena < 220 & autor = "A. S. Tanenbaum"')
    assert p1.covers(p2)
    assert not p2.covers(p1)


def test_at7_topic_and_own_filter_together():
    subscriptions = MatchIndex(
        [
            ("P1", 'topic = "/e-Burza/IBM"'),
            ("P2", 'topic = "/e-Burza/MSFT"'),
            ("P3", 'topic in ("/e-Burza/IBM", "/e-Burza/MSFT", "/e-Burza/DELL") and količina > 1000'),
            ("P3 by topics alone", 'topic matches "/e-Burza/*"'),
        ]
    )
    received: dict[str, list] = {"P1": [], "P2": [], "P3": [], "P3 by topics alone": []}
    for name in ("IBM", "MSFT", "DELL"):
        for quantity in (500, 1000, 1001, 5000):
            n = Notification({"topic": f"/e-Burza/{name}", "količina": quantity})
            for id in subscriptions.match(n):
                received[id].append(quantity)
    assert sorted(received["P3"]) == [1001] * 3 + [5000] * 3
    assert len(received["P1"]) == len(received["P2"]) == 4
    assert len(received["P3"]) < len(received["P3 by topics alone"]) == 12
