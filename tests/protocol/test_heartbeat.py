"""Heartbeats as a policy: who stands still for a moment is not dead, and accuses nobody; others are noticed."""

from __future__ import annotations

import heapq
import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palio.protocol.heartbeat import HEARTBEAT, LOOKS, SILENCES, Due, Heartbeat

STILL = 10.0  # seconds without a processor, which are no death by default
WATCHED = 120.0


class Pair:
    """Two ends with a way between them. What comes to one that stands still waits until it goes on."""

    def __init__(self, *, often: bool, way: float, offset: float, every: float = HEARTBEAT) -> None:
        self.ends = [Heartbeat(every, 0.0, often=often) for _ in range(2)]
        self.every = every
        self.way = way
        self.still: list[tuple[int, float, float]] = []  # whose, from when on, until when
        self.dead: list[tuple[float, int]] = []  # when an end takes the other one for gone
        self.cut_at = float("inf")
        self._count = itertools.count()
        self._late = random.Random(f"{way} {offset}")  # no look is on time
        self._queue: list = []
        self._at(0.0, self._look, 0, 0.0)
        self._at(offset, self._look, 1, offset)

    def run(self, until: float) -> None:
        while self._queue and self._queue[0][0] <= until:
            now, _, do, arguments = heapq.heappop(self._queue)
            end = arguments[0]
            awake = max(
                [to for whose, since, to in self.still if whose == end and since <= now < to], default=now
            )
            if awake > now:
                self._at(awake, do, *arguments)
            else:
                do(now, *arguments)

    def _at(self, when: float, do, *arguments) -> None:
        heapq.heappush(self._queue, (when, next(self._count), do, arguments))

    def _look(self, now: float, end: int, planned: float) -> None:
        heartbeat = self.ends[end]
        heartbeat.excuse(now - planned, now)
        due = heartbeat.due(now)
        if due is Due.GONE:
            self.dead.append((now, end))
            return
        if due is Due.PING:
            heartbeat.said = now
            self._send(now, end, heartbeat.ping(now), asks=True)
        planned = now + heartbeat.pause
        self._at(planned + self._late.uniform(0.0, 0.002) * self.every, self._look, end, planned)

    def _send(self, now: float, end: int, number: int, *, asks: bool) -> None:
        if now < self.cut_at:
            self._at(now + self.way, self._hear, 1 - end, number, asks)

    def _hear(self, now: float, end: int, number: int, asks: bool) -> None:
        heartbeat = self.ends[end]
        heartbeat.heard = now
        if asks:
            heartbeat.said = now
            self._send(now, end, number, asks=False)
        else:
            heartbeat.answered(number)


def stands_still(seed: int, *, often: bool, times: int = 1, seconds: float = STILL) -> Pair:
    chance = random.Random(seed)
    pair = Pair(often=often, way=chance.uniform(0.0, 0.3), offset=chance.uniform(0.0, HEARTBEAT / LOOKS))
    at = 20.0
    for _ in range(times):
        at += chance.uniform(0.0, 3 * HEARTBEAT)
        pair.still.append((chance.randrange(2), at, at + seconds))
        at += seconds
    pair.run(at + WATCHED)
    return pair


@pytest.mark.parametrize("seed", range(40))
def test_who_stands_still_for_ten_seconds_is_not_dead_and_accuses_nobody(seed):
    assert stands_still(seed, often=True, times=1 + seed % 4).dead == []


def test_a_second_more_is_borne_by_those_alone_who_say_often_that_they_are_there():
    for often in (False, True):
        dead = [seed for seed in range(60) if stands_still(seed, often=often, seconds=STILL + 1.0).dead]
        assert bool(dead) is not often, dead


@given(st.floats(0.0, 1.0), st.floats(0.0, 0.05), st.floats(20.0, 40.0), st.sampled_from([0.1, 1.0, 5.0, 60.0]))
@settings(max_examples=50, deadline=None)
def test_a_cut_is_noticed_within_four_heartbeats(offset, way, cut_at, every):
    pair = Pair(often=True, way=way * every, offset=offset * every / LOOKS, every=every)
    pair.cut_at = cut_at * every
    pair.run(cut_at * every + 10 * every)
    assert sorted(end for _, end in pair.dead) == [0, 1]
    for when, _ in pair.dead:
        assert (SILENCES - 1) * every < when - pair.cut_at <= 4 * every


def test_a_long_way_gives_patience_and_a_short_one_takes_it_back():
    near, far = (Pair(often=True, way=way, offset=0.3) for way in (0.001, 1.5))
    near.run(100.0)
    far.run(200.0)
    assert SILENCES * HEARTBEAT < near.ends[0].patience < SILENCES * HEARTBEAT + 0.1
    assert far.ends[0].round_trip == pytest.approx(3.0, rel=0.2)
    assert SILENCES * HEARTBEAT + 2.5 < far.ends[0].patience <= (SILENCES + 1) * HEARTBEAT
    assert not far.dead
    far.way = 0.001
    far.run(600.0)
    assert far.ends[0].patience < SILENCES * HEARTBEAT + 1.0


def test_an_answer_counts_once_and_only_the_latest_ping():
    heartbeat = Heartbeat(1.0, 0.0, often=True)
    first = heartbeat.ping(1.0)
    second = heartbeat.ping(2.0)
    heartbeat.heard = 2.5
    heartbeat.answered(first)
    assert heartbeat.round_trip is None
    heartbeat.answered(second)
    assert heartbeat.round_trip == 0.5
    heartbeat.heard = 9.0
    heartbeat.answered(second)
    heartbeat.answered(10**9)
    heartbeat.answered(0)
    assert heartbeat.round_trip == 0.5
    assert Heartbeat(1.0, 0.0).ping(1.0) == 0, "clients say theirs without a number"


def test_who_stood_still_doubts_itself_for_a_while():
    heartbeat = Heartbeat(1.0, 0.0, often=True)
    heartbeat.excuse(2.0, 10.0)
    heartbeat.heard = 8.0
    assert heartbeat.due(12.0) is not Due.GONE
    assert heartbeat.due(13.5) is Due.GONE
    heartbeat.excuse(0.5, 20.0)
    heartbeat.heard = 20.0
    assert heartbeat.due(23.5) is Due.GONE, "a moment is nothing to doubt oneself for"
