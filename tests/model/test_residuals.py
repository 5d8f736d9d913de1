"""What is computed: total, bounded, the same as bytes and as text, and refused where only sets will do."""

import pickle

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palio import Advertisement, Filter, FilterTooLarge, Notification
from palio.broker.access.rights import WrongRights, parse_rights
from palio.model.conjunction import in_order as residuals_in_order
from palio.model.errors import ComputedCondition
from palio.model.form import UnreadableForm
from palio.model.formulas.evaluation import evaluate, implied
from palio.model.formulas.formula import UNKNOWN, Call, Constant, Failed, Variable
from palio.model.formulas.functions import FUNCTIONS
from palio.model.formulas.residual import MAX_PARTS, Residual, call
from palio.model.values import INT_MAX, INT_MIN, KIND_OF_TYPE, MAX_STRING_BYTES
from tests.matching.drawing import values
from tests.slices import examples

operands = st.one_of(values.map(lambda one: tuple(one) if isinstance(one, list) else one), st.just(UNKNOWN))
operands = st.one_of(operands, st.just(Failed("cast")))


@examples(600)
@given(st.sampled_from(sorted(FUNCTIONS)), st.data())
def test_every_function_takes_anything_and_gives_a_value_or_none(name, data):
    function = FUNCTIONS[name]
    size = data.draw(st.integers(function.least, min(function.most, 4)))
    given = [data.draw(operands) for _ in range(size)]
    attributes = {f"x{place}": one for place, one in enumerate(given)}
    formula = Call(name, tuple(Variable(one) for one in attributes))
    found = evaluate(formula, attributes.get)
    assert found is UNKNOWN or isinstance(found, Failed) or type(found) in KIND_OF_TYPE
    if found is not UNKNOWN and not isinstance(found, Failed):
        assert found in function.gives
        for wanted in (function.gives, function.gives.only(KIND_OF_TYPE[type(found)])):
            sides = implied(formula, wanted)
            assert sides is not None
            for attribute, side in sides.items():
                assert attributes[attribute] in side, (name, given)


def test_what_does_not_fit_is_unknown():
    found = {text: Filter.parse(f"{text} = {text}") for text in ("x + x", "x * x * x * x", "x / y", "-x")}
    most = Notification({"x": INT_MAX, "y": 0})
    assert [text for text, filter in found.items() if filter.matches(most)] == ["-x"]
    assert not found["-x"].matches(Notification({"x": INT_MIN}))
    assert not Filter.parse("x * x > 0").matches(Notification({"x": 1e200}))


def test_no_text_grows_beyond_what_a_value_may_have():
    double = FUNCTIONS["upper"]  # keeps its length: a longer one comes to nothing
    assert double.most == 1
    long = "x" * (MAX_STRING_BYTES + 1)
    assert evaluate(call("upper", Variable("x")), {"x": long}.get) is UNKNOWN
    assert evaluate(call("upper", Variable("x")), {"x": long[:-1]}.get) == long[:-1].upper()


@pytest.mark.parametrize(
    "text",
    [
        "bid > ask",
        "not bid > ask",
        'x = 1 and price * volume > 1000 or not abs(x) <= y % 3 and tags has "a"',
        "coalesce(a, b)",
        'lower(s) = "a\'b\\"c"',
        "a - (b - c) - -d > 2026-01-01T00:00:00Z",
    ],
)
def test_a_filter_is_the_same_as_text_as_bytes_and_pickled(text):
    f = Filter.parse(text)
    for again in (Filter.parse(str(f)), Filter.of_form(f.form), pickle.loads(pickle.dumps(f))):
        assert again == f
        assert hash(again) == hash(f)
        assert (str(again), again.form) == (str(f), f.form)


def test_what_needs_no_computing_is_not_computed():
    for text, plain in {
        "price > 2 * 3": "price > 6",
        "2 * 3 = x": "x = 6",
        "x > -(1 + 1)": "x > -2",
        "abs(-5) > x": "x < 5",
        "1 + 1 = 2": "true",
        "1 + 1 = 3 or x = 1": "x = 1",
        "x between 1 + 1 and 2 * 2": "x between 2 and 4",
    }.items():
        assert Filter.parse(text) == Filter.parse(plain)
        assert not Filter.parse(text).has_residuals


def test_two_ways_to_write_a_comparison_are_one():
    assert Filter.parse("bid > ask") == Filter.parse("ask < bid")
    assert Filter.parse("1000 < price * volume") == Filter.parse("price * volume > 1000")
    assert Filter.parse("a = b") == Filter.parse("b = a")
    assert Filter.parse("x + 1 > 2") != Filter.parse("x + 1.0 > 2")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('price + "a" > 1', '`price + "a" > 1` holds for no values.'),
        ("bid > ask and absent(ask)", "exclude each other"),
        ('price * 2 > 10 and price = "x"', "exclude each other"),
        ("bid > ask and not ask < bid", "`ask < bid` and `not ask < bid` exclude each other."),
        ("lower(x) > 5", "holds for no values"),
    ],
)
def test_what_can_never_hold_is_known_by_what_follows(text, reason):
    assert reason in str(Filter.parse(text).contradiction).replace("'a'", '"a"')


def test_why_is_told_with_the_values():
    f = Filter.parse("price * volume > 1000 and bid > ask")
    assert str(f.explain(Notification({"price": 10, "volume": 100, "bid": 2, "ask": 1}))) == (
        "✗ all of\n"
        "  ✗ price * volume > 1000  (price is 10, volume is 100, price * volume is 1000)\n"
        "  ✓ ask < bid  (ask is 1, bid is 2)"
    )
    assert "price is absent, volume is 1, price * volume is unknown" in str(
        f.explain(Notification({"volume": 1}))
    )


# Where there may be none


@pytest.mark.parametrize("text", ["abs(x) > 5", "x = 1, y * y > 2", "x > y"])
def test_advertisements_refuse_what_is_computed(text):
    with pytest.raises(ComputedCondition, match="An advertisement cannot have `"):
        Advertisement.parse(text)


def test_rights_refuse_what_is_computed():
    for rights in (("bid > ask", None), (None, "x = 1 or not bid > ask")):
        with pytest.raises(WrongRights, match=r"A right cannot have `.*Say what each attribute may be\."):
            parse_rights(*rights, (), "desk")
    assert parse_rights("price > 2 * 3", "true", (), "desk").publish == Filter.parse("price > 6")


# Limits


def test_formulas_are_bounded_however_they_are_made():
    wide = "coalesce(" + ", ".join("abcdefghijklmnop") + ")"
    with pytest.raises(FilterTooLarge, match="256"):
        Filter.parse(" + ".join([wide] * 20) + " > 1")
    with pytest.raises(FilterTooLarge, match="64"):
        Filter.parse("+".join(["x"] * 66).replace("+", " + ") + " > 1")
    with pytest.raises(FilterTooLarge, match="levels of nesting"):
        Filter.parse("abs(" * 70 + "x" + ")" * 70 + " > 1")
    with pytest.raises(FilterTooLarge, match="levels of nesting"):
        Filter.parse("- " * 70 + "x > 1")
    with pytest.raises(FilterTooLarge, match="computed conditions in one conjunction"):
        Filter.parse(" and ".join(f"a > b + {number}" for number in range(17)))
    assert Filter.parse(" and ".join(f"a > b + {number}" for number in range(16))).form
    deep = Variable("x")
    for _ in range(1_000):
        deep = Call("abs", (deep,))
    with pytest.raises(FilterTooLarge):
        Filter.from_expression(Residual(deep))
    with pytest.raises(FilterTooLarge):
        Filter.from_expression(Residual(Call("coalesce", (Variable("x"),) * (MAX_PARTS + 1))))


FORM = msgspec.msgpack.decode(Filter.parse("bid > ask").form)


@pytest.mark.parametrize(
    "residuals",
    [
        [],
        5,
        [[True, "x"]],
        [[1, ["less", "a", "b"]]],
        [[True, ["less", "a"]]],
        [[True, ["unheard", "a", "b"]]],
        [[True, [5, "a", "b"]]],
        [[True, ["less", "", "b"]]],
        [[True, ["less", [0, None], "b"]]],
        [[True, ["less", [0, [1]], "b"]]],
        [[True, ["less", [0, 2**63], "b"]]],
        [[True, ["less", "a", "b"]], [True, ["less", "a", "b"]]],
        [[False, ["less", "a", "b"]], [True, ["less", "a", "b"]]],
        [[True, ["less", "b", "c"]], [True, ["less", "a", "c"]]],
        [[True, ["less", "a", f"b{number}"]] for number in range(17)],
        [[True, ["abs", ["abs"] * 70]]],
        [[True, ["coalesce", *["a"] * 17]]],
    ],
)
def test_bytes_of_no_residual_are_refused(residuals):
    version, box = FORM
    assert len(box) % 2 == 1
    with pytest.raises(UnreadableForm):
        Filter.of_form(msgspec.msgpack.encode([version, [*box[:-1], residuals]]))


def test_constants_of_all_kinds_travel():
    for constant in (True, 5, 5.0, "a", b"\xff"):
        f = Filter.from_expression(
            Residual(call("unequal", Variable("x"), call("coalesce", Variable("y"), Constant(constant))))
        )
        again = Filter.of_form(f.form)
        assert again == f
        assert again.matches(Notification({"x": "other"}))
        assert not again.matches(Notification({"x": constant}))


named = st.sampled_from(["a", "ab", "a b", "a'", 'a"', "é", "a!"]).map(Variable)
named_or_constant = named | st.sampled_from([1, 1.0, True, "x"]).map(Constant)
calls = st.tuples(st.sampled_from(["less", "less_or_equal"]), st.tuples(named_or_constant, named_or_constant))
unordered = st.lists(
    st.tuples(calls, st.booleans()).map(lambda one: Residual(Call(*one[0]), one[1])), max_size=5
)


@examples(300)
@given(unordered)
def test_residuals_are_in_the_order_of_their_texts_each_once(several):
    assert residuals_in_order(several) == tuple(sorted(set(several), key=repr))
