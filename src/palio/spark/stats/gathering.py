"""From tables to figures: which looks are taken, in which order, and what of them comes to the driver."""

from __future__ import annotations

import math
import time as clock
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from itertools import pairwise
from typing import Any

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from palio.language import read_filter
from palio.matching.saving import saved
from palio.model.filter import Filter
from palio.spark.errors import NothingThere
from palio.spark.frames import DIALECT, FILTER, SUBSCRIPTION, require_columns, said_filters
from palio.spark.matching.shards import Shards, build_shards, parsed
from palio.spark.stats import event_scans, figures
from palio.spark.stats.constraints import constraints_of
from palio.spark.stats.content import NUMBER, STRING, TIME
from palio.spark.stats.event_scans import Places, counts, sketches, summarised, summed, united
from palio.spark.stats.hits import CONSTRAINT, HITS, REACH, WANTED, hit_rates, reached
from palio.spark.stats.preparing import Prepared, prepared
from palio.spark.stats.steps import bin_edges, time_steps
from palio.spark.tables.parts import Looks, Whole, one_file

# What figures have of each thing, at the most.
MOST_ATTRIBUTES = 200
MOST_GROUPS = 7
MOST_PUBLISHERS = 20
MOST_CONSTRAINTS = 500
MOST_SUBSCRIPTIONS = 50
# Filters that are compared with each other; of more than these, a sample.
MOST_COMPARED = 5_000
_LONGEST_COMPARED = 2_000
# A number with so few different values is shown by its values, not by bins.
FEW_VALUES = 12
CLASS = "class"

# The looks at events, the last one only if there are subscriptions.
LOOKS = ("attributes", "places", "matches")

Shape = Callable[[DataFrame], Prepared]
_Constraints = tuple[int, list[dict[str, Any]]]
_Sizes = tuple[int, int]


def gather(
    events: DataFrame | Looks,
    subscriptions: DataFrame | None = None,
    *,
    source: str = "",
    filter: str | Filter | None = None,
    time: str | None = None,
    by: str | None = None,
    since: float | None = None,
    until: float | None = None,
    keep: bool = True,
    unreadable: int = 0,
) -> figures.Figures:
    """All figures of a table of events, and of subscriptions if there are some.

    `events` are as `palio.spark.read` and `history` give them, or have a column for each attribute;
    `subscriptions` have `subscription_id`, `filter` and perhaps `dialect`. `filter`, and the times `since` and
    `until` (seconds since 1970), choose among the events. `time` names the column or the attribute that says
    when, and `by` the attribute whose values are told apart over time: `class` if there is one, or else the
    publisher. Events are kept by Spark (memory, then disk) between looks unless `keep` is false. `unreadable`
    is how many were left out before. In place of the table, `events` may be `Looks`, to look at them in parts,
    each as often as there are `LOOKS`.

    Filters that cannot be read are counted and left out. Raises `NothingThere` if there are no events, or no
    subscriptions where some were given; `WrongOption`, `MissingColumn` and `UnsupportedColumn`.
    """
    if subscriptions is not None:
        require_columns("subscriptions", subscriptions, SUBSCRIPTION, FILTER)
    parsed_filter = None if filter is None else read_filter(filter)
    with _looking(
        events, partial(prepared, filter=parsed_filter, time=time, since=since, until=until), keep=keep
    ) as (looks, shape):
        found = _Found(summarised(looks.look(LOOKS[0], lambda some: sketches(shape(some)), united)))
        if not found.events:
            reason = "nothing was published in that time, or nothing that the filter selects."
            if unreadable:
                reason = f"{unreadable:,} of its lines cannot be read."
            raise NothingThere("events", source, reason)
        places = looks.kept("places", lambda: found.places(by), Places)
        counted = _counted(looks, shape, places)
        attributes = found.attributes(counted, places)
        selectivities: list[figures.Selectivity] = []
        constraints, hits, savings = 0, None, None
        wanted: dict[int, int] = {}
        if subscriptions is not None:
            wants = subscriptions
            constraints, asked = looks.kept("constraints", lambda: _constraints(wants), _Constraints)
            matched = _Matched(looks, shape, subscriptions, places, [row["text"] for row in asked])
            hits, wanted = matched.hits(found.events), matched.by_place.get(WANTED, {})
            selectivities = matched.selectivities(asked, found.events)
            count = hits.subscriptions
            savings = looks.kept("savings", lambda: _savings(wants, count), figures.Savings)
        return figures.Figures(
            source=source,
            made=clock.time(),
            filter=None if parsed_filter is None else parsed_filter.source or str(parsed_filter),
            traffic=found.traffic(places, counted, wanted if hits is not None else None, unreadable),
            attributes=attributes,
            attributes_left_out=found.left_out,
            selectivities=selectivities,
            constraints=constraints,
            hits=hits,
            savings=savings,
        )


@contextmanager
def _looking(events: DataFrame | Looks, prepare: Shape, *, keep: bool) -> Iterator[tuple[Looks, Shape]]:
    """How to look at events, and what brings them into the form for that; for one pass it is done before."""
    if isinstance(events, Looks):
        yield events, prepare
        return
    frame, names = prepare(events)
    if keep:
        frame = frame.persist()
    try:
        yield Whole(frame), lambda some: Prepared(some, names)
    finally:
        if keep:
            frame.unpersist()


class _Found:
    """What the first look has found."""

    def __init__(self, table: DataFrame) -> None:
        order = (f.col("beside").desc(), f.col("events").desc(), f.col("name"), f.col("family"))
        rows = table.orderBy(*order).limit(MOST_ATTRIBUTES + len(event_scans.BESIDE_ATTRIBUTES) + 1).collect()
        self.beside = {row["name"]: row for row in rows if row["beside"]}
        attributes = [row for row in rows if not row["beside"]]
        self.rows = attributes[:MOST_ATTRIBUTES]
        self.left_out = 0
        if len(attributes) > MOST_ATTRIBUTES:
            self.left_out = table.where("not beside").count() - MOST_ATTRIBUTES
        self.events = self._count(event_scans.EVENTS) - self._count(event_scans.UNREADABLE)

    def _count(self, name: str) -> int:
        return int(self.beside[name]["events"]) if name in self.beside else 0

    def places(self, by: str | None) -> Places:
        """Where the second look has to count."""
        start = step = 0.0
        steps = 0
        if event_scans.TIMES in self.beside:
            times = self.beside[event_scans.TIMES]
            start, step, steps = time_steps(times["least"] / 1e6, times["most"] / 1e6)
        chosen, groups = self._groups(by)
        return Places(start, step, steps, chosen, groups, self._edges())

    def _groups(self, by: str | None) -> tuple[str | None, tuple[str, ...]]:
        """The attribute whose values are told apart (None is the publisher), and the most frequent of these."""
        named = [row for row in self.rows if row["family"] == STRING and row["name"] == (by or CLASS)]
        if named and (by is not None or named[0]["distinct"] > 1):
            return named[0]["name"], tuple(str(one.value) for one in _values(named[0])[:MOST_GROUPS])
        if by is None and event_scans.PUBLISHERS in self.beside:
            publishers = _values(self.beside[event_scans.PUBLISHERS])
            if len(publishers) > 1:
                return None, tuple(str(one.value) for one in publishers[:MOST_GROUPS])
        return None, ()

    def _edges(self) -> dict[str, tuple[float, ...]]:
        return {
            row["name"]: bin_edges(row["quantiles"])[0]
            for row in self.rows
            if row["family"] == NUMBER and row["distinct"] > FEW_VALUES and _finite(row["least"], row["most"])
        }

    def attributes(self, counted: list[Any], places: Places) -> list[figures.Attribute]:
        """Attributes, the most frequent first."""
        in_bins: dict[str, dict[int, int]] = {}
        for row in counted:
            if row["what"] == "bin":
                in_bins.setdefault(row["name"], {})[row["place"]] = row["events"]
        return [self._attribute(row, in_bins.get(row["name"], {}), places) for row in self.rows]

    def _attribute(self, row: Any, in_bins: dict[int, int], places: Places) -> figures.Attribute:
        edges = places.edges.get(row["name"], ()) if row["family"] == NUMBER else ()
        pairs = list(pairwise(edges))
        finite = row["least"] is not None and _finite(row["mean"], row["deviation"])
        return figures.Attribute(
            name=row["name"],
            family=row["family"],
            events=row["events"],
            share=row["events"] / self.events,
            kinds=dict(row["kinds"]),
            distinct=row["distinct"],
            distinct_exact=row["distinct_exact"],
            values=_values(row) if row["family"] != TIME else [],
            values_missed=row["values_missed"],
            least=row["least"],
            most=row["most"],
            mean=row["mean"] if finite else None,
            deviation=row["deviation"] if finite else None,
            quantiles=list(row["quantiles"]),
            bins=[figures.Bin(low, high, in_bins.get(place, 0)) for place, (low, high) in enumerate(pairs)],
            logarithmic=bool(edges) and bin_edges(row["quantiles"])[1],
        )

    def traffic(
        self, places: Places, counted: list[Any], wanted: dict[int, int] | None, unreadable: int
    ) -> figures.Traffic:
        all_events = {row["place"]: row["events"] for row in counted if row["what"] == "time"}
        groups: dict[int, dict[str, int]] = {}
        for row in counted:
            if row["what"] == "group":
                groups.setdefault(row["place"], {})[row["label"]] = row["events"]
        times = self.beside.get(event_scans.TIMES)
        sizes = self.beside.get(event_scans.SIZES)
        publishers = self.beside.get(event_scans.PUBLISHERS)
        return figures.Traffic(
            events=self.events,
            bytes=None if sizes is None else round(sizes["mean"] * sizes["events"]),
            unreadable=unreadable + self._count(event_scans.UNREADABLE),
            first=None if times is None else times["least"] / 1e6,
            last=None if times is None else times["most"] / 1e6,
            step=places.step or None,
            by=(places.by or "publisher") if places.groups else None,
            groups=list(places.groups),
            moments=[
                figures.Moment(
                    places.start + number * places.step,
                    all_events.get(number, 0),
                    groups.get(number, {}),
                    None if wanted is None else wanted.get(number, 0),
                )
                for number in range(places.steps)
            ],
            publishers=[] if publishers is None else _values(publishers)[:MOST_PUBLISHERS],
            publishers_distinct=0 if publishers is None else publishers["distinct"],
            untimed=min(self.events, self._count(event_scans.EVENTS) - self._count(event_scans.TIMES)),
        )


def _counted(looks: Looks, shape: Shape, places: Places) -> list[Any]:
    if not places.steps and not places.edges:
        return []
    return summed(looks.look(LOOKS[1], lambda some: counts(shape(some), places), one_file)).collect()


def _values(row: Any) -> list[figures.ValueCount]:
    return [figures.ValueCount(msgspec.json.decode(one["value"]), one["events"]) for one in row["values"]]


def _finite(*numbers: float | None) -> bool:
    return all(number is not None and math.isfinite(number) for number in numbers)


# Subscriptions


def _constraints(subscriptions: DataFrame) -> _Constraints:
    """How many constraints there are, and those that most subscriptions have."""
    table = constraints_of(subscriptions)
    rows = table.orderBy(f.col("subscriptions").desc(), f.col("text")).limit(MOST_CONSTRAINTS + 1).collect()
    count = len(rows) if len(rows) <= MOST_CONSTRAINTS else table.count()
    return count, [row.asDict() for row in rows[:MOST_CONSTRAINTS]]


class _Matched:
    """What subscriptions find; everything that was counted for a place or a constraint, by that."""

    def __init__(
        self, looks: Looks, shape: Shape, subscriptions: DataFrame, places: Places, constraints: list[str]
    ) -> None:
        shards = cache(lambda: build_shards(subscriptions, invalid="skip"))  # not if everything is counted
        self.subscriptions, self.unreadable = looks.kept("subscriptions", lambda: _sizes(shards()), _Sizes)
        if not self.subscriptions:
            reason = "the table is empty."
            if self.unreadable:
                first = shards().reports[0]
                example = f"for example that of {first.first_id}: {first.first_reason}"
                reason = f"none of the filters can be read, {example}"
            raise NothingThere("subscriptions", "", reason)
        found = looks.look(LOOKS[2], lambda some: reached(shape(some), shards(), places, constraints))
        counted = summed(found).persist()
        rates = hit_rates(subscriptions, counted).persist()
        try:
            self.by_place: dict[str, dict[int, int]] = {}
            for row in counted.where(f.col("place").isNotNull()).collect():
                self.by_place.setdefault(row["what"], {})[row["place"]] = row["events"]
            events = sum(self.by_place.get(REACH, {}).values())
            share = f.floor(f.log10(f.lit(events) / f.col(HITS))).cast("int")
            step = f.when(f.col(HITS) > 0, f.least(share, f.lit(18)))
            counts = f.count(f.lit(1)).alias("count"), f.sum(HITS).alias("pairs")
            self.steps = rates.groupBy(step.alias("step")).agg(*counts).collect()
            order = f.col(HITS).desc(), f.col(SUBSCRIPTION).cast("string")
            self.most = rates.where(f"{HITS} > 0").orderBy(*order).limit(MOST_SUBSCRIPTIONS).collect()
            self.never = rates.where(f"{HITS} = 0").orderBy(order[1]).limit(2 * MOST_SUBSCRIPTIONS).collect()
        finally:
            rates.unpersist()
            counted.unpersist()

    def hits(self, events: int) -> figures.Hits:
        by_share = {row["step"]: row["count"] for row in self.steps}
        # What is no event reaches nobody, and is no event.
        reach = {place: count for place, count in self.by_place.get(REACH, {}).items() if place}
        if events > sum(reach.values()):
            reach[0] = events - sum(reach.values())
        # A filter that cannot be read finds nothing, but that is another matter.
        unmatched = by_share.pop(None, 0) - self.unreadable
        readable = [row for row in self.never if not isinstance(parsed(row[FILTER], row[DIALECT]), str)]
        return figures.Hits(
            subscriptions=self.subscriptions,
            unreadable=self.unreadable,
            never=max(0, unmatched),
            pairs=sum(row["pairs"] or 0 for row in self.steps),
            wanted=sum(count for place, count in reach.items() if place),
            by_share=by_share,
            by_reach=reach,
            most=[_subscription(row, events) for row in self.most],
            never_some=[_subscription(row, events) for row in readable[:MOST_SUBSCRIPTIONS]],
        )

    def selectivities(self, asked: list[Any], events: int) -> list[figures.Selectivity]:
        """What share of events satisfies each constraint."""
        found = self.by_place.get(CONSTRAINT, {})
        return [
            figures.Selectivity(
                row["attribute"],
                row["operator"],
                row["text"],
                row["subscriptions"],
                found.get(number, 0),
                found.get(number, 0) / events,
            )
            for number, row in enumerate(asked)
        ]


def _sizes(shards: Shards) -> _Sizes:
    return shards.subscriptions, shards.unreadable


def _subscription(row: Any, events: int) -> figures.SubscriptionHits:
    filter = (row[FILTER] or "")[:_LONGEST_COMPARED]
    return figures.SubscriptionHits(str(row[SUBSCRIPTION]), filter, row[HITS], row[HITS] / events)


def _savings(subscriptions: DataFrame, count: int) -> figures.Savings:
    """Filters are compared here, on the driver: so many that this takes seconds, chosen by their hash."""
    short = said_filters(subscriptions).where(f.length(FILTER) <= _LONGEST_COMPARED).select(FILTER, DIALECT)
    if count > MOST_COMPARED:
        short = short.orderBy(f.xxhash64(FILTER)).limit(MOST_COMPARED)
    filters = [parsed(row[FILTER], row[DIALECT]) for row in short.collect()]
    found = saved(one for one in filters if isinstance(one, Filter))
    return figures.Savings(count, found.filters, found.distinct, found.covering, found.merging)
