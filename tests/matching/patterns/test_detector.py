"""The detector finds what the definition says, however events and watermarks come."""

from hypothesis import given, settings
from hypothesis import strategies as st

from palio.matching.patterns import Detector, PatternSet
from tests.matching.patterns import definition
from tests.matching.patterns.drawing import Maker


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
    assert counts.matches == len(found)
    return found


@settings(max_examples=600)
@given(st.randoms(use_true_random=False))
def test_it_finds_what_the_definition_says(random):
    maker = Maker(random)
    pattern, events = maker.pattern(), maker.events()
    found = played(PatternSet({"p": pattern}), events, random)
    assert sorted(ids(found)) == definition.matches(pattern, events), str(pattern)
