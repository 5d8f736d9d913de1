"""What a pattern means, said a second time: every choice of events is looked at. Slow and obviously right.

It reads the shape of a pattern directly and shares nothing with the automata or the search, but the filters and
the comparisons of single steps.
"""

from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Any

from palio import Notification, Pattern
from palio.model.patterns.computed import compile_guard
from palio.model.patterns.shape import Absence, All, Either, Step, Then, Times


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


@dataclass(frozen=True)
class Occurrence:
    """Events as steps; and of whom there must be none: after these events, before those (or before the end)."""

    events: tuple[tuple[Step, Event], ...]
    absences: tuple[tuple[tuple[Step, ...], tuple[Event, ...], tuple[Event, ...]], ...] = ()

    def plain(self) -> tuple[Event, ...]:
        return tuple(event for _, event in self.events)


class Definition:
    def __init__(self, pattern: Pattern, events: list[Event]) -> None:
        self.pattern = pattern
        self.events = events
        self.by_time = pattern.policies.order == "time"

    def key(self, event: Event):
        return (event.time, event.position) if self.by_time else event.position

    def before(self, one: Event, other: Event) -> bool:
        return one.time < other.time and (self.by_time or one.position < other.position)

    # What happened

    def occurrences(self, shape):
        match shape:
            case Step():
                for event in self.events:
                    if shape.filter.matches(event.notification):
                        yield Occurrence(((shape, event),))
            case Either(parts):
                for part in parts:
                    yield from self.occurrences(part)
            case Times(count, part):
                single = list(self.occurrences(part))
                for choice in combinations(single, count):
                    events = tuple(one for occurrence in choice for one in occurrence.events)
                    if len({event for _, event in events}) == count:
                        yield Occurrence(events)
            case All(parts):
                for choice in product(*(list(self.occurrences(part)) for part in parts)):
                    events = tuple(one for occurrence in choice for one in occurrence.events)
                    if len({event for _, event in events}) == len(events):
                        yield Occurrence(events, tuple(a for one in choice for a in one.absences))
            case Then(parts):
                yield from self.sequences(parts)

    def sequences(self, parts):
        found, missing = [Occurrence(())], ()
        for part in parts:
            if isinstance(part, Absence):
                missing += (part.part,) if isinstance(part.part, Step) else part.part.parts
                continue
            following = []
            for left, right in product(found, list(self.occurrences(part))):
                if all(self.before(one, other) for one in left.plain() for other in right.plain()):
                    absences = [(steps, after, until or right.plain()) for steps, after, until in left.absences]
                    if missing:
                        absences.append((missing, left.plain(), right.plain()))
                    following.append(Occurrence(left.events + right.events, (*absences, *right.absences)))
            found, missing = following, ()
        for one in found:
            extra = ((missing, one.plain(), ()),) if missing else ()
            yield Occurrence(one.events, one.absences + extra)

    # What counts

    def holds(self, occurrence: Occurrence) -> bool:
        times = [event.time for event in occurrence.plain()]
        if max(times) - min(times) > self.pattern.within:
            return False
        if not all(self.guarded(step, event, occurrence) for step, event in occurrence.events):
            return False
        return not any(self.violated(absence, occurrence, min(times)) for absence in occurrence.absences)

    def guarded(self, step: Step, event: Event, occurrence: Occurrence) -> bool:
        if step.guard is None:
            return True
        earlier = [(s, e) for s, e in occurrence.events if self.key(e) < self.key(event)]
        earlier.sort(key=lambda one: self.key(one[1]))
        events = {s.name: e.attributes for s, e in earlier} | {step.name: event.attributes}
        return compile_guard(step.guard)(event.attributes, events)

    def violated(self, absence, occurrence: Occurrence, least: int) -> bool:
        steps, after, until = absence
        for event in self.events:
            if not all(self.before(one, event) for one in after):
                continue
            if until and not self.before(event, min(until, key=self.key)):
                continue
            if not until and event.time > least + self.pattern.within:
                continue
            if any(
                step.filter.matches(event.notification) and self.guarded(step, event, occurrence)
                for step in steps
            ):
                return True
        return False

    def end(self, occurrence: Occurrence) -> int | None:
        """When the absence at its end is certain, if it has one."""
        if all(until for _, _, until in occurrence.absences):
            return None
        return min(event.time for event in occurrence.plain()) + self.pattern.within

    def matches(self) -> list[tuple[str, ...]]:
        possible: dict[tuple[Event, ...], int | None] = {}
        for occurrence in self.occurrences(self.pattern.shape):
            if self.holds(occurrence):
                events = tuple(sorted(occurrence.plain(), key=self.key))
                end = self.end(occurrence)
                if end is None or events not in possible:  # without waiting for an absence, if it can be
                    possible[events] = end
        ordered = sorted(possible, key=lambda events: [self.key(event) for event in events])
        return [tuple(event.id for event in events) for events in self.selected(ordered, possible)]

    def selected(self, ordered, ends):
        policies = self.pattern.policies
        if policies.select == "every":
            return ordered
        found = []
        while ordered:
            first = ordered[0]
            found.append(first)
            match policies.consume:
                case "all":
                    last, end = self.key(first[-1]), ends[first]
                    ordered = [
                        events
                        for events in ordered
                        if all(self.key(one) > last and (end is None or one.time > end) for one in events)
                    ]
                case "own":
                    ordered = [events for events in ordered if not set(events) & set(first)]
                case "none":
                    ordered = [events for events in ordered if events[0] != first[0]]
        return found


def matches(pattern: Pattern, events: list[Event]) -> list[tuple[str, ...]]:
    """The ids of the events of each match, sorted."""
    partitions: dict[tuple, list[Event]] = {}
    for event in events:
        key = tuple(event.attributes.get(name) for name in pattern.by)
        if None not in key:
            partitions.setdefault(key, []).append(event)
    return sorted(one for part in partitions.values() for one in Definition(pattern, part).matches())
