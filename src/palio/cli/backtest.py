"""`palio backtest`: what a filter would have selected, without waiting for it to happen again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.console import Console

from palio.cli.connecting import Server, connected, run
from palio.cli.durations import parse_moment, parse_since
from palio.cli.history import history
from palio.cli.hosting import needing
from palio.cli.terminal import ExitCode, help_epilog, output_console, plural, printable, write_json
from palio.model import jsontext
from palio.model.filter import Filter
from palio.model.notification import Notification
from palio.model.values import format_time

EPILOG = help_epilog(
    "palio backtest 'price > 100' --since 7d",
    "palio backtest 'price > 100' --since all --samples 1 --json",
    "palio backtest 'price > 100' --since all --store sqlite:///palio-data/palio.db",
)
# Widths that the bars may stand for, in seconds: those that clocks and calendars have.
_WIDTHS = (1, 5, 15, 60, 300, 900, 3_600, 10_800, 43_200, 86_400, 604_800)
_MOST_BARS = 24
_BAR_CELLS = 40


class Found:
    """Counts by second, and samples spread over everything: memory does not grow with what is found."""

    def __init__(self, samples: int) -> None:
        self.count = 0
        self.first = self.last = 0.0
        self._seconds: dict[int, int] = {}
        self._wanted = samples
        self._samples: list[tuple[float, str, int, Notification]] = []
        self._every = 1

    def add(self, moment: float, origin: str, sequence: int, notification: Notification) -> None:
        self.first = moment if not self.count else min(self.first, moment)
        self.last = max(self.last, moment)
        self._seconds[int(moment)] = self._seconds.get(int(moment), 0) + 1
        if self._wanted and self.count % self._every == 0:
            self._samples.append((moment, origin, sequence, notification))
            if len(self._samples) > 2 * self._wanted:
                self._samples = self._samples[::2]
                self._every *= 2
        self.count += 1

    def samples(self) -> list[tuple[float, str, int, Notification]]:
        """As many as are wanted, evenly chosen."""
        count = min(self._wanted, len(self._samples))
        return [self._samples[number * len(self._samples) // count] for number in range(count)]

    def bars(self) -> Iterator[tuple[float, int]]:
        """Spans of equal length from the first event to the last: when each begins, and how many are in it."""
        if not self.count:
            return
        width = next((one for one in _WIDTHS if self.last - self.first <= one * _MOST_BARS), 0)
        width = width or int((self.last - self.first) / _MOST_BARS) + 1
        counts: dict[int, int] = {}
        for second, count in self._seconds.items():
            counts[second // width] = counts.get(second // width, 0) + count
        for number in range(min(counts), max(counts) + 1):
            yield float(number * width), counts.get(number, 0)


def backtest(
    filter_text: Annotated[str, typer.Argument(metavar="FILTER", help="The filter to try.")],
    *,
    server: Server = None,
    since: Annotated[str, typer.Option(metavar="WHEN", help="1h, 7d, a date, a time, or all.")],
    until: Annotated[str | None, typer.Option(metavar="WHEN", help="Before this time; else up to now.")] = None,
    samples: Annotated[int, typer.Option(min=0, max=100, help="How many events to show.")] = 3,
    store: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Read this journal, without a broker: sqlite:///palio-data/palio.db."),
    ] = None,
    broker: Annotated[
        str | None, typer.Option(metavar="NAME", help="Whose journal, if the store has several.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Say how many published events a filter selects, when they came, and show some.

    The journals of all brokers in reach are read; with --store, the one journal
    that it names. Exits with 1 if the filter selects nothing.
    """
    filter = Filter.parse(filter_text)
    filter.require_satisfiable()
    begin, end = parse_since(since), None if until is None else parse_moment(until)
    found = Found(samples)
    if store is not None:
        _read_store(found, (store, broker), filter, begin, end)
    else:
        run(_ask_network(found, server, filter, begin, end))
    if as_json:
        write_json(_document(found))
    else:
        _show(output_console(), found)
    if not found.count:
        raise typer.Exit(ExitCode.NO)


async def _ask_network(
    found: Found, server: str | None, filter: Filter, since: float | str, until: float | None
) -> None:
    async with connected(server) as client:
        async for event in history(client, filter, since, until):
            found.add(event.taken.timestamp(), event.origin, event.sequence, event.notification)


def _read_store(
    found: Found, which: tuple[str, str | None], filter: Filter, since: float | str, until: float | None
) -> None:
    with needing("broker"):
        from palio.store.journal import Journal  # noqa: PLC0415 (only where a store is)
    begin = {"all": 0.0, "now": time.time()}[since] if isinstance(since, str) else since
    end = time.time() if until is None else until
    with Journal(*which) as journal:
        for entry in journal.read(filter, since=begin, until=end):
            found.add(entry.time, journal.broker, entry.sequence, entry.notification)


def _document(found: Found) -> dict[str, Any]:
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
            for moment, origin, sequence, one in found.samples()
        ],
    }


def _moment(seconds: float) -> str:
    return format_time(datetime.fromtimestamp(seconds, UTC))


def _show(console: Console, found: Found) -> None:
    if not found.count:
        console.print("The filter selects no event of that time.")
        return
    console.print(
        f"{plural(found.count, 'event')}, the first {_local(found.first)}, the last {_local(found.last)}",
        style="bold",
        soft_wrap=True,
    )
    bars = list(found.bars())
    most = max(count for _, count in bars)
    for moment, count in bars:
        cells = _BAR_CELLS * count / most
        bar = "█" * int(cells) + ("▌" if cells % 1 >= 0.5 or 0 < cells < 1 else "")
        console.print(f"  {_local(moment)}  {bar} {count:,}", soft_wrap=True)
    for moment, origin, sequence, one in found.samples():
        text = f"  {_local(moment)} {origin}/{sequence}  {printable(one.to_json())}"
        console.print(text, style="dim", soft_wrap=True)


def _local(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M:%S")
