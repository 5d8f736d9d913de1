"""A journal in a lake, read without Spark: page by page, in order, and always as the lake is now."""

import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palio.model.errors import MissingDependency
from palio.model.filter import Filter
from palio.model.notification import Notification
from palio.routing.durable.effects import Read, Trim
from palio.routing.occurrences import Failed, Found
from palio.store import Journal
from palio.store.lake import reading
from palio.store.lake.errors import LakeBehind, LakeDamaged, NoLake, WrongLake
from palio.store.lake.manifests import Lake, LakeChange
from palio.store.records import encode_body
from tests.slices import examples
from tests.store.driving import Driven, append

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")

MIDNIGHT = 1_700_006_400.0
EVERYTHING = Filter.parse("true")
PLENTY = {"limit": 10_000, "limit_bytes": 1 << 30}


def write(place, events, *, journal="b"):
    """Bring events to a lake as an archive does, in one version: sequence, time, content."""
    from palio.spark.lake.files import write_events
    from palio.spark.source.rows import events_of

    lake = Lake(place)
    state = lake.create()
    rows = [
        (sequence, time, "p", content.id, encode_body(content.body), None) for sequence, time, content in events
    ]
    files = tuple(write_events(lake.root, pa.Table.from_batches([events_of(journal, rows)])))
    return lake.commit(state, LakeChange("archive", files, (), {journal: rows[-1][0]}))


def numbered(first, last, step=1.0):
    return [
        (n, MIDNIGHT + step * n, Notification({"class": f"c{n % 4}", "n": n}, id=f"e{n}"))
        for n in range(first, last + 1)
    ]


def test_what_was_committed_is_the_version_that_is_read(tmp_path):
    committed = write(tmp_path / "lake", numbered(1, 9))
    assert committed == Lake(tmp_path / "lake").state()


def pages(archive, filter=EVERYTHING, *, after=0, upto=10**9, trimmed=10**9, **options):
    """All pages up to the end: what was found, and where each page ended."""
    found, ends = [], []
    while after < min(upto, trimmed):
        page = archive.page(filter, after=after, upto=upto, trimmed=trimmed, **(PLENTY | options))
        assert page.upto > after
        assert all(after < row[0] <= page.upto for row in page.rows)
        after = page.upto
        found += page.rows
        ends.append(after)
    return found, ends


@given(st.data())
@examples(50)
def test_pages_have_what_an_oracle_says(tmp_path_factory, data):
    place = tmp_path_factory.mktemp("lake")
    events, sequence, time = [], 0, MIDNIGHT
    for size in data.draw(st.lists(st.integers(1, 60), min_size=1, max_size=4), "archives"):
        several = []
        for _ in range(size):
            sequence += data.draw(st.sampled_from((1, 1, 1, 4)))  # some were forgotten
            time += data.draw(st.sampled_from((0.0, 0.25, 40_000.0, -50_000.0)))
            content = {"class": data.draw(st.sampled_from("abc")), "x": data.draw(st.integers(0, 5))}
            several.append((sequence, time, Notification(content, priority=data.draw(st.integers(0, 9)))))
        write(place, several)
        events += several
    filter = Filter.parse(data.draw(st.sampled_from(("true", "x > 2", 'class = "b"', "x = 9"))))
    since = data.draw(st.sampled_from((0.0, MIDNIGHT, time, time + 1)))
    after, upto = data.draw(st.integers(0, sequence)), data.draw(st.integers(1, sequence))
    limit = data.draw(st.integers(1, 30))
    found, _ = pages(
        reading.Archive(str(place), "b"),
        filter,
        after=after,
        upto=upto,
        trimmed=sequence,
        limit=limit,
        since=since,
    )
    expected = [
        (number, moment, "p", content)
        for number, moment, content in events
        if after < number <= upto and moment >= since and filter.matches(content)
    ]
    assert found == expected
    assert [row[3].priority for row in found] == [row[3].priority for row in expected]


def test_a_page_ends_at_its_limits_and_the_next_goes_on(tmp_path):
    write(tmp_path, numbered(1, 500))
    archive = reading.Archive(str(tmp_path), "b")
    found, ends = pages(archive, trimmed=450, limit=100)
    assert [row[0] for row in found] == list(range(1, 451))
    assert ends == [100, 200, 300, 400, 450]
    size = found[0][3].body.size
    assert pages(archive, trimmed=450, limit_bytes=10 * size)[1][:3] == [10, 20, 30]


def test_a_long_search_is_told_in_parts(tmp_path, monkeypatch):
    monkeypatch.setattr("palio.store.lake.events.MAX_BATCH", 50)
    write(tmp_path, [(n, MIDNIGHT, Notification({"n": n})) for n in range(1, 501)])
    archive = reading.Archive(str(tmp_path), "b", clock=iter(range(10**6)).__next__)
    found, ends = pages(archive, Filter.parse("n = 499"), trimmed=500)
    assert [row[0] for row in found] == [499]
    assert len(ends) > 5, "each look at the clock finds that time is over"


def test_somebody_who_goes_on_does_not_begin_anew(tmp_path, monkeypatch):
    from palio.store.lake import events as module

    opened = []
    whole = module._LakeFile.open
    monkeypatch.setattr(
        module._LakeFile, "open", lambda file, *place: (opened.append(file), whole(file, *place))
    )
    write(tmp_path, numbered(1, 400))  # four classes
    archive = reading.Archive(str(tmp_path), "b")
    pages(archive, trimmed=400, limit=10)
    assert len(opened) == 4
    for _ in range(3):
        archive.page(EVERYTHING, after=0, upto=400, trimmed=400, limit=1, limit_bytes=1)
    assert len(archive._open) == 1, "others at the same place take its place"
    for after in range(30):
        archive.page(EVERYTHING, after=after, upto=400, trimmed=400, limit=5, limit_bytes=1 << 20)
    assert len(archive._open) <= reading.MAX_OPEN


def test_a_new_version_counts_at_once(tmp_path):
    state = write(tmp_path, numbered(1, 100))
    lake, archive = Lake(tmp_path), reading.Archive(str(tmp_path), "b")
    assert archive.page(EVERYTHING, after=0, upto=100, trimmed=100, limit=10, limit_bytes=1 << 20).upto == 10
    gone = [file.path for file in state.files.values() if file.kind == "c1"]
    lake.commit(state, LakeChange("forget", (), tuple(gone)))
    rest, _ = pages(archive, after=10, trimmed=100)
    assert [row[0] for row in rest] == [n for n in range(11, 101) if n % 4 != 1]


def test_what_the_lake_says_of_a_journal_decides(tmp_path):
    with pytest.raises(NoLake):
        pages(reading.Archive(str(tmp_path), "b"))
    with pytest.raises(WrongLake):
        reading.Archive("s3://bucket/lake", "b")
    state = write(tmp_path, numbered(11, 60))
    assert pages(reading.Archive(str(tmp_path), "unknown"), trimmed=40) == ([], [40])
    archive = reading.Archive(str(tmp_path), "b")
    assert [row[0] for row in pages(archive, trimmed=40)[0]] == list(range(11, 41))
    with pytest.raises(LakeBehind, match="up to 60, and the journal itself begins with 71") as behind:
        pages(archive, trimmed=70)
    assert (behind.value.upto, behind.value.trimmed) == (60, 70)
    (tmp_path / next(iter(state.files))).unlink()
    with pytest.raises(LakeDamaged, match="cannot be read"):
        pages(archive, trimmed=60)


def test_large_events_do_not_come_all_at_once(tmp_path, monkeypatch):
    """Of large rows a batch has few: what is in memory does not grow with files or row groups."""
    from palio.store.lake import events as module

    write(tmp_path, [(n, MIDNIGHT, Notification({"n": n, "x": "y" * 50_000})) for n in range(1, 301)])
    sizes = []
    take = module.LakeEvents._take

    def taken(events, file, batch):
        sizes.append(batch.nbytes)
        take(events, file, batch)

    monkeypatch.setattr(module.LakeEvents, "_take", taken)
    found, _ = pages(reading.Archive(str(tmp_path), "b"), trimmed=300, limit=64)
    assert len(found) == 300
    assert max(sizes) < 2 * module.BATCH_BYTES


# The store


@pytest.fixture
def trimmed(file_url, tmp_path):
    """A store with a lake: 1 to 80 are archived, 1 to 60 are trimmed."""
    place = str(tmp_path / "lake")
    write(place, numbered(1, 80))
    with Driven(file_url, lake=place) as driven:
        driven.do(append(900, 1, 100))
        driven.store.submit((Trim(60),))
        driven.wait_for(lambda: driven.store.statistics().trimmed == 60)
        yield driven


def read(driven, after, upto, **options):
    """Read up to the end, as the core does."""
    found, token = [], 1_000
    while after < upto:
        token += 1
        [answer] = driven.do(Read(token, EVERYTHING, after, upto, **({"limit": 7} | options)))
        assert isinstance(answer, Found), answer
        assert answer.upto > after
        found += [envelope.sequence for envelope in answer.envelopes]
        after = answer.upto
    return found


def test_lake_and_journal_meet_exactly_at_the_cut(trimmed):
    assert read(trimmed, 0, 100) == list(range(1, 101))
    assert read(trimmed, 58, 62) == [59, 60, 61, 62]
    assert read(trimmed, 60, 100) == list(range(61, 101))
    assert trimmed.recovered.archived
    statistics = trimmed.store.lake_statistics()
    assert (statistics.failures, statistics.events) == (0, 62)


def test_the_same_page_is_read_once_for_all_who_ask(trimmed, monkeypatch):
    going_on, asked = threading.Event(), []
    page = reading.Archive.page

    def slow(archive, filter, **options):
        asked.append(options["after"])
        assert going_on.wait(20)
        return page(archive, filter, **options)

    monkeypatch.setattr(reading.Archive, "page", slow)
    trimmed.store.submit([Read(n, EVERYTHING, 0, 60, 5) for n in range(1, 51)])
    trimmed.wait_for(lambda: len(asked) == 1)
    trimmed.do(append(901, 101))  # the journal does not wait for the lake
    going_on.set()
    answers = trimmed.wait_for_answers(len(trimmed.answers) + 50)[-50:]
    assert sorted(answer.token for answer in answers) == list(range(1, 51))
    assert {answer.envelopes[-1].sequence for answer in answers} == {5}
    assert asked == [0]


def test_what_cannot_be_read_is_told_and_the_store_goes_on(trimmed, tmp_path):
    (tmp_path / "lake").rename(tmp_path / "away")
    [failed] = trimmed.do(Read(1, EVERYTHING, 0, 60, 5))
    assert isinstance(failed, Failed)
    assert "lake" in failed.reason
    assert trimmed.store.lake_statistics().failures == 1
    assert read(trimmed, 60, 100) == list(range(61, 101))
    (tmp_path / "away").rename(tmp_path / "lake")
    assert read(trimmed, 0, 100) == list(range(1, 101))


def test_a_journal_without_its_broker_goes_on_in_the_lake(trimmed, file_url, tmp_path):
    place = str(tmp_path / "lake")
    with Journal(file_url, lake=place) as journal:
        assert journal.range().first == 61
        assert [entry.sequence for entry in journal.read()] == list(range(1, 101))
        assert [entry.sequence for entry in journal.read(after=50, upto=70)] == list(range(51, 71))
        assert [entry.sequence for entry in journal.read(upto=20)] == list(range(1, 21))
        some = journal.read(Filter.parse("n < 5"), since=MIDNIGHT + 2, until=MIDNIGHT + 4)
        assert [(entry.sequence, entry.publisher) for entry in some] == [(2, "p"), (3, "p")]
    with Journal(file_url) as journal:
        assert [entry.sequence for entry in journal.read()] == list(range(61, 101))


def test_a_broker_without_arrow_says_what_is_missing(file_url, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingDependency, match=r"palio\[arrow\]"):
        Driven(file_url, lake=str(tmp_path))
    Driven(file_url).store.close()
