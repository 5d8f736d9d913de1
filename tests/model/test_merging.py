"""Merging: perfect or not, with what is added named and estimated."""

import pytest

from palio import Filter
from palio.model.merging import side_share


def merge(one: str, other: str):
    return Filter.parse(one).merge(Filter.parse(other))


@pytest.mark.parametrize(
    ("one", "other", "merged"),
    [
        ("x = 5 and y in (2, 3)", "x = 5 and y in (4, 5)", "x = 5 and y in (2, 3, 4, 5)"),
        ("x > 5", "x > 3", "x > 3"),
        ("x < 5", "x >= 5", "exists(int x) or exists(float x)"),
        ("a = 1 and b = 2", "a = 1", "a = 1"),
        ("x = 1", "not x = 1", "true"),
        ("a = 1 or b = 1", "c = 1", "a = 1 or b = 1 or c = 1"),
        (
            'x starts with "a" and y = 1',
            'x ends with "a" and y = 1',
            'y = 1 and (x starts with "a" or x ends with "a")',
        ),
    ],
)
def test_perfect_merges(one, other, merged):
    result = merge(one, other)
    assert result.filter == Filter.parse(merged)
    assert result.perfect
    assert result.extra == Filter.parse("false")
    assert result.extra_share == 0.0


@pytest.mark.parametrize(
    ("part", "whole", "share"),
    [
        ("x in (1, 2)", "x in (1, 2, 3, 4)", 0.5),
        ("x = true", "exists(bool x)", 0.5),
        ("int x between 0 and 3", "int x between 0 and 15", 0.25),
        ("x between 0 and 4", "x between 0 and 16", 0.25),
        ("x between 2026-01-01T00:00:00Z and 2026-01-02T00:00:00Z",
         "x between 2026-01-01T00:00:00Z and 2026-01-05T00:00:00Z", 0.25),
        ('x contains "a"', 'x contains "a" or x contains "b"', 0.5),  # a guess
        ("x = 1", "x = 1", 1.0),
        ('x = 1', 'x = "a" or x = 1', 0.5),
    ],
)  # fmt: skip
def test_the_share_of_a_part_is_estimated_by_kind(part, whole, share):
    sides = [Filter.parse(text).conjunctions[0].sides["x"] for text in (part, whole)]
    assert side_share(*sides) == pytest.approx(share)


def test_an_imperfect_merge_names_what_it_adds():
    result = merge("x between 0 and 10 and y between 0 and 10", "x between 10 and 20 and y between 10 and 20")
    assert not result.perfect
    assert result.filter == Filter.parse("x between 0 and 20 and y between 0 and 20")
    assert result.extra == Filter.parse(
        "x between 0 and 20 and y between 0 and 20 and not (x <= 10 and y <= 10) and not (x >= 10 and y >= 10)"
    )
    assert result.extra_share == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("one", "other", "share"),
    [
        ('s = "a" and x = 1', 's = "b" and x = 2', 0.5),
        ("x between 0 and 10 and b = true", "x between 0 and 30 and b = false", 1 / 3),
        ('s in ("a", "b", "c") and int x between 1 and 4', 's = "d" and int x between 5 and 8', 0.5),
    ],
)
def test_the_share_of_what_is_added(one, other, share):
    assert merge(one, other).extra_share == pytest.approx(share, rel=0.05)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x < 0", "int x >= 9 and y = true"),  # what is added are ints
        ("x < 0 and y = 1", "x > 0 and y = 2"),
        ('s < "a" and y = true', 's > "a" and y = false'),
        ("exists(x) and y = 1", "x = 1 and y in (1, 2)"),
        ("x = 1e300 and y = true", "x != 1e300 and y = false"),
        ('s = "aaaaaaaaaaaaaaaaaaaa" and y = true', 's >= "aaaaaaaaaaaaaaaaaaaa" and y = false'),
    ],
)
def test_a_share_of_zero_means_perfect_and_only_that(one, other):
    for result in (merge(one, other), merge(other, one)):
        assert result.perfect == (result.extra_share == 0.0)
        assert not result.perfect
        assert 0 < result.extra_share <= 1


def test_ints_that_are_added_count_like_other_numbers():
    # Half of the ints, which are half of the numbers; with all that `y` can be but one of two bools.
    share = 0.25 * 13 / 14
    assert merge("x < 0", "int x >= 9 and y = true").extra_share == pytest.approx(share, rel=0.01)


def test_attributes_that_only_one_names_are_dropped():
    result = merge("a = 1 and b = 2", "a = 1 and c = 3")
    assert result.filter == Filter.parse("a = 1")
    assert not result.perfect
    assert 0 < result.extra_share <= 1
