"""The store and the simulator's disk are given the same effects, and must say and keep the same."""

from __future__ import annotations

import itertools
import os
import pickle
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palio.store import StoreInUse, schema
from palio.store.memory import MemoryPlace
from tests.conftest import ROOT
from tests.slices import examples, sliced
from tests.store.drawing import by_oracle, comparable, draw_effects
from tests.store.driving import PATIENCE, Driven, Place
from tests.store.test_letters import assert_letters_are_named

FOREVER = 1e12  # the simulated disk never forgets an id
CRASHES = 5
EFFECTS = 1_500


@pytest.fixture
def fresh(place: Place, tmp_path: Path) -> Callable[[], Place]:
    """A store that nobody has used, for each example."""
    if isinstance(place, MemoryPlace):
        return MemoryPlace
    url = place
    if url.startswith("sqlite"):
        numbers = itertools.count()
        return lambda: f"sqlite:///{tmp_path}/{next(numbers)}.db"
    with Driven(url):
        pass  # creates the tables

    def emptied() -> str:
        with psycopg.connect(url, autocommit=True) as connection:
            for table in schema.metadata.sorted_tables:
                if table is not schema.version:
                    connection.execute(f"DELETE FROM {table.name}")
        return url

    return emptied


@settings(examples(50), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(choose=st.randoms(use_true_random=False), count=st.integers(1, 30), data=st.data())
def test_it_says_and_keeps_the_same(
    fresh: Callable[[], Place], choose: random.Random, count: int, data: st.DataObject
) -> None:
    effects = list(draw_effects(choose, count))
    disk, expected = by_oracle(effects)
    place = fresh()
    lives = data.draw(st.lists(st.integers(0, count), max_size=2), label="restarts after")
    said = []
    for first, last in itertools.pairwise([0, *sorted(lives), count]):
        with Driven(place, retention=FOREVER, sync="off") as driven:
            some = effects[first:last]
            cut = data.draw(st.integers(0, len(some)), label="submitted at once")
            driven.store.submit(some[:cut])
            driven.store.submit(some[cut:])
            assert driven.store.close()
            said += driven.answers
    assert said == expected
    with Driven(place, retention=FOREVER) as driven:
        assert comparable(driven.recovered) == comparable(disk.recovered())
        assert driven.all_records() == disk.records
    if isinstance(place, str):
        assert_letters_are_named(place)


def _when_it_is_let_go(url: str) -> Driven:
    """The store of a process that was killed: a server notices that a moment later."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return Driven(url, retention=FOREVER)
        except StoreInUse:
            assert time.monotonic() < deadline


@pytest.mark.parametrize("seed", sliced(range(CRASHES), 2))
def test_a_crash_loses_a_suffix_of_what_was_not_completed(url: str, tmp_path: Path, seed: int) -> None:
    print(f"seed {seed}")
    choose = random.Random(seed)
    effects = list(draw_effects(choose, EFFECTS))
    (tmp_path / "effects").write_bytes(pickle.dumps(effects))
    writer = subprocess.Popen(
        [sys.executable, "-m", "tests.store.crashing", url, str(tmp_path / "effects"), str(seed)],
        stdout=subprocess.PIPE,
        cwd=ROOT,
        text=True,
    )
    assert writer.stdout is not None
    enough = choose.randint(1, EFFECTS // 2)
    completed = 0
    for line in writer.stdout:
        completed = int(line)
        if completed >= enough:
            break
    os.kill(writer.pid, signal.SIGKILL)
    completed = max([completed, *map(int, writer.stdout.read().split())])
    writer.wait()
    with _when_it_is_let_go(url) as driven:
        found, records = comparable(driven.recovered), driven.all_records()
    disk, prefix = by_oracle(effects[:completed])[0], completed
    while comparable(disk.recovered()) != found or disk.records != records:
        assert prefix < len(effects), f"What is there after {completed} effects is not what any prefix leaves."
        disk.queue.append(effects[prefix])
        disk.complete()
        prefix += 1
