"""Events that have a position: a journal and a sequence in it, which name an event in the whole network.

`Positioned` gives what lies between two positions, and says where journals begin and end, as of one moment:
what is published or archived later is not there. A table has to be read for that; a lake knows it from its
manifest, and journals tell.
"""

from __future__ import annotations

import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import reduce
from typing import Any

import msgspec
from pyspark.sql import Column, DataFrame, SparkSession, functions

from palio.model.naming import SEPARATOR
from palio.protocol.durable.lineage import JournalGap, incarnation_of
from palio.spark.frames import EVENT, PAYLOAD, require_columns
from palio.spark.lake.table import read_lake
from palio.spark.source import offsets
from palio.spark.source.journals import absolute, open_journals
from palio.spark.source.offsets import Lineages, Offset, Positions
from palio.spark.source.reading import read
from palio.spark.source.rows import BRANCH
from palio.store.lake.manifests import Lake, LakeFile

JOURNAL = "journal"
SEQUENCE = "sequence"


class Branch(msgspec.Struct, frozen=True):
    """A journal that came back older went on after a sequence; up to another one they had been given before."""

    journal: str
    after: int
    given: int


class Positioned(ABC):
    """Events with `event_id`, `journal` and `sequence`, and what `match` needs.

    A journal that came back older goes on as another one (`branch_name`): so positions only grow, and two
    events of one number are told apart.
    """

    spark: SparkSession

    @abstractmethod
    def ends(self) -> tuple[Positions, Positions]:
        """The positions before all events, and after them."""

    @abstractmethod
    def between(self, after: Positions, upto: Positions) -> DataFrame:
        """The events after some positions up to others."""

    def go_on(
        self, position: Offset, branches: Mapping[str, Branch]
    ) -> tuple[dict[str, Branch], tuple[JournalGap, ...]]:
        """Go on where somebody has come to before, who knew of branches. Returns new ones, and what is missing.

        Raises `JournalForked`.
        """
        return {}, ()

    def lineages(self) -> Lineages:
        """Those of the journals, by the names that they have now; none where positions say it all."""
        return {}


def branch_name(journal: str, incarnation: str) -> str:
    """What a journal is called from an incarnation on, with which it went on after it came back older."""
    return f"{journal}@{incarnation}" if incarnation else journal


class InTable(Positioned):
    """Events of any table."""

    def __init__(self, events: DataFrame) -> None:
        """Raises `MissingColumn`."""
        require_columns("events", events, EVENT, JOURNAL, SEQUENCE)
        self.spark = events.sparkSession
        self._events = events

    def ends(self) -> tuple[Positions, Positions]:
        first, last = functions.min(SEQUENCE).alias("first"), functions.max(SEQUENCE).alias("last")
        rows = self._events.groupBy(JOURNAL).agg(first, last).collect()  # as many as there are brokers
        begins = {row[JOURNAL]: int(row["first"]) - 1 for row in rows}
        return begins, {row[JOURNAL]: int(row["last"]) for row in rows}

    def between(self, after: Positions, upto: Positions) -> DataFrame:
        return self._events.where(_within(upto) & ~_within(after))


class InLake(Positioned):
    """Events of one version of a lake, of which only the files are read that have such events.

    The lake itself knows which events are of which branch.
    """

    def __init__(self, spark: SparkSession, place: str) -> None:
        """Raises what `Lake.state` raises."""
        self.spark = spark
        self._lake = Lake(place)
        self._state = self._lake.state()

    def ends(self) -> tuple[Positions, Positions]:
        state = self._state
        begins, ends = {}, {}
        for journal in state.positions:
            for branch in range(len(state.forks_of(journal)) + 1):
                name = self._name(journal, branch)
                ends[name] = state.ends(journal, branch)
                begins[name] = state.forks_of(journal)[branch - 1].after if branch else ends[name]
        for file in state.events():
            name = self._name(file.journal, file.branch)
            begins[name] = min(begins[name], file.first - 1)
        return begins, ends

    def between(self, after: Positions, upto: Positions) -> DataFrame:
        several: dict[tuple[str, int], dict[str, LakeFile]] = {}
        for file in self._state.events():
            name = self._name(file.journal, file.branch)
            if file.first <= upto.get(name, 0) and file.last > after.get(name, 0):
                # Those that have their journal's own name can be read together.
                group = (file.journal, file.branch) if file.branch else ("", 0)
                several.setdefault(group, {})[file.path] = file
        parts = []
        for (journal, branch), files in (several or {("", 0): {}}).items():
            state = msgspec.structs.replace(self._state, files=files)
            events = with_ids(read_lake(self.spark, self._lake, state=state))
            if branch:
                events = events.withColumn(JOURNAL, functions.lit(self._name(journal, branch)))
            parts.append(InTable(events).between(after, upto))
        return reduce(lambda some, more: some.unionAll(more), parts)

    def _name(self, journal: str, branch: int) -> str:
        forks = self._state.forks_of(journal)
        return branch_name(journal, forks[branch - 1].incarnation if branch else "")


class InJournals(Positioned):
    """Events of the journals of a broker or a store."""

    def __init__(self, spark: SparkSession, url: str) -> None:
        """Raises what journals raise that cannot be reached."""
        self.spark = spark
        self._url = url
        with open_journals(absolute(url)) as journals:
            self._standings = {one.journal: one for one in journals.standings()}
        self._branches: dict[str, Branch] = {}
        self._former: Positions = {}
        self._names = {name: name for name in self._standings}  # as journals are called now

    def go_on(
        self, position: Offset, branches: Mapping[str, Branch]
    ) -> tuple[dict[str, Branch], tuple[JournalGap, ...]]:
        self._branches, self._former = dict(branches), position.positions
        fresh: dict[str, Branch] = {}
        gaps: list[JournalGap] = []
        self._names |= {one.journal: name for name, one in branches.items()}  # the last one of each
        for journal, standing in self._standings.items():
            name = self._names[journal]
            if name not in position.positions:
                continue
            there = Offset({journal: position.positions[name]}, {journal: position.lineage(name)})
            met, missing = offsets.met(there, [standing])
            if missing:
                offsets.tell(missing, met.positions)
                gaps += missing
                after = met.positions[journal]
                name = branch_name(journal, incarnation_of(after + 1, standing.lineage))
                own = [at for known, at in position.positions.items() if self._journal_of(known) == journal]
                fresh[name] = self._branches[name] = Branch(journal, after, max(own))
                self._names[journal] = name
        return fresh, tuple(gaps)

    def lineages(self) -> Lineages:
        return {self._names[name]: one.lineage for name, one in self._standings.items() if one.lineage}

    def ends(self) -> tuple[Positions, Positions]:
        begins, ends = {}, {}
        for journal, standing in self._standings.items():
            for name in self._all_names(journal):
                begins[name] = max(standing.trimmed, self._after(name))
                ends[name] = self._former.get(name, 0)
            ends[self._names[journal]] = standing.head
        return begins, ends

    def between(self, after: Positions, upto: Positions) -> DataFrame:
        parts = []
        for name in upto:
            journal = self._journal_of(name)
            if journal in self._standings and (name != journal or self._names[journal] != journal):
                reach = min(upto[name], self._shared(name))
                if reach > after.get(name, 0):
                    parts.append(self._of_branch(name, after.get(name, 0), reach))
        there = {name for name, now in self._names.items() if now == name and name in self._standings}
        start, end = ({name: at for name, at in one.items() if name in there} for one in (after, upto))
        if end or not parts:
            parts.append(with_ids(self._read(start, end)))
        return reduce(lambda some, more: some.unionAll(more), parts)

    def _of_branch(self, name: str, after: int, upto: int) -> DataFrame:
        journal = self._journal_of(name)
        events = self._read({journal: after}, {journal: upto})
        if name in self._branches:
            again = functions.col(SEQUENCE) <= self._branches[name].given
            incarnation = functions.lit(name.removeprefix(f"{journal}@"))
            events = events.withColumn(BRANCH, functions.when(again, incarnation))
        return with_ids(events).withColumn(JOURNAL, functions.lit(name))

    def _read(self, start: Positions, end: Positions) -> DataFrame:
        lineages = {name: one.lineage for name, one in self._standings.items() if name in end}
        options: dict[str, Any] = {
            "startingOffsets": json.dumps(start),
            "endingOffsets": json.dumps(Offset(end, lineages).to_json()),
        }
        return read(self.spark, self._url, **options)

    def _shared(self, name: str) -> int:
        """Up to where what a journal was called so has is there still."""
        names = self._all_names(self._journal_of(name))
        later = [self._after(other) for other in names[names.index(name) + 1 :]]
        return min([sys.maxsize, *later])

    def _all_names(self, journal: str) -> list[str]:
        return [journal, *[name for name, one in self._branches.items() if one.journal == journal]]

    def _after(self, name: str) -> int:
        return self._branches[name].after if name in self._branches else 0

    def _journal_of(self, name: str) -> str:
        return self._branches[name].journal if name in self._branches else name


def with_ids(events: DataFrame) -> DataFrame:
    """Events of journals or a lake, whose id is their name (`model.naming`).

    If its number had been given before, it is named after the branch of its journal.
    """
    journal = functions.col(JOURNAL)
    if BRANCH in events.columns:
        journal = functions.concat_ws("@", JOURNAL, BRANCH)
    position = functions.concat_ws(SEPARATOR, journal, functions.col(SEQUENCE).cast("string"))
    return events.select(position.alias(EVENT), JOURNAL, SEQUENCE, PAYLOAD)


def _within(positions: Positions) -> Column:
    """Whether an event is at or before a position, as a condition that Parquet's statistics can answer."""
    found = functions.lit(False)
    for journal, sequence in positions.items():
        found = found | ((functions.col(JOURNAL) == journal) & (functions.col(SEQUENCE) <= sequence))
    return found
