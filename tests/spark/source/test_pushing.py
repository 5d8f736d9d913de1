"""A pushed filter is never stronger than the conditions of Spark from which it was made."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import palio
from palio.spark.source.columns import Columns
from tests.matching.drawing import notifications, numbers, texts

datasource = pytest.importorskip("pyspark.sql.datasource", reason="pyspark is not installed")

from palio.spark.source.pushing import pushed  # noqa: E402

TYPES = {"string": texts, "double": numbers, "bigint": numbers, "boolean": st.booleans(), "int": numbers}
COMPARE = {
    datasource.EqualTo: lambda value, constant: value == constant,
    datasource.GreaterThan: lambda value, constant: value > constant,
    datasource.GreaterThanOrEqual: lambda value, constant: value >= constant,
    datasource.LessThan: lambda value, constant: value < constant,
    datasource.LessThanOrEqual: lambda value, constant: value <= constant,
    datasource.StringStartsWith: lambda value, constant: value.startswith(constant),
    datasource.StringEndsWith: lambda value, constant: value.endswith(constant),
    datasource.StringContains: lambda value, constant: constant in value,
    datasource.In: lambda value, constants: value in constants,
}


@st.composite
def conditions(draw, types):
    name = draw(st.sampled_from(sorted(types)))
    kind = types[name]
    made = [datasource.EqualTo, datasource.GreaterThan, datasource.GreaterThanOrEqual, datasource.LessThan,
            datasource.LessThanOrEqual, datasource.EqualNullSafe]  # fmt: skip
    if kind == "string":
        made += [datasource.StringStartsWith, datasource.StringEndsWith, datasource.StringContains]
    constant = TYPES[kind] if kind != "bigint" else TYPES[kind].filter(lambda one: type(one) is int)
    one = draw(
        st.one_of(
            st.builds(lambda which, value: which((name,), value), st.sampled_from(made), constant),
            st.builds(
                lambda values: datasource.In((name,), tuple(values)), st.lists(constant, min_size=1, max_size=3)
            ),
            st.just(datasource.IsNotNull((name,))),
            st.just(datasource.IsNull((name,))),
        )
    )
    return datasource.Not(one) if draw(st.booleans()) else one


def truth(condition, row):
    """What Spark says: true, false, or None for unknown."""
    if isinstance(condition, datasource.Not):
        inner = truth(condition.child, row)
        return None if inner is None else not inner
    value = row[condition.attribute[0]]
    if isinstance(condition, datasource.IsNull):
        return value is None
    if isinstance(condition, datasource.IsNotNull):
        return value is not None
    if isinstance(condition, datasource.EqualNullSafe):
        return value is not None and value == condition.value
    if value is None:
        return None
    if isinstance(value, str) and type(condition) not in (datasource.StringContains, datasource.In):
        constant = condition.value.encode()
        return COMPARE[type(condition)](value.encode(), constant)
    return COMPARE[type(condition)](value, condition.value)


def selects_what_spark_keeps(data):
    types = {name: data.draw(st.sampled_from(sorted(TYPES))) for name in ("a", "b")}
    columns = Columns(list(types.items()))
    several = data.draw(st.lists(conditions(types), min_size=1, max_size=3))
    filter = pushed(several, columns)
    for event in data.draw(st.lists(notifications, max_size=6)):
        (row,) = columns.table(_events([event])).to_pylist()
        if all(truth(condition, row) for condition in several):
            assert filter is None or filter.matches(event), (several, str(filter))


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_whatever_spark_keeps_is_selected(data):
    selects_what_spark_keeps(data)


@pytest.mark.slow
@settings(max_examples=2_000, deadline=None)
@given(st.data())
def test_whatever_spark_keeps_is_selected_many_times(data):
    selects_what_spark_keeps(data)


def test_what_is_pushed_and_what_is_not():
    columns = Columns([("s", "string"), ("d", "double"), ("i", "int"), ("t", "timestamp")])

    def text(*several):
        filter = pushed(several, columns)
        return None if filter is None else str(filter)

    both = [datasource.EqualTo(("s",), "x"), datasource.GreaterThan(("d",), 1.5)]
    assert pushed(both, columns) == palio.Filter.parse('s = "x" and d > 1.5')
    assert pushed([datasource.Not(datasource.EqualTo(("s",), "x"))], columns) == palio.Filter.parse(
        'exists(s) and not s = "x"'
    )
    assert pushed([datasource.EqualNullSafe(("s",), "x")], columns) == palio.Filter.parse('s = "x"')
    assert text(datasource.IsNull(("s",))) is None
    assert text(datasource.Not(datasource.EqualNullSafe(("s",), "x"))) is None
    assert text(datasource.EqualTo(("i",), 3)) is None
    assert text(datasource.EqualTo(("d",), float("nan"))) is None
    assert text(datasource.EqualTo(("s", "inner"), "x")) is None


def _events(several):
    from palio.spark.source.rows import events_of
    from palio.store.records import encode_body

    return events_of("b", [(1, 0.0, "p", None, encode_body(one.body), None) for one in several])
