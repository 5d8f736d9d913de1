"""Day by day: all runs together find what one over everything finds, at the cost of what is new."""

from __future__ import annotations

import os
import random

import msgspec
import pytest

import palio
import palio.spark
from palio.spark.errors import DoubledSubscriptions, RunsChanged, RunsDamaged
from palio.spark.matching import runs
from tests.slices import sliced


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


def test_what_a_run_names_is_on_the_disk_before_it(world, not_synced, monkeypatch):
    create_once, missing = runs.create_once, []

    def committed(path, data):
        missing.append([one for one in not_synced(world.place.parent) if runs._RUNS not in one])
        create_once(path, data)

    monkeypatch.setattr(runs, "create_once", committed)
    world.run(rows=2)
    assert missing == [[], []]


class Killed(Exception):
    """The job died here."""


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_runs_of_a_few_events_that_die_anywhere_find_what_one_run_finds(world, monkeypatch, seed):
    chance = random.Random(seed)
    commit, commits = runs._commit, 0
    deaths = {chance.randrange(2, 7): chance.choice(["before", "after"]) for _ in range(3)}

    def perilous(folder, run):
        nonlocal commits
        commits += 1
        if deaths.get(commits) == "before":
            raise Killed
        commit(folder, run)
        if deaths.get(commits) == "after":
            raise Killed

    monkeypatch.setattr(runs, "_commit", perilous)
    died = 0
    for _ in range(2):
        world.publish("siena", *chance.choices(range(10), k=3))
        world.publish(chance.choice(["lucca", "pisa"]), chance.randrange(10))
        while True:
            world.subscriptions[chance.choice(["low", "high", "new"])] = f"level > {chance.randrange(8)}"
            try:
                last = world.run(rows=5)
                break
            except Killed:
                died += 1
        assert last.behind == {}
        assert world.pairs() == world.wanted(), seed
    assert died, seed


def test_who_is_behind_catches_up_first():
    run = runs.Run(7, {"a": 10, "b": 4}, "", "", 0, 2, {5: {"a": 6, "b": 4}, 7: {"a": 0, "b": 0}})
    goal = {"a": 12, "b": 4}
    seen = {5: set(range(7, 11)), 7: {*range(1, 11)}, None: {11, 12}}
    for rows in (1, 3, 100):
        at, left = run, {since: set(several) for since, several in seen.items()}
        for _ in range(100):
            stretches, positions, behind = runs.plan(at, goal, rows)
            assert sum(one.events for one in stretches) <= rows
            assert positions == run.positions or not behind
            for one in stretches:
                several = set(range(one.after.get("a", 0) + 1, one.upto["a"] + 1))
                assert several <= left[one.since], "nothing is matched twice"
                left[one.since] -= several
            at = msgspec.structs.replace(at, positions=positions, behind=behind)
            if not behind and positions == goal:
                break
        assert not any(left.values())


def test_what_dead_runs_have_left_goes_after_a_day(world):
    dead, fresh = (world.place / "pairs" / name for name in ("000001-dead", "000001-fresh"))
    for folder in (dead, fresh):
        folder.mkdir(parents=True)
    os.utime(dead, (0, 0))
    world.run()
    assert fresh.exists(), "it may be under way"
    assert not dead.exists()
    assert world.pairs() == world.wanted()


def test_ids_must_tell_subscriptions_apart(world, monkeypatch):
    twice = world.frame().unionAll(world.frame())
    monkeypatch.setattr(World, "frame", lambda self: twice)
    with pytest.raises(DoubledSubscriptions, match="more than once"):
        world.run()


@pytest.mark.parametrize("between", sliced([0, 1], 1))
def test_a_revision_says_what_has_changed(world, monkeypatch, between):
    from pyspark.sql import functions

    plain = World.frame
    monkeypatch.setattr(
        World, "frame", lambda self: plain(self).withColumn("revision", functions.lit(revision))
    )
    revision = 1
    assert world.run().fresh == 3
    for _ in range(between):
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
