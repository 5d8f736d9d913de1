"""A match is told at the earliest watermark at which it is certain, and what cannot matter is forgotten.

Certain is what the definition says for every way in which the stream can go on. Ways are tried until one of
them denies the match; a match that none of them denies must have been told.
"""

import itertools
import re
from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from palio import Notification, Pattern
from palio.matching.patterns import Detector, PatternSet
from palio.model.patterns.variants import NEEDED, Variant
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
    """How many events complete it, also where a loop has begun it and has to go on first."""
    begins = any(slot.rank != NEEDED and not slot.behind for slot in variant.slots)
    return variant.needed.bit_count() + (variant.needed != variant.all) + begins


def has_one_way(pattern: Pattern) -> bool:
    """Whether it takes as many events, and of the same steps if it skips to one, however it is completed."""
    variant, *others = pattern.variants
    chooses = pattern.policies.to is not None and any(len(slot.steps) > 1 for slot in variant.slots)
    return not others and variant.needed == variant.all and not chooses


def is_certain(match, pattern, known, watermark) -> bool:
    return all(match in definition.matches(pattern, known + more) for more in ways_on(known, watermark))


def chain(random) -> Pattern:
    """Steps one after the other, with what must not happen between them, or at once, or not at all."""
    names = (f"S{number}" for number in itertools.count())
    text = f'{next(names)}[t = "{random.choice(LETTERS)}"]'
    for _ in range(random.randint(1, 2)):
        join = random.choice(["then", "then", "then", "next", "next within 2 us"])
        if join == "then" and random.random() < 0.7:
            text += f' then not {next(names)}[t = "{random.choice(LETTERS)}"]'
        loop = random.choice("?*+") if random.random() < 0.2 else ""
        text += f' {join} {next(names)}[t = "{random.choice(LETTERS)}"]{loop}'
    if random.random() < 0.2:
        text = f'({text}) and {next(names)}[t = "{random.choice(LETTERS)}"]'
    policy = random.choice(["", "", " consume own", " consume none"]) + random.choice(["", " order time"])
    return Pattern.parse(f"{text} within {WINDOW} us{policy}")


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
    detector, told = Detector(PatternSet({"p": pattern})), []
    for number, event in enumerate(events):
        detector.take(event.notification, time=event.time, position=event.position, id=event.id)
        watermark = min((later.time for later in events[number + 1 :]), default=event.time + 1) - 1
        told += [tuple(one.id for one in match.constituents) for match in detector.advance(watermark)]
        known = events[: number + 1]
        settled = known if pattern.policies.order == "arrival" else [e for e in known if e.time <= watermark]
        if pattern.policies.consume not in ("all", "none") and not has_one_way(pattern):
            continue  # what one way might take or skip is held back though it would always be another way
        if any(not gap.before for variant in pattern.variants for gap in variant.gaps):
            continue  # an absence at the end is told when its window has passed, since all of that is used up
        for match in definition.matches(pattern, settled):
            assert match in told or not is_certain(match, pattern, known, watermark), (str(pattern), known)


@pytest.mark.parametrize(
    ("pattern", "events", "watermark", "match"),
    [
        ("A next B?", "a1 c2", 1, "a1"),  # nothing to come is before the c
        ("A next B?", "a1 c3", 1, None),  # but a b2 could be here,
        ("A next B?", "a1 c3", 2, "a1"),  # or could have been
        ("A next B?", "a1 b2", 1, None),  # the b2 may follow at once, or a c2 before it
        ("A next B next D?", "a1 b2 c2", 2, "a1 b2"),
        ("A then B? next C", "a1 b2 c3", 2, None),
        ("(A next B?) and C", "c1 a2 d3", 2, "c1 a2"),
        ("(A next B?) and C", "c1 a2 d4", 2, None),
        ("A next within 2 us B? next within 1 us C?", "a1 c5", 2, None),  # a b3 could come
        ("A next within 2 us B? next within 1 us C?", "a1 c5", 3, "a1"),
    ],
)
def test_what_is_known_of_the_time_to_come_makes_a_match_certain_that_nothing_can_join(
    pattern, events, watermark, match
):
    text = re.sub(r"[A-D]", lambda name: f'{name[0]}[t = "{name[0].lower()}"]', pattern)
    detector = Detector({"p": f"{text} within {WINDOW} us order time"})
    for position, event in enumerate(events.split()):
        time = int(event[1:])
        detector.take(Notification({"t": event[0]}), time=time, position=position, id=event)
    told = [" ".join(one.id for one in found.constituents) for found in detector.advance(watermark)]
    assert told == ([] if match is None else [match])


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
