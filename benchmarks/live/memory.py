"""The broker's memory under sustained load: flat, or growing?

One publisher, one subscriber, background filters, as fast as the window lets; the resident memory of the broker
is read all the time. What counts is the growth from the end of the first fifth, when all buffers have been used
once, until the end.
"""

from __future__ import annotations

import argparse
import statistics
import threading
from pathlib import Path

from rich.console import Console

from benchmarks.live import of_palio, servers
from benchmarks.live.content import Background
from benchmarks.live.report import Bars
from benchmarks.live.run import Scenario, System

FLAT = 0.03
_SAMPLES = 60


class Watch:
    """Samples of the memory of a server, until it is ended."""

    def __init__(self, server: servers.Server, interval: float) -> None:
        self.samples: list[int] = []
        self._server = server
        self._interval = interval
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    def _sample(self) -> None:
        while not self._ended.wait(self._interval):
            self.samples.append(self._server.resident())

    def end(self) -> None:
        self._ended.set()
        self._thread.join()


def watch_memory(console: Console, bars: Bars, folder: Path, arguments: argparse.Namespace) -> None:
    seconds = arguments.memory * 60
    server = servers.start_palio(folder, journal=False)
    system = System(
        "Palio", server, of_palio.publish, of_palio.subscribe,
        background=Background(max(arguments.filters)), crowd=of_palio.Crowd,
    )  # fmt: skip
    try:
        system.await_background()
        before = server.resident()
        watch = Watch(server, seconds / _SAMPLES)
        run = system.run(Scenario("memory", 1, 1, 1), window=arguments.window, json=False, seconds=seconds)
        watch.end()
    finally:
        system.stop()
    samples = watch.samples
    fifth = max(1, len(samples) // 5)
    early, late = (statistics.median(part) for part in (samples[fifth : 2 * fifth], samples[-fifth:]))
    console.print(f"  {run.events:,} events, {run.rate:,.0f} a second, {run.lost:,} lost")
    console.print(f"  before {before / 2**20:.1f} MiB; then, MiB:")
    console.print("  " + " ".join(f"{one / 2**20:.1f}" for one in samples))
    bars.memory(arguments.memory, late / early - 1.0, FLAT)
