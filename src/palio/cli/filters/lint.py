"""`palio lint`: what is wrong, useless or doubled in a file of filters?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.text import Text

from palio.cli.input.events import Complaints, Id, read_events
from palio.cli.input.inputs import Dialect, DoubledId, InputEntry, read_advertisements, read_filters
from palio.cli.input.lines import STANDARD_INPUT, LineFile
from palio.cli.input.selections import FamilyFiles, FilterReader
from palio.cli.output.progress import progress_bar
from palio.cli.program.connecting import Server
from palio.cli.program.dressing import argument, flag, option
from palio.cli.program.terminal import (
    ExitCode,
    complaint,
    error_console,
    help_epilog,
    output_console,
    plural,
    printable,
    write_json,
)
from palio.language import PALIO
from palio.matching import MatchIndex
from palio.matching.poset import Node, Poset
from palio.model.advertisement import Advertisement
from palio.model.describe import said_sides
from palio.model.errors import PalioError
from palio.model.explanation import unfilterable, unindexed_part
from palio.model.expression import name_text, text_of
from palio.model.filter import Filter

EPILOG = help_epilog(
    "palio lint examples/filters.jsonl",
    "palio lint examples/filters.jsonl -a examples/advertisements.txt",
    "palio lint examples/filters.jsonl -e examples/events.jsonl",
    "palio lint examples/filters.jsonl --json",
)
_COLOURS = {
    **dict.fromkeys(("syntax", "id", "contradictory"), "red"),
    **dict.fromkeys(("unadvertised", "unfilterable"), "magenta"),
}
_SHOWN_TEXT = 160
_ASKED = (
    "This filter has nothing to be looked up by, so every event that has its attributes asks it, in some 25 "
    "nanoseconds or, with a long text, more. It is found once it has an equality, a range, or three bytes in a "
    "row that a text must have."
)


class LintFinding(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that a filter's writer should know; `other` is the filter that makes this one needless."""

    line: int
    id: Id | None
    finding: str
    message: str
    text: str | None = None
    other: Id | None = None
    other_line: int | None = None


def lint(
    filters: Annotated[str, argument("FILE", "Filters, one a line; - for standard input.")],
    advertisements: Annotated[
        str | None, option("FILE", "What publishers may say, one a line.", "--advertisements", "-a")
    ] = None,
    events: Annotated[
        str | None, option("FILE", "Events as they come, one a line: examples.", "--events", "-e")
    ] = None,
    *,
    dialect: Dialect = PALIO,
    family: FamilyFiles = None,
    server: Server = None,
    as_json: Annotated[bool, flag("--json", "Findings as JSON lines, and no summary.")] = False,
) -> None:
    """Find filters that are wrong, useless or said twice.

    Found are: syntax errors and doubled ids; filters that contradict
    themselves; filters that equal an earlier one, however they are written;
    filters that another one covers; given advertisements, filters that nothing
    advertised can match; filters that have nothing to be found by but what they
    compute; and, given examples of events, filters that ask for content which
    the events have but no filter can look into, such as lists of objects. Found
    are also filters that have nothing to be looked up by: every event that has
    the attribute asks each of these. Filters and advertisements are JSON lines
    with "id" and "filter" or "advertisement", or bare texts, one a line.

    Filters about XML documents (family card where xpath("/card/price") < 10)
    are read with the families of the broker, or of --family; found are also
    those that no document can satisfy.
    """
    if [filters, advertisements, events].count(STANDARD_INPUT) > 1:
        raise typer.BadParameter("only one of the files can come from standard input.")
    complaints = Complaints(error_console())
    offers = None if advertisements is None else _read_offers(advertisements, complaints)
    unindexed = set() if events is None else _read_unindexed(events, complaints)
    entries, findings = _read(filters, dialect, FilterReader(family, server))
    total = len(entries) + len(findings)
    for entry in entries:
        reason = entry.content.contradiction
        if reason is not None:
            findings.append(_finding(entry, "contradictory", f"This filter can never match: {reason}"))
    entries = [entry for entry in entries if entry.content.contradiction is None]
    findings += _needless(entries)
    if offers is not None:
        findings += _unadvertised(entries, offers)
    computed = list(_computed(entries))
    findings += computed
    findings += _unfilterable(entries, sorted(unindexed))
    lines = {finding.line for finding in computed}  # of these it is said already what they cost
    findings += _asked([entry for entry in entries if entry.line not in lines])
    findings.sort(key=lambda one: one.line)
    if as_json:
        for finding in findings:
            write_json(msgspec.to_builtins(finding))
    else:
        _show(output_console(), filters, findings, total)
    if complaints.count:
        raise typer.Exit(ExitCode.BAD_INPUT)
    if findings:
        raise typer.Exit(ExitCode.NO)


def _read(path: str, dialect: str, reader: FilterReader) -> tuple[list[InputEntry[Filter]], list[LintFinding]]:
    findings: list[LintFinding] = []

    def add(file: str, line: int, id: Id | None, error: PalioError) -> None:
        kind = "id" if isinstance(error, DoubledId) else "syntax"
        findings.append(LintFinding(line, id, kind, complaint(error).plain))

    with LineFile(path) as file:
        return list(read_filters(file, add, dialect, reader.read)), findings


def _read_offers(path: str, complaints: Complaints) -> list[Advertisement]:
    with LineFile(path) as file:
        return [entry.content for entry in read_advertisements(file, complaints.add)]


def _read_unindexed(path: str, complaints: Complaints) -> set[str]:
    """What some event has that no filter can look into."""
    with LineFile(path) as file:
        return {part for event in read_events(file, complaints.add) for part in event.notification.unindexed}


def _finding(
    entry: InputEntry[Filter], kind: str, message: str, other: InputEntry[Filter] | None = None
) -> LintFinding:
    beside = () if other is None else (other.id, other.line)
    return LintFinding(entry.line, entry.id, kind, message, entry.text, *beside)


def _needless(entries: list[InputEntry[Filter]]) -> Iterator[LintFinding]:
    """Filters that equal an earlier one, and those that lie within another one."""
    poset = Poset()
    nodes: list[Node] = []
    with progress_bar(error_console(), "comparing filters", len(entries)) as advance:
        for done, entry in enumerate(entries):
            advance(done)
            node = poset.insert(entry.content)
            if node.value is None:
                node.value = entry
                nodes.append(node)
            else:
                yield _finding(entry, "duplicate", f"This filter equals {_name(node.value)}.", node.value)
    for node in nodes:
        wider: list[InputEntry[Filter]] = [parent.value for parent in node.parents]
        if wider:
            first = min(wider, key=lambda entry: entry.line)
            yield _finding(node.value, "covered", f"This filter is covered by {_name(first)}.", first)


def _unadvertised(entries: list[InputEntry[Filter]], offers: list[Advertisement]) -> Iterator[LintFinding]:
    for entry in entries:
        if not any(offer.overlaps(entry.content) for offer in offers):
            yield _finding(entry, "unadvertised", "Nothing that is advertised can match this filter.")


def _computed(entries: list[InputEntry[Filter]]) -> Iterator[LintFinding]:
    """Filters that have nothing to be found by but what they compute."""
    for entry in entries:
        for box in entry.content.conjunctions:
            if box.residuals and not said_sides(box):
                condition = text_of(box.residuals[0])
                names = ", ".join(map(name_text, box.sides))
                asked = f"every event that has {names}" if names else "every event"
                yield _finding(
                    entry,
                    "computed",
                    f"`{condition}` is computed for {asked}, some microseconds each. Add a condition that few "
                    "events satisfy, or write a string in quotes if no other attribute was meant.",
                )
                break


def _unfilterable(entries: list[InputEntry[Filter]], unindexed: list[str]) -> Iterator[LintFinding]:
    for entry in entries:
        for attribute in sorted(entry.content.attributes):
            part = unindexed_part(attribute, unindexed)
            if part is not None:
                there = f"This filter asks for {name_text(attribute)}, but {unfilterable(part)}."
                yield _finding(entry, "unfilterable", there)


def _asked(entries: list[InputEntry[Filter]]) -> Iterator[LintFinding]:
    """Filters of which a part is found by nothing in an index, so that events ask it one by one."""
    index = MatchIndex()
    for number, entry in enumerate(entries):
        index.add(number, entry.content)
        if getattr(index.statistics(), "asked", 0):  # without the compiled core every filter is asked
            yield _finding(entry, "asked", _ASKED)
        index.remove(number)


def _name(entry: InputEntry[Filter]) -> str:
    place = f"line {entry.line}"
    return f"that of {place}" if entry.id == entry.line else f"{entry.id!r} of {place}"


def _show(console: Console, file: str, findings: list[LintFinding], total: int) -> None:
    for finding in findings:
        heading = Text(f"{file}:{finding.line}", style="bold")
        if finding.id is not None and finding.id != finding.line:
            heading.append(printable(f"  {finding.id}"), style="not bold cyan")
        heading.append(f"  {finding.finding}", style=f"not bold {_COLOURS.get(finding.finding, 'yellow')}")
        console.print(heading, soft_wrap=True)
        console.print(Text("  " + printable(finding.message)), soft_wrap=True)
        if finding.text is not None:
            shown = finding.text if len(finding.text) <= _SHOWN_TEXT else finding.text[: _SHOWN_TEXT - 1] + "…"
            console.print(Text("  " + printable(shown), style="dim"), soft_wrap=True)
    if findings:
        console.print()
    counts = Counter(finding.finding for finding in findings)
    listed = ", ".join(f"{count:,} {kind}" for kind, count in counts.items())
    summary = f"{plural(len(findings), 'finding')} ({listed})" if findings else "No findings"
    style = "bold yellow" if findings else "bold green"
    console.print(f"{summary} in {plural(total, 'filter')}.", style=style, soft_wrap=not console.is_terminal)
