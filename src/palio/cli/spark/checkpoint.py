"""`--checkpoint`: long looks at events that can be interrupted, and go on with the same command."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from palio.cli.output.progress import progress_bar
from palio.cli.program.terminal import error_console
from palio.model.moments import parse_moment
from palio.spark.jobs.inputs import REASON
from palio.spark.jobs.parts import Asked, Looks, Parts, Whole, open_parts
from palio.spark.source.journals import absolute

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from palio.spark.jobs.pieces import Cut, Piece

Checkpoint = Annotated[
    str | None, typer.Option("--checkpoint", metavar="FOLDER", help="Where to go on after an interrupt.")
]
# From when to when.
Times = tuple[float | None, float | None]
# The look at lines that says how many of them are no events.
LINES = "lines"
# One bar is enough.
_QUIET = "spark.ui.showConsoleProgress=false"


def moment_of(text: str | None) -> float | None:
    """A time as it was typed, in seconds since 1970, if there is one. Raises `WrongTime`."""
    return None if text is None else parse_moment(text, now=time.time())


def settings_with(checkpoint: str | None, settings: list[str] | None) -> list[str]:
    """Settings of Spark for a job that shows its parts, or that lets Spark show its stages."""
    return [*([] if checkpoint is None else [_QUIET]), *(settings or ())]


def asked_of(command: str, **options: str | float | bool | None) -> dict[str, str | float | bool | None]:
    """What a checkpoint is for: a command, and all options on which its result depends, as they were typed."""
    return {"palio": version("palio"), "command": command, **options}


def place_of(place: str | None) -> str | None:
    """A place as it is the same from wherever the command is run."""
    if place is None:
        return None
    return absolute(place) if "://" in place else str(Path(place).absolute())


def readable(events: DataFrame) -> DataFrame:
    """Without lines that are no events."""
    return events.where(f"{REASON} is null").drop(REASON) if REASON in events.columns else events


def unreadable(looks: Looks) -> int:
    """How many lines are no events."""
    found = looks.look(LINES, lambda some: some.where(f"{REASON} is not null").groupBy().count())
    return sum(row["count"] for row in found.collect())


@contextmanager
def kept_in(
    checkpoint: str | None,
    spark: SparkSession,
    whole: DataFrame,
    asked: Asked,
    cut: Callable[[], Cut],
    *,
    stages: Sequence[str],
    read: Callable[[Cut, Piece], DataFrame] | None = None,
    what: str = "Counting",
) -> Iterator[Looks]:
    """Looks at events: at all of them in one pass, or in parts that are kept in the folder, with a bar.

    Who interrupts it is told what that means.
    """
    console = error_console()
    if checkpoint is None:
        with telling_that_nothing_is_kept():
            yield Whole(whole)
        return
    parts = open_parts(spark, checkpoint, asked, cut, stages=stages, read=read)
    if parts.done == parts.total:
        began = datetime.fromtimestamp(parts.plan.began, UTC)
        told = f"This was found before, in what there was on {began:%Y-%m-%d %H:%M} (UTC);"
        console.print(f"{told} remove {checkpoint} to look anew.", style="dim", soft_wrap=True)
    try:
        with progress_bar(console, what, parts.total) as advance:
            parts.tell(advance)
            yield parts
    except KeyboardInterrupt:
        console.print(_interrupted(parts), style="yellow", soft_wrap=True)
        raise


@contextmanager
def telling_that_nothing_is_kept() -> Iterator[None]:
    """Who interrupts a job without a checkpoint learns that there is one."""
    try:
        yield
    except KeyboardInterrupt:
        told = "Interrupted, and nothing was kept: with --checkpoint FOLDER the same command would go on."
        error_console().print(told, style="yellow", soft_wrap=True)
        raise


def _interrupted(parts: Parts) -> str:
    parted = "part is" if parts.total == 1 else "parts are"
    return f"Interrupted: {parts.done} of {parts.total} {parted} done, and the same command goes on from there."
