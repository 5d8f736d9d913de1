"""Intervals and fits, on numbers that can be checked by hand."""

import math

import pytest

from palio.sim.experiments.statistics import (
    paired_difference,
    paired_ratio,
    power_law,
    student,
    summary,
)


def test_a_mean_and_its_interval():
    found = summary([1.0, 2.0, 3.0, 4.0, 5.0, math.nan])
    assert (found.count, found.mean) == (5, 3.0)
    assert found.standard_error == pytest.approx(math.sqrt(2.5 / 5))
    assert found.high - found.mean == pytest.approx(2.776 * math.sqrt(0.5))


def test_too_few_values_have_no_interval():
    assert summary([7.0]).low == -math.inf
    assert math.isnan(summary([]).mean)


def test_student_goes_over_into_the_normal_distribution():
    assert student(9) == 2.262
    assert student(30) == pytest.approx(student(31), abs=0.01)
    assert student(100) == pytest.approx(1.984, abs=0.001)
    assert student(1_000_000) == pytest.approx(1.96, abs=0.001)
    assert student(0) == math.inf


def test_pairs_cancel_what_they_have_in_common():
    noise = [0.0, 50.0, -30.0, 10.0]
    difference = paired_difference([10 + one for one in noise], [11 + one for one in noise])
    assert (difference.mean, difference.standard_error) == (-1.0, 0.0)
    assert difference.high < 0


def test_ratios():
    found = paired_ratio([2.0, 4.0, 6.0], [1.0, 2.0, 3.0])
    assert (found.mean, found.standard_error) == (2.0, 0.0)
    assert paired_ratio([0.0, 0.0], [0.0, 0.0]).mean == 1.0
    assert paired_ratio([1.0, 1.0], [0.0, 0.0]).mean == math.inf


def test_a_power_law_is_found_again():
    law = power_law([(x, 3.0 * x**1.5) for x in (1, 10, 100, 1000)])
    assert law is not None
    assert (law.factor, law.exponent) == (pytest.approx(3.0), pytest.approx(1.5))
    assert law.half_width == pytest.approx(0.0, abs=1e-9)
    assert law(10_000) == pytest.approx(3e6)


def test_noise_widens_the_interval_of_the_exponent():
    law = power_law([(1, 1.0), (10, 12.0), (100, 90.0), (1000, 1100.0)])
    assert law is not None
    assert 0.02 < law.half_width < 0.3
    assert abs(law.exponent - 1.0) < law.half_width


def test_one_place_gives_no_law():
    assert power_law([(1, 1.0), (1, 2.0)]) is None
    assert power_law([(1, 0.0), (10, 3.0)]) is None
