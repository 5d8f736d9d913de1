"""`palio backtest`: what a filter would have selected, without waiting for it to happen again."""

from __future__ import annotations

import math
import time as clock
from collections import deque
from datetime import UTC, datetime
from typing import Annotated, Any, TypeAlias

import msgspec
import typer
from rich.console import Console

from palio.cli.events.replay import LOOK_BACK_WITHIN, Since, Until, tell_missing
from palio.cli.input.inputs import Dialect
from palio.cli.input.selections import FilterReader
from palio.cli.output.bars import lying
from palio.cli.program.connecting import Server, connected, run
from palio.cli.program.dressing import argument, flag, option
from palio.cli.program.terminal import ExitCode, help_epilog, output_console, plural, printable, write_json
from palio.language import PALIO
from palio.model import jsontext
from palio.model.filter import Filter
from palio.model.moments import format_time, parse_moment, parse_since
from palio.model.naming import event_name
from palio.model.notification import Notification

EPILOG = help_epilog(
    "palio backtest 'price > 100' --since 7d",
    "palio backtest 'price > 100' --since all --samples 1 --json",
    "palio backtest 'price > 100' --since 7d --store sqlite:///palio.db",
)
_BARS = 24
_BAR_CELLS = 40

Sample: TypeAlias = tuple[float, str, int, Notification]  # when, origin, sequence, what
FromUntil: TypeAlias = tuple[float | str, float | None]


class BacktestCounts(msgspec.Struct, frozen=True):
    """What a filter selects: how many, when in equal parts of the time from the first to the last, and some."""

    count: int = 0
    first: float = 0.0
    last: float = 0.0
    histogram: tuple[int, ...] = ()
    samples: tuple[Sample, ...] = ()
    missing: tuple[str, ...] = ()

    def bars(self) -> list[tuple[float, int]]:
        """When each part begins, and how many are in it."""
        width = (self.last - self.first) / max(1, len(self.histogram))
        return [(self.first + number * width, count) for number, count in enumerate(self.histogram)]


def parts(first: float, last: float) -> int:
    """Into how many parts a time is divided: none shorter than a second."""
    return max(1, min(_BARS, int(last - first)))


def backtest(
    filter_text: Annotated[str, argument("FILTER", "The filter to try.")],
    *,
    server: Server = None,
    since: Since,
    until: Until = None,
    dialect: Dialect = PALIO,
    samples: Annotated[int, typer.Option(min=0, max=100, help="How many events to show.")] = 3,
    store: Annotated[
        str | None, option("URL", "Read this journal, without a broker: sqlite:///palio-data/palio.db.")
    ] = None,
    broker: Annotated[str | None, option("NAME", "Whose journal, if the store has several.")] = None,
    lake: Annotated[
        str | None, option("FOLDER", "With --store: what its journal does not have any more is here.")
    ] = None,
    as_json: Annotated[bool, flag("--json", "One JSON object.")] = False,
) -> None:
    """Say how many published events a filter selects, when they came, and show some.

    The journals of all brokers in reach are read, and the lakes to which they are
    archived where the brokers know them (their setting lake); with --store, the one
    journal that it names. Exits with 1 if the filter selects nothing.
    """
    filter = FilterReader(None, server).read(filter_text, dialect).require_satisfiable()
    now = clock.time()
    begin, end = parse_since(since, now=now), None if until is None else parse_moment(until, now=now)
    if lake is not None and store is None:
        raise typer.BadParameter("--lake goes with --store; a broker has its own setting for it.")
    if store is not None:
        found = _read_store((store, broker), lake, filter, (begin, end), samples)
    else:
        found = run(_ask_network(server, filter, (begin, end), samples))
    tell_missing(found.missing)
    if as_json:
        write_json(_document(found))
    else:
        _show(output_console(), found)
    if not found.count:
        raise typer.Exit(ExitCode.NO)


async def _ask_network(server: str | None, filter: Filter, time: FromUntil, samples: int) -> BacktestCounts:
    """Ask twice: when the first and the last were, and then how many in each part of that time."""
    async with connected(server, request_timeout=LOOK_BACK_WITHIN) as client:
        begin, end = None if time[0] == "all" else float(time[0]), time[1]
        there = await client.survey(filter, since=begin, until=end, buckets=1, samples=0)
        if there.first is None or there.last is None:
            return BacktestCounts(missing=there.missing)
        # These are cut to microseconds: one less and one more, and all are within.
        span = there.first.timestamp() - 1e-6, there.last.timestamp() + 2e-6
        found = await client.survey(filter, since=span[0], until=span[1], buckets=parts(*span), samples=samples)
        shown = [(one.taken.timestamp(), one.origin, one.sequence, one.notification) for one in found.samples]
        missing = tuple(sorted({*there.missing, *found.missing}))
        return BacktestCounts(found.count, *span, found.histogram, tuple(shown), missing)


def _read_store(
    which: tuple[str, str | None], lake: str | None, filter: Filter, time: FromUntil, samples: int
) -> BacktestCounts:
    from palio.store.journal import Journal  # noqa: PLC0415 (only where a store is)

    begin = 0.0 if time[0] == "all" else float(time[0])
    end = math.inf if time[1] is None else time[1]
    newest: deque[Sample] = deque(maxlen=samples)
    count, first, last = 0, math.inf, 0.0
    with Journal(*which, lake=lake) as journal:
        for entry in journal.read(filter, since=begin, until=end):
            count += 1
            first, last = min(first, entry.time), max(last, entry.time)
            newest.append((entry.time, journal.broker, entry.sequence, entry.notification))
        if not count:
            return BacktestCounts()
        histogram = [0] * parts(first, last)
        width = math.nextafter((last - first) / len(histogram), math.inf)
        for entry in journal.read(filter, since=first, until=math.nextafter(last, math.inf)):
            histogram[int((entry.time - first) / width)] += 1
    return BacktestCounts(sum(histogram), first, last, tuple(histogram), tuple(newest))


def _document(found: BacktestCounts) -> dict[str, Any]:
    return {
        "events": found.count,
        "first": _moment(found.first) if found.count else None,
        "last": _moment(found.last) if found.count else None,
        "when": [{"from": _moment(moment), "events": count} for moment, count in found.bars()],
        "samples": [
            {
                "time": _moment(moment),
                "origin": origin,
                "sequence": sequence,
                "event": jsontext.read(one.to_json()),
            }
            for moment, origin, sequence, one in found.samples
        ],
    }


def _moment(seconds: float) -> str:
    return format_time(datetime.fromtimestamp(seconds, UTC))


def _show(console: Console, found: BacktestCounts) -> None:
    if not found.count:
        console.print("The filter selects no event of that time.")
        return
    head = f"{plural(found.count, 'event')}, the first {_local(found.first)}, the last {_local(found.last)}"
    console.print(head, style="bold", soft_wrap=True)
    bars = found.bars()
    most = max(count for _, count in bars)
    for moment, count in bars:
        console.print(f"  {_local(moment)}  {lying(count, most, _BAR_CELLS)} {count:,}", soft_wrap=True)
    for moment, origin, sequence, one in found.samples:
        text = f"  {_local(moment)} {event_name(origin, sequence)}  {printable(one.to_json())}"
        console.print(text, style="dim", soft_wrap=True)


def _local(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M:%S")
