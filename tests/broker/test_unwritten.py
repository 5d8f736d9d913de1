"""Bytes that wait for the disk: who causes many waits, and others do not wait for it."""

from __future__ import annotations

from collections.abc import Hashable

import pytest

from palio.broker import unwritten
from palio.broker.unwritten import Unwritten
from palio.routing.durable.effects import Append


class Holding:
    """Who is held back."""

    def __init__(self) -> None:
        self.held: set[Hashable] = set()
        self.crowded = 0

    def crowd(self) -> None:
        self.crowded += 1

    def hold(self, whom: Hashable) -> None:
        self.held.add(whom)

    def release(self, whom: Hashable) -> None:
        self.held.remove(whom)


class Disk:
    """Writes by a clock of the test."""

    def __init__(self) -> None:
        self.now = 100.0
        self.holding = Holding()
        self.unwritten = Unwritten(self.holding, lambda: self.now)  # type: ignore[arg-type]
        self._token = 0

    def write(self, owner: str, size: int) -> int:
        self._token += 1
        self.unwritten.add(owner, [Append(self._token, (), owner)], size)
        return self._token

    def written(self, *tokens: int, after: float = 0.002) -> None:
        self.now += after
        for token in tokens:
            self.unwritten.written(token)


def test_who_writes_alone_may_have_much_waiting():
    disk = Disk()
    disk.write("a", unwritten.ALONE)
    assert disk.holding.held == set()
    last = disk.write("a", 100)
    assert disk.holding.held == {"a"}
    assert not disk.holding.crowded
    disk.written(last)
    assert disk.holding.held == {"a"}, "it is released when half of it is written"


def test_who_causes_more_than_its_share_waits_until_half_of_it_is_written_and_others_do_not():
    disk = Disk()
    small = disk.write("neighbour", 2_000)
    tokens = [disk.write("greedy", 20_000) for _ in range(3)]
    assert disk.holding.held == {"greedy"}
    assert disk.holding.crowded
    disk.write("neighbour", 2_000)
    disk.written(small, tokens[0])
    assert disk.holding.held == {"greedy"}
    disk.written(*tokens[1:])
    assert disk.holding.held == set()


@pytest.mark.parametrize("writers", [2, 3, 10, 1_000])
def test_what_waits_in_all_is_bounded_whoever_writes(writers):
    disk = Disk()
    for _ in range(100):
        for number in range(writers):
            if str(number) not in disk.holding.held:
                disk.write(str(number), 1_000)
    waiting = sum(disk.unwritten._bytes.values())
    most = max(unwritten.TOGETHER, writers * unwritten.LEAST) + writers * 1_000
    assert waiting <= most + unwritten.ALONE * (writers == 1)


def test_the_share_follows_the_quickest_writes_and_not_those_that_waited():
    disk = Disk()
    disk.write("other", 1_000)
    first = disk.write("a", 1_000)
    disk.written(first, after=0.02)  # a slow disk
    slow = disk.unwritten.share
    assert slow == int(0.02 * unwritten.PACE) // 2
    for _ in range(100):
        disk.written(disk.write("a", 1_000), after=0.5)
        disk.write("other", 1_000)
    assert disk.unwritten.share <= unwritten.TOGETHER_AT_MOST // 2
    disk.written(disk.write("a", 1_000), after=0.001)
    assert disk.unwritten.share == unwritten.TOGETHER // 2


def test_acknowledgements_and_who_has_written_long_ago_do_not_count():
    disk = Disk()
    disk.write("a", 10)
    assert disk.unwritten.share == unwritten.ALONE
    disk.write("a", 1_000)
    disk.write("b", 1_000)
    assert disk.unwritten.share == unwritten.TOGETHER // 2
    disk.now += 2 * unwritten.RECENTLY
    disk.write("b", 1_000)
    assert disk.unwritten.share == unwritten.ALONE


def test_nothing_is_remembered_of_what_is_written():
    disk = Disk()
    disk.written(*[disk.write(owner, 1_000) for owner in "abc" * 10])
    assert not disk.unwritten._under_way
    assert not disk.unwritten._bytes
    disk.unwritten.written(12_345)  # nobody's
    assert disk.unwritten.owner_of(12_345) is None
