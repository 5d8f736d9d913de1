"""Ranges of attributes that most events have are in one group; what that may cost others is bounded."""

import random

import pytest

import palio
from palio.matching import oracle
from palio.matching.hints import AttributeHints, Hints

pytest.importorskip("palio.matching.core", reason="the oracle files nothing")

BLOCK = 16_384  # what a pool may hold


def groups(filters, **options) -> int:
    return palio.MatchIndex(enumerate(filters), **options).statistics().groups


def ranges(attributes: int, count: int) -> list[str]:
    return [f"a{n % attributes} > {n}" for n in range(count)]


def test_common_attributes_are_pooled_and_rare_ones_are_not():
    assert groups(ranges(8, 400)) == 1
    assert groups(ranges(80, 400)) == 80


def test_one_by_one_as_well():
    index = palio.MatchIndex()
    for id, text in enumerate(ranges(8, 400)):
        index.add(id, text)
    assert index.statistics().groups == 1


def test_who_is_told_that_an_attribute_is_rare_does_not_pool_it():
    rare = Hints({f"a{n}": AttributeHints(0.01) for n in range(8)})
    common = Hints({f"a{n}": AttributeHints(0.9) for n in range(80)})
    assert groups(ranges(8, 400), hints=rare) == 8
    assert groups(ranges(80, 400), hints=common) == 1


def test_what_has_to_be_asked_of_every_value_is_not_pooled():
    assert groups([f'a{n % 8} > "{n}"' for n in range(80)]) == 8


@pytest.mark.parametrize("at_once", [True, False])
def test_a_pool_that_is_full_stays_as_it_is(at_once):
    print("seed", seed := 5 + at_once)
    draw = random.Random(seed)
    texts = dict(enumerate(f"a{n % 4} between {n % 997} and {n % 997 + 40}" for n in range(BLOCK + 400)))
    index = palio.MatchIndex(texts.items() if at_once else ())
    if not at_once:
        for id, text in texts.items():
            index.add(id, text)
    assert index.statistics().groups == 1 + 4
    for id in draw.sample(sorted(texts), 12_000):
        index.remove(id)
        del texts[id]
    for id in range(BLOCK + 400, BLOCK + 900):  # there is room in the pool again
        texts[id] = f"a{id % 4} > {id % 997}"
        index.add(id, texts[id])
    assert index.statistics().groups == 1 + 4
    truth = oracle.MatchIndex()
    for id, text in texts.items():
        truth.add(id, text)
    for _ in range(6):
        event = palio.Notification({f"a{n}": draw.randrange(1_100) for n in range(4) if draw.random() < 0.8})
        assert sorted(index.match(event)) == sorted(truth.match(event))
