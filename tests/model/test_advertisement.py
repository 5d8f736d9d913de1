"""Advertisements: closed boxes, whose constraints on one attribute are alternatives."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palio import Advertisement, Filter, FilterError, FilterSyntaxError, Notification
from palio.model.advertisement import MixedAlternative
from palio.model.expression import Condition, text_of
from tests.generators import Maker, random_advertisement
from tests.reference import evaluate
from tests.slices import examples

STOCKS = Advertisement.parse('class = "stock", price > 0, change *, name = "ERNT", name = "MSFT"')


def test_every_attribute_of_the_notification_must_be_advertised():
    assert STOCKS.covers(Notification({"class": "stock", "name": "ERNT", "price": 5, "change": -1}))
    assert STOCKS.covers(Notification({"name": "MSFT"}))
    assert not STOCKS.covers(Notification({"name": "IBM"}))
    assert not STOCKS.covers(Notification({"price": 0}))
    assert not STOCKS.covers(Notification({"name": "ERNT", "volume": 5}))


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ('name = "ERNT"', True),
        ('name = "ERNT" and price < 10', True),
        ("price < 0", False),
        ("price > 0 and volume > 5", False),
        ("absent(volume)", True),
        ("not volume > 5", True),
        ('name = "IBM" or price < 0', False),
        ('name = "IBM" or price > 7', True),
        ('name starts with "MS"', True),
        ('name starts with "XX"', False),
        ("price > 5 and price < 3", False),
        ("true", True),
    ],
)
def test_a_filter_overlaps_iff_something_advertised_satisfies_it(text, answer):
    assert STOCKS.overlaps(Filter.parse(text)) is answer


def test_covering_between_advertisements():
    assert STOCKS.covers(Advertisement.parse('name = "ERNT", price > 5'))
    assert not STOCKS.covers(Advertisement.parse('name = "ERNT", price >= 0'))
    assert not STOCKS.covers(Advertisement.parse("volume *"))
    assert Advertisement.parse("").covers(Notification({}))
    assert STOCKS.covers(Advertisement.parse(""))
    assert STOCKS.overlaps(Advertisement.parse("volume *"))


def test_a_conjunction_on_one_attribute_stands_in_parentheses():
    ranged = Advertisement.parse("(price > 0 and price < 100)")
    assert not ranged.covers(Notification({"price": 100}))
    assert Advertisement.parse("price > 0 and price < 100").covers(Notification({"price": 100}))


@pytest.mark.parametrize("text", ["(a = 1 or b = 2)", "(a = 1 and b = 2)", "true", "a = 1, (a = 1 and a = 2)"])
def test_what_is_not_about_one_attribute_is_refused(text):
    with pytest.raises(FilterError, match="not about exactly one"):
        Advertisement.parse(text)


def test_mistakes_are_told_at_their_column():
    with pytest.raises(FilterSyntaxError, match="Column 8: expected a value"):
        Advertisement.parse("price >, name = 5")


def test_the_text_is_read_back():
    for text in ("", 'a = 1, b > 5; c * & d = "x"', "(a > 0 and a != 5), `odd name` = true | `odd name` = 3"):
        advertisement = Advertisement.parse(text)
        again = Advertisement.parse(str(advertisement))
        assert again == advertisement
        assert hash(again) == hash(advertisement)
        assert pickle.loads(pickle.dumps(advertisement)) == advertisement


@pytest.mark.parametrize(
    ("text", "outside"),
    [
        ("(price > 1 and price < 8), price = 20", Notification({"price": 100})),
        ('(exists(string x) and not x contains "ba"), (exists(string x) and not x ends with "q")', None),
        ("(a between 1 and 2 and a != 1.5), (b * and not b has 3), a = true", Notification({"a": 1.5})),
    ],
)
def test_alternatives_that_are_conjunctions_are_read_back(text, outside):
    advertisement = Advertisement.parse(text)
    again = Advertisement.parse(str(advertisement))
    assert again == advertisement
    assert outside is None or not again.covers(outside)


@examples(300)
@given(st.randoms(use_true_random=False))
def test_the_text_of_any_advertisement_is_read_back(random):
    advertisement = random_advertisement(Maker(random))
    assert Advertisement.parse(str(advertisement)) == advertisement


@examples(200)
@given(st.randoms(use_true_random=False))
def test_nothing_advertised_and_selected_is_missed(random):
    maker = Maker(random)
    names = [random.choice(maker.names) for _ in range(random.randint(1, 4))]
    conditions = [Condition(name, maker.constraint(name)) for name in names]
    wanted = maker.expression()
    try:
        advertisement = Advertisement.parse(", ".join(f"({text_of(one)})" for one in conditions))
    except MixedAlternative:
        return  # a constraint that nothing or everything satisfies is about no attribute
    f = Filter.from_expression(wanted)
    overlaps = advertisement.overlaps(f)
    for _ in range(10):
        n = maker.notification()
        meant = all(
            any(evaluate(one, n.attributes) for one in conditions if one.attribute == name) for name in n
        )
        assert advertisement.covers(n) == meant
        if meant and evaluate(wanted, n.attributes):
            assert overlaps
