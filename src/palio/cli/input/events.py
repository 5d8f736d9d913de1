"""Events as arguments and in files, and what is said of a line that holds none.

Other languages of filters are loaded with other inputs: who publishes an event does not wait for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from palio.cli.input.lines import InputLine, LineFile
from palio.cli.program.dressing import argument, option
from palio.cli.program.terminal import complaint, error_console
from palio.model import jsontext
from palio.model.errors import PalioError
from palio.model.formats import JSON_LINES, Reading, file_format, from_document
from palio.model.notification import Notification

if TYPE_CHECKING:
    from rich.console import Console

    from palio.language import WrongLine

# An event as an argument, as `read_event` takes it.
EventText = Annotated[str, argument("EVENT", "A JSON file, - for standard input, or JSON that starts with {.")]
LineNumber = Annotated[int | None, option("NUMBER", "EVENT is JSON lines; take this one.", min=1)]
Id = str | int


class InputEvent(msgspec.Struct, frozen=True):
    """A notification with its line, and with its place if the line is a batch."""

    line: int
    item: int | None
    notification: Notification


class Complaints:
    """Reports bad lines as they are met, and counts them."""

    def __init__(self, console: Console | None = None) -> None:
        self._given = console
        self.count = 0

    @cached_property
    def console(self) -> Console:
        return self._given or error_console()

    def add(self, file: str, line: int, id: Id | None, error: PalioError) -> None:
        self.count += 1
        self.console.print(complaint(error, f"{file}:{line}"), soft_wrap=True)

    def note(self, file: str, line: int, error: PalioError) -> None:
        """Report without counting: the line is good, but its writer will want to know."""
        self.console.print(complaint(error, f"{file}:{line}", colour="yellow"), soft_wrap=True)


# Called with the file, the line, the id as far as it is known, and what is wrong.
OnProblem = Callable[[str, int, Id | None, PalioError], None]


def read_events(file: LineFile, on_problem: OnProblem, *, strict: bool = False) -> Iterator[InputEvent]:
    """The events of a file, in the format that its name says; otherwise, JSON lines."""
    format = file_format(file.name) or JSON_LINES
    reading = Reading(strict=strict)
    for line in file.lines() if format.by_line else [InputLine(1, file.document())]:
        if line.is_empty:
            continue
        try:
            parts = format.read_part(text_of(line), reading)
        except PalioError as error:
            on_problem(file.name, line.number, None, error)
            continue
        yield from (InputEvent(line.number, item, notification) for item, notification in parts)


def read_event(event: str, line: int | None) -> Notification:
    """An event from an argument: JSON itself, or a file (- for standard input), perhaps a line of it."""
    if event.lstrip().startswith("{"):
        if line is not None:
            raise typer.BadParameter("--line needs a file, and EVENT is JSON itself.")
        return from_document(jsontext.read(event))
    with LineFile(event) as file:
        if line is None:
            return from_document(jsontext.read(file.document()))
        for found in file.lines():
            if found.number == line:
                return from_document(jsontext.read(text_of(found)))
        raise _wrong_line(f"{file.name} has no line {line:,}.")


def text_of(line: InputLine) -> str:
    """What the line says. Raises `WrongLine`."""
    if line.problem is not None:
        raise _wrong_line(line.problem)
    return line.text


def _wrong_line(problem: str) -> WrongLine:
    from palio.language import WrongLine  # noqa: PLC0415 (most lines are right)

    return WrongLine(problem)
