"""What the lines of our input files mean: filters, advertisements, patterns, events.

All these files are JSON lines; what is no event may also be written bare, one a line.
A reader yields what it could read, and tells a `Complaints` about each line that it could not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Annotated, Generic, TypeVar

import msgspec
import typer
from rich.console import Console

from palio.cli.input.lines import InputLine, LineFile
from palio.cli.program.dressing import argument, option
from palio.cli.program.terminal import complaint
from palio.language import DIALECTS, PALIO, WrittenEntry, WrongLine, read_entry, read_filter
from palio.model import jsontext
from palio.model.advertisement import Advertisement
from palio.model.errors import PalioError
from palio.model.filter import Filter
from palio.model.formats import JSON_LINES, Reading, file_format, from_document
from palio.model.notification import Notification

if TYPE_CHECKING:
    from palio.model.patterns.pattern import Pattern

# An event as an argument, as `read_event` takes it.
EventText = Annotated[str, argument("EVENT", "A JSON file, - for standard input, or JSON that starts with {.")]
LineNumber = Annotated[int | None, option("NUMBER", "EVENT is JSON lines; take this one.", min=1)]
Id = str | int
Content = TypeVar("Content")


class DoubledId(WrongLine):
    """A line with the id of an earlier one."""


class InputEntry(msgspec.Struct, Generic[Content], frozen=True):
    """A filter or an advertisement with the id and the line it has in its file."""

    line: int
    id: Id
    text: str
    content: Content


class InputEvent(msgspec.Struct, frozen=True):
    """A notification with its line, and with its place if the line is a batch."""

    line: int
    item: int | None
    notification: Notification


class Complaints:
    """Reports bad lines as they are met, and counts them."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.count = 0

    def add(self, file: str, line: int, id: Id | None, error: PalioError) -> None:
        self.count += 1
        self.console.print(complaint(error, f"{file}:{line}"), soft_wrap=True)

    def note(self, file: str, line: int, error: PalioError) -> None:
        """Report without counting: the line is good, but its writer will want to know."""
        self.console.print(complaint(error, f"{file}:{line}", colour="yellow"), soft_wrap=True)


# Called with the file, the line, the id as far as it is known, and what is wrong.
OnProblem = Callable[[str, int, Id | None, PalioError], None]


# The language that filters are written in, where a command takes some.
Dialect = Annotated[
    str, option("DIALECT", f"The language of filters: {', '.join(DIALECTS)}.", "--dialect", show_default=False)
]


def read_filters(file: LineFile, on_problem: OnProblem, dialect: str = PALIO) -> Iterator[InputEntry[Filter]]:
    """The filters of a file, each id once. A line may say that it is in another dialect than the others."""
    read = partial(read_entry, dialect=dialect)
    return _entries(file, read, lambda said: read_filter(said.text, said.dialect), on_problem)


def read_advertisements(file: LineFile, on_problem: OnProblem) -> Iterator[InputEntry[Advertisement]]:
    """The advertisements of a file, each id once."""
    read = partial(read_entry, key="advertisement")
    return _entries(file, read, lambda said: Advertisement.parse(said.text), on_problem)


def read_patterns(file: LineFile, on_problem: OnProblem) -> Iterator[InputEntry[Pattern]]:
    """The patterns of a file, each id once."""
    from palio.model.patterns.pattern import Pattern  # noqa: PLC0415 (most commands need none)

    read = partial(read_entry, key="pattern")
    return _entries(file, read, lambda said: Pattern.parse(said.text), on_problem)


def read_events(file: LineFile, on_problem: OnProblem, *, strict: bool = False) -> Iterator[InputEvent]:
    """The events of a file, in the format that its name says; otherwise, JSON lines."""
    format = file_format(file.name) or JSON_LINES
    reading = Reading(strict=strict)
    for line in file.lines() if format.by_line else [InputLine(1, file.document())]:
        if line.is_empty:
            continue
        try:
            parts = format.read_part(_text(line), reading)
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
                return from_document(jsontext.read(_text(found)))
        raise WrongLine(f"{file.name} has no line {line:,}.")


def _entries(
    file: LineFile,
    read: Callable[[str, int], WrittenEntry],
    parse: Callable[[WrittenEntry], Content],
    on_problem: OnProblem,
) -> Iterator[InputEntry[Content]]:
    lines: dict[Id, int] = {}
    for line in file.lines():
        if line.is_empty:
            continue
        id: Id | None = None
        try:
            said = read(_text(line), line.number)
            id = said.id
            if id in lines:
                raise DoubledId(f"The id {id!r} is taken by line {lines[id]}.")
            content = parse(said)
        except PalioError as error:
            on_problem(file.name, line.number, id, error)
            continue
        lines[id] = line.number
        yield InputEntry(line.number, id, said.text, content)


def _text(line: InputLine) -> str:
    if line.problem is not None:
        raise WrongLine(line.problem)
    return line.text
