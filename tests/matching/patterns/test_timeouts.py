"""Patterns that say `timeout tell` tell what was begun, could still have been completed, and was not in
time."""

from random import Random

from hypothesis import assume, example, given
from hypothesis import strategies as st

from palio import Notification, Pattern
from palio.matching.patterns import Detector, PatternSet
from tests.matching.patterns.drawing import Maker
from tests.matching.patterns.overdue import COUNT, Overdue
from tests.matching.patterns.test_detector import ids, played
from tests.slices import examples


@examples(200)
@given(st.integers(0, 2**32))
@example(147)  # what earlier beginnings take is not decided yet
@example(477)  # a match of events that are all spent
@example(918)  # an absence right behind an event
def test_what_is_told_is_what_could_have_been_completed(seed):
    random = Random(seed)
    maker = Maker(random, keys=False)
    pattern, events = maker.pattern(), maker.events(5)
    assume(pattern.policies.consume in ("all", "none"))
    assume(all(variant.needed.bit_count() < COUNT for variant in pattern.variants))
    ends_with_absence = any(not gap.before & one.needed for one in pattern.variants for gap in one.gaps)
    assume(pattern.policies.consume == "none" or not ends_with_absence)
    telling = Pattern.parse(f"{pattern} timeout tell")
    found = played(PatternSet({"p": telling}), events, random)
    assert sorted(ids(one for one in found if one.timed_out)) == Overdue(telling, events).told(), str(pattern)
    silent = played(PatternSet({"p": pattern}), events, random)
    assert sorted(ids(one for one in found if not one.timed_out)) == sorted(ids(silent))


def told(pattern: str, *events: str, watermark: int) -> list[tuple[str, ...]]:
    detector = Detector({"p": pattern})
    for event in events:
        time = int(event[1:])
        detector.take(Notification({"t": event[0]}), time=time, position=time, id=event)
    return [
        (
            *(one.id for one in match.constituents),
            f"{'timed out' if match.timed_out else 'complete'} at {match.time}",
        )
        for match in detector.advance(watermark)
    ]


AB = 'A[t = "A"] then B[t = "B"] within 10 us'


def test_a_beginning_times_out_when_its_window_has_passed():
    assert told(f"{AB} timeout tell", "A1", watermark=10) == []
    assert told(f"{AB} timeout tell", "A1", watermark=11) == [("A1", "timed out at 11")]
    assert told(AB, "A1", watermark=11) == []
    assert told(f"{AB} timeout tell", "A1", "B20", watermark=30) == [("A1", "timed out at 11")]


def test_what_went_further_is_told_as_far_as_it_went():
    pattern = 'A[t = "A"] then B[t = "B"]+ then C[t = "C"] within 10 us timeout tell'
    assert told(pattern, "A1", "B2", "B3", "D4", watermark=20) == [("A1", "B2", "B3", "timed out at 11")]


def test_what_must_not_happen_ends_a_beginning_without_a_word():
    pattern = 'A[t = "A"] then not N[t = "N"] then B[t = "B"] within 10 us timeout tell'
    assert told(pattern, "A1", "N2", watermark=20) == []
    assert told('A[t = "A"] next B[t = "B"] within 10 us timeout tell', "A1", "C2", watermark=20) == []
    assert told('A[t = "A"] next B[t = "B"] within 10 us timeout tell', "A1", watermark=20) == [
        ("A1", "timed out at 11")
    ]


def test_a_window_between_neighbours_times_out_as_well():
    pattern = 'A[t = "A"] then within 3 us B[t = "B"] then C[t = "C"] within 10 us timeout tell'
    assert told(pattern, "A1", watermark=4) == [("A1", "timed out at 4")]
    assert told(pattern, "A1", "B3", watermark=20) == [("A1", "B3", "timed out at 11")]


def test_with_own_events_what_timed_out_takes_nothing_from_others():
    pattern = f"{AB} consume own timeout tell"
    assert told(pattern, "A1", "A2", "B3", "A9", watermark=20) == [
        ("A1", "B3", "complete at 3"),
        ("A2", "timed out at 12"),
        ("A9", "timed out at 19"),
    ]


def test_what_timed_out_says_so_and_is_counted_by_itself():
    detector = Detector({"p": f"{AB} timeout tell"})
    detector.take(Notification({"t": "A"}), time=1, position=1, id="A1")
    (partial,) = detector.close()
    assert partial.notification()["pattern.timed_out"] is True
    assert (detector.counts.matches, detector.counts.timed_out) == (0, 1)
    other = Detector({"p": 'A[t = "A"] within 10 us'})
    other.take(Notification({"t": "A"}), time=1, position=1, id="A1")
    (match,) = other.close()
    assert "pattern.timed_out" not in match.notification()
    assert match.id != partial.id
