"""Formulas calculate, and do nothing else."""

import math
import pickle

import pytest

from palio.sim.experiments.formula import Formula, InvalidFormula


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a / b", 2.5),
        ("-a + 2 ** 3", -2.0),
        ("(a + b) * 3", 42.0),
        ("min(a, b, 1)", 1.0),
        ("max(a)", 10.0),
        ("log10(a) + sqrt(b)", 3.0),
        ("1e3", 1000.0),
    ],
)
def test_arithmetic(text, value):
    assert Formula(text)({"a": 10, "b": 4}) == value


@pytest.mark.parametrize("text", ["a / 0", "log(0)", "sqrt(-1)", "(-8) ** 0.5", "10.0 ** 1000"])
def test_what_has_no_value_is_not_a_number(text):
    assert math.isnan(Formula(text)({"a": 1}))


@pytest.mark.parametrize(
    "text",
    ["", "a +", "open('x')", "a.b", "a[0]", "'text'", "a if b else c", "lambda: 1", "max()", "True", "a < b",
     "__import__('os')", "min(*a)", "max(a, key=b)", "1j"],
)  # fmt: skip
def test_nothing_else_of_python_is_in_reach(text):
    with pytest.raises(InvalidFormula, match="cannot be used"):
        Formula(text)


def test_a_formula_knows_its_names_and_travels_to_other_processes():
    formula = pickle.loads(pickle.dumps(Formula("cost / max(1, subscribers)")))
    assert formula.names == {"cost", "subscribers"}
    assert formula({"cost": 6, "subscribers": 3}) == 2.0
