"""Journals: surveys, replays, retention holds and trimming, as clients and operators ask for them."""

from __future__ import annotations

from typing import Annotated

import msgspec

from palio.model.filter import Filter
from palio.protocol.base import Moment, Number, Numbered, Paired
from palio.protocol.durable.lineage import Lineage
from palio.protocol.envelope import Envelope


class Forget(Numbered, frozen=True):
    """Remove a member, from an operator: a broker is gone for good, and nobody shall wait for it any more."""

    broker: str


class Survey(Paired, frozen=True):
    """Count what the filter selects in the journals in reach, from one time to another.

    The answer has a histogram of that time, and the newest as samples. Without an end it is until now.
    """

    filter: Filter
    since: Moment = 0.0
    until: Moment | None = None
    buckets: Number = 24
    samples: Number = 5


class Replay(Paired, frozen=True):
    """Replay what the filter selects in the journals in reach, origin by origin, page by page.

    With `ranges` only what those origins have after one sequence up to another.
    """

    filter: Filter
    since: Moment = 0.0
    until: Moment | None = None
    page: Number = 100
    ranges: tuple[tuple[str, Number, Number], ...] = ()


class GoOn(Paired, frozen=True):
    """Ask for the next page of a replay."""


class ListJournals(Paired, frozen=True):
    """Ask which journals are in reach, and how far they are."""


class Hold(Paired, frozen=True):
    """Retention hold: keep this broker's journal for a reader that has all up to a sequence; -1 ends that.

    A reader is no subscription: a lake, or a query that comes back later. Nothing is sent to it. What it has of
    a journal with another `lineage` counts only up to where both fork.
    """

    reader: Annotated[str, msgspec.Meta(min_length=1, max_length=255)]
    sequence: Annotated[int, msgspec.Meta(ge=-1, le=2**62)]
    lineage: Lineage = ()


class TrimJournal(Paired, frozen=True):
    """Trim, from an operator: let go all of this broker's journal that nobody needs, however new it is.

    With `upto` nothing after that sequence. With `dry` nothing at all: only what would go is said.
    """

    upto: Number | None = None
    dry: bool = False


# The answers.


class Forgot(Numbered, frozen=True):
    """Answers `Forget`: that a broker is forgotten is on disk here, and on its way to all others."""

    broker: str


class Surveyed(Paired, frozen=True):
    """Answers `Survey`: how many, the first and the last time; `missing` are origins that did not say."""

    count: Number
    first: Moment | None
    last: Moment | None
    histogram: tuple[Number, ...]
    span: tuple[Moment, Moment]
    samples: tuple[Envelope, ...]
    missing: tuple[str, ...] = ()


class Replayed(Paired, frozen=True):
    """Answers `Replay`: a page, all of one origin; or its end, with the origins that did not answer."""

    origin: str = ""
    envelopes: tuple[Envelope, ...] = ()
    last: bool = False
    missing: tuple[str, ...] = ()


class JournalRange(msgspec.Struct, frozen=True, array_like=True):
    """A journal has all after `trimmed` up to `head`; its lineage is empty if its broker did not tell it."""

    origin: str
    trimmed: Number
    head: Number
    lineage: Lineage = ()


class JournalsListed(Paired, frozen=True):
    """Answers `ListJournals`: those in reach; `missing` were heard of once and did not answer."""

    journals: tuple[JournalRange, ...]
    missing: tuple[str, ...] = ()


class Held(Paired, frozen=True):
    """Answers `Hold`: that the journal is kept for a reader is on disk; what was trimmed before is gone."""

    journal: JournalRange


class JournalTrimmed(Paired, frozen=True):
    """Answers `TrimJournal`: how far it is trimmed, and how far the readers are who need what is beyond.

    Not while brokers are `missing` of which it is not known whom they have. `gone` have gone, or would go.
    """

    journal: JournalRange
    needed_by: tuple[tuple[str, Number], ...] = ()
    missing: tuple[str, ...] = ()
    gone: Number = 0
