"""`--checkpoint`: how far a job is, as a bar; and what whoever interrupts it is told."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

from palio.cli.output.progress import MovingBar
from palio.cli.program.dressing import option
from palio.cli.program.terminal import error_console, say
from palio.model.moments import parse_moment

if TYPE_CHECKING:
    from palio.spark.jobs.checkpoint import PartsDone, Progress

Checkpoint = Annotated[str | None, option("FOLDER", "Where to go on after an interrupt.", "--checkpoint")]
Since = Annotated[str | None, option("WHEN", "From then on: 7d, a date, a time, @seconds.")]


def moment_of(text: str | None) -> float | None:
    """A time as it was typed, in seconds since 1970, if there is one. Raises `WrongTime`."""
    return None if text is None else parse_moment(text, now=time.time())


@contextmanager
def watched(checkpoint: str | None, what: str = "Counting") -> Iterator[Progress]:
    """What hears how far a job is, and shows it; who interrupts the job is told what that means."""
    known: PartsDone | None = None

    def hear(now: PartsDone) -> None:
        nonlocal known
        if known is None and now.done == now.of:
            began = datetime.fromtimestamp(now.began, UTC)
            told = f"This was found before, in what there was on {began:%Y-%m-%d %H:%M} (UTC);"
            say(f"{told} remove {checkpoint} to look anew.")
        known = now
        bar.show(what, now.done, now.of)

    try:
        with MovingBar(error_console()) as bar:
            yield hear
    except KeyboardInterrupt:
        if checkpoint is None:
            told = "Interrupted, and nothing was kept: with --checkpoint FOLDER the same command would go on."
            say(told, "yellow")
        elif known is not None:
            done = f"{known.done} of {known.of} {'part is' if known.of == 1 else 'parts are'} done"
            say(f"Interrupted: {done}, and the same command goes on from there.", "yellow")
        raise
