"""What is accepted can be written out and read again, however many text conditions it has."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palio import Filter
from palio.model import decision
from palio.model.cover import cover
from palio.model.describe import _term_tree
from palio.model.flips import NOTHING
from palio.model.values import Kind
from tests.generators import Maker
from tests.slices import examples

NEGATED = " and ".join(f'not a contains "x{number:03}"' for number in range(31))
GLOBS = " and ".join(f'not a matches "x{number:03}/*"' for number in range(40))
EITHER = " or ".join(f'a contains "x{number:03}"' for number in range(40))
BOTH = " and ".join(f'(a contains "x{number}" or a ends with "y{number}")' for number in range(6))
MANY = " or ".join(
    f'(a contains "w{number}" and b ends with "v{number}" and c contains "q{number}")' for number in range(25)
)


@pytest.mark.parametrize("text", [NEGATED, GLOBS, EITHER, BOTH, MANY], ids=lambda text: text[:20])
def test_a_filter_of_many_text_conditions_is_read_back_from_its_own_text(text):
    f = Filter.parse(text)
    assert Filter.parse(str(f)) == f
    assert len(str(f)) < 2 * len(text)


def test_what_asks_nothing_is_one_term():
    below = Filter.parse('x < "m"').conjunctions[0].sides["x"].parts[Kind.STRING]
    assert cover(Kind.STRING, below) == [((), below)]


def test_a_filter_that_cannot_be_simplified_in_time_is_taken_as_it_is():
    assert len(Filter.parse(MANY).conjunctions) == 25


@examples(100)
@given(st.randoms(use_true_random=False))
def test_the_terms_of_a_tree_are_the_tree(random):
    maker = Maker(random, ("a",))
    for box in Filter.from_expression(maker.expression(3)).conjunctions:
        for kind in (Kind.STRING, Kind.BYTES, Kind.LIST):
            tree = box.side("a").parts[kind]
            covered = NOTHING
            for term in cover(kind, tree):
                covered = decision.combine(covered, _term_tree(kind, *term), 1)
            assert covered == tree


@pytest.mark.parametrize("joined", ["{}", "({}) or z = 1", "({}) or z = 1 and ({})"])
def test_filters_of_many_attributes_are_compared(joined):
    text = " and ".join(f"a{number} = 1" for number in range(250))
    one, other = Filter.parse(joined.format(text, text)), Filter.parse(joined.format(text, text))
    assert one == other
    assert hash(one) == hash(other)
    assert one.intersect(other) == one
