"""Families as jobs need them: those that a broker knows, and filters that name their paths.

A filter that names XPaths (`family card where xpath("/card/price") < 10`) is about paths that documents may not
have been read for. So all that subscriptions name is found first; with these paths, the families are what they
would be at a broker that has taken the subscriptions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from palio.client.client import Client
from palio.documents import Family, FamilyPath, FamilyPaths, read_selection, with_paths
from palio.language import PALIO
from palio.language.selections import is_selection, needs_families
from palio.model.errors import PalioError
from palio.spark.arrow import Batches
from palio.spark.errors import BadSubscriptions
from palio.spark.frames import DIALECT, FILTER, SUBSCRIPTION, said_filters
from palio.spark.lookback.reach_back import with_client
from palio.spark.matching.shards import parsed

_PATHS, _REASON = "paths", "reason"

# By family, the paths that a filter names and that it does not have.
NewPaths = dict[str, tuple[FamilyPath, ...]]


def families_at(url: str) -> tuple[Family, ...]:
    """The families that a broker knows, with their schemas; those that the token in PALIO_TOKEN may see.

    Raises `NotConnected`, and what the broker refuses with.
    """
    found: list[Family] = []

    async def ask(client: Client) -> None:
        for one in await client.families.ls():
            told = await client.families.show(one["name"])
            found.append(msgspec.convert(told, Family))

    with_client(url, ask)
    return tuple(found)


class SaidSelections(msgspec.Struct, frozen=True):
    """Subscriptions as plain filters, those that cannot be read, with the reason, and all families."""

    subscriptions: DataFrame
    unreadable: DataFrame
    families: tuple[Family, ...]


def read_selections(subscriptions: DataFrame, families: Sequence[Family]) -> SaidSelections:
    """What subscriptions want of documents, where their filters may name XPaths and short names of families.

    Filters that do not, or are in another dialect, stay as they are. Only paths come to the driver.
    """
    given = said_filters(subscriptions)
    schema = StructType([*given.schema.fields]).add(_PATHS, "binary").add(_REASON, "string")
    # Filters name paths, whose kinds the schemas say: so here these travel, too.
    encoded = msgspec.msgpack.encode(tuple(families))
    read = given.mapInArrow(partial(_selected, encoded), schema)
    rows = read.where(f"{_PATHS} IS NOT NULL").select(_PATHS).distinct().collect()
    found = {one.name: one for one in families}
    for row in rows:
        for name, paths in msgspec.msgpack.decode(row[_PATHS], type=NewPaths).items():
            known = {path.expression for path in found[name].paths}
            fresh = tuple([path for path in paths if path.expression not in known])
            found[name] = with_paths(found[name], fresh)
    well = read.where(f"{_REASON} IS NULL").select(SUBSCRIPTION, FILTER, DIALECT)
    wrong = read.where(f"{_REASON} IS NOT NULL").drop(_PATHS)
    return SaidSelections(well, wrong, tuple(found.values()))


def require_selections(said: SaidSelections) -> None:
    """Raises `BadSubscriptions` if some cannot be read."""
    first = said.unreadable.first()
    if first is not None:
        raise BadSubscriptions(said.unreadable.count(), str(first[SUBSCRIPTION]), str(first[_REASON]))


# On an executor


@lru_cache(maxsize=4)
def _paths_of(encoded: bytes) -> dict[str, FamilyPaths]:
    families = msgspec.msgpack.decode(encoded, type=tuple[Family, ...])
    return {one.name: FamilyPaths(one) for one in families}


def _selected(encoded: bytes, batches: Batches) -> Batches:
    families = _paths_of(encoded)
    for batch in batches:
        read = [
            _read(text, dialect, families)
            for text, dialect in zip(*(batch.column(at).to_pylist() for at in (1, 2)), strict=True)
        ]
        texts, paths, reasons = zip(*read, strict=True) if read else ((), (), ())
        filters = pa.array(texts, batch.schema.field(1).type)
        batch = batch.set_column(1, batch.schema.field(1), filters)
        batch = batch.append_column(_PATHS, pa.array(paths, pa.binary()))
        yield batch.append_column(_REASON, pa.array(reasons, pa.string()))


def _read(text: str | None, dialect: str, families: dict[str, FamilyPaths]) -> tuple[Any, ...]:
    """The text of a plain filter, the new paths in it, and why it cannot be read."""
    if text is None or dialect != PALIO or not (needs_families(text) or (families and is_selection(text))):
        plain = parsed(text, dialect)
        return text, None, plain if isinstance(plain, str) else None
    try:
        selection = read_selection(text, families)
    except PalioError as problem:
        return text, None, str(problem)
    paths = {name: some for name, some in selection.new_paths.items() if some}
    return str(selection.filter), msgspec.msgpack.encode(paths) if paths else None, None
