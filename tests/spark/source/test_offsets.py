"""What is gone before it was read is noticed, down to a single event. (Without Spark.)"""

import pytest

from palio.spark.errors import DataLoss
from palio.spark.source.journals import JournalStanding
from palio.spark.source.offsets import require_kept


@pytest.mark.parametrize("start", [{"a": 4}, {"a": 5}, {"a": 9}])
def test_whoever_has_read_what_is_gone_goes_on(start):
    require_kept(start, [JournalStanding("a", trimmed=4, head=9)])


@pytest.mark.parametrize(("start", "first"), [({"a": 3}, 4), ({}, 1), ({"other": 8}, 1)])
def test_a_single_event_that_is_gone_is_a_loss(start, first):
    with pytest.raises(DataLoss, match=f"from {first} on, but begins with 5"):
        require_kept(start, [JournalStanding("a", trimmed=4, head=9)])
