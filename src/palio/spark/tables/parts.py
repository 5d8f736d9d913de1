"""Long looks at many events, in parts: what is done stays done, whatever ends the work.

A job looks at its events once or several times, and each look gives a small table, or at least one that is the
union of what it gives of some of the events. `Whole` takes a look at all of them in one pass. `Parts` takes it
piece by piece, and keeps what each piece gave in a folder; the same job with the same folder goes on there.

- *The plan* is made by the first run: what was asked, and the pieces (`tables.pieces`), so that all runs
  see the events that the first one saw. Whoever asks something else is refused: `WrongCheckpoint`.
- *A part* is what one look gave of one piece. It exists when its file is there, which names a folder of
  Parquet; what an interrupted run leaves behind is named by none, and never looked at.
- *What is found out on the way* (`kept`), and determines what the next look counts, is kept in the same way.

Each of these files is created completely or not at all, and only if there is none. Two runs at the same time do
some work twice, but what counts is the part of one of them: both come to the same result.

The folder is one that driver and executors reach under the same path. It may be asked again when all is done.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec
from pyspark.sql import DataFrame, SparkSession

from palio.spark.errors import WrongCheckpoint
from palio.spark.tables.pieces import Piece, TablePieces
from palio.store.lake.once import create_once, make_folder, sync_tree

FORMAT = 1
_PLAN = "plan.json"
_KEPT = "kept"

Asked = Mapping[str, str | int | float | bool | None]
Look = Callable[[DataFrame], DataFrame]
Kept = TypeVar("Kept")


class Looks(ABC):
    """Events that can be looked at, in one pass or in parts."""

    @abstractmethod
    def look(self, stage: str, make: Look, narrow: Look | None = None) -> DataFrame:
        """What `make` gives of the events: of all, or the union of what it gives of each piece.

        What is kept of a piece is what `narrow` makes of that: less to keep, and as good.
        """

    @abstractmethod
    def kept(self, name: str, make: Callable[[], Kept], kind: Any) -> Kept:
        """What `make` gives, made once for all runs. It goes through JSON, and comes back as its `kind`."""


class Whole(Looks):
    """All events in one pass; nothing is kept."""

    def __init__(self, events: DataFrame) -> None:
        self._events = events

    def look(self, stage: str, make: Look, narrow: Look | None = None) -> DataFrame:
        return make(self._events)

    def kept(self, name: str, make: Callable[[], Kept], kind: Any) -> Kept:
        return make()


class Through(Looks):
    """The events of others, in another form."""

    def __init__(self, looks: Looks, shape: Look) -> None:
        self._looks = looks
        self._shape = shape

    def look(self, stage: str, make: Look, narrow: Look | None = None) -> DataFrame:
        return self._looks.look(stage, lambda some: make(self._shape(some)), narrow)

    def kept(self, name: str, make: Callable[[], Kept], kind: Any) -> Kept:
        return self._looks.kept(name, make, kind)


def one_file(found: DataFrame) -> DataFrame:
    """What a look gave, if it is small: kept in one file."""
    return found.coalesce(1)


class PartsPlan(msgspec.Struct, frozen=True):
    """What the first run has fixed for all others."""

    format: int
    began: float
    asked: dict[str, str | int | float | bool | None]
    cut: TablePieces


class _PartDone(msgspec.Struct, frozen=True):
    """What was done: the folder with it, within that of all."""

    data: str


class _PartsHeader(msgspec.Struct):
    format: int


class Parts(Looks):
    """Events piece by piece; what is done is kept in a folder."""

    def __init__(
        self,
        spark: SparkSession,
        folder: Path,
        plan: PartsPlan,
        *,
        stages: Sequence[str],
        read: Callable[[Piece], DataFrame],
    ) -> None:
        self.plan = plan
        self.total = len(stages) * len(plan.cut.pieces)
        self._spark = spark
        self._folder = folder
        self._read = read
        self._told: Callable[[int], None] = lambda done: None
        self._done = {
            (stage, number)
            for stage in stages
            for number in range(len(plan.cut.pieces))
            if self._path(stage, number).exists()
        }

    @property
    def done(self) -> int:
        """How many of the `total` parts are done."""
        return len(self._done)

    def tell(self, told: Callable[[int], None]) -> None:
        """From now on `told` hears how many parts are done."""
        self._told = told
        told(self.done)

    def look(self, stage: str, make: Look, narrow: Look | None = None) -> DataFrame:
        """Raises `WrongCheckpoint` and `SourceChanged`, and what the look raises."""
        make_folder(self._folder / stage)
        reader = self._spark.read
        for number, piece in enumerate(self.plan.cut.pieces):
            path = self._path(stage, number)
            if not path.exists():
                part = _PartDone(f"{stage}/{number:06}-{secrets.token_hex(4)}")
                found = make(self._read(piece))
                found = found if narrow is None else narrow(found)
                found.write.parquet(str(self._folder / part.data))
                sync_tree(self._folder / part.data)
                with contextlib.suppress(FileExistsError):  # another run has done the same
                    create_once(path, msgspec.json.encode(part))
                reader = reader.schema(found.schema)  # which is that of all parts
            self._done.add((stage, number))
            self._told(self.done)
        return reader.parquet(*self.folders(stage))

    def folders(self, stage: str) -> list[str]:
        """Where what a look gave of each piece is, as Parquet, once it is done. Raises `WrongCheckpoint`."""
        found = []
        for number in range(len(self.plan.cut.pieces)):
            part: _PartDone = _decoded(self._folder, self._path(stage, number), _PartDone)
            found.append(str(self._folder / part.data))
            if not Path(found[-1]).exists():
                raise WrongCheckpoint(str(self._folder), f"{part.data} is missing.")
        return found

    def kept(self, name: str, make: Callable[[], Kept], kind: Any) -> Kept:
        """Raises `WrongCheckpoint`, and what `make` raises."""
        path = self._folder / _KEPT / f"{name}.json"
        if not path.exists():
            make_folder(path.parent)
            with contextlib.suppress(FileExistsError):
                create_once(path, msgspec.json.encode(make()))
        return cast(Kept, _decoded(self._folder, path, kind))

    def _path(self, stage: str, number: int) -> Path:
        return self._folder / stage / f"{number:06}.json"


def open_parts(
    spark: SparkSession,
    place: str | os.PathLike[str],
    asked: Asked,
    cut: Callable[[], TablePieces],
    *,
    stages: Sequence[str],
    read: Callable[[TablePieces, Piece], DataFrame] | None = None,
) -> Parts:
    """Begin in a folder that is new or empty, or go on in one in which the same was asked.

    `asked` has everything on which the result depends, as it was typed: a relative time means that of the first
    run. `cut` is called by the first run only. `stages` are the names of all looks, and `read` gives the events
    of a piece (else `TablePieces.read`).

    Raises `WrongCheckpoint`, and what `cut` raises.
    """
    text = os.fspath(place)
    if "://" in text:
        reason = "it has to be a folder that driver and executors reach under the same path."
        raise WrongCheckpoint(text, reason)
    folder = Path(text).absolute()
    path = folder / _PLAN
    if not path.exists():
        _require_unused(folder)
        plan = PartsPlan(FORMAT, time.time(), dict(asked), cut())
        make_folder(folder)
        with contextlib.suppress(FileExistsError):  # another run was faster: its plan counts
            create_once(path, msgspec.json.encode(plan))
    if _decoded(folder, path, _PartsHeader).format != FORMAT:
        raise WrongCheckpoint(str(folder), "it was made by another version of palio.")
    plan = _decoded(folder, path, PartsPlan)
    _require_same(folder, plan.asked, asked)

    reading = partial(plan.cut.read, spark) if read is None else partial(read, plan.cut)
    return Parts(spark, folder, plan, stages=stages, read=reading)


def _require_unused(folder: Path) -> None:
    try:
        names = [name for name in os.listdir(folder) if not name.startswith(".")]
    except FileNotFoundError:
        return
    except NotADirectoryError:
        raise WrongCheckpoint(str(folder), "it is no folder.") from None
    if names:
        raise WrongCheckpoint(str(folder), f"it holds something else, {min(names)} for one.")


def _require_same(folder: Path, there: Asked, given: Asked) -> None:
    for name in {**there, **given}:
        if there.get(name) != given.get(name):
            was, now = ("not given" if (value := one.get(name)) is None else value for one in (there, given))
            raise WrongCheckpoint(str(folder), f"its run was begun with {name} {was}, and this one has {now}.")


def _decoded(folder: Path, path: Path, kind: Any) -> Any:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.DecodeError) as problem:
        name = path.relative_to(folder)
        raise WrongCheckpoint(str(folder), f"{name} cannot be read ({problem}).") from None
