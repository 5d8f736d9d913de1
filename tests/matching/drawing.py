"""Filters and notifications for hypothesis: few names, few constants, values on and around them."""

from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

import palio
from palio.model.constraint import Constraint, WrongOperand
from palio.model.expression import And, Condition, Not, Or, truth_of
from palio.model.formulas.formula import Constant, Variable
from palio.model.formulas.residual import call
from palio.model.values import Kind

NAMES = ("a", "b", "c")
BIG = 2**53
NUMBERS = (
    0, 1, 2, 3, -1, 0.5, 1.0, 1.5, 2.0, -0.0, 1e300, -1e300, 5e-324, BIG - 1, BIG, BIG + 1, float(BIG),
    -BIG - 1, -BIG, -(2**63), 2**63 - 1, float(2**63), 10.25, 100,
)  # fmt: skip
TEXTS = (
    "",
    "1",
    "a",
    "ab",
    "abc",
    "b",
    "ba",
    "a/b",
    "a/b/c",
    "é",
    "aé",
    "\U0001f600",
    "\uffff",
    "a\0",
    "true",
    "x" * 80,
)
TIMES = (
    *(datetime(2026, 1, 1, tzinfo=UTC) + timedelta(microseconds=step) for step in (0, 1, 1000)),
    datetime.min.replace(tzinfo=UTC),
    datetime.max.replace(tzinfo=UTC),
    # Where microseconds cease to be exact doubles.
    *(datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=2**53 + step) for step in (-1, 0, 1)),
)
RAW = (b"", b"a", b"ab", b"\xff", b"b\x00")
GLOBS = ("a/**", "**/b", "*", "a*", "*b*", "a/*/c", "**/c/**", "*/**", "a/**/c", "\\*", "*é", "x*x*x*x")

numbers = st.sampled_from(NUMBERS)
texts = st.sampled_from(TEXTS)
scalars = st.one_of(st.booleans(), numbers, numbers, texts, texts, st.sampled_from(TIMES), st.sampled_from(RAW))
lists = st.one_of(
    st.lists(texts, max_size=3),
    st.lists(st.sampled_from([1, 2, 3, BIG + 1]), max_size=3),
    st.lists(st.sampled_from([0.5, 1.0, 1.5]), max_size=3),
    st.lists(st.booleans(), max_size=2),
    st.lists(st.sampled_from(RAW), max_size=2),
    st.lists(st.sampled_from(TIMES), max_size=2),
)
values = st.one_of(scalars, scalars, scalars, lists)
notifications = st.dictionaries(st.sampled_from((*NAMES, "unknown")), values).map(palio.Notification)


def _constraint(element: bool) -> st.SearchStrategy[Constraint]:
    comparison = st.builds(Constraint, st.sampled_from(("=", "=", "!=", "<", "<=", ">", ">=")), scalars)
    demanded = st.builds(
        Constraint, st.sampled_from(("=", "<", ">=", "!=")), numbers, st.sampled_from((Kind.INT, Kind.FLOAT))
    )
    between = st.builds(Constraint, st.just("between"), st.tuples(numbers, numbers))
    between_texts = st.builds(Constraint, st.just("between"), st.tuples(texts, texts))
    among = st.builds(Constraint, st.just("in"), st.lists(scalars, min_size=1, max_size=4).map(tuple))
    among_alike = st.builds(
        Constraint,
        st.just("in"),
        st.one_of(st.lists(texts, min_size=1), st.lists(numbers, min_size=1)).map(tuple),
    )
    text = st.builds(
        Constraint,
        st.sampled_from(("starts with", "ends with", "contains")),
        st.one_of(texts, st.sampled_from(RAW)),
    )
    glob = st.builds(Constraint, st.just("matches"), st.sampled_from(GLOBS))
    chosen = st.one_of(comparison, comparison, demanded, between, between_texts, among, among_alike, text, glob)
    if element:
        return chosen
    presence = st.builds(
        Constraint,
        st.sampled_from(("exists", "exists", "absent")),
        st.none(),
        st.sampled_from((None, None, *Kind)),
    )
    has = st.builds(Constraint, st.just("has"), _constraint(True))
    return st.one_of(chosen, chosen, presence, has)


def _is_meant(expression: object) -> bool:
    try:
        palio.Filter.from_expression(expression)  # type: ignore[arg-type]
    except (WrongOperand, palio.FilterTooLarge):
        return False
    return True


plain = st.builds(Condition, st.sampled_from(NAMES), _constraint(False)).filter(_is_meant)
formulas = st.recursive(
    st.one_of(
        st.sampled_from(NAMES).map(Variable), st.sampled_from(NAMES).map(Variable), scalars.map(Constant)
    ),
    lambda inner: st.builds(
        lambda function, operands: call(
            function, *operands[: 1 if function in ("abs", "length", "lower") else 2]
        ),
        st.sampled_from(
            ("add", "subtract", "multiply", "divide", "remainder", "abs", "length", "lower", "coalesce")
        ),
        st.tuples(inner, inner),
    ),
    max_leaves=3,
)
computed = st.builds(
    lambda sign, left, right: truth_of(call(sign, left, right)),
    st.sampled_from(("less", "less_or_equal", "equal", "unequal")),
    formulas,
    formulas,
)
conditions = st.one_of(plain, plain, plain, plain, computed)
expressions = st.recursive(
    conditions,
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=4).map(lambda several: And(tuple(several))),
        st.lists(inner, min_size=2, max_size=4).map(lambda several: And(tuple(several))),
        st.lists(inner, min_size=2, max_size=3).map(lambda several: Or(tuple(several))),
        inner.map(Not),
    ),
    max_leaves=6,
)
filters = st.one_of(
    st.just(palio.Filter.parse("true")), expressions.filter(_is_meant).map(palio.Filter.from_expression)
)
ids = st.one_of(
    st.integers(0, 40), st.text(max_size=2), st.tuples(st.integers(0, 3), st.text(max_size=1)), st.booleans(),
    st.none(), st.floats(0, 3), st.frozensets(st.integers(0, 2)),
)  # fmt: skip
