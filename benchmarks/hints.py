"""What hints change for an index: `python -m benchmarks.hints --filters 100000`.

Two skewed workloads, of the kind where counting filters misleads: what every filter names is rare among
events, and what few filters name is in every event.

- `gauges`: every event has ten gauges, one in a hundred an alarm. Each filter wants a range of the alarm's code
  and a range of one gauge. A tenth of the filters name each gauge, all name the code.
- `levels`: one event in two hundred is critical. Each filter wants `level = "critical"`, a service and a zone,
  each of which fewer filters name, and a range of the load.

Three indexes get the same filters, all at once: one without hints, one with hints made from other events of the
same kind, and one that saw those events itself before the filters came (`learned`: what hints stand in for; its
filters come one by one, after the events). They are asked turn by turn about the same events, and must find the
same. Times are per event, the best of several rounds, on one thread.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.table import Table

import palio
from palio.matching.hints import AttributeHints, Hints

FILTERS = 100_000
EVENTS = 2_000
SEEN = 20_000
ROUNDS = 7
GAUGES, SERVICES, ZONES = 10, 40, 5

Event = dict[str, Any]


@dataclass(frozen=True)
class Workload:
    """How filters and events are drawn."""

    name: str
    filter: Callable[[random.Random], str]
    event: Callable[[random.Random], Event]


def _gauge_filter(draw: random.Random) -> str:
    code, gauge, low = draw.randrange(1_000), draw.randrange(GAUGES), draw.random() * 90
    return f"code between {code} and {code + 50} and gauge{gauge} between {low:.2f} and {low + 10:.2f}"


def _gauge_event(draw: random.Random) -> Event:
    event: Event = {f"gauge{number}": draw.random() * 100 for number in range(GAUGES)}
    if draw.random() < 0.01:
        event["code"] = draw.randrange(1_050)
    return event


def _level_filter(draw: random.Random) -> str:
    service, zone, load = draw.randrange(SERVICES), draw.randrange(ZONES), draw.random() * 90
    place = f'service = "s{service}" and zone = "z{zone}"'
    return f'level = "critical" and {place} and load between {load:.2f} and {load + 10:.2f}'


def _level_event(draw: random.Random) -> Event:
    level = "critical" if draw.random() < 0.005 else draw.choice(("info", "warning"))
    place = {"service": f"s{draw.randrange(SERVICES)}", "zone": f"z{draw.randrange(ZONES)}"}
    return {"level": level, **place, "load": draw.random() * 100}


WORKLOADS = (Workload("gauges", _gauge_filter, _gauge_event), Workload("levels", _level_filter, _level_event))


def hints_of(events: Sequence[Event]) -> Hints:
    """What `palio spark stats --hints` would say of these events."""
    present = Counter(name for event in events for name in event)
    texts: dict[str, Counter[str]] = {}
    for event in events:
        for name, value in event.items():
            if isinstance(value, str):
                texts.setdefault(name, Counter())[value] += 1
    return Hints(
        {
            name: AttributeHints(
                count / len(events),
                distinct=len(texts.get(name, ())),
                values=[
                    (value, many / len(events)) for value, many in texts.get(name, Counter()).most_common(256)
                ],
            )
            for name, count in present.items()
        },
        events=len(events),
    )


@dataclass
class Measured:
    """Microseconds an event; `found` is how many pairs there were."""

    workload: str
    index: str
    single: float
    batch: float
    groups: int
    found: int


def measure(workload: Workload, count: int, events: int, *, seed: int = 1) -> list[Measured]:
    """One workload. Raises AssertionError if two indexes find different things."""
    draw = random.Random(seed)
    filters = [palio.Filter.parse(workload.filter(draw)) for _ in range(count)]
    seen = [workload.event(draw) for _ in range(SEEN)]
    asked = [workload.event(draw) for _ in range(events)]
    indexes = {
        "without hints": palio.MatchIndex(enumerate(filters)),
        "with hints": palio.MatchIndex(enumerate(filters), hints=hints_of(seen)),
        "learned": _learned(filters, seen),
    }
    notifications = [palio.Notification.of_values(event) for event in asked]
    names = dict.fromkeys(name for event in asked for name in event)
    table = pa.table({name: [event.get(name) for event in asked] for name in names})
    wanted = [sorted(one.match(event)) for one in [indexes["without hints"]] for event in notifications]
    results = []
    for name, index in indexes.items():
        assert [sorted(index.match(event)) for event in notifications] == wanted, (
            f"{name} finds something else."
        )
        facts = index.statistics()
        results.append(
            Measured(workload.name, name, 1e9, 1e9, getattr(facts, "groups", 0), sum(map(len, wanted)))
        )
    for _ in range(ROUNDS):  # turn by turn, so that a busy machine is busy for all
        for one, index in zip(results, indexes.values(), strict=True):
            start = time.perf_counter()
            for event in notifications:
                index.match(event)
            one.single = min(one.single, (time.perf_counter() - start) / events * 1e6)
            start = time.perf_counter()
            rows, _ = index.match_batch(table)
            one.batch = min(one.batch, (time.perf_counter() - start) / events * 1e6)
            assert len(rows) == one.found
    return results


def _learned(filters: Sequence[palio.Filter], seen: Sequence[Event]) -> palio.MatchIndex:
    """An index that knows the events: a few filters make it look at all attributes, and go again."""
    index = palio.MatchIndex()
    few = range(min(len(filters), 2_000))
    for id in few:
        index.add(id, filters[id])
    for event in seen:
        index.match(palio.Notification.of_values(event))
    for id in few[: len(few) - 200]:  # some stay, and with them what is known of their values
        index.remove(id)
    for id, filter in enumerate(filters):
        if id not in index:
            index.add(id, filter)
    return index


def run(count: int = FILTERS, events: int = EVENTS, console: Console | None = None) -> list[Measured]:
    """Measure both workloads and print; returns what was measured."""
    console = console or Console(width=120)
    shown = Table(title=f"Hints: {count:,} filters, {events:,} events; µs an event, best of {ROUNDS} rounds")
    for name in ("workload", "index", "single µs", "times", "batch µs", "times", "groups", "matches"):
        shown.add_column(name, justify="left" if name in ("workload", "index") else "right")
    results = []
    for workload in WORKLOADS:
        _progress(f"{workload.name}: building and measuring {count:,} filters")
        several = measure(workload, count, events)
        before = several[0]
        for one in several:
            shown.add_row(
                one.workload, one.index, f"{one.single:.2f}", f"{before.single / one.single:.1f}",
                f"{one.batch:.2f}", f"{before.batch / one.batch:.1f}", f"{one.groups:,}", f"{one.found:,}",
            )  # fmt: skip
        results += several
    _progress("")
    console.print(
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}; "
        f"index: {palio.MatchIndex.__module__}"
    )
    console.print(shown)
    console.print("times: how many times as fast as the same index without hints; all three find the same.")
    return results


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="palio bench hints", description=__doc__.splitlines()[0])
    parser.add_argument("--filters", type=int, default=FILTERS)
    parser.add_argument("--events", type=int, default=EVENTS)
    chosen = parser.parse_args(arguments)
    run(chosen.filters, chosen.events)


if __name__ == "__main__":
    main()
