"""Journals that came back older than they had been read: what is published then is new, whatever its number."""

import json

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import StructType

import palio.sync
import palio.testing
from palio.protocol.durable.lineage import Incarnation
from palio.spark.errors import JournalForked
from palio.spark.source import offsets
from palio.spark.source.format import PalioSource
from palio.spark.source.journals import JournalStanding, Span, WantedEvents, open_journals
from palio.spark.source.offsets import Offset
from palio.store.retention_holds import hold
from tests.spark.filling import backup, come_back, fill, numbers

pytest.importorskip("pyspark", reason="pyspark is not installed")

X = StructType().add("x", "integer")
ALL = ReadAllAvailable()


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/palio.db"


@pytest.fixture
def older(url):
    """A journal of 1 to 20 that was copied, had 21 to 30 then, came back, and has 101 to 115 instead."""
    fill(url, numbers(20, 1))
    copy = backup(url)
    fill(url, numbers(10, 21))

    def put_back(*, lives=1):
        come_back(url, copy)
        for life in range(lives):
            fill(url, numbers(15 // lives, 101 + life * (15 // lives)))

    return put_back


def stream(url, **options):
    return PalioSource({"url": url, **options}).streamReader(X)


def read(reader, start, end):
    parts = reader.partitions(start, end)
    return [x for part in parts for batch in reader.read(part) for x in batch.column("x").to_pylist()]


def test_an_offset_stays_the_same_through_restarts_and_json(url):
    fill(url, numbers(5))
    reader = stream(url)
    start = reader.initialOffset()
    end = reader.latestOffset(start, ALL)
    for _ in range(3):
        fill(url, [])  # it is opened, and that is all
        assert json.dumps(reader.latestOffset(json.loads(json.dumps(end)), ALL)) == json.dumps(end)
    assert Offset.of_json(json.loads(json.dumps(end))).to_json() == end


@pytest.mark.parametrize("lives", [1, 3])
@pytest.mark.parametrize("rows", [None, 4])
def test_a_stream_goes_on_where_the_journal_was_the_same(url, older, caplog, lives, rows):
    reader = stream(url)
    start = reader.initialOffset()
    end = json.loads(json.dumps(reader.latestOffset(start, ALL)))
    assert (end["b"], read(reader, start, end)) == (30, [*range(1, 31)])
    older(lives=lives)
    found = []
    while (following := reader.latestOffset(end, ALL if rows is None else ReadMaxRows(rows))) != end:
        some = read(reader, end, following)
        assert read(stream(url), end, following) == some, "asked again, it is the same"
        found += some
        end = json.loads(json.dumps(following))
    assert (found, end["b"]) == ([*range(101, 116)], 35)
    assert "'b' came back older than it was: what it had after 30 may be missing" in caplog.text
    assert "read on from 21" in caplog.text


def test_a_batch_that_was_planned_and_is_gone_is_an_error_unless_one_does_without(url, older):
    reader = stream(url)
    start = {"b": 15}
    end = reader.latestOffset(start, ALL)
    older()
    with pytest.raises(JournalForked, match="wanted of it up to 30 is another one's after 20"):
        reader.partitions(start, end)
    lossy = stream(url, failOnDataLoss="false")
    assert read(lossy, start, end) == [16, 17, 18, 19, 20]
    assert read(lossy, end, lossy.latestOffset(end, ALL)) == [*range(101, 116)]


def test_a_checkpoint_of_before_is_believed_or_refused(url, older):
    reader = stream(url)
    assert read(reader, {"b": 28}, reader.latestOffset({"b": 28}, ALL)) == [29, 30]
    older()
    assert reader.latestOffset({"b": 28}, ALL)["b"] == 35, "it knows of no lineage, and the journal is as long"
    with pytest.raises(JournalForked, match="ends with 35, and was read up to 40") as caught:
        reader.latestOffset({"b": 40}, ALL)
    assert (caught.value.position, caught.value.fork) == (40, None)
    lossy = stream(url, failOnDataLoss="false")
    assert read(lossy, {"b": 40}, lossy.latestOffset({"b": 40}, ALL)) == [*range(101, 116)]


def test_what_begins_after_an_offset_is_not_read_from_another_journal(url, older):
    reader = stream(url)
    end = json.dumps(reader.latestOffset({"b": 0}, ALL))
    older()
    for options in ({"startingOffsets": end}, {"endingOffsets": end}):
        with pytest.raises(JournalForked, match="up to 30 is another one's after 20"):
            PalioSource({"url": url, **options}).reader(X).partitions()


def test_a_span_that_was_planned_is_not_read_from_another_journal(url, older):
    with open_journals(url) as journals:
        (standing,) = journals.standings()
        (whole,) = offsets.spans_between({}, {"b": 25}, 100, {"b": standing.lineage})
        (shared,) = offsets.spans_between({}, {"b": 20}, 100, {"b": standing.lineage})
    older()
    with open_journals(url) as journals:
        assert sum(batch.num_rows for batch in journals.read(shared, WantedEvents())) == 20
        with pytest.raises(JournalForked, match="up to 25 is another one's after 20"):
            list(journals.read(whole, WantedEvents()))
        list(journals.read(Span("b", 0, 25), WantedEvents()))  # of whom nobody says where it was from


def test_a_store_is_held_only_up_to_where_the_reader_has_it(url, older):
    from tests.store.driving import Driven

    def held():
        with Driven(url) as driven:
            return [value for fact, value in driven.recovered.facts if fact.subject == "lake"]

    with open_journals(url) as journals:
        (standing,) = journals.standings()
        # What else a lake has is in other stores.
        journals.hold("lake", {"a": 7, "b": 30}, {"b": standing.lineage})
    assert held() == [30]
    older()
    hold(url, "b", "lake", 30, standing.lineage)
    assert held() == [20]
    hold(url, "b", "lake", -1)
    assert held() == []


def test_a_broker_says_of_which_lineage_its_journal_is():
    with palio.testing.broker(journal=True) as address:
        with palio.sync.connect(address) as client:
            client.publish([{"x": n} for n in range(10)])
        with open_journals(address) as journals:
            (standing,) = journals.standings()
            (last,) = standing.lineage
            assert (last.begins, last.id != "") == (0, True)
            other = (Incarnation(last.number, "another", 0),)
            (span,) = offsets.spans_between({}, {standing.journal: 5}, 10, {standing.journal: other})
            with pytest.raises(JournalForked, match="up to 5 is another one's after 0"):
                list(journals.read(span, WantedEvents()))
            journals.hold("lake", {standing.journal: 7}, {standing.journal: other})
        with palio.sync.connect(address) as client:
            assert client.trim_journal(dry=True).needed_by == (("reader lake", 0),)


def test_a_fork_is_met_whatever_else_there_is():
    old = (Incarnation(1, "x", 0), Incarnation(2, "y", 10))
    new = (Incarnation(1, "x", 0), Incarnation(3, "z", 8))
    position = Offset({"a": 15, "b": 5, "c": 3}, {"a": old})
    standings = [JournalStanding("a", 0, 20, new), JournalStanding("b", 0, 9, new)]
    met, (gap,) = offsets.met(position, standings)
    assert met.positions == {"a": 8, "b": 5, "c": 3}
    assert (met.lineages, gap.origin, gap.after, gap.upto) == ({"a": new, "b": new}, "a", 15, None)
    assert offsets.met(met, standings) == (met, ())
