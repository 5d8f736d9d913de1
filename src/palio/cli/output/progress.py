"""A progress bar on standard error, for people: where that is no terminal, there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

Advance = Callable[[int], None]


@contextmanager
def progress_bar(console: Console, what: str, total: int | None, *, hidden: bool = False) -> Iterator[Advance]:
    """Call what it gives with the part of `total` that is done; without a total, a spinner counts."""
    if hidden or not console.is_terminal:
        yield lambda done: None
        return
    from rich.progress import (  # noqa: PLC0415 (most programs are read by no person)
        BarColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        (BarColumn(), TextColumn("{task.percentage:>3.0f} %"), TimeRemainingColumn())
        if total is not None
        else (MofNCompleteColumn(),)
    )
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        *columns,
        console=console,
        transient=True,
        redirect_stdout=False,  # rich would show answers in the terminal that belong into a file
        redirect_stderr=False,
    )
    with bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.update(task, completed=done)


class MovingBar:
    """A bar for work that says by itself how much it is; other work gets another bar."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._shown = ExitStack()
        self._what = ""
        self._advance: Advance = lambda done: None

    def __enter__(self) -> MovingBar:
        return self

    def __exit__(self, *_: object) -> None:
        self._shown.close()

    def show(self, what: str, done: int, total: int) -> None:
        """So much of `total` is done."""
        if what != self._what:
            self._shown.close()
            self._what = what
            self._advance = self._shown.enter_context(progress_bar(self._console, what, total))
        self._advance(done)
