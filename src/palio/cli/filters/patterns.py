"""`palio patterns`: what happened together, in a file of events, or in what is being published?"""

from __future__ import annotations

import sys
import time as clock
from collections.abc import Callable
from datetime import datetime
from typing import Annotated

import typer

from palio.cli.input.events import Complaints, InputEvent, read_events
from palio.cli.input.inputs import read_patterns
from palio.cli.input.lines import STANDARD_INPUT, LineFile
from palio.cli.output.pattern_lines import Shown, match_line
from palio.cli.output.progress import progress_bar
from palio.cli.program.connecting import Server, connected, for_at_most, run
from palio.cli.program.dressing import flag, option
from palio.cli.program.terminal import ExitCode, error_console, help_epilog, plural, write_json
from palio.language import WrongLine
from palio.matching.patterns import Detector, DetectorStatistics, Match, PatternSet, watermark_for
from palio.matching.patterns.match import Constituent
from palio.matching.patterns.recent import Recent
from palio.matching.programs import microseconds
from palio.model.moments import parse_span
from palio.model.notification import Notification
from palio.model.patterns.pattern import Pattern

EPILOG = help_epilog(
    "palio patterns -p examples/patterns.jsonl -e examples/trades.jsonl",
    "palio patterns -p examples/patterns.jsonl -e - < examples/trades.jsonl",
    "palio patterns -p examples/patterns.jsonl -e examples/trades.jsonl --close",
    "palio patterns -p examples/patterns.jsonl --timeout 2s",
)
# A progress bar that moves more often costs more than it tells.
_EVENTS_PER_UPDATE = 64

PatternFile = Annotated[str, option("FILE", "Patterns, one a line; - for standard input.", "--patterns", "-p")]
_DELAY_HELP = "How much older than the newest an event may be."
Delay = Annotated[str, option("SPAN", _DELAY_HELP, "--delay")]
# In a file, and in what is being published.
_FILE_DELAY = "1m"
_LIVE_DELAY = "2s"
Close = Annotated[bool, flag("--close", "Nothing comes any more: decide what is still open.")]


def patterns(
    *,
    patterns: PatternFile,
    events: Annotated[
        str | None, option("FILE", "Events, JSON lines; - for standard input. Else: live.", "--events", "-e")
    ] = None,
    time: Annotated[
        str | None, option("ATTRIBUTE", "What has an event's time. Default: time; live, when it was published.")
    ] = None,
    delay: Annotated[
        str | None, option("SPAN", f"{_DELAY_HELP} Default: {_FILE_DELAY}, live {_LIVE_DELAY}.")
    ] = None,
    close: Close = False,
    server: Server = None,
    publish: Annotated[bool, flag("--publish", "Live: also publish what is found.")] = False,
    count: Annotated[
        int | None, typer.Option("--count", "-n", min=1, help="Live: end after so many matches.")
    ] = None,
    timeout: Annotated[str | None, option("SPAN", "Live: end after this time.", "--timeout", "-t")] = None,
    quiet: Annotated[bool, flag("--quiet", "No progress, notes or summary.", "-q")] = False,
) -> None:
    """Find patterns in events, and say of which events each consists, as JSON lines.

    A match's line has the events with what they say, as far as they are among
    the newest ten thousand. A pattern's line is {"id": …, "pattern": "…"}, or the bare text of it; then
    its line number is its id. docs/filters.md has the language.

    Without --events, it looks at what is being published, in the order in which
    it comes here. With --publish, what is found is published as a notification
    that names its events.

    Events of a file are read as by palio match; the order of their lines is the
    order of arrival. A line that cannot be read is reported on standard error as
    FILE:LINE; the rest goes on, and the exit code is 3.

    A pattern that says "timeout tell" also tells what was begun and not completed
    in time: such a line has "timed_out": true.

    Events that come too late are counted.
    """
    console = error_console()
    complaints = Complaints(console)
    if events is None:
        chosen = patterns_of(patterns, complaints)
        if complaints.count:
            raise typer.Exit(ExitCode.BAD_INPUT)
        span = parse_span(delay or _LIVE_DELAY)
        within = None if timeout is None else parse_span(timeout)
        run(_follow(server, chosen, time, span, publish=publish, count=count, within=within, quiet=quiet))
        return
    if patterns == events == STANDARD_INPUT:
        raise typer.BadParameter("patterns and events cannot both come from standard input.")
    detector = Detector(PatternSet(patterns_of(patterns, complaints)))
    longest = round(parse_span(delay or _FILE_DELAY) * 1_000_000)
    finding = _Finding(detector, time or "time", longest, complaints)
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


async def _follow(
    server: str | None,
    patterns: dict[str, Pattern],
    time: str | None,
    delay: float,
    *,
    publish: bool,
    count: int | None,
    within: float | None,
    quiet: bool,
) -> None:
    """Tell matches as they happen, until it is enough."""
    console = error_console()
    told = 0
    async with connected(server, tell=not quiet) as client:
        detection = await client.detect(patterns, time=time, delay=delay)
        if console.is_terminal and not quiet:
            console.print(f"Looking at what comes to {client.broker}; Ctrl-C ends it.", style="dim")
        async with for_at_most(within):
            async for match in detection:
                _tell(match, detection.content)
                if publish:
                    await client.publish(match.notification())
                told += 1
                if told == count:
                    break
        if not quiet:
            untimed = f", {detection.untimed:,} without a time" if detection.untimed else ""
            console.print(_summary(detection.statistics()) + untimed, style="dim", soft_wrap=True)


def patterns_of(path: str, complaints: Complaints) -> dict[str, Pattern]:
    """The patterns of a file by their names."""
    with LineFile(path) as file:
        return {str(one.id): one.content for one in read_patterns(file, complaints.add)}


class _Finding:
    """A detector that is fed by a file: the order of lines is the order of arrival."""

    def __init__(self, detector: Detector, time: str, delay: int, complaints: Complaints) -> None:
        self.detector = detector
        self.position = 0
        self._time = time
        self._delay = delay
        self._complaints = complaints
        self._newest: int | None = None
        self._recent = Recent()
        self._started = clock.perf_counter()

    def take(self, event: InputEvent, file: str) -> None:
        self.position += 1
        moment = event.notification.get(self._time)
        if not isinstance(moment, datetime):
            reason = f"This event has no time in its attribute {self._time!r}; --time names another."
            self._complaints.add(file, event.line, None, WrongLine(reason))
            return
        time = microseconds(moment)
        id = event.notification.id or (str(event.line) if event.item is None else f"{event.line}.{event.item}")
        self._recent.keep(self.position, event.notification)
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
            _tell(match, lambda one: self._recent.get(one.position))

    def summary(self, bad_lines: int) -> str:
        seconds = clock.perf_counter() - self._started
        parts = [_summary(self.detector.statistics())]
        if seconds > 0:
            parts.append(f"{self.position / seconds:,.0f} events/s")
        if bad_lines:
            parts.append(plural(bad_lines, "bad line"))
        return ", ".join(parts)


def _tell(match: Match, content: Callable[[Constituent], Notification | None]) -> None:
    events = (Shown(one.step, one.id, one.moment, content(one)) for one in match.constituents)
    write_json(match_line(match.notification(), match.id, events))


def _summary(statistics: DetectorStatistics) -> str:
    counts = statistics.counts
    against = f"{plural(counts.events, 'event')} against {plural(statistics.patterns, 'pattern')}"
    parts = [f"{against}: {plural(counts.matches, 'match')}"]
    beside = {
        "timed out": counts.timed_out,
        "late": counts.late,
        "without a key": counts.unkeyed,
        "forgotten": counts.overflow,
        "given up": counts.abandoned,
    }
    parts += [f"{count:,} {reason}" for reason, count in beside.items() if count]
    if statistics.remembered:
        parts.append(f"{plural(statistics.remembered, 'event')} of open matches")
    return ", ".join(parts)
