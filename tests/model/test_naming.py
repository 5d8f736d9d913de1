"""An event has one name wherever it is written."""

from hypothesis import given
from hypothesis import strategies as st

from palio.model.cloudevents import wrapped
from palio.model.naming import event_name, read_event_name
from palio.model.notification import Notification


@given(st.text(min_size=1), st.integers(0, 10**18 - 1))
def test_a_name_reads_back(origin, sequence):
    assert read_event_name(event_name(origin, sequence)) == (origin, sequence)


def test_what_was_written_with_a_colon_is_still_read():
    assert read_event_name("siena:17") == ("siena", 17)
    for wrong in ("", "siena", "siena/", "/17", "siena/-1", "siena/1\n", "siena/١", "siena/" + "1" * 19):
        assert read_event_name(wrong) is None


def test_an_event_without_an_id_is_called_by_its_name():
    from datetime import UTC, datetime

    event = wrapped(Notification({"a": 1}), origin="siena", sequence=17, time=datetime.now(UTC))
    assert event["id"] == "siena/17"
