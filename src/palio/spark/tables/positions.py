"""Events that have a position: a journal and a sequence in it, which name an event in the whole network.

`Positioned` gives what lies between two positions, and says where journals begin and end, as of one moment:
what is published or archived later is not there. A table has to be read for that; a lake knows it from its
manifest, and journals tell.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import Any, TypeAlias

import msgspec
from pyspark.sql import Column, DataFrame, SparkSession, functions

from palio.model.naming import SEPARATOR
from palio.spark.frames import EVENT, PAYLOAD, require_columns
from palio.spark.lake.table import read_lake
from palio.spark.source import offsets
from palio.spark.source.journals import absolute, open_journals
from palio.spark.source.reading import read
from palio.store.lake.manifests import Lake, LakeFile

JOURNAL = "journal"
SEQUENCE = "sequence"

Positions: TypeAlias = dict[str, int]


class Positioned(ABC):
    """Events with `event_id`, `journal` and `sequence`, and what `match` needs."""

    spark: SparkSession

    @abstractmethod
    def ends(self) -> tuple[Positions, Positions]:
        """The positions before all events, and after them."""

    @abstractmethod
    def between(self, after: Positions, upto: Positions) -> DataFrame:
        """The events after some positions up to others."""


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
    """Events of one version of a lake, of which only the files are read that have such events."""

    def __init__(self, spark: SparkSession, place: str) -> None:
        """Raises what `Lake.state` raises."""
        self.spark = spark
        self._lake = Lake(place)
        self._state = self._lake.state()

    def ends(self) -> tuple[Positions, Positions]:
        begins = dict(self._state.positions)
        for file in self._state.events():
            begins[file.journal] = min(begins[file.journal], file.first - 1)
        return begins, self._state.positions

    def between(self, after: Positions, upto: Positions) -> DataFrame:
        def has_some(file: LakeFile) -> bool:
            return file.first <= upto.get(file.journal, 0) and file.last > after.get(file.journal, 0)

        files = {one.path: one for one in self._state.events() if has_some(one)}
        state = msgspec.structs.replace(self._state, files=files)
        return InTable(with_ids(read_lake(self.spark, self._lake, state=state))).between(after, upto)


class InJournals(Positioned):
    """Events of the journals of a broker or a store."""

    def __init__(self, spark: SparkSession, url: str) -> None:
        """Raises what journals raise that cannot be reached."""
        self.spark = spark
        self._url = url
        with open_journals(absolute(url)) as journals:
            self._standings = journals.standings()

    def ends(self) -> tuple[Positions, Positions]:
        return offsets.start_of(self._standings), offsets.end_of(self._standings)

    def between(self, after: Positions, upto: Positions) -> DataFrame:
        there = {one.journal for one in self._standings}
        start, end = ({name: at for name, at in one.items() if name in there} for one in (after, upto))
        options: dict[str, Any] = {"startingOffsets": json.dumps(start), "endingOffsets": json.dumps(end)}
        return with_ids(read(self.spark, self._url, **options))


def with_ids(events: DataFrame) -> DataFrame:
    """Events of journals or a lake, whose id is their name (`model.naming`)."""
    position = functions.concat_ws(SEPARATOR, JOURNAL, functions.col(SEQUENCE).cast("string"))
    return events.select(position.alias(EVENT), JOURNAL, SEQUENCE, PAYLOAD)


def _within(positions: Positions) -> Column:
    """Whether an event is at or before a position, as a condition that Parquet's statistics can answer."""
    found = functions.lit(False)
    for journal, sequence in positions.items():
        found = found | ((functions.col(JOURNAL) == journal) & (functions.col(SEQUENCE) <= sequence))
    return found
