"""`palio match`: which filters does each event satisfy?"""

from __future__ import annotations

import sys
import time
from collections import Counter
from typing import Annotated, Any, cast

import typer

from palio import MatchIndex
from palio.cli.input.events import Complaints, Id, InputEvent, read_events
from palio.cli.input.inputs import Dialect, read_filters
from palio.cli.input.lines import STANDARD_INPUT, LineFile
from palio.cli.output.progress import progress_bar
from palio.cli.program.dressing import flag, option
from palio.cli.program.terminal import ExitCode, error_console, help_epilog, plural, write_json
from palio.language import PALIO
from palio.model.errors import ContradictoryFilter

EPILOG = help_epilog(
    "palio match -f examples/filters.jsonl -e examples/events.jsonl",
    "palio match -f examples/filters.jsonl -e - < examples/events.jsonl",
    "palio match -f examples/filters.jsonl -e examples/events.jsonl --totals",
)
# A progress bar that moves more often costs more than it tells.
_EVENTS_PER_UPDATE = 64


def match(
    *,
    filters: Annotated[str, option("FILE", "Filters, one a line; - for standard input.", "--filters", "-f")],
    events: Annotated[str, option("FILE", "Events, JSON lines; - for standard input.", "--events", "-e")],
    dialect: Dialect = PALIO,
    only_matching: Annotated[bool, flag("--only-matching", "Leave out events that no filter matches.")] = False,
    totals: Annotated[
        bool, flag("--totals", "One object with totals at the end, and no line per event.")
    ] = False,
    strict: Annotated[
        bool, flag("--strict", "Refuse events with content that filters cannot see, and contradictory filters.")
    ] = False,
    quiet: Annotated[bool, flag("--quiet", "No progress, notes or summary.", "-q")] = False,
) -> None:
    """Say for each event which filters it satisfies, as JSON lines.

    A filter's line is {"id": …, "filter": "…"}, or the bare text of the filter;
    then its line number is its id. Empty lines and lines with # are skipped.
    An event's line is a JSON object, a CloudEvent, or an array of CloudEvents.
    Files may be compressed with gzip.

    A line that cannot be read is reported on standard error as FILE:LINE; the
    rest goes on, and the exit code is 3.
    """
    if filters == events == STANDARD_INPUT:
        raise typer.BadParameter("filters and events cannot both come from standard input.")
    console = error_console()
    complaints = Complaints(console)
    index = _read_index(filters, complaints, dialect, strict=strict, quiet=quiet)
    tally = _Tally(index)
    place = {id: number for number, id in enumerate(index)}  # the index promises no order, a reader expects one
    # In a terminal the answers themselves show how far it is; a bar between them would only flicker.
    hidden = quiet or (sys.stdout.isatty() and not totals)
    with LineFile(events) as file, progress_bar(console, "matching", file.size, hidden=hidden) as advance:
        for event in read_events(file, complaints.add, strict=strict):
            found = sorted(index.match(event.notification), key=place.__getitem__)
            tally.add(found)
            if not totals and (found or not only_matching):
                write_json(_answer(event, found))
            if tally.events % _EVENTS_PER_UPDATE == 0:
                advance(file.position() if file.size is not None else tally.events)
    if totals:
        write_json(tally.document(complaints.count))
    if not quiet:
        console.print(tally.summary(complaints.count), style="dim", soft_wrap=True)
    if complaints.count:
        raise typer.Exit(ExitCode.BAD_INPUT)


def _read_index(path: str, complaints: Complaints, dialect: str, *, strict: bool, quiet: bool) -> MatchIndex:
    """An index with the filters of a file. One that can never match is worth a note, or with strict more."""
    index = MatchIndex()
    with LineFile(path) as file:
        for entry in read_filters(file, complaints.add, dialect):
            reason = entry.content.contradiction
            if reason is not None:
                error = ContradictoryFilter(entry.text, reason)
                if strict:
                    complaints.add(file.name, entry.line, entry.id, error)
                    continue
                if not quiet:
                    complaints.note(file.name, entry.line, error)
            index.add(entry.id, entry.content)
    return index


def _answer(event: InputEvent, found: list[Id]) -> dict[str, Any]:
    answer: dict[str, Any] = {"event": event.line}
    if event.item is not None:
        answer["item"] = event.item
    if event.notification.id is not None:
        answer["id"] = event.notification.id
    return answer | {"matches": found}


class _Tally:
    """What has been counted since the filters were read."""

    def __init__(self, index: MatchIndex) -> None:
        self._index = index
        self._started = time.perf_counter()
        self._matches: Counter[Id] = Counter()
        self.events = 0
        self.matched_events = 0

    def add(self, found: list[Id]) -> None:
        self.events += 1
        self.matched_events += bool(found)
        self._matches.update(found)

    def document(self, bad_lines: int) -> dict[str, Any]:
        """All counts; the filters as pairs in the order of their file, since ids may be numbers."""
        return {
            "events": self.events,
            "matched_events": self.matched_events,
            "filters": len(self._index),
            "matches": self._matches.total(),
            "bad_lines": bad_lines,
            "per_filter": [{"id": id, "matches": self._matches[cast("Id", id)]} for id in self._index],
        }

    def summary(self, bad_lines: int) -> str:
        seconds = time.perf_counter() - self._started
        rate = f"{self.events / seconds:,.0f} events/s" if seconds > 0 else ""
        bad = f", {plural(bad_lines, 'bad line')}" if bad_lines else ""
        return (
            f"{plural(self.events, 'event')} against {plural(len(self._index), 'filter')}: "
            f"{plural(self._matches.total(), 'match')}, {rate}{bad}"
        )
