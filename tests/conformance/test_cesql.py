"""The CloudEvents project's own cases for CloudEvents SQL, read in place: values, and kinds of errors."""

import json
from datetime import datetime
from pathlib import Path

import pytest
import yaml

import palio
from palio.language import MissingFunction, WrongDialectText, read_filter
from palio.language.cesql import read_cesql
from palio.model.formulas.cesql import read
from palio.model.formulas.evaluation import evaluate
from palio.model.formulas.formula import Failed
from palio.model.moments import parse_time

SUITE = Path(__file__).parents[3] / "shared" / "conformance" / "cesql_tck"
CASES = 275
ANY_EVENT = {"specversion": "1.0", "id": "1", "source": "/some", "type": "some"}


def suite():
    found = []
    for file in sorted(SUITE.glob("*.yaml")):
        typed = yaml.safe_load(file.read_text())["tests"]
        written = yaml.load(file.read_text(), yaml.BaseLoader)["tests"]
        for number, (case, raw) in enumerate(zip(typed, written, strict=True)):
            # `expression: TRUE` is a text, however YAML reads it.
            found.append(pytest.param({**case, "expression": raw["expression"]}, id=f"{file.stem}-{number}"))
    reason = "the cases lie beside the project only on the builders' machines"
    return found or [pytest.param(None, marks=pytest.mark.skip(reason=reason))]


def event_of(case) -> palio.Notification:
    event = case.get("event") or {**ANY_EVENT, **case.get("eventOverrides", {})}
    # YAML has times of its own, JSON has not.
    plain = {name: one.isoformat() if isinstance(one, datetime) else one for name, one in event.items()}
    return palio.Notification.from_cloudevent(json.dumps(plain))


def outcome(case):
    """What the expression comes to, and the kind of what went wrong."""
    try:
        formula = read_cesql(case["expression"])
    except MissingFunction:
        return False, "missingFunction"
    except WrongDialectText:
        return False, "parse"
    value = read(evaluate(formula, event_of(case).attributes.get))
    if isinstance(value, Failed):
        return (False if value.instead is None else value.instead), value.kind
    return value, None


@pytest.mark.parametrize("case", suite())
def test_it_comes_to_what_the_suite_says(case):
    value, kind = outcome(case)
    assert kind == case.get("error")
    if "result" not in case:
        return
    expected = case["result"]
    if isinstance(expected, datetime):  # we write times in UTC, so what has to be the same is the moment
        value = parse_time(value)
    assert (type(value), value) == (type(expected), expected)


@pytest.mark.parametrize("case", suite())
def test_a_filter_selects_what_comes_to_true_without_an_error(case):
    expected = case.get("result") is True and "error" not in case
    try:
        found = read_filter(case["expression"], "cesql").matches(event_of(case))
    except WrongDialectText:
        found = False
    assert found == expected


def test_the_suite_is_whole(shared):
    assert len(suite()) == CASES
