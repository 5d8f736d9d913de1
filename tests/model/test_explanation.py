"""Explanations: each condition with true or false and the value that decided."""

from hypothesis import given
from hypothesis import strategies as st

from palio import Filter, Notification
from tests.generators import Maker
from tests.slices import examples


def test_each_condition_is_told_with_the_value_that_decided():
    f = Filter.parse('symbol = "ACME" and price > 100 and (exchange in ("NYSE", "LSE") or not halted)')
    explanation = f.explain(Notification({"symbol": "ACME", "price": 99, "exchange": "FRA"}))
    assert not explanation
    assert str(explanation).splitlines() == [
        "✗ all of",
        '  ✓ symbol = "ACME"  (symbol is "ACME")',
        "  ✗ price > 100  (price is 99)",
        "  ✓ any of",
        '    ✗ exchange in ("NYSE", "LSE")  (exchange is "FRA")',
        "    ✓ not",
        "      ✗ halted = true  (halted is absent)",
    ]
    price = explanation.parts[1]
    assert (price.attribute, price.value, price.holds, price.text) == ("price", 99, False, "price > 100")


def note(text: str, value) -> str:
    return Filter.parse(text).explain(Notification({"x": value})).note


def test_what_a_person_may_have_overlooked_is_said():
    assert note("x > 5", "7") == 'x is "7", of type string, which is never compared with 5'
    assert note("int x > 5", 7.5) == "x is 7.5, of type float; int is demanded"
    assert note("x = 5", [5]) == "x is [5], a list: ask with `has`"
    assert note("x has 5", 5) == "x is 5, of type int and not a list"
    assert note("x > 2026-01-01T00:00:00Z", "2026-07-02T10:45:00Z").endswith(
        "strings are never taken for times"
    )
    assert note("x > 5", 3) == "x is 3"
    assert note('x != "a"', "a") == 'x is "a"'


def test_what_is_there_and_cannot_be_filtered_is_not_called_absent():
    order = Notification({"items": [{"sku": "a"}], "item": 1, "deep": {"mixed": [1, "a"]}})
    said = "items is a list of objects or of mixed values, which no filter can look into"
    assert Filter.parse('items.sku = "a"').explain(order).note == said
    assert Filter.parse("items has 1").explain(order).note == said
    assert Filter.parse("deep.mixed has 1").explain(order).note == said.replace("items", "deep.mixed")
    assert Filter.parse("item.sku = 1").explain(order).note == "item.sku is absent"
    assert Filter.parse("itemsold = 1").explain(order).note == "itemsold is absent"


def test_long_values_are_shortened():
    assert len(note('x = "a"', "b" * 5_000)) < 100
    assert "…" in note("x has 5", list(range(100)))


@examples(200)
@given(st.randoms(use_true_random=False))
def test_an_explanation_agrees_with_matching(random):
    maker = Maker(random)
    expression = maker.expression()
    f = Filter.from_expression(expression)
    for _ in range(5):
        n = maker.notification()
        assert bool(f.explain(n)) == f.matches(n)
