"""`Detector`: many patterns in one stream of events.

One `MatchIndex` holds the filters of all steps of all patterns, so that an event costs one match, and only what
it hits goes on: into the partition of its pattern and key. `advance` says how far time has come; then every
partition that got events, or was due, is looked at (`partition`), and what is certain is returned.

What a caller promises: an event with a time up to the watermark does not come any more, and for patterns in the
order of arrival, positions grow from one `advance` to the next (in between they may come in any order). An
event that breaks the promise is dropped and counted, so the answer never depends on luck.

The state is what partitions remember, and is bounded: so many events a partition, so many in all; what is
dropped is counted. `encode` gives it as bytes, in which partitions stay as they are until somebody needs them,
since a store of a million keys is read and written for each small batch of events.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from palio.matching.patterns.automaton import Automaton
from palio.matching.patterns.hit import FOREVER, NEVER, Hit
from palio.matching.patterns.match import Constituent, Match
from palio.matching.patterns.partition import Finding, Losses, Partition
from palio.matching.patterns.patternset import PatternSet, key_values
from palio.model.errors import PalioError
from palio.model.notification import Notification
from palio.model.patterns.pattern import Pattern

# Events remembered by one detector, over all its patterns and keys: some hundred megabytes.
MAX_STATE = 2_000_000

_VERSION = 1
# The number of a pattern, and a key.
Place: TypeAlias = "tuple[int, bytes]"


class UnreadableState(PalioError):
    """Bytes that are no state of a detector."""


class DetectorCounts(msgspec.Struct, array_like=True):
    """What a detector has counted; each drop by its reason.

    `late` events had a time up to the watermark; `disordered` hits came for a pattern in the order of arrival
    after a later position had been looked at; `unkeyed` ones had no value for an attribute that their pattern
    goes by; `overflow` ones were forgotten because a partition or the detector was full; `abandoned` searches
    took too long. `timed_out` are parts of matches that were told as such, and are not among `matches`.
    """

    events: int = 0
    hits: int = 0
    matches: int = 0
    late: int = 0
    disordered: int = 0
    unkeyed: int = 0
    overflow: int = 0
    abandoned: int = 0
    timed_out: int = 0


class DetectorStatistics(msgspec.Struct, frozen=True):
    """What a detector holds and has counted."""

    patterns: int
    partitions: int
    remembered: int
    counts: DetectorCounts


class _Kept(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A partition as bytes: when it is due, how many events it remembers, and the partition itself.

    There may be a million of them, so garbage collection leaves them alone; they hold nothing that holds them.
    """

    due: int
    size: int
    raw: msgspec.Raw


class _State(msgspec.Struct, array_like=True):
    """A detector as bytes: partitions by the digest of their pattern and by their key."""

    version: int
    watermark: int
    evaluated: int
    highest: int
    held: int
    counts: DetectorCounts
    partitions: dict[bytes, dict[bytes, _Kept]]


_encoder = msgspec.msgpack.Encoder()
_state_decoder = msgspec.msgpack.Decoder(_State)
_partition_decoder = msgspec.msgpack.Decoder(Partition)


class Detector:
    """Finds patterns, given by name, in events that come in any order up to a watermark."""

    def __init__(self, patterns: PatternSet | Mapping[str, Pattern | str], *, limit: int = MAX_STATE) -> None:
        """Raises what `Pattern.parse` raises."""
        self.patterns = patterns if isinstance(patterns, PatternSet) else PatternSet(patterns)
        self.counts = DetectorCounts()
        self.watermark = NEVER
        self._limit = limit
        self._partitions: dict[Place, Partition] = {}
        # Those that are still as they were read, for each pattern, and when the first of them is due.
        self._kept: list[dict[bytes, _Kept]] = [{} for _ in self.patterns]
        self._kept_until = FOREVER
        self._touched: set[Place] = set()
        self._calendar: list[tuple[int, Place]] = []
        self._held = 0
        self._evaluated = NEVER  # the highest position of an event that has been looked at
        self._highest = NEVER  # and of all that came

    def take(self, notification: Notification, *, time: int, position: int, id: str | None = None) -> None:
        """An event, at a time in microseconds since 1970 and a position in the order of arrival."""
        self.counts.events += 1
        if time <= self.watermark:
            self.counts.late += 1
            return
        patterns = self.patterns
        for pattern, steps in patterns.hits(notification):
            named = str(position) if id is None else id
            hit = patterns.hit(pattern, steps, notification.attributes, time=time, position=position, id=named)
            if hit is None:
                self.counts.unkeyed += 1
            else:
                self.add(pattern, *hit)

    def add(self, pattern: int, key: bytes, hit: Hit) -> None:
        """A hit that was found elsewhere, for the pattern of this number."""
        counts = self.counts
        counts.hits += 1
        if hit.time <= self.watermark:
            counts.late += 1
            return
        if hit.position > self._highest:
            self._highest = hit.position
        elif hit.position <= self._evaluated and self.patterns.automata[pattern].by_arrival:
            counts.disordered += 1
            return
        if self._held >= self._limit:
            counts.overflow += 1
            return
        place = (pattern, key)
        partition = self._partitions.get(place)
        if partition is None:
            kept = self._kept[pattern].pop(key, None)
            if kept is None:
                partition = self._partitions[place] = Partition([], [])
            else:
                partition = self._unpack(place, kept)
        self._held += 1
        partition.waiting.append(hit)
        self._touched.add(place)

    def advance(self, watermark: int) -> list[Match]:
        """All matches that are certain now that no event with a time up to the watermark will come any more;
        and what timed out, of patterns that tell it.

        They come in the order of their times. A watermark never goes back.
        """
        watermark = self.watermark = max(watermark, self.watermark)
        self._evaluated = self._highest
        found: list[Match] = []
        losses = Losses()
        for place in self._due(watermark):
            partition = self._partitions[place]
            automaton = self.patterns.automata[place[0]]
            before, due = partition.size(), partition.due
            findings = partition.look(automaton, watermark, losses)
            found += [match_of(automaton, place[1], finding) for finding in findings]
            size = partition.size()
            self._held += size - before
            if not size:
                del self._partitions[place]
            elif partition.due != due or due <= watermark:
                heapq.heappush(self._calendar, (partition.due, place))
        timed_out = sum(match.timed_out for match in found)
        self.counts.matches += len(found) - timed_out
        self.counts.timed_out += timed_out
        self.counts.overflow += losses.overflow
        self.counts.abandoned += losses.abandoned
        found.sort(key=lambda match: (match.time, match.pattern, match.constituents[0].position))
        return found

    def close(self) -> list[Match]:
        """All that is left, as if no event would ever come again: what is still open is decided now."""
        return self.advance(FOREVER)

    def _due(self, watermark: int) -> set[Place]:
        """What has to be looked at."""
        if watermark >= self._kept_until:
            for number, kept in enumerate(self._kept):
                for key in [key for key, one in kept.items() if one.due <= watermark]:
                    self._unpack((number, key), kept.pop(key))
            self._kept_until = self._first_kept()
        places, self._touched = self._touched, set()
        calendar, partitions = self._calendar, self._partitions
        while calendar and calendar[0][0] <= watermark:
            due, place = heapq.heappop(calendar)
            partition = partitions.get(place)
            if partition is not None and partition.due == due:  # what is not has been changed since
                places.add(place)
        return places

    def statistics(self) -> DetectorStatistics:
        return DetectorStatistics(
            patterns=len(self.patterns),
            partitions=len(self._partitions) + sum(map(len, self._kept)),
            remembered=self._held,
            counts=msgspec.structs.replace(self.counts),
        )

    # State

    def encode(self) -> bytes:
        """All that is remembered and counted, as bytes."""
        touched = self._touched
        several = [dict(kept) for kept in self._kept]
        for place, partition in self._partitions.items():
            due = NEVER if place in touched else partition.due
            raw = msgspec.Raw(_encoder.encode(partition))
            several[place[0]][place[1]] = _Kept(due, partition.size(), raw)
        partitions = {
            automaton.digest: kept for automaton, kept in zip(self.patterns, several, strict=True) if kept
        }
        state = _State(
            _VERSION, self.watermark, self._evaluated, self._highest, self._held, self.counts, partitions
        )
        return _encoder.encode(state)

    @classmethod
    def decode(
        cls, patterns: PatternSet | Mapping[str, Pattern | str], data: bytes, *, limit: int = MAX_STATE
    ) -> Detector:
        """A detector that goes on where the one that was encoded stopped. Raises `UnreadableState`.

        Patterns that are new begin with nothing; what belongs to patterns that are gone is forgotten.
        """
        try:
            state = _state_decoder.decode(data)
        except msgspec.DecodeError as problem:
            raise UnreadableState(f"These bytes are no state of a detector: {problem}.") from None
        if state.version != _VERSION:
            raise UnreadableState(f"This state of a detector has the version {state.version}, not {_VERSION}.")
        detector = cls(patterns, limit=limit)
        detector.watermark, detector.counts = state.watermark, state.counts
        detector._evaluated, detector._highest = state.evaluated, state.highest
        if state.partitions:
            detector._kept = [state.partitions.pop(automaton.digest, {}) for automaton in detector.patterns]
        gone = sum(one.size for kept in state.partitions.values() for one in kept.values())
        detector._held = state.held - gone
        detector._kept_until = detector._first_kept()
        return detector

    def _first_kept(self) -> int:
        return min((one.due for kept in self._kept for one in kept.values()), default=FOREVER)

    def _unpack(self, place: Place, kept: _Kept) -> Partition:
        try:
            partition = _partition_decoder.decode(kept.raw)
        except msgspec.DecodeError as problem:
            raise UnreadableState(f"A partition in this state of a detector is damaged: {problem}.") from None
        if self.patterns.automata[place[0]].remembered:
            for hit in (*partition.hits, *partition.waiting):
                hit.restore()
        partition.due = kept.due
        heapq.heappush(self._calendar, (kept.due, place))
        self._partitions[place] = partition
        return partition


def match_of(automaton: Automaton, key: bytes, finding: Finding) -> Match:
    """What was found in a partition, for everybody."""
    events, time, timed_out = finding
    names = automaton.step_names
    return Match(
        automaton.name,
        key_values(automaton.by, key),
        time,
        tuple(Constituent(names[step], hit.id, hit.time, hit.position) for hit, step in events),
        timed_out,
    )
