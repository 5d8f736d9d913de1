"""`read_documents`: documents of a lake and of journals, by family and key: the current ones, or all versions.

The current version of a document is found as at brokers: of one broker the later sequence counts; between
brokers the later time does, then the name. One that says that the document was withdrawn is a version as well:
a document of which it is the latest has no current one.

Families and keys are columns of the lake, so Spark reads of its files what was asked for, and sorts versions by
them; the document itself is taken out of what was published at the very end."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window, functions

from palio.documents.reserved import FAMILY, KEY, REVISION, WITHDRAWN
from palio.matching.projection import body_of
from palio.model.filter import Filter
from palio.model.naming import SEPARATOR
from palio.spark.arrow import Batches
from palio.spark.errors import UnknownInput
from palio.spark.frames import EVENT, PAYLOAD
from palio.spark.lake.table import read_lake
from palio.spark.lookback.history import after_lake
from palio.spark.source.moments import Moment, moment
from palio.spark.source.reading import read, struct_of
from palio.spark.source.rows import BRANCH
from palio.spark.tables.inputs import is_journal, is_lake
from palio.store.lake.manifests import Lake

DOCUMENT = "document"
_PROPERTIES = "properties"
# Columns of a table of versions, by what they are called where these come from, which is also their order.
_COLUMNS = {
    "_journal": ("journal", "string"),
    "_sequence": ("sequence", "bigint"),
    "_branch": (BRANCH, "string"),
    FAMILY: ("family", "string"),
    KEY: ("key", "string"),
    REVISION: ("revision", "bigint"),
    WITHDRAWN: ("withdrawn", "boolean"),
    "_time": ("time", "timestamp"),
    "_publisher": ("publisher", "string"),
    "_id": ("id", "string"),
    "_payload": (PAYLOAD, "binary"),
    "_properties": (_PROPERTIES, "binary"),
}
_SCHEMA = ", ".join(f"`{name}` {kind}" for name, (_, kind) in _COLUMNS.items())
_ABOUT = ("family", "key", "revision", "withdrawn", "time", "journal", "sequence", "publisher", "id")
# What decides which of two versions is the later one: of one broker, and between brokers.
_OF_A_BROKER = ("sequence", "time", BRANCH)
_BETWEEN_BROKERS = ("time", "journal")


def read_documents(
    spark: SparkSession,
    place: str,
    url: str | None = None,
    *,
    family: str | None = None,
    key: str | None = None,
    versions: bool = False,
    since: Moment = None,
    until: Moment = None,
) -> DataFrame:
    """The current documents of a lake, with what the journals of `url` have after it; or of journals alone.

    With `versions` all of them, also those that say that a document was withdrawn. With `until` those are
    current that were so then; with `since` only what was published from then on counts.

    The columns are `event_id` (the name of the event), `family`, `key`, `revision`, `withdrawn`, `time`,
    `journal`, `sequence`, `publisher`, `id`, `payload` (the encoded attributes) and `document`, byte for byte.

    Raises `UnknownInput`, and what `history` raises.
    """
    begin, end = moment("since", since, 0.0), moment("until", until, math.inf)
    wanted = Filter.template({FAMILY: family, KEY: key})
    found = _published(spark, place, url, filter=wanted, since=begin, until=end)
    for column, one in (("family", family), ("key", key)):
        if one is not None:
            found = found.where(functions.col(column) == one)
    if not versions:
        found = _latest(found, ("family", "key", "journal"), _OF_A_BROKER)
        found = _latest(found, ("family", "key"), _BETWEEN_BROKERS).where("NOT withdrawn")
    named = found.withColumn(EVENT, _event_name()).withColumnRenamed(_PROPERTIES, DOCUMENT)
    chosen = named.select(EVENT, *_ABOUT, PAYLOAD, DOCUMENT)
    table: DataFrame = chosen.mapInArrow(_with_documents, chosen.schema)
    return table


def _published(
    spark: SparkSession, place: str, url: str | None, *, filter: Filter, since: float, until: float
) -> DataFrame:
    """Versions, with what was said beside their attributes instead of the document.

    What is in a lake is not looked at by a filter, but by columns.
    """
    schema = struct_of(_SCHEMA)
    if is_lake(place):
        lake = Lake(place)
        state = lake.state()
        found = read_lake(spark, lake, schema=schema, since=since, until=until, state=state)
        if url is not None:
            limits = {"filter": filter, "since": since, "until": until}
            found = found.unionByName(after_lake(spark, state, url, schema, **limits))
    elif not is_journal(place):
        raise UnknownInput(place, "documents are in a lake or in journals.")
    elif url is not None:
        raise UnknownInput(place, "it is no lake, after which journals could go on.")
    else:
        found = read(spark, place, schema=schema, filter=filter, since=since, until=until)
    found = found.toDF(*[name for name, _ in _COLUMNS.values()]).fillna(False, ["withdrawn"])
    return found.where("family IS NOT NULL AND key IS NOT NULL")


def _latest(versions: DataFrame, same: Sequence[str], by: Sequence[str]) -> DataFrame:
    """Of those that are the same in some columns, the one that is the last by others."""
    order = [functions.col(name).desc_nulls_last() for name in by]
    number = functions.row_number().over(Window.partitionBy(*same).orderBy(*order))
    return versions.withColumn("number", number).where("number = 1").drop("number")


def _event_name() -> Column:
    """As `palio.model.naming` has it, for events of any branch."""
    return functions.concat_ws(
        SEPARATOR, functions.concat_ws("@", "journal", BRANCH), functions.col("sequence").cast("string")
    )


# On an executor


def _with_documents(batches: Batches) -> Batches:
    """The same rows, with the document in place of what was said beside the attributes."""
    for batch in batches:
        place = batch.schema.get_field_index(DOCUMENT)
        documents = pa.array(map(_document_of, batch.column(place).to_pylist()), batch.schema.field(place).type)
        yield batch.set_column(place, batch.schema.field(place), documents)


def _document_of(properties: bytes | None) -> bytes | None:
    return body_of(b"", None, properties).payload
