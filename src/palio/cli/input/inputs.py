"""What the lines of our input files mean: filters, advertisements, patterns. Events are in `events`.

All these files are JSON lines; what is no event may also be written bare, one a line.
A reader yields what it could read, and tells a `Complaints` about each line that it could not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Annotated, Generic, TypeVar

import msgspec

from palio.cli.input.events import Id, OnProblem, text_of
from palio.cli.input.lines import LineFile
from palio.cli.program.dressing import option
from palio.language import DIALECTS, PALIO, WrittenEntry, WrongLine, read_entry, read_filter
from palio.model.advertisement import Advertisement
from palio.model.errors import PalioError
from palio.model.filter import Filter

if TYPE_CHECKING:
    from palio.model.patterns.pattern import Pattern

Content = TypeVar("Content")


class DoubledId(WrongLine):
    """A line with the id of an earlier one."""


class InputEntry(msgspec.Struct, Generic[Content], frozen=True):
    """A filter or an advertisement with the id and the line it has in its file."""

    line: int
    id: Id
    text: str
    content: Content


# The language that filters are written in, where a command takes some.
Dialect = Annotated[
    str, option("DIALECT", f"The language of filters: {', '.join(DIALECTS)}.", "--dialect", show_default=False)
]


def read_filters(
    file: LineFile,
    on_problem: OnProblem,
    dialect: str = PALIO,
    parse: Callable[[str, str], Filter] = read_filter,
) -> Iterator[InputEntry[Filter]]:
    """The filters of a file, each id once. A line may say that it is in another dialect than the others."""
    read = partial(read_entry, dialect=dialect)
    return _entries(file, read, lambda said: parse(said.text, said.dialect), on_problem)


def read_advertisements(file: LineFile, on_problem: OnProblem) -> Iterator[InputEntry[Advertisement]]:
    """The advertisements of a file, each id once."""
    read = partial(read_entry, key="advertisement")
    return _entries(file, read, lambda said: Advertisement.parse(said.text), on_problem)


def read_patterns(file: LineFile, on_problem: OnProblem) -> Iterator[InputEntry[Pattern]]:
    """The patterns of a file, each id once."""
    from palio.model.patterns.pattern import Pattern  # noqa: PLC0415 (most commands need none)

    read = partial(read_entry, key="pattern")
    return _entries(file, read, lambda said: Pattern.parse(said.text), on_problem)


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
            said = read(text_of(line), line.number)
            id = said.id
            if id in lines:
                raise DoubledId(f"The id {id!r} is taken by line {lines[id]}.")
            content = parse(said)
        except PalioError as error:
            on_problem(file.name, line.number, id, error)
            continue
        lines[id] = line.number
        yield InputEntry(line.number, id, said.text, content)
