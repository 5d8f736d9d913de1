"""What a run was and what came of it, as data: the page and the sentences at the end are made of it alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec


class FaultSpan(msgspec.Struct, kw_only=True):
    """Something that was wrong, from one time to another. `links` are pairs of brokers."""

    number: int
    kind: str
    begin: float
    end: float
    brokers: tuple[str, ...] = ()
    links: tuple[tuple[str, str], ...] = ()


class NetworkChange(msgspec.Struct, kw_only=True):
    """A change: something went wrong, or was put right; and what came of it until the next one.

    `whole_after` says when routes were whole again, None if that was not before the next change (`until`). It
    is `alone` if nothing else was wrong, and all was whole before, but for what it puts right.
    """

    at: float
    number: int  # of the fault
    what: str
    group: str  # of those that can be compared
    within: float  # in which routes should be whole, in seconds
    brokers: tuple[str, ...] = ()
    until: float = 0.0
    alone: bool = True
    whole_after: float | None = None
    lost: int = 0  # for takers and from publishers whose own brokers it was not
    lost_own: int = 0


class DurableRow(msgspec.Struct, frozen=True):
    """A durable subscription, and what came to it. Lags are in seconds; one is unexcused if nobody was away."""

    name: str
    broker: str
    filter: str
    owed: int
    got: int
    again: int
    missing: int
    longest_lag: float
    unexcused_lag: float


class TransientRow(msgspec.Struct, frozen=True):
    """What came to the transient subscription of a broker."""

    broker: str
    got: int
    late: int
    lost: int


class ChaosSecond(msgspec.Struct):
    """What was published in a second of the run, and what was lost of it; how far behind durable ones were."""

    published: int = 0
    late: int = 0
    lost: int = 0
    lag: float = 0.0  # of the worst of all, in seconds
    unexcused: float = 0.0  # the same, while nobody was away
    behind: int = 0  # how many missed something then


class ChaosRecord(msgspec.Struct, kw_only=True):
    """All of it."""

    seed: int
    command: str
    brokers: tuple[str, ...]
    overlay: str
    heartbeat: float
    rate: float
    late: float  # after how many seconds an event counts as late
    seconds: float = 0.0
    made: float = 0.0  # when, in seconds since 1970
    calm_from: float = 0.0  # when the last fault was over and all was whole
    troubles: list[FaultSpan] = []
    moments: list[NetworkChange] = []
    by_second: list[ChaosSecond] = []
    durable: list[DurableRow] = []
    transient: list[TransientRow] = []
    requests: Mapping[str, int] = {}
    counts: Mapping[str, int] = {}
    overlay_counts: Mapping[str, float] = {}
    violations: list[str] = []
    skipped: int = 0

    @property
    def is_well(self) -> bool:
        """Whether every promise was kept."""
        return not self.counts.get("violations", 0)


class RepairRow(msgspec.Struct, frozen=True):
    """How soon routes were whole after changes of one sort.

    `judged` are those that came alone, and after which there was time enough before the next change; `in_time`
    those of them that were whole within the bound. `longest` is in seconds, None if one was not whole at all.
    """

    group: str
    within: float
    changes: int
    judged: int
    in_time: int
    longest: float | None
    lost: int
    lost_own: int


def repair_rows(moments: Iterable[NetworkChange]) -> list[RepairRow]:
    """The changes of a run by what they were, in the order in which they came first."""
    groups: dict[str, list[NetworkChange]] = {}
    for one in moments:
        groups.setdefault(one.group, []).append(one)
    return [_row(group, some) for group, some in groups.items()]


def _row(group: str, some: list[NetworkChange]) -> RepairRow:
    within = some[0].within
    judged = [one for one in some if one.alone and (one.whole_after is not None or one.until - one.at > within)]
    times = [one.whole_after for one in judged]
    return RepairRow(
        group=group,
        within=within,
        changes=len(some),
        judged=len(judged),
        in_time=sum(time is not None and time <= within for time in times),
        longest=None if None in times else max(filter(None, times), default=0.0),
        lost=sum(one.lost for one in some),
        lost_own=sum(one.lost_own for one in some),
    )
