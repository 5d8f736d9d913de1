"""Threads that match, match batches, add and remove at the same time do not disturb each other."""

import threading
from datetime import UTC, datetime, timedelta

import pytest

import palio
from tests.slices import sliced

pa = pytest.importorskip("pyarrow")

START = datetime(2026, 1, 1, tzinfo=UTC)
STEADY = 500


@pytest.mark.parametrize("seconds", sliced([1, 10], 1))
def test_changes_and_matching_in_several_threads(seconds):
    """Half of the filters stay; whoever matches finds all of these that it should, whatever comes and goes."""
    index = palio.MatchIndex(
        (f"steady-{number}", f'kind = "k{number % 5}" and at >= {text(number)} and price > {number % 50}')
        for number in range(STEADY)
    )
    failures: list[BaseException] = []
    stop = threading.Event()

    def guarded(work):
        def run():
            try:
                turn = 0
                while not stop.is_set():
                    work(turn)
                    turn += 1
            except BaseException as problem:  # noqa: BLE001  (it is reported by the main thread)
                failures.append(problem)
                stop.set()

        return threading.Thread(target=run)

    def change(turn):
        names = [f"passing-{turn}-{number}" for number in range(40)]
        for place, name in enumerate(names):
            index.add(name, f'kind = "k{place % 5}" and at < {text(place)} or tags has "{name}"')
        for name in names:
            index.remove(name)

    def check(found, turn):
        steady = sorted(id for id in found if id.startswith("steady"))
        assert steady == sorted(expected(turn % 50)), turn

    def match(turn):
        check(index.match(palio.Notification(event(turn % 50))), turn)

    def match_batch(turn):
        events = [event(number) for number in range(50)]
        table = pa.table({name: [one[name] for one in events] for name in events[0]})
        rows, ids = index.match_batch(table)
        by_row: dict[int, list[str]] = {number: [] for number in range(50)}
        for row, id in zip(rows.to_pylist(), ids.to_pylist(), strict=True):
            by_row[row].append(id)
        for number, found in by_row.items():
            check(found, number)

    threads = [guarded(work) for work in (change, change_other(index), match, match, match_batch, match_batch)]
    for thread in threads:
        thread.start()
    stop.wait(seconds)
    stop.set()
    for thread in threads:
        thread.join(30)
    assert not failures, failures[0]
    assert not any(thread.is_alive() for thread in threads), "a deadlock"
    assert len(index) == STEADY


def change_other(index):
    """Another one that changes, with filters of its own."""

    def change(turn):
        index.add(f"other-{turn}", "price between 1 and 40")
        index.remove(f"other-{turn}")

    return change


def text(number: int) -> str:
    return (START + timedelta(hours=number)).isoformat().replace("+00:00", "Z")


def event(number: int) -> dict:
    return {"kind": f"k{number % 5}", "at": START + timedelta(hours=number * 10), "price": number}


def expected(number: int) -> list[str]:
    return [
        f"steady-{one}"
        for one in range(STEADY)
        if one % 5 == number % 5 and one <= number * 10 and number > one % 50
    ]
