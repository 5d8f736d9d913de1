"""The short way of reading a filter says what the long one says, or nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palio.model import parser, shortcut
from palio.model.errors import FilterError

_names = st.sampled_from(["a", "price", "x.y", "between", "AND", "time", "int", "True", "_", "é", "n" * 300])
_numbers = st.one_of(
    st.integers(-(2**70), 2**70).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.sampled_from(["+5", "-0.0", "1e999", "1.", ".5", "2024-01-01", "007", "1e5", "5and"]),
)
_strings = st.text(alphabet="ab\\'\" \n\0é", max_size=5).map(lambda text: f'"{text}"')
_spaces = st.sampled_from(["", " ", "  ", "\n"])
_comparisons = st.tuples(
    _spaces, st.sampled_from(["=", "<", "<=", ">", ">=", "!=", "=="]), _spaces, _numbers | _strings
).map("".join)
_betweens = st.tuples(_numbers, _spaces, _numbers).map(lambda ends: f" between {ends[0]} and{ends[1]}{ends[2]}")
_conditions = st.tuples(_spaces, _names, _comparisons | _betweens, _spaces).map("".join)
_texts = st.lists(_conditions, min_size=1, max_size=4).map(" and ".join)


@given(_texts)
def test_what_is_read_the_short_way_is_what_the_grammar_says(text):
    found = shortcut.plain(text)
    if found is None:
        return
    reader = parser.Reader(text)
    assert reader.alternative() == found
    reader.expect_end("nothing more")


@pytest.mark.parametrize("text", ['symbol = "S1" and price between 1 and 2.5', "a=1", " x.y <= -5 "])
def test_plain_filters_take_the_short_way(text):
    assert shortcut.plain(text) is not None


# No number is so large; the grammar says it in a sentence.
BEYOND = (f"a = {10**400}", f"a between 1 and {10**400}", f"a between -{10**400} and 1")


@pytest.mark.parametrize(
    "text", ["", "a", "a = ", 'a = "x', "a = 1 or b = 2", "a = 1 and", "a between 1 and", "and = 1", *BEYOND]
)
def test_everything_else_does_not(text):
    assert shortcut.plain(text) is None


def test_mistakes_are_reported_as_ever():
    with pytest.raises(FilterError, match="expected"):
        parser.parse("a = 1 and")
