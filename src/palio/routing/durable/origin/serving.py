"""Counting and reading a journal for others, page by page: the part of an origin in surveys and replays, and in
bringing durable subscriptions up to date.

See `journal_history` and `catch_up` for who asks, and for what becomes of it. What was trimmed may lie in a
lake that cannot be read at the moment; then that is said, instead of what would have been found.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial

import msgspec

from palio.protocol.durable.letters import Browse, Browsed, Count, Counted, Fetch, Page
from palio.protocol.durable.lineage import incarnation_of
from palio.protocol.envelope import Envelope
from palio.routing.durable.desk import Desk
from palio.routing.durable.effects import Read
from palio.routing.durable.network.unicast import Unicast
from palio.routing.durable.origin.journal import OriginJournal
from palio.routing.occurrences import Found

# Surveys that an origin counts at a time, for all askers.
MAX_COUNTING = 64
MAX_BUCKETS = 1_000
MAX_SAMPLES = 100
# What the samples of one answer may have together, about; one of them there may always be.
MAX_SAMPLE_BYTES = 4 << 20


class SurveyTally:
    """What was counted: how many, when, and the newest of them as samples."""

    def __init__(self, count: Count) -> None:
        self._count = count
        self.total = 0
        self.first: float | None = None
        self.last: float | None = None
        self.histogram = [0] * count.buckets
        self.samples: deque[Envelope] = deque(maxlen=count.samples)
        self._sample_bytes = 0  # at least what they have together

    def add(self, envelope: Envelope) -> None:
        since, until, time = self._count.since, self._count.until, envelope.time
        if time > until:
            return
        self.total += 1
        self._reach(time, time)
        share = (time - since) / (until - since) if until > since else 0.0
        bucket = int(min(share, 1.0) * self._count.buckets)
        self.histogram[min(bucket, self._count.buckets - 1)] += 1
        self.samples.append(envelope)
        self._sample_bytes += envelope.notification.body.size
        if self._sample_bytes > MAX_SAMPLE_BYTES:
            self._trim_samples()

    def merge(self, counted: Counted) -> None:
        self.total += counted.count
        self._reach(counted.first, counted.last_time)
        for bucket, number in enumerate(counted.histogram[: len(self.histogram)]):
            self.histogram[bucket] += number
        newest = sorted([*self.samples, *counted.samples], key=lambda envelope: envelope.time)
        self.samples.clear()
        self.samples.extend(newest)
        self._trim_samples()

    def _trim_samples(self) -> None:
        """The newest stay, as many as fit; those that the queue has dropped by itself do not count any more."""
        size = sum([one.notification.body.size for one in self.samples])
        while size > MAX_SAMPLE_BYTES and len(self.samples) > 1:
            size -= self.samples.popleft().notification.body.size
        self._sample_bytes = size

    def _reach(self, first: float | None, last: float | None) -> None:
        if first is not None and (self.first is None or first < self.first):
            self.first = first
        if last is not None and (self.last is None or last > self.last):
            self.last = last


class _Counting(msgspec.Struct, eq=False):
    """A survey at an origin: how far it has counted, and what of it was not told yet."""

    asker: str
    count: Count
    tally: SurveyTally
    after: int
    upto: int
    told_at: float
    part: int = 0


class Serving:
    """Serves this broker's journal to others: surveys, replays and catch-up."""

    def __init__(self, desk: Desk, journal: OriginJournal, letters: Unicast) -> None:
        self._desk = desk
        self._journal = journal
        self._letters = letters
        self._counting: dict[tuple[str, int], _Counting] = {}

    def count(self, sender: str, count: Count) -> None:
        """Serves a survey: count here. Who asks too much of this broker hears nothing, and says so."""
        key = sender, count.number
        modest = 1 <= count.buckets <= MAX_BUCKETS and count.samples <= MAX_SAMPLES
        if key not in self._counting and len(self._counting) < MAX_COUNTING and modest:
            journal = self._journal
            span = journal.begins, journal.stored
            counting = _Counting(sender, count, SurveyTally(count), *span, self._desk.now)
            self._counting[key] = counting
            self._count_on(key, counting)

    def browse(self, sender: str, letter: Browse) -> None:
        """Serves a replay: read a page here."""

        def found(result: Found) -> None:
            envelopes = tuple([one for one in result.envelopes if one.time <= letter.until])
            self._letters.write(sender, Browsed(letter.number, letter.after, result.upto, envelopes))

        def failed(reason: str) -> None:
            self._letters.write(sender, Browsed(letter.number, letter.after, letter.after, (), broken=True))

        self._read((found, failed), letter)

    def fetch(self, sender: str, letter: Fetch) -> None:
        """Serves the catch-up of a durable subscription: read a page here."""
        begins = self._journal.begins  # as the store will find it: it trims and reads in their order

        def found(result: Found) -> None:
            incarnation = incarnation_of(result.upto, self._journal.lineage)
            read = letter.after, result.upto, result.envelopes
            page = Page(letter.reader, *read, incarnation=incarnation, begins=begins, damaged=result.damaged)
            self._letters.write(sender, page)

        def failed(reason: str) -> None:
            self._letters.write(sender, Page(letter.reader, letter.after, letter.after, (), reason))

        self._read((found, failed), letter)

    def _count_on(self, key: tuple[str, int], counting: _Counting) -> None:
        if counting.after >= counting.upto:
            del self._counting[key]
            self._tell(counting, last=True)
            return
        count, page = counting.count, self._desk.settings.page
        letter = Fetch("", count.filter, counting.after, counting.upto, count.since, page)
        self._read((partial(self._count_page, key), partial(self._count_failed, key)), letter)

    def _count_page(self, key: tuple[str, int], result: Found) -> None:
        counting = self._counting[key]
        for envelope in result.envelopes:
            counting.tally.add(envelope)
        counting.after = max(result.upto, counting.after + 1)
        if counting.told_at + self._desk.settings.tick <= self._desk.now and counting.after < counting.upto:
            self._tell(counting, last=False)
        self._count_on(key, counting)

    def _count_failed(self, key: tuple[str, int], reason: str) -> None:
        self._tell(self._counting.pop(key), last=True, broken=True)

    def _tell(self, counting: _Counting, *, last: bool, broken: bool = False) -> None:
        tally = counting.tally
        found = tally.total, tally.first, tally.last, tuple(tally.histogram), tuple(tally.samples)
        counted = Counted(counting.count.number, counting.part, *found, last=last, broken=broken)
        counting.part += 1
        counting.told_at = self._desk.now
        counting.tally = SurveyTally(counting.count)
        self._letters.write(counting.asker, counted)

    def _read(
        self, then: tuple[Callable[[Found], None], Callable[[str], None]], letter: Browse | Fetch
    ) -> None:
        """Read what a letter asks for, and do the one or the other."""
        upto = min(letter.upto, self._journal.stored)
        limit = max(1, min(letter.limit, self._desk.settings.page))
        token = self._desk.token(*then)
        # A subscription is told of a gap where something was trimmed; who looks back takes what there is.
        documents = type(letter) is Browse
        read = Read(token, letter.filter, letter.after, upto, limit, letter.since, documents)
        self._desk.effects.append(read)
