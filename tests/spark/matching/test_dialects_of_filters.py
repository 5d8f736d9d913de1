"""Filters of other languages in Spark: a column, an option, and what becomes of what cannot be read."""

from __future__ import annotations

import json

import pytest

import palio
import palio.spark
from palio.language import UnknownDialect, WrongDialectText
from palio.model.errors import ContradictoryFilter
from palio.spark import jobs
from palio.spark.errors import BadSubscriptions
from palio.spark.lookback.backtesting import backtest
from palio.spark.source.options import read_options
from palio.spark.stats.gathering import gather
from palio.spark.tables.inputs import subscriptions_at
from tests.spark.engines import collected
from tests.spark.filling import fill

pytest.importorskip("pyspark", reason="pyspark is not installed")

SAID = "subscription_id string, filter string, dialect string"
ENTRIES = [
    ("topic", "shop/+?n>5", "mqtt"),
    ("pattern", '{"topic": [{"prefix": "shop/"}], "n": [{"numeric": ["<=", 5]}]}', "eventbridge"),
    ("ours", "n = 5", "palio"),
    ("unsaid", "n >= 0", None),
]
EVENTS = [{"topic": "shop/books", "n": 5}, {"topic": "shop/books", "n": 6}, {"topic": "till", "n": 7}]
PAIRS = [(0, "ours"), (0, "pattern"), (0, "unsaid"), (1, "topic"), (1, "unsaid"), (2, "unsaid")]


@pytest.fixture(scope="module")
def events(spark):
    rows = [(number, one["topic"], one["n"]) for number, one in enumerate(EVENTS)]
    return spark.createDataFrame(rows, "event_id long, topic string, n long")


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    url = f"sqlite:///{tmp_path_factory.mktemp('store')}/palio.db"
    fill(url, EVENTS)
    return url


def test_a_column_says_what_filters_are_written_in(spark, events):
    pairs = palio.spark.match(events, spark.createDataFrame(ENTRIES, SAID), partitions=1)
    assert sorted(collected(pairs)) == PAIRS


def test_what_cannot_be_read_is_told_with_its_dialect(spark, events):
    bad = [("a", "shop/b#", "mqtt"), ("b", "n > 5", "klingon"), ("c", None, "mqtt")]
    subscriptions = spark.createDataFrame([*ENTRIES, *bad], SAID)
    with pytest.raises(BadSubscriptions, match="3 filters cannot be read"):
        palio.spark.match(events, subscriptions)
    assert sorted(collected(palio.spark.match(events, subscriptions, invalid="skip", partitions=1))) == PAIRS
    found = palio.spark.unreadable(subscriptions)
    assert found.columns == ["subscription_id", "filter", "dialect", "reason"]
    told = {row.subscription_id: (row.dialect, row.reason) for row in found.collect()}
    assert told["a"] == ("mqtt", "Column 7 (mqtt): `#` stands for a whole level, between slashes.")
    assert told["b"][1].startswith("The filter dialect 'klingon' is not supported; there are palio, ")
    assert told["c"][1].startswith("There is no filter")
    without = subscriptions.drop("dialect").where("subscription_id = 'ours' or subscription_id = 'topic'")
    assert palio.spark.unreadable(without).columns == ["subscription_id", "filter", "reason"]


def test_from_run_to_run_another_dialect_is_another_filter(spark, events, tmp_path):
    positioned = events.selectExpr("*", "'siena' AS journal", "event_id + 1 AS sequence")

    def found(*entries, schema="subscription_id string, filter string, dialect string"):
        table = spark.createDataFrame(list(entries), schema)
        run = palio.spark.match_new(positioned, table, tmp_path / "pairs", partitions=1)
        pairs = palio.spark.matches(spark, tmp_path / "pairs").collect()
        return run.fresh, sorted((row.event_id, row.subscription_id) for row in pairs)

    plain = "subscription_id string, filter string"
    assert found(("a", "n > 5"), schema=plain) == (1, [(1, "a"), (2, "a")])
    assert found(("a", "n > 5", "palio")) == (0, [(1, "a"), (2, "a")])  # the same as unsaid
    assert found(("a", "n > 5", None), ("t", "till", "mqtt")) == (1, [(1, "a"), (2, "a"), (2, "t")])
    assert found(("a", "n > 5", "mqtt"), ("t", "till", "mqtt")) == (1, [(2, "t")])


def test_lines_and_parquet_may_say_it_or_be_told(spark, tmp_path):
    lines = tmp_path / "filters.jsonl"
    lines.write_text(
        'shop/+\n{"id": "b", "filter": "n > 5", "dialect": "palio"}\n'
        '{"id": "c", "filter": {"n": [5]}, "dialect": "eventbridge"}\n# a remark\n{"id": "d", "filter": 5}\n'
    )
    found = [tuple(row) for row in subscriptions_at(spark, str(lines), "mqtt").collect()]
    assert found[:3] == [("1", "shop/+", "mqtt"), ("b", "n > 5", "palio"), ("c", '{"n":[5]}', "eventbridge")]
    assert found[3][::2] == ("d", "palio")  # which is no filter
    patterns = tmp_path / "patterns.jsonl"
    patterns.write_text('{"n": [5]}\n')
    assert [tuple(row) for row in subscriptions_at(spark, str(patterns), "eventbridge").collect()] == [
        ("1", '{"n": [5]}', "eventbridge")
    ]
    table = str(tmp_path / "table")
    spark.createDataFrame(ENTRIES, SAID).write.parquet(table)
    said = {row.subscription_id: row.dialect for row in subscriptions_at(spark, table, "mqtt").collect()}
    assert said == {"topic": "mqtt", "pattern": "eventbridge", "ours": "palio", "unsaid": "mqtt"}
    with pytest.raises(UnknownDialect):
        subscriptions_at(spark, table, "klingon")


def test_journals_are_read_by_a_filter_in_any_dialect(spark, url):
    read = palio.spark.read(spark, url, filter="shop/+?n>5", dialect="mqtt")
    assert [row.sequence for row in read.collect()] == [2]
    options = {"url": url, "filter": '{"n": [{"numeric": ["<", 7]}]}', "dialect": "eventbridge"}
    palio.spark.register(spark)
    assert spark.read.format("palio").options(**options).load().count() == 2
    # What goes to the executors is in our own language.
    assert palio.Filter.parse(read_options(options).filter) == palio.Filter.parse("n < 7 or n has < 7")
    with pytest.raises(WrongDialectText, match=r"Column 3 \(mqtt\)"):
        palio.spark.read(spark, url, filter="a/b#"[1:], dialect="mqtt")
    with pytest.raises(UnknownDialect):
        read_options({"url": url, "dialect": "klingon"})


def test_looking_back_takes_filters_in_any_dialect(spark, url, tmp_path):
    events = palio.spark.read(spark, url)
    [row] = backtest(events, "shop/+", dialect="mqtt", against="#?n>5", every="1d").collect()
    assert (row.only_first, row.only_second, row.both) == (1, 1, 1)
    looked = jobs.backtest(spark, "shop/+", url, dialect="mqtt", every="1d")
    assert (looked.found, looked.first) == (2, 'topic matches "shop/*"')
    with pytest.raises(ContradictoryFilter):
        jobs.backtest(spark, "shop/+?topic='a'", url, dialect="mqtt")


def test_a_report_counts_filters_in_any_dialect(spark, events, tmp_path):
    subscriptions = spark.createDataFrame(
        [*ENTRIES, ("never", "lucca/#", "mqtt"), ("bad", "a/b#", "mqtt")], SAID
    )
    found = gather(events.drop("event_id"), subscriptions)
    assert (found.hits.subscriptions, found.hits.unreadable, found.hits.pairs) == (5, 1, len(PAIRS))
    assert [one.id for one in found.hits.never_some] == ["never"]
    assert found.savings.considered == 5
    assert ("topic", "matches") in {(one.attribute, one.operator) for one in found.selectivities}


def test_the_commands_take_it(spark, command, tmp_path):
    events, filters = tmp_path / "events.jsonl", tmp_path / "filters.txt"
    events.write_text("".join(json.dumps(one) + "\n" for one in EVENTS))
    filters.write_text('shop/+?n>5\n{"id": "ours", "filter": "n = 7", "dialect": "palio"}\n')
    result = command("spark", "match", "-e", str(events), "-f", str(filters), "--dialect", "mqtt")
    assert sorted(tuple(json.loads(line).values()) for line in result.stdout.splitlines()) == [
        ("2", "1"),
        ("3", "ours"),
    ], result.stderr
    wrong = command("spark", "backtest", "a/b#", str(events), "--dialect", "mqtt")
    assert (wrong.exit_code, wrong.stderr.splitlines()[0]) == (
        3,
        "Column 4 (mqtt): `#` stands for a whole level, between slashes.",
    )
    for job in (
        ("stats", str(events), "--filter", "a"),
        ("reach-back", "a", "--durable", "x"),
        ("forget", "a"),
    ):
        told = command("spark", *job, "--dialect", "klingon")
        assert told.exit_code == 3
        assert "'klingon' is not supported; there are palio, " in told.stderr
