"""`palio demo`: a stream of stock events against a few thousand filters, live; then a network of brokers."""

from __future__ import annotations

import asyncio
import itertools
import os
import shlex
import shutil
import sys
import time
from collections import Counter, defaultdict, deque
from contextlib import nullcontext
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from palio import Filter, MatchIndex, Notification
from palio.cli.demo.network import NetworkDemo
from palio.cli.demo.stocks import Market, filter_texts
from palio.cli.output.places import DEFAULT_REPORT
from palio.cli.program.dressing import option
from palio.cli.program.extras import missing_of
from palio.cli.program.terminal import ExitCode, help_epilog, output_console, plural
from palio.matching.poset import Poset

EPILOG = help_epilog(
    "palio demo", "palio demo --part matching --seconds 3 --filters 500", "palio demo --part network --seed 7"
)
_REFRESHES_PER_SECOND = 5
_SECONDS_PER_PLAIN_LINE = 1.0
_RATE_WINDOW_SECONDS = 2.0
_BUSIEST = 6
# Enough to find an index that is wrong now and then, few enough to be checked within a second or two.
_MAX_CHECKS = 200
_MAX_COMPARED = 5_000

# The network's part.
_SUBSCRIBERS = 40
_TRADES = 1_000


class DemoPart(Enum):
    ALL = "all"
    MATCHING = "matching"
    NETWORK = "network"
    PIPELINE = "pipeline"


def demo(
    seconds: Annotated[float, typer.Option(min=0.1, max=3600, help="How long the stream runs.")] = 5,
    filters: Annotated[int, typer.Option(min=1, max=1_000_000, help="How many filters.")] = 3000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same market.")] = 1,
    part: Annotated[
        DemoPart, typer.Option(help="All parts, or one; pipeline needs the network.")
    ] = DemoPart.ALL,
    report: Annotated[Path, option("FILE", "Where the report of the pipeline goes.")] = DEFAULT_REPORT,
) -> None:
    """Watch a made-up stock market meet a few thousand filters, then a network of brokers.

    First a stream of trades finds its subscribers in one index; a sample of the
    answers is checked against the definition. Then five brokers, each a process
    of its own, route trades to subscribers all over the network, and a lookout
    finds a pattern in them; one broker is killed and comes back. Spark, where
    there is a Java for it, archives their journals, matches them in bulk, finds
    the pattern again, and leaves a report. At last an XML document finds its
    reader. All of it ends by itself; the exit code is 0 only if every answer and
    every delivery was right.
    """
    console = output_console()
    right = True
    if part in (DemoPart.ALL, DemoPart.MATCHING):
        right = _match(console, seconds, filters, seed)
    missing = missing_of("broker")
    if missing is not None and part is DemoPart.ALL:
        _say(console, f"\nThe network of brokers is left out here. {missing}")
    elif missing is not None and part is not DemoPart.MATCHING:
        raise missing
    elif part is not DemoPart.MATCHING:
        place = None if part is DemoPart.NETWORK else report
        network = NetworkDemo(console, seed, _SUBSCRIBERS, _TRADES, report=place)
        right = asyncio.run(network.run()) and right
        _part_from_network(console)
    if not right:
        raise typer.Exit(ExitCode.NO)


def _match(console: Console, seconds: float, filters: int, seed: int) -> bool:
    """The first part. Returns whether all checked answers were right."""
    market = Market(seed)
    _say(console, "Palio", "bold")
    _say(
        console,
        f"{filters:,} subscribers each said with a filter what they want to hear. For {seconds:g} s, trades "
        f"of {len(market.symbols)} made-up stocks stream in, and every trade finds its subscribers by its "
        "content.",
    )
    started = time.perf_counter()
    texts = dict(enumerate(filter_texts(filters, market, seed), start=1))
    index = MatchIndex((id, text) for id, text in texts.items())
    _say(console, f"Read {plural(filters, 'filter')} in {time.perf_counter() - started:.1f} s.\n", "dim")
    stream = _Stream(index, texts, seconds)
    _run(console, market, stream)
    right = _check(console, stream)
    _show_covering(console, index)
    _part(console, stream, texts)
    return right


class _Stream:
    """What has happened so far, and the sample of answers that is checked at the end."""

    def __init__(self, index: MatchIndex, texts: dict[int, str], seconds: float) -> None:
        self.index = index
        self.texts = texts
        self.seconds = seconds
        self._same: defaultdict[str, list[int]] = defaultdict(list)  # subscribers may want the same
        for id, text in texts.items():
            self._same[text].append(id)
        self.started = time.perf_counter()
        self.events = 0
        self.matches = 0
        self.counts: Counter[int] = Counter()
        self.newest: tuple[Notification, list[int]] | None = None
        self.checks: list[tuple[Notification, list[int]]] = []
        self.check_every = 1
        self._ticks: deque[tuple[float, int]] = deque([(self.started, 0)])

    @property
    def elapsed(self) -> float:
        return time.perf_counter() - self.started

    def take(self, event: Notification) -> None:
        found: list[int] = self.index.match(event)
        if self.events % self.check_every == 0:
            self.checks.append((event, found))
            if len(self.checks) > _MAX_CHECKS:
                # Twice as rare from now on, and as if it had been so from the beginning.
                self.checks = self.checks[::2]
                self.check_every *= 2
        self.events += 1
        self.matches += len(found)
        self.counts.update(found)
        if found:
            self.newest = event, found

    def rate(self) -> float:
        """Events a second over the last moments."""
        now = time.perf_counter()
        self._ticks.append((now, self.events))
        while len(self._ticks) > 2 and now - self._ticks[0][0] > _RATE_WINDOW_SECONDS:
            self._ticks.popleft()
        then, before = self._ticks[0]
        return (self.events - before) / (now - then) if now > then else 0.0

    def busiest(self, most: int) -> list[tuple[str, int, int]]:
        """Different filters, how many subscribers have each, and how many events match it; busiest first."""
        ranked = dict.fromkeys(self.texts[id] for id, _ in self.counts.most_common())
        same = [(text, self._same[text]) for text in itertools.islice(ranked, most)]
        return [(text, len(ids), self.counts[ids[0]]) for text, ids in same]

    @property
    def matches_per_event(self) -> float:
        return self.matches / self.events if self.events else 0.0

    def line(self, elapsed: float) -> str:
        return (
            f"{elapsed:5.1f} s  {self.events:>9,} events  {self.matches:>11,} matches  "
            f"{self.rate():>9,.0f} events/s  {self.matches_per_event:6.1f} matches/event"
        )


def _run(console: Console, market: Market, stream: _Stream) -> None:
    """Panels that change where there is a terminal, and elsewhere a line from time to time."""
    panels = Live(_view(stream), console=console, auto_refresh=False) if console.is_terminal else nullcontext()
    every = 1 / _REFRESHES_PER_SECOND if console.is_terminal else _SECONDS_PER_PLAIN_LINE
    shown = 0.0
    with panels as live:
        for event in market.events():
            stream.take(event)
            elapsed = stream.elapsed
            if elapsed - shown >= every or elapsed >= stream.seconds:
                shown = elapsed
                if live is not None:
                    live.update(_view(stream), refresh=True)
                else:
                    _say(console, stream.line(elapsed))
            if elapsed >= stream.seconds:
                return


def _view(stream: _Stream) -> Group:
    figures = Table.grid(expand=True)
    for _ in range(4):
        figures.add_column(justify="center", ratio=1)
    numbers = (
        f"{stream.events:,}",
        f"{stream.matches:,}",
        f"{stream.rate():,.0f}",
        f"{stream.matches_per_event:.1f}",
    )
    figures.add_row(*(Text(number, style="bold green") for number in numbers))
    figures.add_row(*(Text(name, style="dim") for name in ("events", "matches", "events/s", "matches/event")))
    remaining = stream.seconds - stream.elapsed
    left = f"{remaining:.0f} s left" if remaining > 0 else "done"
    busiest = Table(expand=True, box=None, show_edge=False, header_style="dim")
    busiest.add_column("matches", justify="right", width=8)
    busiest.add_column("of", justify="right", width=4)
    busiest.add_column("busiest filters", ratio=1, no_wrap=True, overflow="ellipsis")
    ranking = stream.busiest(_BUSIEST)
    for text, subscribers, count in ranking:
        busiest.add_row(f"{count:,}", f"{subscribers:,}", Text(text, style="cyan"))
    for _ in range(_BUSIEST - len(ranking)):
        busiest.add_row("", "", "")  # the panels must not jump while the ranking fills
    return Group(
        Panel(figures, title="the stream", subtitle=left, border_style="blue"),
        Panel(busiest, border_style="blue"),
        Panel(_newest(stream), title="newest matched event", border_style="blue"),
    )


def _newest(stream: _Stream) -> Text:
    if stream.newest is None:
        return Text("none yet\n", style="dim")
    event, found = stream.newest
    text = Text(event.to_json(), no_wrap=True, overflow="ellipsis")
    others = f", and {len(found) - 1:,} more" if len(found) > 1 else ""
    text.append(f"\nsatisfies {stream.texts[found[0]]}{others}", style="dim")
    return text


def _check(console: Console, stream: _Stream) -> bool:
    """Ask every filter about the sampled events, as the definition says, and compare."""
    filters: list[tuple[int, Filter]] = [(id, stream.index[id]) for id in stream.texts]
    wrong = [
        event
        for event, found in stream.checks
        if {id for id, filter in filters if filter.matches(event)} != set(found)
    ]
    every = "every event" if stream.check_every == 1 else f"one event in {stream.check_every:,}"
    checked = (
        f"{plural(len(stream.checks), 'answer')} checked ({every}) against all {plural(len(filters), 'filter')}"
    )
    if wrong:
        _say(console, f"✗ {checked}: {len(wrong):,} wrong!", "bold red")
        _say(console, f"  {wrong[0].to_json()}")
    else:
        _say(console, f"✓ {checked}: all right.", "bold green")
    return not wrong


def _show_covering(console: Console, index: MatchIndex) -> None:
    """How many filters a network need not hear of, because another one says it already."""
    filters = [index[id] for id in itertools.islice(index, _MAX_COMPARED)]
    needless = 1 - len(Poset(filters).roots()) / len(filters)
    _say(
        console,
        f"✓ {needless:.0%} of {plural(len(filters), 'filter')} lie within another one: "
        "brokers need not be told of them.",
        "green",
    )


def _part(console: Console, stream: _Stream, texts: dict[int, str]) -> None:
    palio = _program()
    commands = [f"{palio} match -f examples/filters.jsonl -e examples/events.jsonl", f"{palio} --help"]
    if stream.newest is not None:
        event, found = stream.newest
        commands.insert(0, shlex.join((palio, "explain", texts[found[0]], event.to_json())))
    _suggest(console, "Try next", commands)


def _part_from_network(console: Console) -> None:
    calls = ("up", "sub 'price > 100'", "pub symbol=ACME price=101.5")
    _suggest(console, "Your own broker", [f"{_program()} {call}" for call in calls])


def _suggest(console: Console, title: str, commands: list[str]) -> None:
    _say(console, f"\n{title}", "bold")
    for command in commands:
        # Never broken by us: it is meant to be copied.
        console.print(f"  {command}", style="cyan", soft_wrap=True)


def _program() -> str:
    # `make demo` runs the program from where it is installed, which need not be on the path.
    return "palio" if shutil.which("palio") else os.path.relpath(sys.argv[0])


def _say(console: Console, sentence: str, style: str = "") -> None:
    console.print(sentence, style=style, soft_wrap=not console.is_terminal)
