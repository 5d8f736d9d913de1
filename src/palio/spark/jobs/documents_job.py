"""`documents` and `match_documents`: documents of a lake with values of paths, and who would want them now."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from pyspark.sql import DataFrame, SparkSession

from palio.documents import Family, UnknownFamily
from palio.language import PALIO
from palio.spark.documents.extracting import GivenPaths, complete_documents, extract
from palio.spark.documents.families import read_selections, require_selections
from palio.spark.documents.versions import read_documents
from palio.spark.frames import EVENT, PAYLOAD
from palio.spark.jobs.match_job import Matched, set_aside
from palio.spark.jobs.outputs import write_table
from palio.spark.matching import bulk
from palio.spark.source.moments import Moment
from palio.spark.tables.inputs import subscriptions_at


class DocumentsRead(msgspec.Struct, frozen=True):
    """Documents: read from where they were written, or when asked for."""

    documents: DataFrame
    output: str | None = None


def documents(
    spark: SparkSession,
    place: str,
    *,
    journals: str | None = None,
    family: str | None = None,
    key: str | None = None,
    versions: bool = False,
    since: Moment = None,
    until: Moment = None,
    families: Sequence[Family] = (),
    paths: GivenPaths | None = None,
    output: str | None = None,
    overwrite: bool = False,
) -> DocumentsRead:
    """Read the documents of a lake, with what `journals` have after it, or of journals; with values of `paths`.

    Without `versions` only the current ones; with `until` as they were then. `paths` are those of `family`,
    which is one of `families`. `output` is a folder for Parquet, a new one unless `overwrite` says otherwise.

    Raises `UnknownFamily`, and what `palio.spark.read_documents` and `palio.spark.extract` raise.
    """
    table = read_documents(
        spark, place, journals, family=family, key=key, versions=versions, since=since, until=until
    )
    if paths is not None:
        table = extract(table, _family_of(family, families), paths)
    if output is None:
        return DocumentsRead(table)
    write_table(table, output, overwrite=overwrite)
    return DocumentsRead(spark.read.schema(table.schema).parquet(output), output)


def match_documents(
    spark: SparkSession,
    place: str,
    subscriptions: str,
    *,
    journals: str | None = None,
    family: str | None = None,
    families: Sequence[Family] = (),
    dialect: str = PALIO,
    output: str | None = None,
    overwrite: bool = False,
    quarantine: str | None = None,
    storage: str | None = None,
) -> Matched:
    """Match the current documents of a place against the subscriptions of another, as retroactive ones would.

    Filters may name XPaths of `families`, and short names. A document that was read before a path was one of
    its family has the value of that, too; what cannot be completed so ends the job (`BadEvent`). Filters that
    cannot be read do, too (`BadSubscriptions`), unless `quarantine` says where to put them with the reason: in
    its folder `subscriptions`. The other options are those of `match`.

    Raises what `palio.spark.read_documents` and `palio.spark.match` raise.
    """
    said = read_selections(subscriptions_at(spark, subscriptions, dialect), families)
    if quarantine is None:
        require_selections(said)
    else:
        set_aside(said.unreadable, quarantine, "subscriptions")
    current = read_documents(spark, place, journals, family=family)
    if families:
        current = complete_documents(current, said.families)
    pairs = bulk.match(current.select(EVENT, PAYLOAD), said.subscriptions, storage=storage)
    if output is None:
        return Matched(pairs)
    write_table(pairs, output, overwrite=overwrite)
    return Matched(spark.read.schema(pairs.schema).parquet(output), output)


def _family_of(name: str | None, families: Sequence[Family]) -> Family:
    """The family that is meant: the one that is named, or the only one. Raises `UnknownFamily`."""
    found = [one for one in families if name in (None, one.name)]
    if len(found) != 1:
        raise UnknownFamily(name or "", tuple([one.name for one in families]))
    return found[0]
