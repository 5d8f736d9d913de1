"""What comes over the wire is what users get."""

from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given

from palio.client import reading
from palio.client.event import Event
from palio.client.reading import ReceivedDeliveries, ReceivedEvents, read
from palio.protocol import encoding
from palio.protocol.deliveries import Events, Handed
from palio.protocol.envelope import Envelope
from palio.protocol.requests import Published
from tests.model.test_encoding import notifications


def test_an_event_begins_with_the_fields_of_an_envelope():
    assert len(Envelope.__struct_fields__) == 7
    assert Event.__struct_fields__.index("_epoch") == 6


@given(notifications)
def test_an_event_says_what_its_notification_says(notification):
    envelope = Envelope("siena", 7, 1_000_000_000.5, 2, "siena", notification)
    arrived = read(encoding.encode(Events(("s1",), (envelope,))))
    handed = read(encoding.encode(Handed("desk", ((3, 2, envelope),))))
    assert isinstance(arrived, ReceivedEvents)
    assert isinstance(handed, ReceivedDeliveries)
    for event in (arrived.envelopes[0], handed.deliveries[0][2]):
        assert {name: event[name] for name in notification} == dict(notification.attributes)
        assert [type(event[name]) for name in event] == [type(notification[name]) for name in event]
        assert event.notification == notification
        assert (event.origin, event.sequence, event.position) == ("siena", 7, {"siena": 7})
        assert event.taken == datetime.fromtimestamp(1_000_000_000.5, UTC)
        assert event.time == (notification.time or event.taken)


def test_a_reader_of_all_kinds_is_made_when_it_is_needed(monkeypatch):
    monkeypatch.setattr(reading, "_decoders", reading._decoders[:1])
    published = Published(3, "siena", 7)
    for _ in range(2):
        assert read(encoding.encode(published)) == published
    assert len(reading._decoders) == 1
    for _ in range(2):
        assert isinstance(read(encoding.encode(Events(("s1",), ()))), ReceivedEvents)
        assert read(encoding.encode(published)) == published
        assert len(reading._decoders) == 2
        for nonsense in (b"", b"\xc1", msgspec.msgpack.encode({"type": "nonsense"})):
            with pytest.raises(msgspec.DecodeError):
                read(nonsense)
