"""Numbers of a demanded type, times and prefixes are looked up and swept like plain numbers and equalities."""

import random
from datetime import UTC, datetime, timedelta

import pytest

import palio
from palio.matching import oracle
from tests.slices import sliced

pytest.importorskip("palio.matching.core")
pyarrow = pytest.importorskip("pyarrow")

START = datetime(2026, 1, 1, tzinfo=UTC)
WORDS = ("a", "b", "ab", "é", "c" * 30)


def path(draw: random.Random, depth: int) -> str:
    return "/".join(draw.choice(WORDS) for _ in range(depth))


def condition(draw: random.Random) -> str:
    low = draw.randrange(100)
    moment = START + timedelta(minutes=low)
    return draw.choice(
        (
            f"int x between {low} and {low + 9}",
            f"int x >= {low}",
            f"int x = {low}",
            f"float x < {low}",
            f"float x between {low} and {low + 9}",
            f"x between {low} and {low + 9}",
            f"at >= {moment:%Y-%m-%dT%H:%M:%SZ}",
            f"at < {moment:%Y-%m-%dT%H:%M:%SZ}",
            f'topic starts with "{path(draw, draw.randrange(1, 4))}"',
            f'topic = "{path(draw, 2)}"',
        )
    )


def text(draw: random.Random) -> str:
    return " and ".join(condition(draw) for _ in range(draw.choice((1, 1, 2))))


def event(draw: random.Random) -> dict:
    x = draw.choice((draw.randrange(110), float(draw.randrange(110)), draw.random() * 110, "7"))
    at = draw.choice((START + timedelta(seconds=draw.randrange(7_000)), 5))
    return {"x": x, "at": at, "topic": draw.choice((path(draw, draw.randrange(1, 5)), 3))}


@pytest.mark.parametrize("seed", sliced(range(3), 1))
def test_they_answer_like_the_oracle(seed):
    draw = random.Random(seed)
    entries = [(number, text(draw)) for number in range(4_000)]
    index, truth = palio.MatchIndex(entries), oracle.MatchIndex(entries)
    for id in draw.sample(range(4_000), 2_000):
        index.remove(id)
        truth.remove(id)
    for id in range(4_000, 5_000):
        filter = text(draw)
        index.add(id, filter)
        truth.add(id, filter)
    for _ in range(60):
        one = palio.Notification(event(draw))
        assert sorted(index.match(one)) == sorted(truth.match(one))


def test_tables_too(tmp_path):
    draw = random.Random(7)
    entries = [(number, text(draw)) for number in range(1_500)]
    index, truth = palio.MatchIndex(entries), oracle.MatchIndex(entries)
    index.save(tmp_path / "index")
    columns = {
        "x": [draw.randrange(110) for _ in range(300)],
        "at": [START + timedelta(seconds=draw.randrange(7_000)) for _ in range(300)],
        "topic": [path(draw, draw.randrange(1, 5)) for _ in range(300)],
    }
    wanted = [
        (row, id)
        for row, one in enumerate(zip(*columns.values(), strict=True))
        for id in truth.match(palio.Notification(dict(zip(columns, one, strict=True))))
    ]
    for matcher in (index, palio.MatchIndex.open_mapped(tmp_path / "index")):
        rows, ids = matcher.match_batch(pyarrow.table(columns))
        assert sorted(zip(rows.to_pylist(), ids.to_pylist(), strict=True)) == sorted(wanted)


@pytest.mark.parametrize(
    "filter", ["int x > {}", "float x > {} and float x < 1000", "at > 2026-01-01T00:00:00.{:06}Z"]
)
def test_many_of_one_sort_become_blocks(filter):
    index = palio.MatchIndex((number, filter.format(number)) for number in range(2_000))
    assert index.statistics().blocks > 0


def test_prefixes_are_found_by_their_text():
    index = palio.MatchIndex((number, f'topic starts with "{number:04}/"') for number in range(5_000))
    assert index.statistics().groups == 5_000
    assert index.match(palio.Notification({"topic": "0042/x"})) == [42]
    assert index.match(palio.Notification({"topic": "0042"})) == []
