"""`palio patterns`: what happened together, in a file of events?"""

from __future__ import annotations

import sys
import time as clock
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from palio.cli.durations import parse_span
from palio.cli.inputs import BadLine, Complaints, Event, read_events, read_patterns
from palio.cli.lines import STANDARD_INPUT, LineFile
from palio.cli.pattern_lines import match_line
from palio.cli.progress import progress_bar
from palio.cli.terminal import ExitCode, error_console, help_epilog, plural, write_json
from palio.matching.patterns import Detector, Match, PatternSet, watermark_for
from palio.model.patterns.pattern import Pattern

EPILOG = help_epilog(
    "palio patterns -p examples/patterns.jsonl -e examples/trades.jsonl",
    "palio patterns -p examples/patterns.jsonl -e - < examples/trades.jsonl",
    "palio patterns -p examples/patterns.jsonl -e examples/trades.jsonl --close",
)
# A progress bar that moves more often costs more than it tells.
_EVENTS_PER_UPDATE = 64
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


PatternFile = Annotated[
    str, typer.Option("--patterns", "-p", metavar="FILE", help="Patterns, one a line; - for standard input.")
]
Delay = Annotated[
    str, typer.Option("--delay", metavar="SPAN", help="How much older than the newest an event may be.")
]
Close = Annotated[bool, typer.Option("--close", help="Nothing comes any more: decide what is still open.")]


def patterns(
    *,
    patterns: PatternFile,
    events: Annotated[
        str, typer.Option("--events", "-e", metavar="FILE", help="Events, JSON lines; - for standard input.")
    ],
    time: Annotated[
        str, typer.Option("--time", metavar="ATTRIBUTE", help="The attribute that has an event's time.")
    ] = "time",
    delay: Delay = "1m",
    close: Close = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, notes or summary.")] = False,
) -> None:
    """Find patterns in events, and say of which events each consists, as JSON lines.

    A pattern's line is {"id": …, "pattern": "…"}, or the bare text of it; then
    its line number is its id. Events are read as by palio match; the order of
    their lines is the order of arrival. docs/filters.md has the language.

    A line that cannot be read is reported on standard error as FILE:LINE; the
    rest goes on, and the exit code is 3. Events that come too late are counted.
    """
    if patterns == events == STANDARD_INPUT:
        raise typer.BadParameter("patterns and events cannot both come from standard input.")
    console = error_console()
    complaints = Complaints(console)
    detector = Detector(PatternSet(patterns_of(patterns, complaints)))
    finding = _Finding(detector, time, microseconds(delay), complaints)
    # In a terminal the answers themselves show how far it is; a bar between them would only flicker.
    hidden = quiet or sys.stdout.isatty()
    with LineFile(events) as file, progress_bar(console, "matching", file.size, hidden=hidden) as advance:
        for event in read_events(file, complaints.add):
            finding.take(event, file.name)
            if finding.position % _EVENTS_PER_UPDATE == 0:
                advance(file.position() if file.size is not None else finding.position)
    finding.end(close)
    if not quiet:
        console.print(finding.summary(complaints.count), style="dim", soft_wrap=True)
    if complaints.count:
        raise typer.Exit(ExitCode.BAD_INPUT)


def patterns_of(path: str, complaints: Complaints) -> dict[str, Pattern]:
    """The patterns of a file by their names."""
    with LineFile(path) as file:
        return {str(one.id): one.content for one in read_patterns(file, complaints.add)}


def microseconds(span: str) -> int:
    return round(parse_span(span) * 1_000_000)


class _Finding:
    """A detector that is fed by a file: the order of lines is the order of arrival."""

    def __init__(self, detector: Detector, time: str, delay: int, complaints: Complaints) -> None:
        self.detector = detector
        self.position = 0
        self._time = time
        self._delay = delay
        self._complaints = complaints
        self._newest: int | None = None
        self._started = clock.perf_counter()

    def take(self, event: Event, file: str) -> None:
        self.position += 1
        moment = event.notification.get(self._time)
        if not isinstance(moment, datetime):
            problem = BadLine(f"This event has no time in its attribute {self._time!r}; --time names another.")
            self._complaints.add(file, event.line, None, problem)
            return
        time = (moment - _EPOCH) // _MICROSECOND
        id = event.notification.id or (str(event.line) if event.item is None else f"{event.line}.{event.item}")
        self.detector.take(event.notification, time=time, position=self.position, id=id)
        if self._newest is None or time > self._newest:
            self._newest = time
        self._tell(self.detector.advance(watermark_for(self._newest, self._delay)))

    def end(self, close: bool) -> None:
        if close:
            self._tell(self.detector.close())
        elif self._newest is not None:
            self._tell(self.detector.advance(self._newest))

    def _tell(self, found: list[Match]) -> None:
        for match in found:
            events = ((one.step, one.id, one.moment) for one in match.constituents)
            write_json(match_line(match.notification(), match.id, events))

    def summary(self, bad_lines: int) -> str:
        statistics = self.detector.statistics()
        counts = statistics.counts
        seconds = clock.perf_counter() - self._started
        parts = [
            f"{plural(self.position, 'event')} against {plural(statistics.patterns, 'pattern')}: "
            f"{plural(counts.matches, 'match')}"
        ]
        if seconds > 0:
            parts.append(f"{self.position / seconds:,.0f} events/s")
        drops = {
            "late": counts.late,
            "without a key": counts.unkeyed,
            "forgotten": counts.overflow,
            "given up": counts.abandoned,
        }
        parts += [f"{count:,} {reason}" for reason, count in drops.items() if count]
        if statistics.remembered:
            parts.append(f"{plural(statistics.remembered, 'event')} of open matches")
        if bad_lines:
            parts.append(plural(bad_lines, "bad line"))
        return ", ".join(parts)
