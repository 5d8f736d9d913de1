"""How much of a text's beginning is read after one more character: against trying every length."""

from hypothesis import given
from hypothesis import strategies as st

from palio.model.texts import Contains, EndsWith


def by_trying(text: str, read: str) -> int:
    return max(length for length in range(len(text) + 1) if read.endswith(text[:length]))


@given(st.text("ab", min_size=1, max_size=12), st.text("abc", max_size=24))
def test_a_step_is_the_longest_border(text, read):
    machine = EndsWith(text)
    state = machine.start
    for at, character in enumerate(read, 1):
        state = machine.step(state, character)
        assert state == by_trying(text, read[:at])
    assert machine.accepts(state) == read.endswith(text)


@given(st.text("ab", min_size=1, max_size=12), st.text("abc", max_size=24))
def test_what_was_contained_stays_so(text, read):
    machine = Contains(text)
    state = machine.start
    for character in read:
        state = machine.step(state, character)
    assert machine.accepts(state) == (text in read)
