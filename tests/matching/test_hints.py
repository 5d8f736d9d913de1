"""Hints change where filters are filed, and nothing that is found."""

import json
import math
import random

import hypothesis.strategies as st
import pytest
from hypothesis import given

import palio
from palio.matching import oracle
from palio.matching.hints import MAX_BYTES, AttributeHints, Hints
from palio.model.errors import UnreadableHints
from tests.matching.drawing import filters, ids, notifications
from tests.matching.test_index import same
from tests.slices import examples

NAMES = st.sampled_from(["a", "b", "c", "x", "y", "name", "price", ""]) | st.text(max_size=3)
# Whoever builds them in a program may say what no file could: more than all, less than none, no number.
SHARES = st.floats(0, 1) | st.sampled_from([0.0, 1.0, -1.0, 7.5, math.nan, math.inf, -math.inf, 1e-300])
VALUES = st.booleans() | st.integers() | st.floats() | st.text(max_size=4)
ABSURD = st.builds(
    Hints,
    attributes=st.dictionaries(
        NAMES,
        st.builds(
            AttributeHints,
            present=SHARES,
            kinds=st.dictionaries(st.sampled_from(["int", "float", "time", "dragon"]), SHARES, max_size=2),
            distinct=st.integers(-3, 2**70),
            values=st.lists(st.tuples(VALUES, SHARES), max_size=4),
            quantiles=st.lists(st.floats(), max_size=40),
        ),
        max_size=5,
    ),
    others=SHARES,
)


@examples(133)
@given(ABSURD, st.lists(filters, max_size=12), st.lists(notifications, min_size=1, max_size=8))
def test_with_any_hints_it_equals_the_oracle(hints, several, events):
    truth = oracle.MatchIndex(enumerate(several))
    at_once = palio.MatchIndex(enumerate(several), hints=hints)
    one_by_one = palio.MatchIndex(hints=hints)
    for id, filter in enumerate(several):
        one_by_one.add(id, filter)
    for event in events:
        wanted = truth.match(event)
        assert same(at_once.match(event), wanted)
        assert same(one_by_one.match(event), wanted)


@examples(20)
@given(ABSURD, st.data())
def test_filters_come_and_go(hints, data):
    index, truth = palio.MatchIndex(hints=hints), oracle.MatchIndex()
    for _ in range(12):
        id = data.draw(ids)
        if id in truth:
            index.remove(id)
            truth.remove(id)
        else:
            filter = data.draw(filters)
            index.add(id, filter)
            truth.add(id, filter)
        event = data.draw(notifications)
        assert same(index.match(event), truth.match(event))


@pytest.mark.parametrize("seed", range(6))
def test_groups_that_get_crowded_choose_anew_and_find_the_same(seed):
    print(f"seed {seed}")
    draw = random.Random(seed)
    texts = [
        f'kind = "k{draw.randrange(3)}" and host = "h{draw.randrange(40)}" and level = {draw.randrange(4)}'
        + (f" and load > {draw.randrange(9)}" if draw.random() < 0.5 else "")
        + (f' and note contains "{draw.randrange(9)}"' if draw.random() < 0.2 else "")
        for _ in range(1_500)
    ]
    shares = [(f"k{n}", draw.random()) for n in range(3)]
    hints = Hints(
        {"kind": AttributeHints(0.9, values=shares), "level": AttributeHints(draw.random())},
        others=draw.random(),
    )
    index, truth = palio.MatchIndex(hints=hints), oracle.MatchIndex()
    for id, text in enumerate(texts):
        index.add(id, text)
        truth.add(id, text)
    for id in draw.sample(range(len(texts)), 500):
        index.remove(id)
        truth.remove(id)
    for _ in range(40):
        event = palio.Notification(
            {"kind": f"k{draw.randrange(3)}", "host": f"h{draw.randrange(40)}", "level": draw.randrange(4)}
            | {"load": draw.randrange(9), "note": str(draw.randrange(100))}
        )
        assert sorted(index.match(event)) == sorted(truth.match(event))


def test_an_index_files_by_what_it_is_told():
    """Every filter asks for an alarm and for one of 40 gauges; alarms are rare, but all filters name them."""
    pytest.importorskip("palio.matching.core", reason="the oracle files nothing")
    filters = [(n, f"alarm > 0 and gauge{n % 40} > 1") for n in range(200)]
    gauges = {f"gauge{n}": AttributeHints(1.0) for n in range(40)}
    told = palio.MatchIndex(filters, hints=Hints({"alarm": AttributeHints(0.001), **gauges}))
    assert palio.MatchIndex(filters).statistics().groups == 40
    assert told.statistics().groups == 1


def test_conditions_are_ordered_by_what_they_let_through():
    level = AttributeHints(1.0, quantiles=[float(n) for n in range(101)])
    name = AttributeHints(0.5, distinct=10, values=[("often", 0.4), ("seldom", 0.01)])
    urgent = AttributeHints(0.8, values=[(False, 0.7), (True, 0.1)])
    hints = Hints({"level": level, "name": name, "urgent": urgent}, events=1000)

    def share(text: str) -> float:
        (box,) = palio.Filter.parse(text).conjunctions
        ((attribute, side),) = box.sides.items()
        return hints.share(attribute, side)

    assert share('name = "often"') == 0.4
    assert share('name = "nobody"') == pytest.approx(0.09 / 8)
    assert share("level > 90") == pytest.approx(0.1, abs=0.07)
    assert share("level between 20 and 70") == pytest.approx(0.5, abs=0.07)
    assert share('name contains "e"') > share('name contains "seldom"')
    assert share("absent(name)") == pytest.approx(0.5)
    assert share("unheard = 1") == 0.0
    assert (share("urgent = true"), share("urgent = false")) == (0.1, 0.7)
    assert share("exists(bool urgent)") == pytest.approx(0.8)
    (box,) = palio.Filter.parse('level > 10 and name = "seldom" and level2 = 1').conjunctions
    assert [attribute for attribute, _ in hints.ordered(box.sides)] == ["level2", "name", "level"]


def test_a_file_comes_back_as_it_was(tmp_path):
    hints = Hints(
        {"a": AttributeHints(0.5, {"int": 0.25}, 7, [("x", 0.25), (True, 0.1), (3, 0.01)], [1.0, 2.0])},
        events=100,
        others=0.125,
    )
    path = tmp_path / "hints.json"
    path.write_bytes(hints.encode())
    assert Hints.load(path) == hints
    assert json.loads(path.read_text())["version"] == 1


GOOD = {"format": "palio-hints", "version": 1, "attributes": {}}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "truncated"),
        ("[]", "Expected `object`"),
        ("{", "truncated"),
        ('{"attributes": {}}', 'its "format" is not'),
        (json.dumps(GOOD | {"version": 2}), "its version is 2"),
        (json.dumps({"format": "palio-hints", "version": 1}), "missing required field `attributes`"),
        (json.dumps(GOOD | {"more": 1}), "unknown field `more`"),
        (json.dumps(GOOD | {"attributes": {"a": {"present": 2}}}), "<= 1.0"),
        (json.dumps(GOOD | {"attributes": {"a": {"present": -0.1}}}), ">= 0.0"),
        (json.dumps(GOOD | {"attributes": {"": {"present": 1}}}), "no name of an attribute"),
        (json.dumps(GOOD | {"attributes": {"a" * 300: {"present": 1}}}), "no name of an attribute"),
        (json.dumps(GOOD | {"attributes": {"a": {"present": 1, "kinds": {"dragon": 1}}}}), "'dragon'"),
        (json.dumps(GOOD | {"attributes": {"a": {"present": 1, "quantiles": [2, 1]}}}), "do not ascend"),
        (json.dumps(GOOD | {"attributes": {"a": {"present": 1, "values": [["x", 9]]}}}), "<= 1.0"),
        (json.dumps(GOOD).replace("{}", '{"a": {"present": NaN}}'), "invalid"),
        (json.dumps(GOOD).replace("{}", "[" * 100_000), "object"),
        ("\xff", "invalid"),
    ],
)
def test_a_bad_file_is_refused_with_the_reason(tmp_path, content, reason):
    path = tmp_path / "hints.json"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(UnreadableHints, match="has no hints that can be used") as caught:
        Hints.load(path)
    assert reason in caught.value.reason
    assert caught.value.path == str(path)


def test_a_file_that_is_not_there_or_too_large(tmp_path):
    with pytest.raises(UnreadableHints, match="No such file"):
        Hints.load(tmp_path / "none")
    with pytest.raises(UnreadableHints, match="more than"):
        Hints.decode(b" " * (MAX_BYTES + 1))
