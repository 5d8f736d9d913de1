"""What is said in frames that the other end reads: none is too large, nothing comes twice or not at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palio import Notification
from palio.broker import fitting
from palio.protocol.durable.journals import Replayed, Surveyed
from palio.protocol.encoding import decode
from palio.protocol.envelope import Envelope
from palio.protocol.frames import MAX_EVENT, MAX_FRAME
from palio.protocol.inquiries import Requested, Responded
from palio.protocol.peers import Forward
from palio.protocol.requests import Ended
from tests.broker.largest import event_of, largest

LONGEST = "𝔟" * 255
TOO_LARGE = event_of(MAX_FRAME)


def envelope(sequence: int, notification: Notification) -> Envelope:
    return Envelope(LONGEST, sequence, 1.0, 2**62, LONGEST, notification, 2**62)


@pytest.fixture
def small_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that random events need not have megabytes."""
    monkeypatch.setattr(fitting, "MAX_FRAME", 20_000)
    monkeypatch.setattr(fitting, "MAX_BATCH", 10_000)


@pytest.mark.usefixtures("small_frames")
class TestSmallFrames:
    @given(
        sizes=st.lists(st.integers(1_000, 25_000), min_size=1, max_size=12),
        handles=st.lists(st.integers(1, 6_000), min_size=1, max_size=12),
    )
    def test_every_handle_gets_every_event_that_fits_once_and_in_order(
        self, sizes: list[int], handles: list[int]
    ) -> None:
        names = tuple([f"{number}".ljust(length, "h") for number, length in enumerate(handles)])
        sent = tuple([Envelope("a", n, 1.0, 0, "a", _sized(size)) for n, size in enumerate(sizes)])
        got: dict[str, list[int]] = {name: [] for name in names}
        given_up = 0
        for payload, count in fitting.events(names, sent):
            if payload is None:
                given_up += 1
                continue
            assert len(payload) <= fitting.MAX_FRAME
            message = decode(payload)
            assert len(message.envelopes) == count
            for name in message.handles:
                got[name] += [one.sequence for one in message.envelopes]
        for name in names:
            assert got[name] == sorted(set(got[name]))
            # Whatever has room for its own handle comes; what does not is counted.
            fits = [n for n, size in enumerate(sizes) if size + len(name) + 200 <= fitting.MAX_FRAME]
            assert set(fits) <= set(got[name])
        assert given_up == sum(len(sizes) - len(found) for found in got.values())

    @given(sizes=st.lists(st.integers(1_000, 25_000), min_size=1, max_size=20))
    def test_every_delivery_goes_out_or_is_given_back_in_its_place(self, sizes: list[int]) -> None:
        deliveries = tuple([(n, 1, Envelope("a", n, 1.0, 0, "a", _sized(s))) for n, s in enumerate(sizes)])
        numbers: list[int] = []
        for payload, brought in fitting.handed("orders", deliveries):
            numbers += [number for number, _, _ in brought]
            if payload is None:
                assert len(brought) == 1
                assert sizes[brought[0][0]] > fitting.MAX_FRAME - 200
            else:
                assert len(payload) <= fitting.MAX_FRAME
                assert [one[0] for one in decode(payload).deliveries] == [one[0] for one in brought]
        assert numbers == list(range(len(sizes)))

    def test_many_events_leave_for_a_neighbour_in_several(self) -> None:
        sent = Forward(tuple([Envelope("a", n, 1.0, 0, "a", _sized(4_000)) for n in range(20)]))
        payloads = list(fitting.letters(sent))
        assert len(payloads) > 1
        assert all(len(payload) <= fitting.MAX_BATCH for payload in payloads)
        assert [one.sequence for payload in payloads for one in decode(payload).envelopes] == list(range(20))

    def test_of_an_answer_that_is_too_much_the_rest_is_told(self) -> None:
        ended = [decode(one) for one in fitting.answers(Ended(tuple([f"{n}" * 500 for n in range(100)])))]
        assert [handle for one in ended for handle in one.handles] == [f"{n}" * 500 for n in range(100)]
        large = Envelope("a", 1, 1.0, 0, "a", _sized(30_000))
        small = Envelope("a", 2, 1.0, 0, "a", _sized(1_000))
        (survey,) = fitting.answers(Surveyed(1, 2, 1.0, 1.0, (2,), (0.0, 1.0), (large, small)))
        assert [one.sequence for one in decode(survey).samples] == [2]
        gone, page = fitting.answers(Replayed(1, "a", (large,)))
        assert (gone, decode(page)) == (None, Replayed(1, "a"))
        gone, last = fitting.answers(Responded(1, large.notification, last=True, missing=3))
        assert (gone, decode(last)) == (None, Responded(1, None, last=True, missing=3))
        assert list(fitting.answers(Responded(1, large.notification))) == [None]
        assert list(fitting.answers(Requested("1 a", ("h",), large))) == [None]
        (asked,) = fitting.answers(Requested("1 a", ("h" * 15_000, "i" * 15_000), small))
        assert decode(asked).handles == ("h" * 15_000,)


def _sized(size: int) -> Notification:
    return Notification({"text": "x" * (size - 64)})


def test_the_largest_event_fits_into_every_frame_with_the_longest_names() -> None:
    event = largest()
    assert event.body.size == MAX_EVENT
    one = envelope(1, Notification.of_body(event.body))
    owner_and_name = f"{LONGEST}/{LONGEST}"
    assert None not in [payload for payload, _ in fitting.handed(owner_and_name, ((2**62, 10**6, one),))]
    handles = tuple([f"{number:>255}" for number in range(3_000)])
    assert len([payload for payload, _ in fitting.events(handles, (one,)) if payload]) == 1
    assert None not in list(fitting.answers(Requested(f"{2**62} {LONGEST}", handles, one)))
    assert None not in list(fitting.answers(Replayed(2**62, LONGEST, (one,))))
    assert len(next(fitting.letters(Forward((one,))))) <= MAX_FRAME


def test_what_does_not_fit_at_all_is_given_back() -> None:
    one = envelope(1, TOO_LARGE)
    assert list(fitting.events(("h",), (one,))) == [(None, 1)]
    assert list(fitting.handed("orders", ((1, 1, one),))) == [(None, ((1, 1, one),))]
