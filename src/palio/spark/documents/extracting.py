"""`extract` and `complete_documents`: what paths find in the documents of a table, where the documents are.

Both are one `mapInArrow`: batches of documents go in, typed columns come out, and no document comes to the
driver.

1. A value is what a family with that path from the start would have read. A document that such a family would
   have refused is an error with its name, or a row without values and with the reason, never left out.
2. Documents are read in a thread of their own, which is ended now and then: it keeps every name that it has met
   (`palio.documents.parsing`), and a worker lives for many tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    LongType,
    StringType,
    StructType,
    TimestampType,
)

from palio.documents import (
    Family,
    FamilyCompletion,
    FamilyPath,
    FamilyPaths,
    PathValues,
    thread_is_worn,
)
from palio.documents.family import PathKind
from palio.documents.making import WantedPath, bounded, typed_path, typing_of
from palio.documents.xpath import read_path
from palio.model.errors import PalioError
from palio.model.notification import Notification
from palio.spark.arrow import UTC_MICROSECONDS, Batches
from palio.spark.documents.versions import DOCUMENT
from palio.spark.errors import BadEvent, MissingColumn, WrongOption
from palio.spark.frames import EVENT, PAYLOAD, require_columns

REASON = "reason"
# What values of a kind are to Spark and to Arrow.
_TYPES: dict[PathKind, tuple[DataType, Any]] = {
    "int": (LongType(), pa.int64()),
    "float": (DoubleType(), pa.float64()),
    "bool": (BooleanType(), pa.bool_()),
    "time": (TimestampType(), UTC_MICROSECONDS),
    "string": (StringType(), pa.string()),
}
# Documents that are read before somebody looks whether their thread should be ended.
_AT_A_TIME = 64
_ADVICE = 'With invalid="null" it is a row without values, and with this reason.'

GivenPaths = Sequence[str | FamilyPath]


def extract(
    documents: DataFrame,
    family: Family,
    paths: GivenPaths | None = None,
    *,
    column: str = DOCUMENT,
    invalid: str = "error",
) -> DataFrame:
    """A table of documents with a column for each path; what documents of other families say is null.

    `paths` are short names, XPaths, or as `palio family add` takes them (`price=/card/price`, `price:float=…`,
    `:string,many=…`); by default all of the family. A column is called by the short name, or else by the path's
    canonical text. What is not said of a value says the family, or its schema; without one, nodes are strings,
    and there may be several of them. A path that may occur more than once gives an array. `column` has the
    documents, as bytes; where it is null, there are no values.

    `invalid` is "error", or "null": then values of a document of which one cannot be had are null, and a column
    `reason` says why.

    Raises `WrongOption`, `MissingColumn`, `UnknownPath`, `FamilyRefused` and `XPathSyntaxError`. A document
    whose values cannot be had fails the job with `BadEvent`.
    """
    _require_binary(documents, column)
    _require_invalid(invalid)
    wanted = wanted_paths(family, paths)
    schema = StructType([*documents.schema.fields])
    taken = {name.lower() for name in documents.columns}
    for name, path in wanted.items():
        if name.lower() in taken:
            told = f"There is a column {name!r} already; call it otherwise: 'another={path.expression}'."
            raise WrongOption("paths", told)
        taken.add(name.lower())
        kind, _ = _TYPES[path.kind]
        schema = schema.add(name, ArrayType(kind) if path.many else kind)
    if invalid == "null":
        _require_no_reason(documents)
        schema = schema.add(REASON, "string")
    asked = _Extracted(column, tuple(wanted), tuple(wanted.values()), family.prefixes, family.name)
    return documents.mapInArrow(partial(_extracted, asked, invalid == "null"), schema)


def complete_documents(
    documents: DataFrame, families: Sequence[Family], *, invalid: str = "error"
) -> DataFrame:
    """Documents as `read_documents` gives them, whose `payload` has the values of all paths of their families.

    Those of other families stay as they are. So filters are about the same as at a
    broker that has had the present paths from the start: `match(complete_documents(…), subscriptions)`.

    `invalid` is "error", or "null": then what cannot be completed stays as it was, and a column `reason` says
    why. Raises `WrongOption` and `MissingColumn`; `BadEvent` fails the job.
    """
    require_columns("documents", documents, EVENT, "family", PAYLOAD, DOCUMENT)
    _require_invalid(invalid)
    schema = StructType([*documents.schema.fields])
    if invalid == "null":
        _require_no_reason(documents)
        schema = schema.add(REASON, "string")
    paths = tuple([msgspec.structs.replace(one, schemas=()) for one in families])  # schemas are not looked at
    return documents.mapInArrow(partial(_completed, paths, invalid == "null"), schema)


def wanted_paths(family: Family, paths: GivenPaths | None) -> dict[str, FamilyPath]:
    """What is wanted, by the names of the columns. Raises what reading an XPath does, and `FamilyRefused`."""
    if isinstance(paths, str):
        raise WrongOption("paths", "It is a list of paths.")
    known = FamilyPaths(family)
    with bounded(family.name):
        wanted = [_wanted_path(known, one) for one in (family.paths if paths is None else paths)]
    found: dict[str, FamilyPath] = {}
    for path in wanted:
        column = path.name or path.expression
        if column in found:
            raise WrongOption("paths", f"Two are called {column!r}.")
        found[column] = path
    return found


def _wanted_path(known: FamilyPaths, given: str | FamilyPath) -> FamilyPath:
    family = known.family
    if isinstance(given, FamilyPath):
        expression = read_path(given.expression, family.prefixes).text
        return msgspec.structs.replace(given, expression=expression)
    if (path := family.path(given)) is not None:
        return path
    wanted = WantedPath.parse(given)
    if wanted.kind is None and wanted.many is None:
        path = known.find(wanted.expression)
        return msgspec.structs.replace(path, name=wanted.name or path.name)
    return typed_path(family.name, wanted, family.prefixes, typing_of(family))


def _require_binary(documents: DataFrame, column: str) -> None:
    if column not in documents.columns:
        raise MissingColumn("documents", column, documents.columns)
    kind = documents.schema[column].dataType.simpleString()
    if kind != "binary":
        raise WrongOption("column", f"The type of {column!r} is {kind}; documents are binary: cast it.")


def _require_invalid(invalid: str) -> None:
    if invalid not in ("error", "null"):
        raise WrongOption("invalid", f"It is 'error' or 'null', not {invalid!r}.")


def _require_no_reason(documents: DataFrame) -> None:
    if REASON in documents.columns:
        raise WrongOption("invalid", f"There is a column {REASON!r} already.")


# On an executor


class _Extracted(msgspec.Struct, frozen=True):
    """What is to be extracted from where."""

    column: str
    names: tuple[str, ...]
    paths: tuple[FamilyPath, ...]
    prefixes: dict[str, str]
    family: str


@lru_cache(maxsize=64)  # a worker has many tasks, and all of them the same few paths
def _values_of(paths: tuple[FamilyPath, ...], prefixes: tuple[tuple[str, str], ...]) -> PathValues:
    return PathValues(paths, dict(prefixes))


@lru_cache(maxsize=256)
def _completion_of(encoded: bytes) -> FamilyCompletion:
    return FamilyCompletion(msgspec.msgpack.decode(encoded, type=Family))


def _extracted(wanted: _Extracted, lenient: bool, batches: Batches) -> Batches:
    values = _values_of(wanted.paths, tuple(wanted.prefixes.items()))
    nothing = [None] * len(wanted.paths)
    with _ReadingThread() as thread:
        for batch in batches:
            contents = batch.column(wanted.column).to_pylist()
            if "family" in batch.schema.names:
                of = batch.column("family").to_pylist()
                contents = [
                    one if name == wanted.family else None for one, name in zip(contents, of, strict=True)
                ]
            read = thread.each(lambda one: nothing if one is None else values.of(one), contents)
            found, reasons = _sorted_out(batch, read, lenient)
            rows = [nothing if one is None else one for one in found]
            columns = [
                pa.array([row[place] for row in rows], _arrow_type(path))
                for place, path in enumerate(wanted.paths)
            ]
            yield _with_columns(batch, wanted.names, columns, reasons if lenient else None)


def _completed(families: tuple[Family, ...], lenient: bool, batches: Batches) -> Batches:
    completions = {one.name: _completion_of(msgspec.msgpack.encode(one)) for one in families}
    with _ReadingThread() as thread:
        for batch in batches:
            payloads = batch.column(PAYLOAD).to_pylist()
            about = [batch.column(name).to_pylist() for name in ("family", PAYLOAD, DOCUMENT)]
            read = thread.each(partial(_completed_payload, completions), list(zip(*about, strict=True)))
            found, reasons = _sorted_out(batch, read, lenient)
            if any(one is not None for one in found):
                place = batch.schema.get_field_index(PAYLOAD)
                field = batch.schema.field(place)
                kept = [old if new is None else new for old, new in zip(payloads, found, strict=True)]
                batch = batch.set_column(place, field, pa.array(kept, field.type))
            yield _with_columns(batch, (), [], reasons if lenient else None)


def _completed_payload(
    completions: Mapping[str, FamilyCompletion], row: tuple[str, bytes, bytes | None]
) -> bytes | None:
    """The attributes of a document with all that is missing; None if nothing is."""
    family, payload, document = row
    if family not in completions:
        return None
    attributes = completions[family].complete(Notification.decode(payload).attributes, document)
    return None if attributes is None else Notification.of_values(attributes).encode()


def _sorted_out(batch: Any, read: list[Any], lenient: bool) -> tuple[list[Any], list[str | None]]:
    """What was found, None for what could not be had; and why not. Raises `BadEvent`, unless it is lenient."""
    wrong = {row: one for row, one in enumerate(read) if isinstance(one, PalioError)}
    if wrong and not lenient:
        row, problem = next(iter(wrong.items()))
        known = EVENT in batch.schema.names
        raise BadEvent(batch.column(EVENT)[row].as_py() if known else "?", str(problem), _ADVICE)
    reasons = [str(wrong[row]) if row in wrong else None for row in range(len(read))]
    return [None if row in wrong else one for row, one in enumerate(read)], reasons


def _with_columns(
    batch: Any, names: Iterable[str], columns: list[Any], reasons: list[str | None] | None
) -> Any:
    for name, column in zip(names, columns, strict=True):
        batch = batch.append_column(name, column)
    return batch if reasons is None else batch.append_column(REASON, pa.array(reasons, pa.string()))


def _arrow_type(path: FamilyPath) -> Any:
    _, element = _TYPES[path.kind]
    return pa.list_(element) if path.many else element


class _ReadingThread:
    """One thread at a time, and another one when it has met many names."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> _ReadingThread:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def each(self, read: Callable[[Any], Any], several: Sequence[Any]) -> list[Any]:
        """What is read of each, or what is wrong with it."""
        found: list[Any] = []
        for at in range(0, len(several), _AT_A_TIME):
            if self._pool is None:
                self._pool = ThreadPoolExecutor(1, "palio-documents")
            some, worn = self._pool.submit(_each, read, several[at : at + _AT_A_TIME]).result()
            found += some
            if worn:
                self._pool.shutdown()
                self._pool = None
        return found


def _each(read: Callable[[Any], Any], several: Sequence[Any]) -> tuple[list[Any], bool]:
    found: list[Any] = []
    for one in several:
        try:
            found.append(read(one))
        except PalioError as problem:
            found.append(problem)
    return found, thread_is_worn()
