"""What it means that a part of a match timed out, said a second time, by the definition of what is whole.

A choice of events is a part of a match if events could have come that make it whole. So events are made up that
satisfy every step, and come after everything; then every choice is looked at that has some of these. How long
they could have come, is the deadline; what must not happen before them, counts if it happened before the
deadline.
"""

from palio import Pattern
from tests.matching.patterns.definition import Absent, Definition, Event, Occurrence, Stop

MADE_UP = 10**9
# As many as patterns need that need fewer: one of them may go on with a loop first.
COUNT = 3


class Overdue(Definition):
    def __init__(self, pattern: Pattern, events: list[Event]) -> None:
        made_up = [Event(MADE_UP + number, MADE_UP + number, {}) for number in range(COUNT)]
        super().__init__(pattern, events + made_up)
        self.real = events

    def is_event_of(self, step, event: Event) -> bool:
        return event.time >= MADE_UP or super().is_event_of(step, event)

    def guarded(self, step, event: Event, occurrence: Occurrence) -> bool:
        return event.time >= MADE_UP or super().guarded(step, event, occurrence)

    def parts(self) -> dict[tuple, int]:
        """Each choice of real events, with what they count as, that something could complete, and until
        when."""
        found: dict[tuple, int] = {}
        for occurrence in self.occurrences(self.pattern.shape):
            choice = sorted(((e, rank) for _, e, rank in occurrence.events), key=lambda one: self.key(one[0]))
            real = tuple(one for one in choice if one[0].time < MADE_UP)
            if real and len(real) < len(choice):
                deadline = self.deadline(occurrence, [event.time for event, _ in real])
                if deadline is not None:
                    found[real] = max(deadline, found.get(real, deadline))
        return found

    def deadline(self, occurrence: Occurrence, times: list[int]) -> int | None:
        if max(times) - min(times) > self.pattern.within:
            return None
        if not all(self.guarded(step, event, occurrence) for step, event, _ in occurrence.events):
            return None
        limit = min(times) + self.pattern.within
        for join, left, right in occurrence.joins:
            if not self.awaited(left, right):
                if self.came(right) and not self.joined(join, left, right):
                    return None
            elif join.within is not None:
                limit = min(limit, max(event.time for event in left) + join.within)
        for join, left, right in occurrence.joins:
            last = max(map(self.key, left))
            if self.awaited(left, right) and join.strict:
                if any(self.key(event) > last and event.time <= limit for event in self.real):
                    return None
        if any(self.stopped_before(stop, occurrence, limit) for stop in occurrence.stops):
            return None
        if any(self.ended(one, occurrence, limit) for one in occurrence.absences if one.after and one.until):
            return None
        return limit

    def stopped_before(self, stop: Stop, occurrence: Occurrence, limit: int) -> bool:
        if stop.event.time < MADE_UP:
            return self.stopped(stop, occurrence)
        if not stop.before:
            return False
        return self.ended(Absent(stop.steps, stop.before, (stop.event,)), occurrence, limit)

    def awaited(self, left, right) -> bool:
        """Whether the first event on the right is one that did not come, behind what did."""
        return not self.came(right) and all(event.time < MADE_UP for event in left)

    def came(self, events) -> bool:
        """Whether the first of them is one that came."""
        return min(events, key=self.key).time < MADE_UP

    def ended(self, absence: Absent, occurrence: Occurrence, limit: int) -> bool:
        if not self.awaited(absence.after, absence.until):
            return self.came(absence.until) and self.violated(absence, occurrence, 0)
        if absence.adjacent:
            last = max(map(self.key, absence.after))
            behind = sorted((event for event in self.real if self.key(event) > last), key=self.key)[:1]
            candidates = [event for event in behind if event.time <= limit]
        else:
            candidates = [
                event
                for event in self.real
                if event.time < limit and all(self.before(one, event) for one in absence.after)
            ]
        return any(
            self.is_event_of(step, event) and self.guarded(step, event, occurrence)
            for event in candidates
            for step in absence.steps
        )

    def told(self) -> list[tuple[str, ...]]:
        """Of each beginning that no match came of, and that none has used up, the first part, as far as it
        went."""
        whole = Definition(self.pattern, self.real)
        possible = whole.possible()
        used: set[Event] = set()
        if self.pattern.policies.consume == "all":
            for events in whole.selected(list(possible), possible):
                low, high = self.key(events[0]), self.key(events[-1])
                used |= {event for event in self.real if low <= self.key(event) <= high}
        parts = self.parts()
        begun = {events[0] for events in possible} | used
        starts = sorted({one for one in {part[0] for part in parts} if one[0] not in begun}, key=self.place)
        found = {}
        for start in starts:
            part = self.first((start,), parts)
            if part is not None:
                found.setdefault(start[0], tuple(event.id for event, _ in part))
        return sorted(found.values())

    def place(self, one):
        return self.key(one[0]), one[1]

    def first(self, part: tuple, parts: dict[tuple, int]) -> tuple | None:
        ends = parts.get(part, min(event.time for event, _ in part) + self.pattern.within)
        following = {
            other[len(part)] for other in parts if len(other) > len(part) and other[: len(part)] == part
        }
        for one in sorted((one for one in following if one[0].time <= ends), key=self.place):
            found = self.first((*part, one), parts)
            if found is not None:
                return found
        return part if part in parts else None
