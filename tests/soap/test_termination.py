"""Termination times, as XML Schema writes them. The oracle of durations is isodate, which zeep reads with."""

import re
from datetime import UTC, datetime, timedelta

import isodate
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palio.broker.soap.termination import WrongTerm, read_duration, read_moment, read_term, write_moment

NOW = datetime(2026, 7, 2, 10, 45, tzinfo=UTC).timestamp()
PARTS = st.tuples(*[st.none() | st.integers(0, 500) for _ in range(4)])


@given(PARTS, st.booleans(), st.none() | st.integers(0, 999_999))
def test_durations_of_days_and_less_are_those_of_another_reader(parts, negative, fraction):
    days, hours, minutes, seconds = parts
    if seconds is not None and fraction is not None:
        seconds = f"{seconds}.{fraction:06}"
    date = "" if days is None else f"{days}D"
    time = "".join(
        f"{part}{unit}" for part, unit in ((hours, "H"), (minutes, "M"), (seconds, "S")) if part is not None
    )
    written = f"{'-' if negative else ''}P{date}{'T' if time else ''}{time}"
    if written.endswith("P"):
        with pytest.raises(WrongTerm):
            read_duration(written)
    else:
        assert read_duration(written) == pytest.approx(
            isodate.parse_duration(written).total_seconds(), abs=1e-6
        )


def test_years_and_months_have_a_length_here():
    assert read_duration("P1Y2M") == timedelta(days=365 + 60).total_seconds()


@given(
    st.datetimes(min_value=datetime(1971, 1, 1), max_value=datetime(2100, 1, 1)), st.integers(-14 * 60, 14 * 60)
)
def test_moments_are_those_of_another_reader(moment, offset):
    sign, minutes = "-" if offset < 0 else "+", abs(offset)
    written = f"{moment.isoformat(timespec='microseconds')}{sign}{minutes // 60:02}:{minutes % 60:02}"
    assert read_moment(written) == pytest.approx(datetime.fromisoformat(written).timestamp(), abs=1e-5)


def test_a_moment_without_a_zone_is_utc():
    assert read_moment("2026-07-02T10:45:00") == read_moment("2026-07-02T10:45:00Z") == NOW
    assert read_moment(write_moment(NOW + 0.25)) == NOW + 0.25


@pytest.mark.parametrize(
    "written",
    [
        "",
        "soon",
        "P",
        "PT",
        "P1",
        "1D",
        "PT1.S",
        "P1H",
        "PT5D",
        "2026-13-01T00:00:00Z",
        "2026-01-01",
        "PT９S",
        "0",
    ],
)
def test_anything_else_is_no_time(written):
    with pytest.raises(WrongTerm) as refused:
        read_term(written, NOW)
    assert str(refused.value).endswith(".")


@pytest.mark.parametrize("written", ["PT0S", "-PT1S", "2026-07-02T10:44:59Z", "P20Y", "9999-12-31T23:59:59Z"])
def test_what_is_past_or_far_away_is_refused(written):
    with pytest.raises(WrongTerm):
        read_term(written, NOW)
    assert re.match("It is", refused_reason(written))


def refused_reason(written):
    try:
        read_term(written, NOW)
    except WrongTerm as problem:
        return problem.reason
    raise AssertionError(written)
