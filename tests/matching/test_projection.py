"""Columns of encoded notifications: the compiled projection says what the model says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import palio
from palio.matching import projection
from palio.model.body import Body
from palio.model.values import Kind
from palio.store.records import encode_body
from tests.matching.drawing import NAMES, notifications
from tests.model.test_encoding import WRONG
from tests.slices import examples

pa = pytest.importorskip("pyarrow")

KINDS = [kind for kind in Kind if kind is not Kind.LIST]
wanted = st.lists(
    st.builds(projection.WantedColumn, st.sampled_from([*NAMES, "z"]), st.sampled_from(KINDS), st.booleans()),
    max_size=6,
)
rows = st.lists(
    st.one_of(
        st.none(),
        notifications.map(lambda one: one.encode()),
        st.sampled_from([raw for raw, _ in WRONG.values()]),
    ),
    max_size=12,
)


@examples(400)
@given(rows, wanted, st.integers(0, 3))
def test_the_compiled_projection_is_that_of_the_model(raw, columns, start):
    if not projection.COMPILED:
        pytest.skip("The core was not built.")
    array = pa.array(raw, pa.binary()).slice(min(start, len(raw)))
    found = projection.project(array, columns)
    expected = projection._project_slowly(array, columns)
    for one in found.columns:
        one.validate(full=True)
    assert [one.to_pylist() for one in found.columns] == [one.to_pylist() for one in expected.columns]
    assert (found.unconverted, found.wrong) == (expected.unconverted, expected.wrong)


def test_long_batches_with_a_wrong_row_in_the_middle():
    raw = [palio.Notification({"a": number, "b": f"text {number}"}).encode() for number in range(5_000)]
    raw[1_000] = b"\x81\xa1a"
    found = projection.project(
        pa.array(raw), [projection.WantedColumn("a", Kind.INT), projection.WantedColumn("b", Kind.STRING)]
    )
    assert found.wrong == [1_000]
    right = [number for number in range(5_000) if number != 1_000]
    assert [number for number in found.columns[0].to_pylist() if number is not None] == right
    assert found.columns[1][4_999].as_py() == "text 4999"
    assert found.columns[1][1_000].as_py() is None


@examples(100)
@given(st.lists(notifications, max_size=8))
def test_the_attributes_that_there_are(several):
    found = projection.discover(pa.array([one.encode() for one in several], pa.binary()))
    expected = {}
    for one in several:
        for name, value in one.attributes.items():
            counts = expected.setdefault(name, {})
            kind = projection._kind(value)
            counts[kind] = counts.get(kind, 0) + 1
    assert found == expected


def test_numbers_convert_where_nothing_is_lost():
    values = [3, 2**53 + 1, 0.5, 4.0, True, "3", -0.0]
    raw = pa.array([palio.Notification({"a": value}).encode() for value in values])
    found = projection.project(
        raw, [projection.WantedColumn("a", Kind.FLOAT, True), projection.WantedColumn("a", Kind.INT, True)]
    )
    assert found.columns[0].to_pylist() == [3.0, None, 0.5, 4.0, None, None, 0.0]
    assert found.columns[1].to_pylist() == [3, 2**53 + 1, None, 4, None, None, None]
    assert found.unconverted == [3, 4]


@pytest.mark.parametrize(
    ("value", "kind", "found"),
    [
        (3, Kind.FLOAT, 3.0),
        (2**53 + 1, Kind.FLOAT, None),
        (4.0, Kind.INT, 4),
        (2.0**63, Kind.INT, None),
        (-0.0, Kind.INT, None),
        (True, Kind.INT, None),
    ],
)
def test_the_model_converts_where_nothing_is_lost(value, kind, found):
    assert projection.converted(value, kind, converts=True) == found
    assert projection.converted(value, kind, converts=False) is None


def test_bodies_come_apart_and_together():
    several = [
        palio.Notification({"a": 1}),
        palio.Notification({"a": 2}, id="x"),
        palio.Notification({"a": 3}, priority=9, id="y"),
        palio.Notification({"a": 4, "b": [{"c": 1}]}, lifetime=5.0),
        palio.Notification({"a": "ä" * 300}, id="i" * 200),
    ]
    bodies = [encode_body(one.body) for one in several]
    attributes, properties, wrong = projection.attributes_of_bodies(pa.array([*bodies, b"", b"\x93nonsense"]))
    assert wrong == [5, 6]
    assert [one is None for one in properties.to_pylist()] == [True, True, False, False, True, True, True]
    for number, one in enumerate(several):
        parts = attributes[number].as_py(), one.id, properties[number].as_py()
        assert projection.body_of(*parts) == one.body
    assert isinstance(one.body, Body)
