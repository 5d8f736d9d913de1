"""What a disk gives back otherwise than it was written is put aside, named and counted; never delivered."""

from __future__ import annotations

import logging

import pytest

from palio.model.filter import Filter
from palio.model.notification import Notification
from palio.protocol.durable.lineage import JournalGap
from palio.routing.durable.effects import Read, Spool, Trim
from palio.routing.occurrences import Found, Stored
from palio.store import Journal
from palio.store.aside import Aside, listed
from palio.store.checksums import WRONG_CHECKSUM, chained, checksum
from palio.store.records import decode_body
from tests.store.damage import change, damage_event, file_of, flip
from tests.store.driving import Driven, append, envelope
from tests.store.test_aside import aside_rows

EVERYTHING = Filter.parse("true")
WITHOUT = (  # as an earlier version has written them
    "UPDATE palio_journal SET checksum = NULL, chain = NULL",
    "UPDATE palio_spool SET checksum = NULL",
    "UPDATE palio_brokers SET chain = NULL",
)


def found_by(driven: Driven, after: int = 0, upto: int = 100) -> list[int]:
    (found,) = driven.do(Read(1, EVERYTHING, after, upto, 100))
    assert isinstance(found, Found)
    assert found.upto == upto
    assert not set(found.damaged) & {one.sequence for one in found.envelopes}
    return [one.sequence for one in found.envelopes]


def test_an_event_with_another_byte_is_put_aside_and_reading_goes_on(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with Driven(url) as driven:
        driven.do(append(1, 1, 9))
        assert found_by(driven) == [*range(1, 10)]
    damage_event(url, 2, 7)
    with caplog.at_level(logging.ERROR), Driven(url) as driven:
        assert driven.store.statistics().aside == 0
        assert found_by(driven) == [1, 3, 4, 5, 6, 8, 9]
        assert found_by(driven, 5) == [6, 8, 9]  # it is named once, however often it is read
        assert driven.store.statistics().aside == 2
        assert driven.do(append(2, 10)) == [Stored(2)]
        assert not driven.errors
    assert caplog.text.count("The event 'b/2' cannot be read and was put aside: Its checksum is not") == 1
    assert listed(url) == [Aside("event", "b/2", WRONG_CHECKSUM), Aside("event", "b/7", WRONG_CHECKSUM)]
    rows = [row for content in aside_rows(url) for row in content["palio_journal"]]
    bodies = [decode_body(bytes(row["body"])) for row in rows]  # type: ignore[arg-type]
    assert [dict(Notification.of_body(body).attributes)["s"] for body in bodies] == ["uext", "uext"]
    with Driven(url) as driven:
        assert driven.store.statistics().aside == 2
        assert found_by(driven, 6) == [8, 9, 10]
        driven.store.submit([Trim(5)])
        driven.wait_for(lambda: driven.store.statistics().swept == 5)
    assert [one.name for one in listed(url)] == ["b/2", "b/7"]


def test_a_read_tells_what_it_has_left_out_as_far_as_it_reaches(url: str) -> None:
    with Driven(url) as driven:
        driven.do(append(1, 1, 9))
    damage_event(url, 2, 3, 7)
    with Driven(url) as driven:
        read = [(0, 9, 100), (0, 9, 2), (3, 9, 100), (7, 9, 100)]
        found = [driven.do(Read(1, EVERYTHING, *place))[0] for place in read]
        assert [(one.upto, one.damaged) for one in found if isinstance(one, Found)] == [
            (9, (2, 3, 7)),
            (4, (2, 3)),
            (9, (7,)),
            (9, ()),
        ]


def test_deliveries_that_go_aside_are_named_as_a_gap_of_their_subscription_for_good(url: str) -> None:
    letters = tuple([(number, 0, envelope(number)) for number in range(1, 7)])
    with Driven(url) as driven:
        driven.do(Spool(1, "s", EVERYTHING, add=letters), Spool(2, "other", EVERYTHING, add=letters[:1]))
    change(url, "UPDATE palio_spool SET checksum = checksum + 1 WHERE delivery IN (2, 3, 5)")
    for _ in range(2):
        with Driven(url) as driven:
            one, other = driven.recovered.subscriptions
            assert [number for number, *_ in one.spool] == [1, 4, 6]
            assert [(gap.origin, gap.after, gap.upto, gap.what) for gap in one.gaps] == [
                ("b", 1, 3, "deliveries"),
                ("b", 4, 5, "deliveries"),
            ]
            assert other.gaps == ()
    with Driven(url) as driven:  # what is known by then is told with the rest
        driven.do(Spool(3, "s", gaps=(JournalGap("elsewhere", 3, None, 12.5),)))
    change(url, "UPDATE palio_spool SET checksum = checksum + 1 WHERE delivery = 6")
    with Driven(url) as driven:
        assert [str(gap) for gap in driven.recovered.subscriptions[0].gaps] == [
            "elsewhere after 3",
            "delivery 6 at b",
        ]


def test_rows_of_an_earlier_version_have_no_checksum_and_are_read_as_before(url: str) -> None:
    with Driven(url) as driven:
        driven.do(append(1, 1, 5), Spool(2, "s", EVERYTHING, add=((1, 0, envelope(1)),)))
    for statement in WITHOUT:
        change(url, statement)
    damage_event(url, 2)
    nothing = "x''" if url.startswith("sqlite") else "''::bytea"
    change(url, f"UPDATE palio_journal SET body = {nothing} WHERE sequence = 4")
    with Driven(url) as driven:
        assert [one.spool for one in driven.recovered.subscriptions] == [((1, 0, envelope(1)),)]
        assert found_by(driven) == [1, 2, 3, 5]  # what is no notification at all is noticed without a checksum
    assert [one.name for one in listed(url)] == ["b/4"]


def test_a_row_that_holds_the_event_of_another_is_damaged(url: str) -> None:
    with Driven(url) as driven:
        driven.do(append(1, 1, 4))
    change(
        url,
        "UPDATE palio_journal SET body = (SELECT body FROM palio_journal WHERE sequence = 1), "
        "checksum = (SELECT checksum FROM palio_journal WHERE sequence = 1) WHERE sequence = 3",
    )
    with Driven(url) as driven:
        assert found_by(driven) == [1, 2, 4]


@pytest.mark.parametrize("anything", ["NULL", "17", "'text'", "CAST(x'fffe' AS TEXT)"])
def test_a_column_of_sqlite_may_have_anything(file_url: str, anything: str) -> None:
    with Driven(file_url) as driven:
        driven.do(append(1, 1, 4))
    change(file_url, "CREATE TABLE loose AS SELECT * FROM palio_journal")
    change(file_url, "DROP TABLE palio_journal")
    change(file_url, "ALTER TABLE loose RENAME TO palio_journal")
    change(file_url, f"UPDATE palio_journal SET body = {anything} WHERE sequence = 2")
    with Driven(file_url) as driven:
        assert found_by(driven) == [1, 3, 4]
        assert not driven.errors


def test_who_reads_a_journal_beside_a_broker_is_told_and_goes_on(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with Driven(url) as driven:
        driven.do(append(1, 1, 5))
    damage_event(url, 4)
    with caplog.at_level(logging.ERROR), Journal(url) as journal:
        for _ in range(2):
            assert [entry.sequence for entry in journal.read()] == [1, 2, 3, 5]
        assert journal.damaged == {4: WRONG_CHECKSUM}
    assert caplog.text.count("The event 'b/4' in") == 1


@pytest.mark.parametrize("table", ["palio_spool", "palio_dead"])
def test_a_letter_with_another_byte_is_put_aside(file_url: str, table: str) -> None:
    letters = ((1, 0, envelope(1)), (2, 3, envelope(2)), (3, 0, envelope(3, attributes={"s": "unmistakable"})))
    with Driven(file_url) as driven:
        driven.do(Spool(1, "s", EVERYTHING, **{"add" if table == "palio_spool" else "dead": letters}))
    flip(file_of(file_url), b"unmistakable")
    with Driven(file_url) as driven:
        (subscription,) = driven.recovered.subscriptions
        assert subscription.spool + subscription.dead == letters[:2]
        assert driven.store.statistics().aside == 1
    (aside,) = listed(file_url)
    kind = "delivery" if table == "palio_spool" else "dead letter"
    assert aside == Aside(f"{kind} 3 of the durable subscription", "s", WRONG_CHECKSUM)


def test_a_letter_that_is_written_again_has_the_checksum_of_what_it_is_now(url: str) -> None:
    with Driven(url) as driven:
        driven.do(Spool(1, "s", EVERYTHING, add=((1, 0, envelope(1)),)))
        driven.do(Spool(2, "s", add=((1, 1, envelope(1, payload=b"more")),)))
    with Driven(url) as driven:
        assert driven.recovered.subscriptions[0].spool == ((1, 1, envelope(1, payload=b"more")),)


def test_a_checksum_is_that_of_the_bytes_in_their_place() -> None:
    data = bytes(range(200))
    others = [
        data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :] for at in range(200) for bit in range(8)
    ]
    assert len({checksum(one, 17) for one in [data, data[1:], *others]}) == 1_602
    sums = {checksum(data, number) for number in range(1_000)}
    assert len(sums) == 1_000
    assert all(0 <= one < 1 << 32 for one in sums)


def test_a_link_of_a_chain_is_about_all_that_it_is_made_of() -> None:
    plain = (7, 3, [1.0, 2.0], ["p", "q"], [5, 6])
    others = [
        (8, 3, [1.0, 2.0], ["p", "q"], [5, 6]),
        (7, 4, [1.0, 2.0], ["p", "q"], [5, 6]),
        (7, 3, [1.0, 2.5], ["p", "q"], [5, 6]),
        (7, 3, [1.0, 2.0], ["p", "r"], [5, 6]),
        (7, 3, [1.0, 2.0], ["p", "q"], [6, 5]),
        (7, 3, [1.0], ["p"], [5]),
    ]
    links = [chained(*one) for one in [plain, plain, *others]]
    assert links[0] == links[1]
    assert len({*links}) == len(others) + 1
    assert all(-(1 << 63) <= link < 1 << 63 for link in links)
