"""Day by day: all runs together find what one over everything finds, at the cost of what is new."""

from __future__ import annotations

import pytest

import palio
import palio.spark
from palio.spark import runs
from palio.spark.errors import DoubledSubscriptions, RunsChanged, RunsDamaged


class World:
    """Events by journal and sequence, and subscriptions, as they are at the moment."""

    def __init__(self, spark, place):
        self.spark, self.place = spark, place
        self.events: list[tuple[str, int, int]] = []
        self.subscriptions: dict[str, str] = {}

    def publish(self, journal: str, *levels: int) -> None:
        last = max((sequence for name, sequence, _ in self.events if name == journal), default=0)
        self.events += [(journal, last + 1 + at, level) for at, level in enumerate(levels)]

    def run(self, **options):
        rows = [(f"{journal}:{sequence}", journal, sequence, level) for journal, sequence, level in self.events]
        events = self.spark.createDataFrame(rows, "event_id string, journal string, sequence long, level long")
        return palio.spark.match_new(events, self.frame(), self.place, partitions=2, **options)

    def frame(self):
        schema = "subscription_id string, filter string"
        return self.spark.createDataFrame(list(self.subscriptions.items()), schema)

    def pairs(self) -> list[tuple[str, str]]:
        found = palio.spark.matches(self.spark, self.place)
        return sorted((row["event_id"], row["subscription_id"]) for row in found.collect())

    def wanted(self) -> list[tuple[str, str]]:
        return sorted(
            (f"{journal}:{sequence}", id)
            for journal, sequence, level in self.events
            for id, text in self.subscriptions.items()
            if palio.Filter.parse(text).matches(palio.Notification({"level": level}))
        )


@pytest.fixture
def world(spark, tmp_path):
    found = World(spark, tmp_path / "pairs")
    found.publish("siena", 1, 5, 9)
    found.publish("lucca", 5)
    found.subscriptions = {"low": "level < 6", "high": "level > 4", "gone": "level > 0"}
    return found


def test_days_with_new_changed_removed_and_returning_subscriptions(world):
    first = world.run()
    assert world.pairs() == world.wanted()
    assert (first.number, first.found, first.fresh) == (1, 10, 3)
    assert first.positions == {"siena": 3, "lucca": 1}

    world.publish("siena", 2, 8)
    world.publish("pisa", 5)
    second = world.run()
    assert world.pairs() == world.wanted()
    assert (second.found, second.fresh) == (7, 0), "only what is new was matched"

    del world.subscriptions["gone"]
    world.subscriptions |= {"high": "level > 8", "new": "level = 5"}
    third = world.run()
    assert world.pairs() == world.wanted()
    assert (third.found, third.fresh) == (4, 2), "old events against what is new or has changed"

    world.subscriptions |= {"high": "level > 4", "gone": "level > 0"}
    world.publish("siena", 7)
    fourth = world.run()
    assert world.pairs() == world.wanted(), (
        "a filter that comes back is new, and its old pairs are not counted twice"
    )
    assert fourth.fresh == 2


def test_an_interrupted_run_leaves_nothing_and_two_at_once_are_one(world, monkeypatch):
    with pytest.raises(RunsDamaged, match="no run yet"):
        palio.spark.matches(world.spark, world.place)
    commit = runs._commit

    def interrupted(folder, run):
        raise KeyboardInterrupt

    monkeypatch.setattr(runs, "_commit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        world.run()

    def overtaken(folder, run):
        commit(folder, run)
        commit(folder, run)

    monkeypatch.setattr(runs, "_commit", overtaken)
    with pytest.raises(RunsChanged, match="start again"):
        world.run()
    assert world.pairs() == world.wanted()


def test_ids_must_tell_subscriptions_apart(world, monkeypatch):
    twice = world.frame().unionAll(world.frame())
    monkeypatch.setattr(World, "frame", lambda self: twice)
    with pytest.raises(DoubledSubscriptions, match="more than once"):
        world.run()


def test_a_revision_says_what_has_changed(world, monkeypatch):
    from pyspark.sql import functions

    plain = World.frame
    monkeypatch.setattr(
        World, "frame", lambda self: plain(self).withColumn("revision", functions.lit(revision))
    )
    revision = 1
    assert world.run().fresh == 3
    assert world.run().found == 0
    revision = 2
    assert world.run().fresh == 3
    assert world.pairs() == world.wanted()
    assert {row["revision"] for row in palio.spark.matches(world.spark, world.place).collect()} == {2}


def test_a_folder_that_was_damaged_is_refused(tmp_path):
    (tmp_path / "_runs").mkdir()
    (tmp_path / "_runs" / "000001.json").write_text("{")
    with pytest.raises(RunsDamaged, match=r"000001\.json cannot be read"):
        runs.all_runs(tmp_path)
    (tmp_path / "_runs" / "000001.json").rename(tmp_path / "_runs" / "000001.bak")
    run = b'{"number":2,"positions":{},"pairs":"","subscriptions":"","found":0,"fresh":0}'
    (tmp_path / "_runs" / "000002.json").write_bytes(run)
    with pytest.raises(RunsDamaged, match="run 1 is missing"):
        runs.all_runs(tmp_path)
