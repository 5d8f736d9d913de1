"""`--checkpoint`: how far a job is, as a bar; and what whoever interrupts it is told."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from palio.cli.output.progress import MovingBar
from palio.cli.program.terminal import error_console
from palio.model.moments import parse_moment

if TYPE_CHECKING:
    from palio.spark.jobs.checkpoint import PartsDone, Progress

Checkpoint = Annotated[
    str | None, typer.Option("--checkpoint", metavar="FOLDER", help="Where to go on after an interrupt.")
]
# One bar is enough.
_QUIET = "spark.ui.showConsoleProgress=false"


def moment_of(text: str | None) -> float | None:
    """A time as it was typed, in seconds since 1970, if there is one. Raises `WrongTime`."""
    return None if text is None else parse_moment(text, now=time.time())


def settings_with(checkpoint: str | None, settings: list[str] | None) -> list[str]:
    """Settings of Spark for a job that shows its parts, or that lets Spark show its stages."""
    return [*([] if checkpoint is None else [_QUIET]), *(settings or ())]


@contextmanager
def watched(checkpoint: str | None, what: str = "Counting") -> Iterator[Progress]:
    """What hears how far a job is, and shows it; who interrupts the job is told what that means."""
    console = error_console()
    known: PartsDone | None = None

    def hear(now: PartsDone) -> None:
        nonlocal known
        if known is None and now.done == now.of:
            began = datetime.fromtimestamp(now.began, UTC)
            told = f"This was found before, in what there was on {began:%Y-%m-%d %H:%M} (UTC);"
            console.print(f"{told} remove {checkpoint} to look anew.", style="dim", soft_wrap=True)
        known = now
        bar.show(what, now.done, now.of)

    try:
        with MovingBar(console) as bar:
            yield hear
    except KeyboardInterrupt:
        if checkpoint is None:
            told = "Interrupted, and nothing was kept: with --checkpoint FOLDER the same command would go on."
            console.print(told, style="yellow", soft_wrap=True)
        elif known is not None:
            console.print(_interrupted(known), style="yellow", soft_wrap=True)
        raise


def _interrupted(known: PartsDone) -> str:
    parted = "part is" if known.of == 1 else "parts are"
    return f"Interrupted: {known.done} of {known.of} {parted} done, and the same command goes on from there."
