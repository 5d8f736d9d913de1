"""How measurements are taken and shown, whatever is measured.

A number alone says more about the machine than about us, so each stands beside a yardstick: a well-known
piece of work of the same kind, done in the same run on the same data. The ratio travels between machines.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from typing import Any

import msgspec
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

# The best of several rounds: whatever else the machine does can only make a round slower.
_ROUNDS = 5

Work = Callable[[], object]


class Measurement(msgspec.Struct, frozen=True):
    """The time for one piece of work, ours and the yardstick's, in seconds."""

    what: str
    seconds: float
    yardstick: str
    yardstick_seconds: float

    @property
    def ratio(self) -> float:
        """How many times as long as the yardstick ours takes."""
        return self.seconds / self.yardstick_seconds


def measure(
    what: str, work: Work, yardstick: str, yardstick_work: Work, *, pieces: int, seconds: float
) -> Measurement:
    """Both sides do `pieces` pieces of work in one call; `seconds` is about how long each side may take."""
    return Measurement(
        what, best_time(work, seconds) / pieces, yardstick, best_time(yardstick_work, seconds) / pieces
    )


def best_time(work: Work, seconds: float) -> float:
    """The time of one call, the best of several rounds of as many calls as fit."""
    first = _time(work, 1)
    if first >= seconds:
        return min(first, _time(work, 1))  # once cold, once warm: there is no time for more
    calls = max(1, int(seconds / _ROUNDS / first))
    return min(_time(work, calls) for _ in range(_ROUNDS)) / calls


def _time(work: Work, calls: int) -> float:
    started = time.perf_counter()
    for _ in range(calls):
        work()
    return time.perf_counter() - started


def machine() -> dict[str, Any]:
    """On what the measurements were taken."""
    return {
        "cpu": _processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.release()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            models = (line.partition(":")[2].strip() for line in file if line.startswith("model name"))
            return next(models, "") or platform.machine()
    except OSError:
        return platform.processor() or platform.machine()


def document(setup: dict[str, Any], measurements: list[Measurement]) -> dict[str, Any]:
    """All of it, for machines; times in nanoseconds."""
    return {
        "setup": setup,
        "measurements": [
            {
                "what": one.what,
                "nanoseconds": round(one.seconds * 1e9, 1),
                "yardstick": one.yardstick,
                "yardstick_nanoseconds": round(one.yardstick_seconds * 1e9, 1),
                "ratio": round(one.ratio, 3),
            }
            for one in measurements
        ],
    }


def show_setup(console: Console, setup: dict[str, Any]) -> None:
    for name, value in setup.items():
        shown = f"{value:,}" if type(value) is int else str(value)
        console.print(Text.assemble((f"{name:>8}  ", "dim"), shown))
    console.print()


def show(console: Console, measurements: list[Measurement]) -> None:
    table = Table(header_style="dim", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("what")
    table.add_column("Palio", justify="right", no_wrap=True, style="bold green")
    table.add_column("yardstick", justify="right", no_wrap=True)
    table.add_column("ratio", justify="right", no_wrap=True)
    table.add_column("the yardstick", style="dim")
    for one in measurements:
        table.add_row(
            Text(one.what),
            duration(one.seconds),
            duration(one.yardstick_seconds),
            times(one.ratio),
            Text(one.yardstick),
        )
    console.print(table)


def times(ratio: float) -> str:
    """`37 ×`, `2.2 ×`, and for what takes a fraction of the yardstick's time `1/112 ×`."""
    if ratio < 0.5:
        return f"1/{1 / ratio:,.0f} ×"
    return f"{ratio:,.0f} ×" if ratio >= 10 else f"{ratio:.1f} ×"


def duration(seconds: float) -> str:
    """With three digits that mean something, in the unit that suits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.0f} ns"
