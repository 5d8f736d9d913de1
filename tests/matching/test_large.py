"""Groups that grow, split and shrink: enough filters for blocks, merges and compaction, against the oracle."""

import random

import pytest

import palio
from palio.matching import oracle
from tests.slices import sliced

pytest.importorskip("palio.matching.core")
pyarrow = pytest.importorskip("pyarrow")


def condition(draw: random.Random) -> str:
    name = draw.choice("uvwxyz")
    low = draw.randrange(100)
    return draw.choice(
        (
            f"{name} between {low} and {low + draw.randrange(60)}",
            f"{name} between {low} and {low + draw.randrange(60)}",
            f"{name} > {low}",
            f"{name} <= {low}.5",
            f"{name} = {low // 10}",
            f'k = "{draw.randrange(3)}"',
            f'l = "{draw.randrange(40)}"',
            f'm in ("{draw.randrange(9)}", "{draw.randrange(9)}")',
            f"{name} != {low}",
            f"int {name} < {low}",
            f'm starts with "{draw.randrange(9)}"',
            f"absent({name})",
        )
    )


def text(draw: random.Random) -> str:
    joined = " and ".join(condition(draw) for _ in range(draw.randrange(1, 5)))
    return joined if draw.random() < 0.9 else f"({joined}) or {condition(draw)}"


def event(draw: random.Random) -> dict:
    values = {name: draw.choice((draw.randrange(110), draw.random() * 110)) for name in "uvwxyz"}
    values |= {"k": str(draw.randrange(3)), "l": str(draw.randrange(40)), "m": str(draw.randrange(9))}
    return {name: value for name, value in values.items() if draw.random() < 0.9}


def agree(index: palio.MatchIndex, truth: oracle.MatchIndex, events: list[dict]) -> None:
    wanted = [sorted(truth.match(palio.Notification(one))) for one in events]
    assert [sorted(index.match(palio.Notification(one))) for one in events] == wanted
    names = [*"uvwxyz", "k", "l", "m"]
    columns = {
        name: pyarrow.array([one.get(name) for one in events], pyarrow.float64() if name in "uvwxyz" else None)
        for name in names
    }
    floats = [{name: float(v) if name in "uvwxyz" else v for name, v in one.items()} for one in events]
    wanted = [sorted(truth.match(palio.Notification(one))) for one in floats]
    rows, ids = index.match_batch(pyarrow.table(columns))
    found: list[list[int]] = [[] for _ in events]
    for row, id in zip(rows.to_pylist(), ids.to_pylist(), strict=True):
        found[row].append(id)
    assert [sorted(one) for one in found] == wanted
    assert rows.to_pylist() == sorted(rows.to_pylist())


@pytest.mark.parametrize("seed", sliced(range(3), 1))
def test_thousands_of_filters_added_and_removed(seed):
    draw = random.Random(seed)
    start = [(number, palio.Filter.parse(text(draw))) for number in range(3_000)]
    index, truth = palio.MatchIndex(start), oracle.MatchIndex(start)
    agree(index, truth, [event(draw) for _ in range(40)])
    following = 3_000
    for _ in range(4):
        for _ in range(1_200):
            filter = palio.Filter.parse(text(draw))
            index.add(following, filter)
            truth.add(following, filter)
            following += 1
        for id in draw.sample(list(truth), 1_500):
            index.remove(id)
            truth.remove(id)
        agree(index, truth, [event(draw) for _ in range(12)])
    for id in list(truth):
        index.remove(id)
    assert index.statistics().index_bytes > 0
    assert (index.statistics().groups, index.statistics().blocks, index.statistics().values) == (0, 0, 0)


@pytest.mark.parametrize("rows", [1, 7, 255, 256, 257, 700])
def test_tiles_of_every_size(rows):
    draw = random.Random(rows)
    index = palio.MatchIndex(
        (number, f"x between {number % 50} and {number % 50 + number % 13}") for number in range(900)
    )
    values = [draw.random() * 60 for _ in range(rows)]
    found, _ = index.match_batch(pyarrow.table({"x": values}))
    wanted = [row for row, x in enumerate(values) for n in range(900) if n % 50 <= x <= n % 50 + n % 13]
    assert found.to_pylist() == wanted


def test_all_kinds_of_kernels_agree():
    from palio.matching.core import use_kernels

    draw = random.Random(5)
    mixed = palio.MatchIndex((number, text(draw)) for number in range(2_000))
    events = [palio.Notification(event(draw)) for _ in range(30)]
    ranges = ((number, f"x > {draw.random()} and y < {draw.random()}") for number in range(3_000))
    dense = palio.MatchIndex(ranges)  # an event satisfies any share of those that lie side by side
    table = pyarrow.table({name: [draw.random() for _ in range(300)] for name in "xy"})
    found = []
    try:
        for width in range(3):
            use_kernels(width)
            alone = [sorted(mixed.match(one)) for one in events]
            rows, ids = dense.match_batch(table)
            found.append((alone, sorted(zip(rows.to_pylist(), ids.to_pylist(), strict=True))))
    finally:
        use_kernels(2)
    assert found[0][0]
    assert len(found[0][1]) > 100_000
    assert found[1] == found[0]
    assert found[2] == found[0]


@pytest.mark.parametrize("greatest", [0, 2**32 - 1, 2**32, 2**63 - 1])
def test_ids_of_any_size_come_out_of_a_batch(greatest):
    """Some ids are small, some are not, one is negative: in one index, and among the matches of one event."""
    ids = [greatest - number if number % 3 else number for number in range(2_000)] + [-5]
    index = palio.MatchIndex((id, f"x > {place % 100}") for place, id in enumerate(dict.fromkeys(ids)))
    table = pyarrow.table({"x": [float(value) for value in range(100)]})
    rows, found = index.match_batch(table)
    batch: dict[int, set[int]] = {row: set() for row in range(100)}
    for row, id in zip(rows.to_pylist(), found.to_pylist(), strict=True):
        batch[row].add(id)
    for row in range(100):
        assert batch[row] == {id for place, id in enumerate(dict.fromkeys(ids)) if row > place % 100}


def test_batches_run_beside_each_other_and_beside_changes():
    from concurrent.futures import ThreadPoolExecutor

    draw = random.Random(7)
    index = palio.MatchIndex((number, f"x > {number % 100}") for number in range(5_000))
    table = pyarrow.table({"x": [draw.random() * 100 for _ in range(500)]})
    wanted = len(index.match_batch(table)[0])
    with ThreadPoolExecutor(3) as pool:
        running = [pool.submit(index.match_batch, table) for _ in range(12)]
        for number in range(200):
            index.add(("extra", number), "x > 1000")
            index.remove(("extra", number))
        assert {len(one.result()[0]) for one in running} == {wanted}


def uneven(draw: random.Random) -> float:
    return draw.choice((7.0, draw.random(), draw.lognormvariate(0, 4), -(10.0 ** draw.randrange(-300, 300))))


@pytest.mark.parametrize(("seed", "names"), [(0, 3), (1, 20), (2, 70)])
def test_uneven_values_over_few_and_many_attributes(seed, names):
    """Blocks of many sets of attributes; outliers, repeated values, and ranges open on one side."""
    draw = random.Random(seed)
    filters = []
    for number in range(3_000):
        parts = []
        for name in draw.sample(range(names), draw.randrange(1, 4)):
            low, high = sorted((uneven(draw), uneven(draw)))
            between = f"a{name} between {low!r} and {high!r}"
            parts.append(draw.choice((between, between, f"a{name} >= {low!r}", f"a{name} < {high!r}")))
        filters.append((number, palio.Filter.parse(" and ".join(parts))))
    index, truth = palio.MatchIndex(filters[:2_000]), oracle.MatchIndex(filters[:2_000])
    for step in range(2):
        events = [{f"a{i}": uneven(draw) for i in range(names) if draw.random() < 0.95} for _ in range(30)]
        wanted = [sorted(truth.match(palio.Notification(one))) for one in events]
        assert any(wanted)
        assert [sorted(index.match(palio.Notification(one))) for one in events] == wanted
        columns = {f"a{i}": [one.get(f"a{i}") for one in events] for i in range(names)}
        rows, ids = index.match_batch(pyarrow.table(columns))
        pairs = sorted(zip(rows.to_pylist(), ids.to_pylist(), strict=True))
        assert pairs == [(row, id) for row, found in enumerate(wanted) for id in found]
        if not step:
            for id, filter in filters[2_000:]:
                index.add(id, filter)
                truth.add(id, filter)
            for id in draw.sample(range(3_000), 1_200):
                index.remove(id)
                truth.remove(id)
