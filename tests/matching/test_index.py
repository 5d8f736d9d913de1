"""The compiled index says what the oracle says, whatever is done to it."""

from datetime import UTC, datetime

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import palio
from palio.matching import oracle
from tests.matching.drawing import filters, ids, notifications
from tests.slices import examples


def same(found: list, wanted: list) -> bool:
    """The same ids, each as often; ids of all kinds have no order."""
    found = list(found)
    for id in wanted:
        if id not in found:
            return False
        found.remove(id)
    return not found


def shared(index: palio.MatchIndex) -> list[int]:
    """What both kinds of statistics say."""
    facts = index.statistics()
    return [getattr(facts, name) for name in oracle.MatchStatistics.__struct_fields__]


@examples(400)
@given(st.lists(filters, max_size=12), st.lists(notifications, min_size=1, max_size=8))
def test_built_at_once_it_equals_the_oracle(several, events):
    index, truth = palio.MatchIndex(enumerate(several)), oracle.MatchIndex(enumerate(several))
    for event in events:
        assert same(index.match(event), truth.match(event))
    assert shared(index) == shared(truth)


class Changing(RuleBasedStateMachine):
    """Adds, removes and matches in any order, with ids of any kind."""

    @initialize(several=st.dictionaries(ids, filters, max_size=6))
    def begin(self, several):
        self.index, self.truth = palio.MatchIndex(several.items()), oracle.MatchIndex(several.items())

    @rule(id=ids, filter=filters)
    def add(self, id, filter):
        if id in self.truth:
            with pytest.raises(palio.DuplicateId):
                self.index.add(id, filter)
        else:
            self.index.add(id, filter)
            self.truth.add(id, filter)

    @rule(id=ids)
    def remove(self, id):
        if id in self.truth:
            assert self.index[id] == self.truth[id]
            self.index.remove(id)
            self.truth.remove(id)
        else:
            with pytest.raises(palio.UnknownId):
                self.index.remove(id)

    @rule(event=notifications)
    def match(self, event):
        assert same(self.index.match(event), self.truth.match(event))

    @invariant()
    def holds_the_same(self):
        assert len(self.index) == len(self.truth)
        assert same(list(self.index), list(self.truth))


TestChanging = Changing.TestCase
TestChanging.settings = settings(examples(133), stateful_step_count=40)


# What has gone wrong elsewhere


def matched(text: str, *events: dict) -> list[bool]:
    index = palio.MatchIndex([("id", text)])
    return [index.match(palio.Notification(event)) == ["id"] for event in events]


def test_kinds_do_not_mix():
    values = [{"x": value} for value in (True, 1, 1.0, "1", b"1", [1])]
    assert matched("x = 1", *values) == [False, True, True, False, False, False]
    assert matched("x = true", *values) == [True, False, False, False, False, False]
    assert matched('x = "1"', *values) == [False, False, False, True, False, False]
    assert matched('x = x"31"', *values) == [False, False, False, False, True, False]
    assert matched("x != 1", *values) == [True, False, False, True, True, True]


def test_integers_beyond_the_floats():
    big = 2**53
    values = [{"x": value} for value in (big, big + 1, big + 2, float(big))]
    assert matched(f"x = {big + 1}", *values) == [False, True, False, False]
    assert matched(f"x > {big}", *values) == [False, True, True, False]
    assert matched(f"x >= {big - 1} and x <= {big}", *values) == [True, False, False, True]
    assert matched("x > 5", {"x": 2**63 - 1}, {"x": -(2**63)}) == [True, False]
    assert matched(f"x >= {-big}", {"x": -big - 1}, {"x": -big}) == [False, True]


def test_zero_has_no_sign():
    assert matched("x = 0", {"x": -0.0}, {"x": 0.0}, {"x": 0}) == [True, True, True]
    assert matched("x < 0", {"x": -0.0}, {"x": -5e-324}) == [False, True]


def test_an_or_filter_gives_its_id_once():
    index = palio.MatchIndex([(1, "a = 1 or b = 2 or c > 3"), (2, 'd in ("x", "y", "z") and a > 0')])
    event = palio.Notification({"a": 1, "b": 2, "c": 4, "d": "y"})
    assert sorted(index.match(event)) == [1, 2]
    assert index.match_batch(_table([event]))[1].to_pylist().count(1) == 1


def _table(events):
    import pyarrow

    names = {name for event in events for name in event}
    return pyarrow.table({name: [event.get(name) for event in events] for name in sorted(names)})


def test_a_contradiction_matches_nothing_and_true_everything():
    index = palio.MatchIndex([(1, "x > 5 and x < 3"), (2, "true")])
    assert index.match(palio.Notification({"x": 4})) == [2]
    assert index.match(palio.Notification({})) == [2]
    index.remove(1)
    index.remove(2)
    assert index.match(palio.Notification({"x": 4})) == []


def test_times_compare_to_the_microsecond():
    moment = datetime(2026, 7, 2, 10, 45, 0, 1, tzinfo=UTC)
    assert matched("t > 2026-07-02T10:45:00Z", {"t": moment}, {"t": moment.replace(microsecond=0)}) == [
        True,
        False,
    ]


def test_texts_follow_their_bytes():
    assert matched('x > "z"', {"x": "é"}, {"x": "\U0001f600"}, {"x": "a"}) == [True, True, False]
    assert matched('x starts with "é"', {"x": "éa"}, {"x": "ê"}) == [True, False]
    assert matched('x matches "a/**"', {"x": "a"}, {"x": "a/b/c"}, {"x": "ab"}) == [True, True, False]


def test_removed_values_leave_nothing_behind():
    pytest.importorskip("palio.matching.core", reason="the oracle keeps nothing but the filters")
    index = palio.MatchIndex()
    for turn in range(3):
        for number in range(2_000):
            index.add(number, f'order = "{turn}-{number}" and kind = "k{number % 7}" and price > {number}')
        for number in range(2_000):
            index.remove(number)
        assert index.statistics().values == 0
        assert index.statistics().groups == 0
    assert index.statistics().index_bytes < 2_000_000


def test_a_mistake_while_building_leaves_the_error():
    with pytest.raises(palio.DuplicateId):
        palio.MatchIndex([(1, "x = 1"), (1, "x = 2")])
    with pytest.raises(palio.FilterSyntaxError):
        palio.MatchIndex([(1, "x ="), (2, "x = 2")])
