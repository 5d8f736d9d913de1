"""Tables: whatever comes and goes, each port has what the strategy's definition says."""

import random

import pytest

from palio import Filter, Notification
from palio.matching.poset import Poset
from palio.model.merging import excess
from palio.routing.configuration import Configuration
from palio.routing.covering import Covering
from palio.routing.facts import Facts
from palio.routing.merging import MAX_MEMBERS, Merging
from palio.routing.table import Identity, Simple, Table
from palio.routing.tables import MAX_ARRIVING, Tables
from tests.slices import sliced

PORTS = ["p", "q", "r"]
TEXTS = [
    *[f"x > {n}" for n in range(6)],
    *[f"x between {n} and {n + 2}" for n in range(6)],
    *[f"x between {n} and {n + 2} and y > {m}" for n in range(4) for m in range(3)],
    "x = 1 or y = 2",
    'name starts with "a"',
    'name starts with "ab"',
    "true",
]


class Play:
    """Sources come and go at random; `sources` is the truth."""

    def __init__(self, table: Table[Filter], seed: object) -> None:
        self.table = table
        self.choose = random.Random(f"{seed}")
        self.sources = []  # (text, port or None, entry, holder)
        self.told = {port: {} for port in PORTS}

    def step(self) -> None:
        choose, table = self.choose, self.table
        if not self.sources or choose.random() < 0.55:
            text, port = choose.choice(TEXTS), choose.choice([None, *PORTS])
            filter, holder = Filter.parse(text), object()
            entry, _ = table.hold(filter, holder) if port is None else table.receive(filter, port)
            self.sources.append((filter, port, entry, holder))
        else:
            self.lose(choose.randrange(len(self.sources)))

    def settle(self) -> None:
        for port, changes in self.table.settle().items():
            assert changes.add or changes.remove
            for number, filter in changes.add:
                assert number not in self.told[port]
                self.told[port][number] = filter
            for number in changes.remove:
                del self.told[port][number]
        for port in PORTS:
            assert self.told[port] == self.table.sent(port)
        assert sum(map(len, self.told.values())) == self.table.rows_sent()

    def run(self, check) -> None:
        for port in PORTS:
            self.table.open_port(port)
        for _ in range(60):
            for _ in range(self.choose.randint(1, 3)):
                self.step()
            self.settle()
            for port in PORTS:
                check(self, port, [filter for filter, source, _, _ in self.sources if source != port])
        self.end()
        self.settle()
        assert len(self.table) == 0
        assert all(not told for told in self.told.values())

    def end(self) -> None:
        while self.sources:
            self.lose(self.choose.randrange(len(self.sources)))

    def lose(self, index: int) -> None:
        _, port, entry, holder = self.sources.pop(index)
        if port is None:
            self.table.let_go(entry, holder)
        else:
            self.table.drop(entry, port)


def different(filters):
    return set(filters)


def check_simple(play, port, wanted):
    assert sorted(map(str, play.told[port].values())) == sorted(map(str, wanted))


def check_identity(play, port, wanted):
    assert different(play.told[port].values()) == different(wanted)
    assert len(play.told[port]) == len(different(wanted))


def check_covering(play, port, wanted):
    roots = {one for one in wanted if not any(other.covers(one) and other != one for other in wanted)}
    assert different(play.told[port].values()) == roots
    assert len(play.told[port]) == len(roots)


@pytest.mark.parametrize("seed", sliced(range(10), 3))
@pytest.mark.parametrize(
    ("make", "check"),
    [
        (Simple, check_simple),
        (Identity, check_identity),
        (lambda: Covering(Poset()), check_covering),
    ],
    ids=["simple", "identity", "covering"],
)
def test_each_port_has_what_the_strategy_says(make, check, seed):
    Play(make(), seed).run(check)


@pytest.mark.parametrize("seed", sliced(range(10), 3))
@pytest.mark.parametrize("limit", [0.0, 0.4])
def test_merged_rows_hold_all_that_is_wanted_and_no_more_than_the_limit(limit, seed):
    def check(play, port, wanted):
        rows = list(play.told[port].values())
        for one in wanted:
            assert any(row.covers(one) for row in rows), f"{one} is missing"
        for row, members in play.table.groups(port).values():
            assert len(members) <= MAX_MEMBERS
            assert all(row.covers(member) for member in members)
            if len(members) > 1:
                pieces, share = excess(row.conjunctions[0], [member.conjunctions[0] for member in members])
                assert share <= limit
                assert limit or not pieces
        for _, members in play.table.groups(port).values():
            assert set(members) <= set(wanted)
        roots = {one for one in wanted if not any(other.covers(one) and other != one for other in wanted)}
        assert len(rows) <= len(roots)

    Play(Merging(Facts(), limit=limit), seed).run(check)


def test_merging_sends_one_row_for_several():
    table = Merging(Facts())
    table.open_port("p")
    for n in range(5):
        table.hold(Filter.parse(f'kind = "k{n}" and x > 1'), n)
    table.settle()
    assert len(table.sent("p")) == 1
    (row,) = table.sent("p").values()
    assert row == Filter.parse('kind in ("k0", "k1", "k2", "k3", "k4") and x > 1')


def test_an_imperfect_merge_admits_what_lies_between():
    # Together they fill half of the box around them.
    pair = [
        Filter.parse("x between 0 and 10 and y between 0 and 10"),
        Filter.parse("x between 10 and 20 and y between 10 and 20"),
    ]
    for limit, rows in [(0.0, 2), (0.3, 2), (0.6, 1)]:
        table = Merging(Facts(), limit=limit)
        table.open_port("p")
        for filter in pair:
            table.hold(filter, filter)
        table.settle()
        assert len(table.sent("p")) == rows


def test_entries_share_their_sources_only_while_these_are_the_same():
    table = Identity()
    one, other = (table.receive(Filter.parse(text), "p")[0] for text in ("x > 1", "x > 2"))
    assert one.sources is other.sources
    table.receive(one.item, "q")
    table.hold(one.item, "me")
    assert (dict(one.sources.ports), list(one.sources.holders)) == ({"p": 1, "q": 1}, ["me"])
    assert (dict(other.sources.ports), list(other.sources.holders)) == ({"p": 1}, [])
    table.let_go(one, "me")
    table.drop(one, "q")
    assert one.sources is other.sources
    assert table.drop(one, "p")
    assert dict(other.sources.ports) == {"p": 1}


def test_flooding_tells_nobody_anything():
    table = Table()
    table.open_port("p")
    table.hold(Filter.parse("x > 1"), "a")
    assert table.settle() == {}


@pytest.mark.parametrize("seed", sliced(range(5), 3))
def test_tables_that_share_an_order_tell_the_same_and_leave_nothing_behind(seed):
    shared = Poset()
    plays = [Play(Covering(shared), seed + other) for other in range(3)]
    for play in plays:
        for port in PORTS:
            play.table.open_port(port)
    for _ in range(80):
        for play in plays:
            play.step()
            play.settle()
            for port in PORTS:
                check_covering(play, port, [filter for filter, source, _, _ in play.sources if source != port])
    for play in plays:
        play.end()
    assert len(shared) == 0


@pytest.mark.parametrize("matches", [False, True])
@pytest.mark.parametrize("others", [0, MAX_ARRIVING])
def test_what_has_just_come_is_found_and_what_has_just_gone_is_not(others, matches):
    side = Tables(Configuration(broker="here"), Facts(matches=matches)).filters
    stays, goes = [side.hold(Filter.parse(f"x > {bound}"), bound) for bound in (1, 2)]
    for number in range(others):
        side.hold(Filter.parse(f"y = {number}"), number)
    side.let_go(goes, 2)
    assert side.match(Notification({"x": 3})) == [stays]
    side.let_go(stays, 1)
    assert side.match(Notification({"x": 3})) == []


@pytest.mark.parametrize("make", [Simple, Identity, lambda: Covering(Poset())])
def test_a_port_that_closes_is_not_told_of_what_has_just_left(make):
    table, holder = make(), object()
    for port in PORTS:
        table.open_port(port)
    entry, _ = table.hold(Filter.parse("x > 1"), holder)
    assert set(table.settle()) == set(PORTS)
    table.let_go(entry, holder)
    table.close_port("p")
    assert set(table.settle()) == {"q", "r"}
