"""Bytes that wait for the disk: who causes many waits, and others do not wait for it."""

from __future__ import annotations

from collections.abc import Hashable

import pytest

from palio.broker import unwritten
from palio.broker.unwritten import Unwritten
from palio.routing.durable.effects import Append, Spool
from palio.store.queue import EACH_COPY
from tests.store.driving import envelope


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
        self._token = self.last = 0

    def write(self, owner: str, size: int) -> int:
        self._token += 1
        self.unwritten.add({owner: size}, [Append(self._token, (), owner)], size)
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
    handled = disk.unwritten.handled()
    handled.add(12_345)
    assert not handled.owners


def published(disk: Disk, owner: str, *sizes: int) -> Append:
    """Something that somebody publishes, of payloads of so many bytes."""
    disk.last += len(sizes)
    first = disk.last - len(sizes) + 1
    envelopes = [envelope(first + place, payload=b"x" * size) for place, size in enumerate(sizes)]
    append = Append(first, tuple(envelopes), owner)
    disk.unwritten.add({owner: 100 + sum(sizes)}, [append], 100 + sum(sizes))
    return append


@pytest.mark.parametrize("among", [0, 3])
def test_what_follows_from_several_that_are_handled_together_is_for_whom_each_of_it_is(among):
    """However many others are handled with it, who is delivered a hundred times has caused that."""
    disk = Disk()
    greedy = published(disk, "greedy", 5_000, 5_000)
    others = [published(disk, f"other {number}", 1_000) for number in range(among)]
    handled = disk.unwritten.handled()
    for append in (greedy, *others):
        handled.add(append.token)
    letters = [(number, 0, one) for number, one in enumerate([*greedy.envelopes * 100], 1)]
    spool = Spool(1_000, "s", add=tuple(letters))
    small = [Spool(1_001 + number, "t", add=((1, 0, one.envelopes[0]),)) for number, one in enumerate(others)]
    size = 200 * EACH_COPY + 10_000 + among * (EACH_COPY + 1_000)
    caused = handled.causes([spool, *small], size)
    assert caused["greedy"] == pytest.approx(200 * EACH_COPY + 10_000, rel=0.1)
    assert caused.keys() == {"greedy", *[one.publisher for one in others]}
    assert all(caused[one.publisher] < 1_200 for one in others)
    disk.unwritten.add(caused, [spool, *small], size)
    disk.written(*handled.tokens)
    assert dict(disk.unwritten._bytes) == dict(caused)
    again = disk.unwritten.handled()
    again.add((small or [spool])[-1].token)
    assert again.owners.keys() == caused.keys()
    disk.written(*again.tokens)
    assert not disk.unwritten._bytes
    assert not disk.unwritten._under_way


def test_what_follows_from_nobody_in_particular_is_nobodys():
    disk = Disk()
    handled = disk.unwritten.handled()
    handled.add(7)
    assert handled.causes([Spool(8, "s", remove=(1,))], 64) == {}
