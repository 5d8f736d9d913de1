"""Lakes of journals that came back older: each event once, none taken for another, and none left out."""

import sqlite3

import msgspec
import pytest

import palio.spark
from palio.model.filter import Filter
from palio.routing.durable.effects import SaveFact, Trim
from palio.routing.durable.facts import FactKind
from palio.spark import jobs
from palio.spark.errors import JournalForked, SourceChanged
from palio.spark.lake.archiving import archive, reader_of, waiting
from palio.spark.lake.rewriting import compact, forget, read_events
from palio.spark.matching.runs import match_new, matches
from palio.spark.tables.pieces import cut
from palio.spark.tables.positions import InJournals, InLake
from palio.store import Journal
from palio.store.lake.errors import LakeBehind
from palio.store.lake.manifests import FORMAT, Lake
from palio.store.lake.reading import Archive
from tests.spark.filling import backup, come_back, fill, numbers
from tests.store.driving import Driven

pytest.importorskip("pyspark", reason="pyspark is not installed")

EVERYTHING = Filter.parse("true")


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/palio.db"


@pytest.fixture
def place(tmp_path):
    return str(tmp_path / "lake")


def xs(frame):
    return sorted(palio.Notification.decode(bytes(row.payload))["x"] for row in frame.collect())


@pytest.fixture
def forked(spark, url, place):
    """A journal that came back older than the lake has it: 1 to 20, then 21 to 30 and now 101 to 115."""
    fill(url, numbers(20, 1))
    copy = backup(url)
    fill(url, numbers(10, 21))
    archive(spark, url, place)
    come_back(url, copy)
    fill(url, numbers(15, 101))
    return copy


ALL = [*range(1, 31), *range(101, 116)]


def test_a_lake_goes_on_where_the_journal_was_the_same(spark, url, place, forked, caplog):
    assert waiting(url, place) == 15
    done = archive(spark, url, place)
    (gap,) = done.gaps
    assert (done.events, gap.origin, gap.after, gap.upto) == (15, "b", 30, None)
    assert "'b' came back older than it was: what it had after 30 may be missing" in caplog.text
    state = Lake(place).state()
    ((fork,),) = state.forks.values()
    assert (state.positions, fork.after, fork.upto) == ({"b": 35}, 20, 30)
    lake = palio.spark.read_lake(spark, place)
    assert xs(lake) == ALL
    rows = {(row.journal, row.sequence, row.branch) for row in lake.collect()}
    assert len(rows) == len(ALL), "with the branch each has a name of its own"
    assert {row[1] for row in rows if row[2] is not None} == set(range(21, 31))
    again = archive(spark, url, place)
    assert (again.events, again.gaps) == (0, ())


def test_brokers_that_answer_from_a_lake_give_what_is_in_their_journal(spark, url, place, forked):
    with Driven(url) as driven:
        lineage = driven.recovered.lineage
    before = Archive(place, "b")
    before.lineage = lineage
    assert before.position() == 20, "the lake has not met the journal yet"
    with pytest.raises(LakeBehind, match="has the journal 'b' up to 20"):
        list(before.read(EVERYTHING, after=0, upto=25))
    archive(spark, url, place)
    expected = [*range(1, 21), *range(101, 116)]
    found = [(row[0], row[3]["x"]) for row in before.read(EVERYTHING, after=0, upto=35)]
    assert found == list(enumerate(expected, 1))
    found = [row[3]["x"] for row in before.read(EVERYTHING, after=18, upto=30)]
    assert found == expected[18:30]
    with Driven(url) as driven:
        driven.store.submit((Trim(33),))
        driven.wait_for(lambda: driven.store.statistics().trimmed == 33)
    with Journal(url, lake=place) as journal:
        assert [entry.notification["x"] for entry in journal.read()] == expected


def test_nothing_is_trimmed_that_the_lake_does_not_have(spark, url, place, forked):
    def trimmed():
        with Driven(url) as driven:
            driven.do(Trim(10**6), SaveFact(1, FactKind.HELD.of("somebody"), 10**6))
            return driven.store.statistics().trimmed

    def stop(step):
        if step == "held":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        archive(spark, url, place, step=stop)
    assert trimmed() == 20
    assert archive(spark, url, place).events == 15
    assert trimmed() == 35


def test_history_is_all_that_was_published_once_the_lake_has_met_the_journal(spark, url, place, forked):
    with pytest.raises(Exception, match="came back older than it was: what is wanted of it up to 30"):
        palio.spark.history(spark, place, url).collect()
    archive(spark, url, place)
    fill(url, numbers(5, 116))
    assert xs(palio.spark.history(spark, place, url)) == [*ALL, *range(116, 121)]
    few = palio.spark.history(spark, place, url, filter="x > 25", schema="x int, _branch string")
    rows = few.collect()
    assert sorted(row.x for row in rows) == [*range(26, 31), *range(101, 121)]
    assert {row.x for row in rows if row._branch is not None} == set(range(101, 111))
    looked = jobs.backtest(spark, "x > 25", place, journals=url, every="1d")
    assert (looked.found, looked.total("events")) == (25, 50)


def test_what_is_put_together_or_forgotten_stays_in_its_branch(spark, url, place, forked):
    archive(spark, url, place)
    fill(url, numbers(3, 116))
    archive(spark, url, place)
    compact(spark, place)
    state, root = Lake(place).state(), Lake(place).root
    by_branch = {file.branch: read_events(root, file)["sequence"].to_pylist() for file in state.events()}
    assert by_branch == {0: [*range(1, 31)], 1: [*range(21, 39)]}
    assert forget(spark, place, Filter.parse("x = 30 or x = 105")).events == 2
    assert xs(palio.spark.read_lake(spark, place)) == sorted({*ALL, 116, 117, 118} - {30, 105})
    reader = Archive(place, "b")
    found = [row[3]["x"] for row in reader.read(EVERYTHING, after=19, upto=38)]
    assert found == [20, *sorted({*range(101, 119)} - {105})]


def test_a_journal_comes_back_older_again_and_again(spark, url, place, forked):
    copy = forked
    archive(spark, url, place)
    between = backup(url)
    expected = [*ALL]
    for number, file in enumerate([between, copy, copy], 2):
        fill(url, numbers(4, 100 * number + 50))
        archive(spark, url, place)
        expected += range(100 * number + 50, 100 * number + 54)
        come_back(url, file if file == between else copy)
        fill(url, numbers(6, 100 * (number + 1)))
        expected += range(100 * (number + 1), 100 * (number + 1) + 6)
        archive(spark, url, place)
    assert xs(palio.spark.read_lake(spark, place)) == sorted(expected)
    lake = palio.spark.read_lake(spark, place)
    assert lake.select("journal", "sequence", "branch").distinct().count() == len(expected)
    found = [row[3]["x"] for row in Archive(place, "b").read(EVERYTHING, after=0, upto=26)]
    assert found == [*range(1, 21), *range(500, 506)]


def test_a_lake_of_before_is_believed_and_refused_where_it_cannot_be(spark, url, place, forked):
    def as_before(place):
        """The manifests as they were written before there were lineages."""
        for path in (Lake(place).root / "_palio").glob("*.json"):
            document = msgspec.json.decode(path.read_bytes())
            document.pop("lineages", None)
            path.write_bytes(msgspec.json.encode(document | {"format": FORMAT - 1}))

    as_before(place)
    done = archive(spark, url, place)
    assert (done.events, done.gaps) == (5, ()), "it cannot know that 21 to 30 are others by now"
    assert Lake(place).state().lineages["b"], "from now on it knows"
    as_before(place)
    come_back(url, forked)
    with pytest.raises(JournalForked, match="ends with 20, and was read up to 35: it came back older"):
        archive(spark, url, place)


def test_runs_match_what_a_lake_and_a_journal_have_since(spark, url, place, tmp_path):
    filters = spark.createDataFrame([("all", "x > 0")], "subscription_id string, filter string")
    more = filters.unionAll(spark.createDataFrame([("big", "x > 25")], filters.schema))
    fill(url, numbers(20, 1))
    copy = backup(url)
    fill(url, numbers(10, 21))
    archive(spark, url, place)

    def found(folder):
        return sorted((row.event_id, row.subscription_id) for row in matches(spark, folder).collect())

    folders = {"lake": tmp_path / "of lake", "journal": tmp_path / "of journal"}
    match_new(InLake(spark, place), filters, folders["lake"])
    match_new(InJournals(spark, url), filters, folders["journal"])
    old = [f"b/{n}" for n in range(1, 31)]
    assert found(folders["lake"]) == found(folders["journal"]) == sorted((name, "all") for name in old)
    come_back(url, copy)
    fill(url, numbers(15, 101))
    archive(spark, url, place)
    (fork,) = Lake(place).state().forks["b"]
    new = [f"b@{fork.incarnation}/{n}" for n in range(21, 31)] + [f"b/{n}" for n in range(31, 36)]
    run = match_new(InLake(spark, place), filters, folders["lake"])
    assert run.found == 15
    run = match_new(InJournals(spark, url), filters, folders["journal"])
    assert (run.found, [gap.after for gap in run.gaps]) == (15, [30])
    everything = sorted((name, "all") for name in old + new)
    assert found(folders["lake"]) == found(folders["journal"]) == everything
    # What is subscribed to later is matched with all that there still is.
    match_new(InLake(spark, place), more, folders["lake"])
    match_new(InJournals(spark, url), more, folders["journal"])
    assert found(folders["lake"]) == sorted([*everything, *[(name, "big") for name in old[25:] + new]])
    assert found(folders["journal"]) == sorted([*everything, *[(name, "big") for name in new]])


def test_pieces_that_were_planned_are_read_from_the_lake_or_missed(spark, url, place, tmp_path):
    fill(url, numbers(20, 1))
    archive(spark, url, place)
    copy = backup(url)
    fill(url, numbers(10, 21))
    planned = cut(spark, place, url)
    archive(spark, url, place)
    fill(url, numbers(5, 31))
    missed = cut(spark, place, url)
    come_back(url, copy)
    fill(url, numbers(20, 101))
    archive(spark, url, place)
    assert sorted(x for piece in planned.pieces for x in xs(planned.read(spark, piece))) == [*range(1, 31)]
    with pytest.raises(SourceChanged, match="'b' came back older than it was, without"):
        [missed.read(spark, piece) for piece in missed.pieces]


def test_an_archive_that_reads_while_the_journal_comes_back_commits_nothing(spark, url, place, tmp_path):
    fill(url, numbers(20, 1))
    copy = backup(url)
    fill(url, numbers(10, 21))

    def swap(step):
        if step == "held":
            come_back(url, copy)
            fill(url, numbers(15, 101))

    with pytest.raises(Exception, match="is another one's after 20"):
        archive(spark, url, place, step=swap)
    assert Lake(place).state().positions == {}
    archive(spark, url, place)
    assert xs(palio.spark.read_lake(spark, place)) == [*range(1, 21), *range(101, 116)]
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        (held,) = connection.execute("SELECT value FROM palio_facts WHERE kind = 'held'").fetchone()
    assert held == 35
    assert reader_of(Lake(place).state()).startswith("lake ")
