"""What the runs say: tables, and whether the bars are met.

A machine is never quiet, so systems take turns, and of each the best and the median of its rounds are shown.
The ratio to NATS is that of the medians, and in brackets that of the best.
"""

from __future__ import annotations

import statistics

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from benchmarks.live.content import EVENT_BYTES
from benchmarks.live.run import Run, Scenario, System
from palio.cli.bench.measuring import duration

NATS = "NATS"
AGAINST_NATS = 1.3
DURABLE_RATE = 20_000
LATENCY = 0.0005
JUDGED_FILTERS = 100_000
JUDGED_MINUTES = 10
WIDTH = 120  # of the tables, where there is no terminal to say

Results = dict[str, list[Run]]  # by the label of the system


def show(console: Console, scenario: Scenario, results: Results) -> None:
    console.print(Text(_title(scenario), style="bold"))
    if scenario.is_timed:
        _show_latency(console, results)
    elif scenario.is_durable:
        _show_durable(console, results)
    else:
        _show_rates(console, scenario, results)
    _show_losses(console, results)


def _title(scenario: Scenario) -> str:
    if scenario.is_timed:
        return f"{scenario.name}: {scenario.rate:,.0f} events a second, one publisher, one subscriber"
    if scenario.is_durable:
        calls = f"{scenario.group} events a call" if scenario.group > 1 else "one event a call"
        return f"{scenario.name}: {calls}, up to {scenario.in_flight:,} events unconfirmed"
    return scenario.name


def _table(*titles: str) -> Table:
    table = Table(header_style="dim", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("", no_wrap=True)
    for title in titles:
        table.add_column(title, justify="right", no_wrap=True)
    return table


def _cpu(runs: list[Run]) -> str:
    sides = ("publisher_cpu", "server_cpu", "subscriber_cpu", "background_cpu")
    figures = [statistics.median(getattr(run, side) for run in runs) * 1e6 for side in sides]
    return " ".join(f"{figure:5.1f}" for figure in figures)


def _show_rates(console: Console, scenario: Scenario, results: Results) -> None:
    table = _table("events", "best/s", "median/s", "MB/s", "to NATS (best)", "CPU µs: pub  srv   sub   bg")
    for label, runs in results.items():
        median = statistics.median(run.rate for run in runs)
        table.add_row(
            label,
            f"{runs[0].events:,}",
            f"{max(run.rate for run in runs):,.0f}",
            f"{median:,.0f}",
            f"{median * scenario.subscribers * EVENT_BYTES / 1e6:,.1f}",
            _ratio(results, label),
            _cpu(runs),
        )
    console.print(table)


def ratio_to_nats(results: Results, label: str) -> tuple[float, float] | None:
    """Of the medians, and of the best; None without NATS."""
    if NATS not in results or label not in results:
        return None
    ours, theirs = ([run.rate for run in results[name]] for name in (label, NATS))
    return statistics.median(ours) / statistics.median(theirs), max(ours) / max(theirs)


def _ratio(results: Results, label: str) -> str:
    ratio = ratio_to_nats(results, label)
    return "" if ratio is None else f"{ratio[0]:.2f} ({ratio[1]:.2f})"


def _show_durable(console: Console, results: Results) -> None:
    table = _table("events", "best/s", "median/s", "confirmed/s", "CPU µs: pub  srv   sub   bg")
    for label, runs in results.items():
        table.add_row(
            label,
            f"{runs[0].events:,}",
            f"{max(run.rate for run in runs):,.0f}",
            f"{statistics.median(run.rate for run in runs):,.0f}",
            f"{statistics.median(run.confirmed_rate for run in runs):,.0f}",
            _cpu(runs),
        )
    console.print(table)


def _show_latency(console: Console, results: Results) -> None:
    table = _table("median: best", "median", "99 %: best", "median", "reached/s", "CPU µs: pub  srv   sub   bg")
    for label, runs in results.items():
        table.add_row(
            label,
            duration(min(run.median for run in runs)),
            duration(statistics.median(run.median for run in runs)),
            duration(min(run.high for run in runs)),
            duration(statistics.median(run.high for run in runs)),
            f"{statistics.median(run.rate for run in runs):,.0f}",
            _cpu(runs),
        )
    console.print(table)


def _show_losses(console: Console, results: Results) -> None:
    """Every event that should have arrived was counted."""
    complete = True
    for label, runs in results.items():
        lost, missing = sum(run.lost for run in runs), sum(run.background_missing for run in runs)
        if lost:
            complete = False
            share = lost / (lost + sum(run.delivered for run in runs))
            console.print(Text(f"  {label} lost {lost:,} deliveries ({share:.2%}).", style="red"))
        if missing:
            complete = False
            console.print(Text(f"  {label}: the background client missed {missing:,} matches.", style="red"))
    if complete:
        console.print(Text("  Every event arrived at every subscriber, once.\n", style="dim"))


class Bars:
    """What is to be reached, and whether it was."""

    def __init__(self, *, judged: bool) -> None:
        self._judged = judged
        self._lines: list[tuple[str, str, bool | None]] = []

    def judge(self, scenario: Scenario, results: Results, systems: list[System]) -> None:
        if scenario.is_timed:
            self._latency(results, systems)
        elif scenario.is_durable:
            self._durable(scenario, results)
        elif scenario.publishers == 1:
            self._rate(scenario, results, systems)

    def memory(self, minutes: float, growth: float, limit: float) -> None:
        bar = f"memory flat over {minutes:g} minutes (grows by less than {limit:.0%})"
        self._lines.append((bar, f"{growth:+.1%}", growth < limit if minutes >= JUDGED_MINUTES else None))

    def _rate(self, scenario: Scenario, results: Results, systems: list[System]) -> None:
        label = _most_filters(systems)
        bar = f"{scenario.name}, {label}: {AGAINST_NATS} times NATS"
        ratio = ratio_to_nats(results, label)
        if ratio is None:
            self._lines.append((bar, "NATS is not there", None))
        else:
            judged = _filters(systems, label) >= JUDGED_FILTERS
            self._lines.append(
                (bar, f"{ratio[0]:.2f} ({ratio[1]:.2f})", ratio[0] >= AGAINST_NATS if judged else None)
            )

    def _latency(self, results: Results, systems: list[System]) -> None:
        for label, runs in results.items():
            if label == _most_filters(systems):
                median = statistics.median(run.median for run in runs)
                bar = f"median latency, {label}: under {duration(LATENCY)}"
                self._lines.append((bar, duration(median), median < LATENCY))

    def _durable(self, scenario: Scenario, results: Results) -> None:
        for label, runs in results.items():
            rate = statistics.median(min(run.rate, run.confirmed_rate) for run in runs)
            met = rate >= DURABLE_RATE if "SQLite" in label and scenario.group > 1 else None
            self._lines.append(
                (
                    f"{scenario.name}, {label}: {DURABLE_RATE:,} a second",
                    f"{rate:,.0f}",
                    met,
                )
            )

    def show(self, console: Console) -> None:
        table = _table("measured", "")
        words = {True: Text("met", "green"), False: Text("missed", "red"), None: Text("no bar", "dim")}
        for bar, measured, met in self._lines:
            table.add_row(Text(bar), measured, words[met if self._judged else None])
        console.print(table)


def _filters(systems: list[System], label: str) -> int:
    return next(one.background.count for one in systems if one.label == label)


def _most_filters(systems: list[System]) -> str:
    ours = [one for one in systems if one.background.name == "keys" and one.label.startswith("Palio")]
    return max(ours, key=lambda one: one.background.count).label
