"""What a pattern means, said a second time: every choice of events is looked at. Slow and obviously right.

It reads the shape of a pattern directly and shares nothing with the automata or the search, but the filters and
the comparisons of single steps.
"""

from dataclasses import dataclass, field
from functools import cmp_to_key
from itertools import combinations, product
from typing import Any

from palio import Notification, Pattern
from palio.model.patterns.computed import compile_guard
from palio.model.patterns.shape import Absence, All, Either, Loop, PartJoin, Step, Then, Times
from palio.model.patterns.variants import MAX_LOOP


@dataclass(frozen=True)
class Event:
    time: int
    position: int
    attributes: dict[str, Any] = field(hash=False)

    @property
    def id(self) -> str:
        return f"e{self.position}"

    @property
    def notification(self) -> Notification:
        return Notification(self.attributes)


# As what an event counts first, where it could be several: one more of a greedy loop, what has to happen, one
# more of a reluctant loop.
GREEDY, NEEDED, RELUCTANT = range(3)


@dataclass(frozen=True)
class Absent:
    """Of these steps there is none after these events and before those (or before the end); or, if adjacent,
    none right behind these events."""

    steps: tuple[Step, ...]
    after: tuple[Event, ...]
    until: tuple[Event, ...]
    adjacent: bool = False


@dataclass(frozen=True)
class Stop:
    """An event of a loop that is none of these steps, and that no event of them precedes since the ones
    before."""

    steps: tuple[Step, ...]
    before: tuple[Event, ...]
    event: Event


@dataclass(frozen=True)
class Occurrence:
    """Events as steps, each with what it counts as; what must be absent; how events follow others; and whether
    a greedy loop at its end could go on."""

    events: tuple[tuple[Step, Event, int], ...]
    absences: tuple[Absent, ...] = ()
    joins: tuple[tuple[PartJoin, tuple[Event, ...], tuple[Event, ...]], ...] = ()
    more: bool = False
    stops: tuple[Stop, ...] = ()

    def plain(self) -> tuple[Event, ...]:
        return tuple(event for _, event, _ in self.events)


class Definition:
    def __init__(self, pattern: Pattern, events: list[Event]) -> None:
        self.pattern = pattern
        self.events = events
        self.by_time = pattern.policies.order == "time"

    def key(self, event: Event):
        return (event.time, event.position) if self.by_time else event.position

    def before(self, one: Event, other: Event) -> bool:
        return one.time < other.time and (self.by_time or one.position < other.position)

    def is_event_of(self, step: Step, event: Event) -> bool:
        return step.filter.matches(event.notification)

    # What happened

    def occurrences(self, shape):
        match shape:
            case Step():
                for event in self.events:
                    if self.is_event_of(shape, event):
                        yield Occurrence(((shape, event, NEEDED),))
            case Either(parts):
                for part in parts:
                    yield from self.occurrences(part)
            case Times(count, part):
                yield from self.repeated(part, count, count, NEEDED)
            case Loop(least, most, part, greedy):
                most = MAX_LOOP if most is None else most
                yield from self.repeated(part, least, most, GREEDY if greedy else RELUCTANT, shape.until)
            case All(parts):
                for choice in product(*(list(self.occurrences(part)) for part in parts)):
                    events = tuple(one for occurrence in choice for one in occurrence.events)
                    if len({event for _, event, _ in events}) == len(events):
                        yield Occurrence(
                            events,
                            tuple(one for part in choice for one in part.absences),
                            tuple(one for part in choice for one in part.joins),
                            any(part.more for part in choice),
                            tuple(one for part in choice for one in part.stops),
                        )
            case Then():
                yield from self.sequences(shape)

    def repeated(self, part, least: int, most: int, rank: int, until=None):
        ends = () if until is None else (until,) if isinstance(until, Step) else until.parts
        single = list(self.occurrences(part))
        for count in range(least, min(most, len(self.events)) + 1):
            for choice in combinations(single, count):
                events = sorted((one.events[0] for one in choice), key=lambda one: self.key(one[1]))
                if len({event for _, event, _ in events}) == count:
                    yield Occurrence(
                        tuple(
                            (step, event, NEEDED if number < least else rank)
                            for number, (step, event, _) in enumerate(events)
                        ),
                        more=rank == GREEDY and count < most,
                        stops=tuple(
                            Stop(ends, tuple(before for _, before, _ in events[:number]), event)
                            for number, (_, event, _) in enumerate(events)
                            if ends
                        ),
                    )

    def sequences(self, shape):
        found, missing = [Occurrence(())], ()
        for number, part in enumerate(shape.parts):
            if isinstance(part, Absence):
                steps = (part.part,) if isinstance(part.part, Step) else part.part.parts
                missing += ((steps, part.adjacent),)
                continue
            join = shape.join(number) if number else PartJoin()
            following = []
            for left, right in product(found, list(self.occurrences(part))):
                if all(self.before(one, other) for one in left.plain() for other in right.plain()):
                    following.append(self.followed(left, right, missing, join))
            found, missing = following, ()
        for one in found:
            extra = tuple(Absent(steps, one.plain(), (), adjacent) for steps, adjacent in missing)
            yield Occurrence(one.events, one.absences + extra, one.joins, one.more, one.stops)

    def followed(self, left, right, missing, join):
        absences = [
            Absent(one.steps, one.after, one.until or right.plain(), one.adjacent) for one in left.absences
        ]
        absences += [Absent(steps, left.plain(), right.plain(), adjacent) for steps, adjacent in missing]
        joins = ((join, left.plain(), right.plain()),) if left.events and right.events else ()
        return Occurrence(
            left.events + right.events,
            (*absences, *right.absences),
            (*left.joins, *joins, *right.joins),
            right.more if right.events else left.more or right.more,
            left.stops + tuple(Stop(one.steps, left.plain() + one.before, one.event) for one in right.stops),
        )

    # What counts

    def holds(self, occurrence: Occurrence, *, at_its_end: bool = True) -> bool:
        if not occurrence.events:
            return False
        times = [event.time for event in occurrence.plain()]
        if max(times) - min(times) > self.pattern.within:
            return False
        if not all(self.guarded(step, event, occurrence) for step, event, _ in occurrence.events):
            return False
        if not all(self.joined(*join) for join in occurrence.joins):
            return False
        if any(self.stopped(stop, occurrence) for stop in occurrence.stops):
            return False
        absences = [one for one in occurrence.absences if one.after and (at_its_end or one.until)]
        return not any(self.violated(absence, occurrence, min(times)) for absence in absences)

    def guarded(self, step: Step, event: Event, occurrence: Occurrence) -> bool:
        if step.guard is None:
            return True
        earlier = [(s, e) for s, e, _ in occurrence.events if self.key(e) < self.key(event)]
        earlier.sort(key=lambda one: self.key(one[1]))
        events: dict[str, list] = {}
        for name, attributes in [*((s.name, e.attributes) for s, e in earlier), (step.name, event.attributes)]:
            events.setdefault(name, []).append(attributes)
        return compile_guard(step.guard)(event.attributes, events)

    def joined(self, join: PartJoin, left: tuple[Event, ...], right: tuple[Event, ...]) -> bool:
        last, first = max(map(self.key, left)), min(right, key=self.key)
        if join.strict and any(last < self.key(event) < self.key(first) for event in self.events):
            return False
        return join.within is None or first.time - max(event.time for event in left) <= join.within

    def stopped(self, stop: Stop, occurrence: Occurrence) -> bool:
        between = [
            event
            for event in self.events
            if stop.before
            and self.before(event, stop.event)
            and all(self.before(e, event) for e in stop.before)
        ]
        return any(
            self.is_event_of(step, event) and self.guarded(step, event, occurrence)
            for event in (*between, stop.event)
            for step in stop.steps
        )

    def violated(self, absence: Absent, occurrence: Occurrence, least: int) -> bool:
        ends = least + self.pattern.within
        if absence.adjacent:
            last = max(map(self.key, absence.after))
            behind = sorted((event for event in self.events if self.key(event) > last), key=self.key)[:1]
            candidates = [event for event in behind if absence.until or event.time <= ends]
        else:
            candidates = [
                event for event in self.events if all(self.before(one, event) for one in absence.after)
            ]
            if absence.until:
                first = min(absence.until, key=self.key)
                candidates = [event for event in candidates if self.before(event, first)]
            else:
                candidates = [event for event in candidates if event.time <= ends]
        return any(
            self.is_event_of(step, event) and self.guarded(step, event, occurrence)
            for event in candidates
            for step in absence.steps
        )

    def end(self, occurrence: Occurrence) -> int | None:
        """When the absence at its end is certain, if it has one."""
        if all(one.until or one.adjacent for one in occurrence.absences if one.after):
            return None
        return min(event.time for event in occurrence.plain()) + self.pattern.within

    def possible(self) -> dict[tuple[Event, ...], tuple[bool, tuple[int, ...], int | None]]:
        """All matches in their order, with what `selected` has to know of each."""
        # By the events and as what they count: when it is complete, and the numbers of its steps.
        possible: dict[tuple[tuple[Event, int], ...], tuple[bool, tuple[int, ...], int | None]] = {}
        numbers = {step.name: number for number, step in enumerate(self.pattern.steps)}
        greedy: set[tuple[tuple[Event, int], ...]] = set()
        for occurrence in self.occurrences(self.pattern.shape):
            choice = tuple(
                sorted(
                    ((event, rank) for _, event, rank in occurrence.events), key=lambda one: self.key(one[0])
                )
            )
            if occurrence.more and choice not in greedy and self.holds(occurrence, at_its_end=False):
                greedy.add(choice)
            if self.holds(occurrence):
                end = self.end(occurrence)
                in_order = sorted(occurrence.events, key=lambda one: self.key(one[1]))
                steps = tuple(numbers[step.name] for step, _, _ in in_order)
                known = possible.get(choice)
                # Without waiting for an absence, if it can be; and as the steps that come first in the text.
                possible[choice] = min(
                    filter(None, [known, (end is not None, steps, end)]), key=lambda one: one[:2]
                )

        def compared(one, other) -> int:
            """Event by event; where one is the beginning of the other, the longer comes first if it is
            greedy."""
            for (mine, my_rank), (its, its_rank) in zip(one, other, strict=False):
                if (mine, my_rank) != (its, its_rank):
                    return -1 if (self.key(mine), my_rank) < (self.key(its), its_rank) else 1
            shorter_first = -1 if min(one, other, key=len) not in greedy else 1
            return (len(one) > len(other)) * -shorter_first + (len(one) < len(other)) * shorter_first

        ordered: dict[tuple[Event, ...], tuple[bool, tuple[int, ...], int | None]] = {}
        for choice in sorted(possible, key=cmp_to_key(compared)):
            ordered.setdefault(tuple(event for event, _ in choice), possible[choice])
        return ordered

    def matches(self) -> list[tuple[str, ...]]:
        known = self.possible()
        return [tuple(event.id for event in events) for events in self.selected(list(known), known)]

    def selected(self, ordered, known):
        policies = self.pattern.policies
        if policies.select == "every":
            return ordered
        found = []
        while ordered:
            first = ordered[0]
            _, steps, end = known[first]
            found.append(first)
            match policies.consume:
                case "all":
                    last = self.key(first[-1])
                    ordered = [
                        events
                        for events in ordered
                        if all(self.key(one) > last and (end is None or one.time > end) for one in events)
                    ]
                case "own":
                    ordered = [events for events in ordered if not set(events) & set(first)]
                case "none":
                    ordered = [events for events in ordered if events[0] != first[0]]
                case "first" | "last":
                    names = [self.pattern.steps[number].name for number in steps]
                    there = [self.key(e) for e, name in zip(first, names, strict=True) if name == policies.to]
                    since = (min if policies.consume == "first" else max)(there, default=self.key(first[0]))
                    ordered = [
                        events
                        for events in ordered
                        if self.key(events[0]) >= since and self.key(events[0]) > self.key(first[0])
                    ]
        return found


def matches(pattern: Pattern, events: list[Event]) -> list[tuple[str, ...]]:
    """The ids of the events of each match, sorted."""
    partitions: dict[tuple, list[Event]] = {}
    for event in events:
        key = tuple(event.attributes.get(name) for name in pattern.by)
        if None not in key:
            partitions.setdefault(key, []).append(event)
    return sorted(one for part in partitions.values() for one in Definition(pattern, part).matches())
