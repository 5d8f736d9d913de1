"""The operation log of every store, beside a list that is cut by the same bounds in the plainest way."""

from __future__ import annotations

import random
from typing import Any

import pytest

from palio.routing.durable.effects import OUT_OF_ORDER, Append, LogBounds, LoggedOperation
from palio.routing.occurrences import Failed, Stored
from palio.store import NoSuchJournal
from palio.store.operation_reading import OperationQuery, OperationReader
from tests.store.driving import Driven, Place, append, envelope
from tests.store.test_schema import create_version_1
from tests.store.test_trouble import LARGE, Quota

ALL = OperationQuery()


def row(at: float, kind: str = "publish", **more: Any) -> LoggedOperation:
    usual = {
        "binding": "palio",
        "principal": "anna",
        "session": "s",
        "subject": "",
        "bytes": 9,
        "result": "done",
    }
    return LoggedOperation(at, kind=kind, **(usual | more))


def logging(token: int, *rows: LoggedOperation) -> Append:
    return Append(token, (), "", (), rows)


def everything(driven: Driven, wanted: OperationQuery = ALL, limit: int = 1_000) -> list[LoggedOperation]:
    """All that is wanted, page by page; forwards and backwards are the same."""
    found: list[LoggedOperation] = []
    after: int | None = 0
    while after is not None:
        page = driven.store.operations(wanted, after=after, limit=limit)
        found += page.rows
        after = page.onward
    back: list[LoggedOperation] = []
    page = driven.store.last_operations(wanted, limit=limit)
    back[:0] = page.rows
    while page.onward is not None:
        page = driven.store.last_operations(wanted, before=page.onward, limit=limit)
        back[:0] = page.rows
    assert back == found
    return found


def told(rows: list[LoggedOperation]) -> list[tuple[Any, ...]]:
    return [
        (one.number, one.time, one.principal, one.kind, one.result, one.reason, one.sequence) for one in rows
    ]


def test_rows_come_with_what_they_tell_or_not_at_all(place: Place) -> None:
    with Driven(place) as driven:
        good = Append(1, (envelope(1),), "p", (), (row(1.0, sequence=1, events=1),))
        wrong = Append(2, (envelope(7),), "p", (), (row(2.0, sequence=7, events=1),))
        answers = driven.do(good, wrong, logging(3, row(3.0, "subscribe", reason="\0 and \\", session="s\0")))
        assert [type(answer) for answer in answers] == [Stored, Failed, Stored]
    with Driven(place) as driven:
        assert told(everything(driven)) == [
            (1, 1.0, "anna", "publish", "done", "", 1),
            (2, 3.0, "anna", "subscribe", "done", "\0 and \\", 0),
        ]
        assert everything(driven)[1].session == "s\0"
        driven.do(logging(4, row(4.0)))
        assert [one.number for one in everything(driven)] == [1, 2, 3]


def test_what_has_no_room_leaves_no_row(file_url: str) -> None:
    with Driven(file_url) as driven:
        quota = Quota(driven)
        driven.do(Append(1, (envelope(1, payload=LARGE),), "p", (), (row(1.0, sequence=1),)))
        quota.set(1)
        driven.do(Append(2, (envelope(2, payload=LARGE * 9),), "p", (), (row(2.0, sequence=2),)))
        quota.set(2**30)
        driven.do(Append(3, (envelope(2),), "p", (), (row(3.0, sequence=2),)))
        assert [(one.time, one.sequence) for one in everything(driven)] == [(1.0, 1), (3.0, 2)]


@pytest.mark.parametrize("seed", range(2))
def test_any_question_is_answered_as_by_a_list(place: Place, seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    known: list[LoggedOperation] = []
    now = 1_000.0
    with Driven(place) as driven:
        for token in range(1, 30):
            rows = []
            for _ in range(chance.randrange(1, 8)):
                now += chance.choice([0.0, 1.0, 50.0, 400.0])
                rows.append(
                    row(
                        now - chance.choice([0.0, 0.0, 5.0, OUT_OF_ORDER - 1]),
                        chance.choice(["publish", "subscribe", "inspect"]),
                        principal=chance.choice(["anna", "bruno"]),
                        result=chance.choice(["done", "refused", "unanswered"]),
                        binding=chance.choice(["palio", "http"]),
                    )
                )
            known += rows
            driven.do(logging(token, *rows))
        for _ in range(15):
            times = sorted([chance.uniform(900.0, now + 100.0), chance.uniform(900.0, now + 100.0)])
            wanted = OperationQuery(
                chance.choice([None, "anna", "nobody"]),
                chance.choice([(), ("publish",), ("publish", "inspect")]),
                chance.choice([(), ("refused",), ("done", "unanswered")]),
                chance.choice([(), ("http",)]),
                chance.choice([None, times[0]]),
                chance.choice([None, times[1]]),
            )
            expected = [
                (one.time, one.kind)
                for one in known
                if wanted.principal in (None, one.principal)
                and one.kind in (wanted.kinds or (one.kind,))
                and one.result in (wanted.results or (one.result,))
                and one.binding in (wanted.bindings or (one.binding,))
                and (wanted.since is None or one.time >= wanted.since)
                and (wanted.until is None or one.time < wanted.until)
            ]
            found = everything(driven, wanted, chance.choice([7, 1_000]))
            assert [(one.time, one.kind) for one in found] == expected, wanted


def test_a_look_goes_through_few_rows_and_the_next_one_goes_on(place: Place, monkeypatch: Any) -> None:
    monkeypatch.setattr("palio.store.operation_reading.MOST_SCANNED", 10)
    with Driven(place) as driven:
        driven.do(logging(1, *[row(float(n), "rare" if n in (3, 44, 45) else "publish") for n in range(50)]))
        for limit in (1, 2, 100):
            assert [one.time for one in everything(driven, OperationQuery(kinds=("rare",)), limit)] == [
                3,
                44,
                45,
            ]


@pytest.mark.parametrize("bounds", [LogBounds(keep=50.0), LogBounds(size=5_000), LogBounds(keep=1.0, size=1)])
def test_it_is_bounded_by_time_and_by_size(place: Place, bounds: LogBounds, monkeypatch: Any) -> None:
    monkeypatch.setattr("palio.store.operations.MIN_SWEPT", 5)
    known: list[LoggedOperation] = []
    for life in range(2):
        with Driven(place, log_bounds=bounds) as driven:
            for token in range(1, 60):
                one = row(1_000.0 + 60 * life + token)
                known.append(one)
                driven.do(logging(token, one))
            found = everything(driven)
            assert [one.time for one in found] == [one.time for one in known[-len(found) :]]
            assert found[-1].number == len(known)
            kept = [one for one in known if one.time >= known[-1].time - bounds.keep]
            while len(kept) > 1 and sum(one.size for one in kept) > bounds.size:
                kept.pop(0)
            assert len(kept) <= len(found) <= len(kept) + 1


def test_a_clock_that_was_set_back_is_followed_so_far_only(place: Place) -> None:
    with Driven(place) as driven:
        driven.do(logging(1, row(10_000.0), row(10.0), row(9_900.0)))
        assert [one.time for one in everything(driven)] == [10_000.0, 10_000.0 - OUT_OF_ORDER, 9_900.0]
        assert len(everything(driven, OperationQuery(since=9_950.0))) == 1


def test_it_is_read_beside_a_broker_and_by_the_name_of_one(url: str) -> None:
    with Driven(url) as driven:
        driven.do(logging(1, row(1.0), row(2.0, "attach")))
        reader = OperationReader(url)
        assert (reader.broker, reader.range()) == ("b", (1, 2))
        assert [one.kind for one in reader.page(ALL, 1, 10).rows] == ["attach"]
        with pytest.raises(NoSuchJournal):
            OperationReader(url, "nobody")


def test_an_older_store_gets_one(url: str) -> None:
    create_version_1(url)
    with Driven(url) as driven:
        assert everything(driven) == []
        driven.do(append(1, 9_001), logging(2, row(1.0)))
        assert [one.number for one in everything(driven)] == [1]
