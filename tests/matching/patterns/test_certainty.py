"""A match is told at the earliest watermark at which it is certain, and what cannot matter is forgotten.

Certain is what the definition says for every way in which the stream can go on. Ways are tried until one of
them denies the match; a match that none of them denies must have been told.
"""

import itertools
from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from palio import Notification, Pattern
from palio.matching.patterns import Detector, PatternSet
from palio.model.patterns.variants import Variant
from tests.matching.patterns import definition
from tests.matching.patterns.definition import Event
from tests.matching.patterns.drawing import LETTERS, Maker
from tests.slices import examples

WINDOW = 6
# Events that are tried behind what is known: what has begun needs no more.
MOST = 2


def ways_on(known: list[Event], watermark: int):
    """How a stream can go on: nothing, or a few events with times that matter to what has begun."""
    times = range(watermark + 1, max(event.time for event in known) + WINDOW + 2)
    single = list(itertools.product(times, LETTERS))
    for length in range(MOST + 1):
        for choice in itertools.product(single, repeat=length):
            yield [
                Event(time, len(known) + number, {"t": letter, "v": 0, "k": 0})
                for number, (time, letter) in enumerate(choice)
            ]


def needs(variant: Variant) -> int:
    """How many events complete it, also where a loop has to go on first."""
    return variant.needed.bit_count() + (variant.needed != variant.all)


def is_certain(match, pattern, known, watermark) -> bool:
    return all(match in definition.matches(pattern, known + more) for more in ways_on(known, watermark))


def chain(random) -> Pattern:
    """Steps one after the other, with what must not happen between them."""
    names = (f"S{number}" for number in itertools.count())
    parts = [f'{next(names)}[t = "{random.choice(LETTERS)}"]']
    for _ in range(random.randint(1, 2)):
        if random.random() < 0.7:
            parts.append(f'not {next(names)}[t = "{random.choice(LETTERS)}"]')
        parts.append(f'{next(names)}[t = "{random.choice(LETTERS)}"]')
    policy = random.choice(["", "", " consume own", " consume none", " order time"])
    return Pattern.parse(f"{' then '.join(parts)} within {WINDOW} us{policy}")


def close_together(random) -> list[Event]:
    """Events of which most come in the order of their times, and within a window or two."""
    times = list(itertools.accumulate(random.randint(0, 2) for _ in range(random.randint(3, 6))))
    if random.random() < 0.3:
        random.shuffle(times)
    return [
        Event(time, position, {"t": random.choice(LETTERS), "v": 0, "k": 0})
        for position, time in enumerate(times)
    ]


@examples(200)
@given(st.integers(0, 2**32))
def test_a_match_is_told_as_soon_as_it_is_certain(seed):
    random = Random(seed)
    maker = Maker(random, guards=False, window=WINDOW, keys=False)
    pattern, events = random.choice([maker.pattern, lambda: chain(random)])(), close_together(random)
    assume(all(needs(variant) <= MOST + 1 for variant in pattern.variants))
    # That no event could be one step without being another, which ends it, is not seen.
    assume(not any(gap.adjacent or gap.inside for variant in pattern.variants for gap in variant.gaps))
    if pattern.policies.order == "time":  # nor what an event prevents that is here and whose time has not come
        assume(not any(link.join.strict for variant in pattern.variants for link in variant.links))
    detector, told = Detector(PatternSet({"p": pattern})), []
    for number, event in enumerate(events):
        detector.take(event.notification, time=event.time, position=event.position, id=event.id)
        watermark = min((later.time for later in events[number + 1 :]), default=event.time + 1) - 1
        told += [tuple(one.id for one in match.constituents) for match in detector.advance(watermark)]
        known = events[: number + 1]
        settled = known if pattern.policies.order == "arrival" else [e for e in known if e.time <= watermark]
        if pattern.policies.consume == "own" and len(pattern.variants) > 1:
            continue  # what an alternative might take is held back though it would always take another
        if any(not gap.before for variant in pattern.variants for gap in variant.gaps):
            continue  # an absence at the end is told when its window has passed, since all of that is used up
        for match in definition.matches(pattern, settled):
            assert match in told or not is_certain(match, pattern, known, watermark), (str(pattern), known)


def told_by(pattern: str, *numbers: int) -> tuple[list[tuple[str, ...]], int]:
    """What is told at once of events with these numbers, a second apart, and how many are remembered then."""
    detector, second = Detector({"p": pattern}), 1_000_000
    found = []
    for place, number in enumerate(numbers):
        detector.take(Notification({"x": number}), time=place * second, position=place)
        found += detector.advance(place * second)
    return [tuple(one.id for one in match.constituents) for match in found], detector.statistics().remembered


GUARDED = "A[x = 1] then not N[x = 3] then B[x = 2] within 1 h"


@pytest.mark.parametrize("policy", ["", " consume own", " consume none", " order time"])
def test_what_an_absence_has_ended_holds_back_nothing_and_is_forgotten(policy):
    assert told_by(GUARDED + policy, 1, 3, 1, 2) == ([("2", "3")], 0)
    assert told_by(GUARDED + policy, 1, 3) == ([], 0)
    assert told_by(GUARDED + policy, 1, 4) == ([], 1)


def test_where_every_match_counts_only_what_is_open_is_remembered():
    assert told_by(GUARDED + " select every", 1, 2, 3, 2) == ([("0", "1")], 0)
    assert told_by(GUARDED + " select every", 2, 2, 1, 2) == ([("2", "3")], 2)


def test_an_absence_that_an_earlier_event_could_still_precede_has_ended_nothing():
    detector = Detector({"p": GUARDED})
    for position, (number, time) in enumerate([(1, 10), (3, 50), (1, 60), (2, 70)]):
        detector.take(Notification({"x": number}), time=time, position=position)
    assert detector.advance(49) == []  # a B with the time 50 would come before the N
    (match,) = detector.advance(50)
    assert [one.id for one in match.constituents] == ["2", "3"]


def test_a_match_of_its_own_events_waits_only_for_those_that_could_take_one_of_them():
    own = "A[x > 0] then B[y = A.x] within 1 h consume own"

    def told(*events: dict[str, int]) -> list[tuple[str, ...]]:
        detector = Detector({"p": own})
        for time, event in enumerate(events):
            detector.take(Notification(event), time=time, position=time)
        return [tuple(one.id for one in match.constituents) for match in detector.advance(len(events))]

    assert told({"x": 1}, {"x": 2}, {"y": 2}) == [("1", "2")]
    three = "A[x = 1] then B[x = 2] then C[x = 3] within 1 h consume own"
    assert told_by(three, 1, 2, 1, 2)[0] == []
    assert told_by(three, 1, 2, 1, 2, 3)[0] == [("0", "1", "4")]
