"""The detector finds what the definition says, however events and watermarks come."""

from datetime import UTC, datetime, timedelta
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palio import Notification, Pattern
from palio.matching.patterns import Detector, PatternSet
from palio.matching.patterns.detector import UnreadableState
from palio.matching.patterns.partition import MAX_HITS
from tests.matching.patterns import definition
from tests.matching.patterns.definition import Event
from tests.matching.patterns.drawing import Maker
from tests.slices import examples


def ids(matches):
    return [tuple(one.id for one in match.constituents) for match in matches]


def played(patterns: PatternSet, events, random) -> list:
    """Events in pieces, each in any order; watermarks as high as they may be, or lower; restarts anywhere."""
    detector, found, at = Detector(patterns), [], 0
    while at < len(events):
        piece = events[at : at + random.randint(1, 3)]
        at += len(piece)
        for event in random.sample(piece, len(piece)):
            detector.take(event.notification, time=event.time, position=event.position, id=event.id)
            if random.random() < 0.3:
                detector = Detector.decode(patterns, detector.encode())
        highest = min((event.time for event in events[at:]), default=10) - 1
        found += detector.advance(random.choice([highest, highest, -1]))
        if random.random() < 0.3:
            detector = Detector.decode(patterns, detector.encode())
    found += detector.close()
    statistics = detector.statistics()
    assert statistics.remembered == statistics.partitions == 0
    counts = statistics.counts
    assert counts.late == counts.disordered == counts.overflow == counts.abandoned == 0
    assert counts.matches + counts.timed_out == len(found)
    return found


# Draws with what few have: a comparison without a value, an absence that takes events, two ways to one match.
RARE = (390, 10, 240)


@pytest.mark.parametrize("seed", RARE)
def test_it_finds_what_is_rare(seed):
    agrees(Random(seed))


@examples(600)
@given(st.randoms(use_true_random=False))
def test_it_finds_what_the_definition_says(random):
    agrees(random)


def agrees(random: Random) -> None:
    maker = Maker(random)
    pattern, events = maker.pattern(), maker.events()
    found = played(PatternSet({"p": pattern}), events, random)
    assert sorted(ids(found)) == definition.matches(pattern, events), str(pattern)


def taken(detector: Detector, *events: str) -> None:
    """Events such as `A3`: a kind and a time, which is its position as well."""
    for event in events:
        kind, time = event[0], int(event[1:])
        detector.take(Notification({"t": kind, "k": 1}), time=time, position=time, id=event)


AB = 'A[t = "A"] then B[t = "B"] within 10 us by k'


def test_many_patterns_find_what_each_finds_alone():
    texts = {f"p{n}": f'A[t = "A" and v > {n % 3}] then B[t = "B"] within {n + 2} us by k' for n in range(30)}
    events = [
        (Notification({"t": "AB"[n * 7 % 3 % 2], "v": n % 5, "k": n % 2}), n + (n * 5) % 3) for n in range(60)
    ]

    def found(patterns):
        detector = Detector(patterns)
        for position, (event, time) in enumerate(events):
            detector.take(event, time=time, position=position)
        return {(match.pattern, match.id) for match in detector.close()}

    alone = set().union(*(found({name: text}) for name, text in texts.items()))
    assert found(texts) == alone
    assert len({name for name, _ in alone}) > 20


def test_an_absence_takes_its_window_up_to_the_last_moment():
    events = [Event(time, place, {"t": "A"}) for place, time in enumerate((0, 10, 11))]
    pattern = Pattern.parse('A[t = "A"] then not B[t = "B"] within 10 us')
    assert definition.matches(pattern, events) == [("e0",), ("e2",)]
    detector = Detector(PatternSet({"p": pattern}))
    for event in events:
        detector.take(event.notification, time=event.time, position=event.position, id=event.id)
    assert ids(detector.close()) == [("e0",), ("e2",)]


def test_a_late_event_is_dropped_and_counted():
    detector = Detector({"p": AB})
    taken(detector, "A5")
    assert detector.advance(6) == []
    taken(detector, "B6", "B7")
    assert ids(detector.advance(7)) == [("A5", "B7")]
    assert detector.counts.late == 1


def test_a_position_that_was_passed_is_dropped_and_counted():
    detector = Detector({"arrival": AB, "time": f"{AB} order time"})
    detector.take(Notification({"t": "A", "k": 1}), time=5, position=5, id="A5")
    detector.advance(0)
    detector.take(Notification({"t": "A", "k": 1}), time=4, position=3, id="A4")
    detector.take(Notification({"t": "B", "k": 1}), time=6, position=6, id="B6")
    assert {(one.pattern, *ids([one])[0]) for one in detector.close()} == {
        ("arrival", "A5", "B6"),
        ("time", "A4", "B6"),
    }
    assert detector.counts.disordered == 1


def test_what_has_no_key_is_counted():
    detector = Detector({"p": AB})
    detector.take(Notification({"t": "A"}), time=1, position=1)
    detector.take(Notification({"t": "C"}), time=2, position=2)
    assert detector.counts.unkeyed == 1


def test_equal_numbers_are_one_key():
    detector = Detector({"p": AB})
    detector.take(Notification({"t": "A", "k": 1}), time=1, position=1)
    detector.take(Notification({"t": "B", "k": 1.0}), time=2, position=2)
    detector.take(Notification({"t": "A", "k": True}), time=3, position=3)
    detector.take(Notification({"t": "B", "k": "1"}), time=4, position=4)
    (match,) = detector.close()
    assert match.key == {"k": 1}


def test_a_pattern_never_reads_its_own_results():
    pattern = "A[exists(`pattern.name`)] then B[exists(`pattern.name`)] within 1 s"
    detector = Detector({"loop": pattern})
    for position, name in enumerate(["loop", "other", "loop", "other"]):
        result = Notification({"pattern": {"name": name}})
        detector.take(result, time=position, position=position)
    assert ids(detector.close()) == [("1", "3")]


def test_a_match_is_a_notification_that_names_its_constituents():
    detector = Detector({"p": AB})
    taken(detector, "A1", "B2")
    (match,) = detector.close()
    said = match.notification()
    assert said.id == match.id
    assert said["pattern.name"] == "p"
    assert said["pattern.events"] == ("A1", "B2")
    assert said["pattern.steps"] == ("A", "B")
    assert said["pattern.key.k"] == 1
    assert said["pattern.time"] == datetime(1970, 1, 1, 0, 0, 0, 2, tzinfo=UTC)


def test_the_id_of_a_match_is_made_from_its_pattern_and_its_constituents():
    def found(name, *events):
        detector = Detector({name: AB})
        taken(detector, *events)
        return [match.id for match in detector.close()]

    assert found("p", "A1", "B2") == found("p", "A1", "C2", "B2")
    assert len({*found("p", "A1", "B2"), *found("q", "A1", "B2"), *found("p", "A1", "B3")}) == 3


def test_an_absence_is_told_when_its_window_has_passed():
    detector = Detector({"p": 'A[t = "A"] then not B[t = "B"] within 10 us by k'})
    taken(detector, "A1")
    assert detector.advance(10) == []
    (match,) = detector.advance(11)
    assert (ids([match]), match.time) == ([("A1",)], 11)


def test_state_expires():
    detector = Detector({"p": AB, "q": f"{AB} select every order time", "r": f"{AB} consume none"})
    most = 0
    for start in range(0, 5_000, 100):
        for time in range(start, start + 100):
            detector.take(Notification({"t": "A", "k": time % 50}), time=time, position=time)
        detector.advance(start + 99)
        most = max(most, detector.statistics().remembered)
        assert len(detector.encode()) < 5_000
    assert most <= 3 * 10  # what the last window holds
    detector.advance(10_000)
    assert detector.statistics().remembered == detector.statistics().partitions == 0


def test_a_partition_is_bounded_and_forgets_its_oldest_events():
    detector = Detector({"p": 'A[t = "A"] then B[t = "B"] within 1 h by k'})
    taken(detector, *(f"A{time}" for time in range(MAX_HITS + 10)))
    assert detector.advance(0) == []
    assert detector.statistics().remembered == MAX_HITS
    assert detector.counts.overflow == 10
    taken(detector, "B5000")
    assert ids(detector.advance(0)) == [("A10", "B5000")]


def test_a_detector_is_bounded():
    detector = Detector({"p": AB}, limit=5)
    for key in range(9):
        detector.take(Notification({"t": "A", "k": key}), time=key, position=key)
    assert detector.statistics().remembered == 5
    assert detector.counts.overflow == 4


def test_a_search_that_takes_too_long_is_given_up_and_counted():
    steps = " and ".join(f'S{n}[t = "A" and v >= {n}]' for n in range(12))
    detector = Detector({"p": f'({steps}) then B[t = "B" and w < S0.v] within 1 s'})
    for time in range(30):
        detector.take(Notification({"t": "A", "v": time % 12}), time=time, position=time)
    detector.take(Notification({"t": "B", "w": 100}), time=50, position=50)
    assert detector.close() == []
    assert detector.counts.abandoned > 0


def test_many_repetitions_that_come_to_nothing_are_searched_quickly():
    detector = Detector({"p": '8 × A[t = "A"] then C[t = "C"] then B[t = "B"] within 1 s'})
    for time in range(200):
        detector.take(Notification({"t": "ABA"[time % 3]}), time=time, position=time)
    detector.take(Notification({"t": "C"}), time=300, position=300)
    assert detector.close() == []
    assert detector.counts.abandoned == 0


def test_the_same_pattern_under_two_names_is_kept_twice():
    patterns = {"p": AB, "q": AB}
    detector = Detector(patterns)
    taken(detector, "A1")
    detector.advance(1)
    again = Detector.decode(patterns, detector.encode())
    assert again.statistics().partitions == 2
    taken(again, "B2")
    assert [match.pattern for match in again.close()] == ["p", "q"]


def test_state_goes_on_with_other_patterns():
    detector = Detector({"p": AB, "gone": 'C[t = "C"] then B[t = "B"] within 10 us'})
    taken(detector, "A1", "C2")
    detector.advance(2)
    again = Detector.decode({"new": 'B[t = "B"] within 1 s', "p": AB}, detector.encode())
    taken(again, "B3")
    assert {(one.pattern, *ids([one])[0]) for one in again.close()} == {("p", "A1", "B3"), ("new", "B3")}


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x90", msgspec.msgpack.encode([9, 0, 0, 0, [0] * 8, {}])])
def test_what_is_no_state_is_refused(data):
    with pytest.raises(UnreadableState):
        Detector.decode({"p": AB}, data)


def test_the_state_of_an_earlier_version_is_read():
    """Which counted nothing that timed out, and knew of no event that had been told."""
    detector = Detector({"p": AB})
    taken(detector, "A1", "A2")
    detector.advance(2)
    state = msgspec.msgpack.decode(detector.encode(), strict=False)
    state[5] = state[5][:8]
    ((digest, kept),) = state[6].items()
    ((key, (due, size, (hits, *rest))),) = kept.items()
    state[6] = {digest: {key: [due, size, [[hit[:6] for hit in hits], *rest]]}}
    again = Detector.decode({"p": AB}, msgspec.msgpack.encode(state))
    taken(again, "B3")
    assert ids(again.close()) == [("A1", "B3")]


def test_lists_and_times_are_remembered_as_they_are():
    pattern = 'A[t = "A"] then B[at > A.at and (tags has "x" or v > A.v)] within 1 s'
    detector = Detector({"p": pattern})
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    detector.take(Notification({"t": "A", "at": moment, "v": 1}), time=1, position=1, id="A1")
    detector = Detector.decode({"p": pattern}, detector.encode())
    later = moment + timedelta(microseconds=1)
    detector.take(Notification({"at": later, "tags": ["x"]}), time=2, position=2, id="B2")
    detector = Detector.decode({"p": pattern}, detector.encode())
    assert ids(detector.close()) == [("A1", "B2")]
