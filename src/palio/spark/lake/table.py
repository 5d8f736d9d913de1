"""A lake as a DataFrame: plain Parquet, chosen by manifest, pruned by Spark.

Spark gets the files of one version, and prunes days by their folders and rows by the statistics in the files.
A typed column is the file's own where an attribute had values of one kind only, so that a `where` on it
reaches the statistics; where there were several kinds, it is put together from their columns. Lists, variants,
and files whose columns are not complete are read from the payload, row by row in compiled code.
"""

from __future__ import annotations

import math
from functools import reduce

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession, functions
from pyspark.sql.types import StructType

from palio.model.filter import Filter
from palio.model.values import KIND_NAMES, KINDS_BY_NAME, Kind
from palio.spark.arrow import Batches
from palio.spark.frames import quoted
from palio.spark.lake.files import QUARANTINE
from palio.spark.source.columns import BESIDE, KINDS, Column, Columns, fields_of
from palio.spark.source.rows import BRANCH, EVENT, EVENT_SCHEMA, GENERIC, GENERIC_SCHEMA, RowSelection
from palio.store.lake.manifests import Lake, LakeFile, LakeState

_SPARK_TYPES = {
    Kind.BOOL: "boolean",
    Kind.INT: "bigint",
    Kind.FLOAT: "double",
    Kind.STRING: "string",
    Kind.TIME: "timestamp",
    Kind.BYTES: "binary",
}
_OTHER_NUMBERS = {Kind.INT: Kind.FLOAT, Kind.FLOAT: Kind.INT}
# Whole numbers beyond that may have no double of their own.
_EXACT = 1 << 53


def read_lake(
    spark: SparkSession,
    place: str | Lake,
    *,
    schema: StructType | None = None,
    filter: Filter | None = None,
    since: float = 0.0,
    until: float = math.inf,
    state: LakeState | None = None,
) -> DataFrame:
    """The events of a lake, in its newest version or in the one given.

    Where journals came back older, those that were published before are there as well: without a schema there
    is a column `branch` then (`rows.BRANCH`).

    Raises `NoLake`, `LakeTooNew` and `LakeDamaged`.
    """
    lake = place if isinstance(place, Lake) else Lake(place)
    state = lake.state() if state is None else state
    files = [one for one in state.events() if one.end >= since and one.begin < until]
    columns = None if schema is None else Columns(fields_of(schema))
    by_columns = [one for one in files if _has_columns(one, columns)] if filter is None else []
    chosen = {one.path for one in by_columns}
    by_payload = [one for one in files if one.path not in chosen]
    parts = []
    where = _between(since, until)
    if by_columns and columns is None:
        frame = _files(spark, lake, state, by_columns, typed=set(), where=where)
        parts.append(frame.select(*GENERIC, *([BRANCH] if state.forks else [])))
    elif by_columns and columns is not None:
        found = {name for file in by_columns for name in file.columns} & _sources(columns)
        frame = _files(spark, lake, state, by_columns, typed=found, where=where)
        parts.append(frame.select(*[_typed(column, found) for column in columns.columns]))
    if by_payload or not parts:
        frame = _files(spark, lake, state, by_payload, typed=set(), where=where)
        frame = frame.select(*EVENT.names, *([BRANCH] if state.forks else []))
        parts.append(select_events(frame, schema, filter))
    return reduce(lambda one, other: one.unionByName(other), parts)


def select_events(frame: DataFrame, schema: StructType | None, filter: Filter | None) -> DataFrame:
    """What a filter selects of a table of events (`rows.EVENT`), in the columns of a schema."""
    generic = [*GENERIC, *([BRANCH] if BRANCH in frame.columns else [])]
    if schema is None and filter is None:
        return frame.select(*generic)
    columns = None if schema is None else Columns(fields_of(schema))

    def select(batches: Batches) -> Batches:
        selection = RowSelection(filter)
        for batch in batches:
            events = selection.select(batch)
            yield events.select(generic) if columns is None else columns.table(events)

    plain = GENERIC_SCHEMA if generic == GENERIC else f"{GENERIC_SCHEMA}, {BRANCH} string"
    return frame.mapInArrow(select, plain if schema is None else schema)


def _files(
    spark: SparkSession,
    lake: Lake,
    state: LakeState,
    files: list[LakeFile],
    *,
    typed: set[str],
    where: str | None,
) -> DataFrame:
    """Files, with some of their typed columns, null where a file does not have one; and the branch."""
    groups: dict[tuple[str, int] | None, list[LakeFile]] = {}
    for file in files:
        groups.setdefault((file.journal, file.branch) if file.branch else None, []).append(file)
    parts = [
        _of_branch(spark, lake, some, typed, where).withColumn(BRANCH, branch_of(state, *(of or ("", 0))))
        for of, some in (groups or {None: []}).items()
    ]
    return reduce(lambda one, other: one.unionByName(other), parts)


def branch_of(state: LakeState, journal: str, branch: int) -> SparkColumn:
    """What tells an event of a branch apart from another one of its number (`rows.BRANCH`)."""
    if not branch:
        return functions.lit(None).cast("string")
    name = functions.lit(state.forks_of(journal)[branch - 1].incarnation)
    return functions.when(functions.col("sequence") <= state.given(journal, branch), name)


def _of_branch(
    spark: SparkSession, lake: Lake, files: list[LakeFile], typed: set[str], where: str | None
) -> DataFrame:
    kinds = {name: KINDS_BY_NAME[name.rpartition(":")[2]] for name in sorted(typed)}
    fields = [f"{quoted(name)} {_SPARK_TYPES[kind]}" for name, kind in kinds.items()]
    schema = ", ".join([EVENT_SCHEMA, *fields, "day date"])
    if not files:
        return spark.createDataFrame([], schema)
    lake.require_files(files)
    reader = spark.read.schema(schema).option("basePath", str(lake.root))
    frame = reader.parquet(*lake.absolute(files))
    return frame if where is None else frame.where(where)


def _between(since: float, until: float) -> str | None:
    begin = [f"time >= timestamp_micros({round(since * 1e6)})"] if since > 0 else []
    end = [f"time < timestamp_micros({round(until * 1e6)})"] if until < math.inf else []
    return " AND ".join(begin + end) or None


def _has_columns(file: LakeFile, columns: Columns | None) -> bool:
    """Whether a file's own columns have all that is wanted."""
    if columns is None:
        return True
    typed = [one for one in columns.columns if one.source == "attribute"]
    plain = all(not one.is_list and one.kind != "variant" for one in typed)
    counts = any(one.source == "unconverted" for one in columns.columns)
    sources = _sources(columns)
    # Spark would take a column of another attribute, if it is called the same but for its case.
    alike = {name.lower() for name in sources}
    mistaken = any(name.lower() in alike and name not in sources for name in file.columns)
    return plain and not counts and not mistaken and (file.complete or not typed)


def _sources(columns: Columns) -> set[str]:
    """The columns of files from which those of a schema may come."""
    return {
        f"{one.name}:{KIND_NAMES[kind]}"
        for one in columns.columns
        if one.source == "attribute" and one.kind != "variant"
        for kind in _kinds(KINDS[one.kind])
    }


def _kinds(kind: Kind) -> list[Kind]:
    """Those of which values of a kind may be made: itself, and of numbers the other one."""
    return [kind, *([_OTHER_NUMBERS[kind]] if kind in _OTHER_NUMBERS else [])]


def _typed(column: Column, found: set[str]) -> SparkColumn:
    """A column of a schema from those of the files: of the only kind that there is, or put together."""
    if column.source == "beside":
        return functions.col(BESIDE[column.name]).alias(column.name)
    parts = [
        _converted(quoted(name), source, column.kind)
        for source in _kinds(KINDS[column.kind])
        if (name := f"{column.name}:{KIND_NAMES[source]}") in found
    ] or [f"CAST(NULL AS {column.kind})"]
    text = parts[0] if len(parts) == 1 else f"coalesce({', '.join(parts)})"
    return functions.expr(text).alias(column.name)


def _converted(name: str, source: Kind, wanted: str) -> str:
    """A value of a kind as one of a type of Spark: null where that is not exact."""
    if _SPARK_TYPES[source] == wanted:
        return name
    if source is Kind.INT and wanted in ("tinyint", "smallint", "int"):
        limit = 1 << {"tinyint": 7, "smallint": 15, "int": 31}[wanted]
        return f"CASE WHEN {name} BETWEEN {-limit} AND {limit - 1} THEN CAST({name} AS {wanted}) END"
    if source is Kind.INT and wanted == "double":
        exact = f"CAST(CAST({name} AS double) AS decimal(20, 0)) = {name}"
        return f"CASE WHEN {name} BETWEEN {-_EXACT} AND {_EXACT} OR {exact} THEN CAST({name} AS double) END"
    if source is Kind.INT:  # float
        inner = _converted(name, Kind.INT, "double")
        return f"CASE WHEN CAST(CAST({name} AS float) AS double) = ({inner}) THEN CAST({name} AS float) END"
    if wanted == "float":
        return f"CASE WHEN CAST(CAST({name} AS float) AS double) = {name} THEN CAST({name} AS float) END"
    whole = f"{name} >= -9223372036854775808D AND {name} < 9223372036854775808D AND floor({name}) = {name}"
    bigint = f"CASE WHEN {whole} AND CAST({name} AS string) <> '-0.0' THEN CAST({name} AS bigint) END"
    return bigint if wanted == "bigint" else _converted(f"({bigint})", Kind.INT, wanted)


def read_quarantine(spark: SparkSession, place: str | Lake) -> DataFrame:
    """What could not be read: journal, sequence, time, publisher, id, the bytes, and the reason."""
    lake = place if isinstance(place, Lake) else Lake(place)
    files = lake.state().quarantine()
    if not files:
        return spark.createDataFrame([], QUARANTINE)
    lake.require_files(files)
    return spark.read.schema(QUARANTINE).parquet(*lake.absolute(files))
