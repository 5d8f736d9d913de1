"""The page about delivery names every check of the oracle, and draws the life of a subscription as it is."""

import re

import pytest

from palio.routing.durable.home.going_live import WAY, Stage
from palio.routing.durable.home.subscription import TRANSITIONS, State
from palio.sim.faults.oracle import CHECKS


@pytest.fixture(scope="module")
def page(root) -> str:
    return (root / "docs" / "delivery.md").read_text()


def diagram(first, table) -> str:
    """The states and what leads from one to the next, for Mermaid."""
    lines = ["stateDiagram-v2", f"    [*] --> {first.value}"]
    lines += [
        f"    {state.value} --> {following.value}: {event}"
        for state, events in table.items()
        for event, following in events.items()
    ]
    lines += [f"    {state.value} --> [*]" for state, events in table.items() if not events]
    return "\n".join(lines) + "\n"


def test_the_diagrams_are_those_of_the_tables(page):
    drawn = re.findall(r"^```mermaid\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert drawn == [diagram(State.STORING, TRANSITIONS), diagram(Stage.RESTING, WAY)]


def test_every_state_is_explained(page):
    for state in (*State, *Stage):
        assert f"- **{state.value}**:" in page


def test_every_promise_names_the_check_that_guards_it(page):
    named = re.findall(r"^\| .* \| `(\w+)` \|$", page, re.MULTILINE)
    assert named == [check.__name__ for check in CHECKS]
    for check in CHECKS:
        assert check.__doc__
