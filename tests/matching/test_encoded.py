"""Matching notifications that are given as their bytes, one by one and in batches."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palio import InvalidNotification, MatchIndex, Notification
from palio.matching import oracle
from tests.matching.drawing import filters as drawn_filters
from tests.matching.drawing import notifications as drawn_notifications


@given(st.lists(drawn_filters, max_size=8), st.lists(drawn_notifications, max_size=12))
def test_a_batch_of_bytes_matches_as_the_oracle_says(filters, notifications):
    truth, index = oracle.MatchIndex(enumerate(filters)), MatchIndex(enumerate(filters))
    encoded = [notification.encode() for notification in notifications]
    found = index.match_encoded(encoded)
    assert [sorted(one) for one in found] == [sorted(one) for one in truth.match_encoded(encoded)]
    assert [sorted(one) for one in found] == [sorted(index.match(one)) for one in notifications]


def test_bytes_that_are_no_notification_are_named():
    index = MatchIndex([("all", "true")])
    with pytest.raises(InvalidNotification) as problem:
        index.match_encoded([Notification({"a": 1}).encode(), b"\xc1"])
    assert problem.value.path == "payload[1]"


def test_nothing_in_nothing_out():
    assert MatchIndex([("all", "true")]).match_encoded([]) == []
