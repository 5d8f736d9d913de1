"""What one hostile client costs all others: `palio bench neighbours [--attack A] [--seconds N] [--quick]`.

One broker as `palio up` starts it, with rights, a journal and HTTP; a well-behaved client, in its own process,
that publishes 20 confirmed events every 10 ms and takes them; and a hostile one, another principal, that does
one of the attacks of `live.attackers`. Each attack has a broker of its own. The yardstick is the same client at
the same broker in the seconds before: its latency (from the publish of a batch until its last event is back),
the events that were confirmed a second; and the broker's resident memory, beside the bound that it says itself
(`palio up`). Attackers are processes on the same
machine: part of what others wait for is the processor that these take, which no broker can give back. So beside
the table stands what the same client waits for while a process that has nothing to do with the broker computes.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from multiprocessing.sharedctypes import RawArray
from pathlib import Path
from typing import Any

import msgspec
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

import palio
from benchmarks.live import servers
from benchmarks.live.attackers import ATTACKS, Target
from palio.broker.access.rights import parse_rights, write_rights
from palio.broker.access.tokens import create_token
from palio.broker.memory import memory_bound
from palio.broker.settings import Limits, Settings
from palio.cli.bench.measuring import duration, machine, show_setup
from palio.cli.output.progress import progress_bar
from palio.cli.program.terminal import error_console

BATCH = 20
PACE = 0.01
SECONDS = 8.0
# The median may be so many times what it was, the 99th percentile so many, confirmed events this share.
MEDIAN, HIGH, CONFIRMED = 3.0, 10.0, 0.7
BUSY = "nothing of the broker: a process that computes"
# Bytes of memory that the broker may need at the most, for the two principals.
BOUND = sum([part.bytes for part in memory_bound(Settings(), 2)])
_MOST = 100_000  # batches that are noted
_PATIENCE = 120.0
_fork = multiprocessing.get_context("fork")


class Phase(msgspec.Struct, frozen=True):
    """How the well-behaved client fared for some seconds."""

    median: float
    high: float
    worst: float
    confirmed: float  # events a second

    @classmethod
    def of(cls, latencies: Sequence[float], seconds: float) -> Phase:
        """Of the batches that came back; what is still out when the time is over counts for all of it."""
        known = sorted(latencies) or [seconds]
        high = known[min(len(known) - 1, round(len(known) * 0.99))]
        return cls(statistics.median(known), high, known[-1], len(latencies) * BATCH / seconds)


Tell = Callable[[float], None]


class Row(msgspec.Struct, frozen=True):
    """An attack: before and under it, with the broker's memory in bytes: before, at most, and afterwards."""

    what: str
    before: Phase
    under: Phase
    memory: tuple[int, int, int]

    @property
    def is_met(self) -> bool:
        before, under = self.before, self.under
        return (
            under.median <= MEDIAN * before.median
            and under.high <= HIGH * before.high
            and under.confirmed >= CONFIRMED * before.confirmed
            and self.memory[1] <= BOUND
        )


class Neighbour:
    """The well-behaved client: its process notes when each batch was published and how long it took."""

    def __init__(self, port: int, token: str) -> None:
        self._began = RawArray(ctypes.c_double, _MOST)
        self._took = RawArray(ctypes.c_double, _MOST)
        self._count = RawArray(ctypes.c_long, 1)
        self._process = _started(self._run, port, token)

    def _run(self, port: int, token: str) -> None:
        asyncio.run(self._publish_and_take(port, token))

    async def _publish_and_take(self, port: int, token: str) -> None:
        async with palio.connect(
            f"palio://127.0.0.1:{port}", token=token, name="neighbour", heartbeat=60.0
        ) as client:
            subscription = await client.subscribe("exists(neighbour)")
            for number in range(_MOST):
                began = self._began[number] = time.monotonic()
                batch = [{"neighbour": number, "place": place} for place in range(BATCH)]
                await client.publish(batch, timeout=_PATIENCE)
                for _ in range(BATCH):
                    await subscription.next(timeout=_PATIENCE)
                self._took[number] = time.monotonic() - began
                self._count[0] = number + 1
                await asyncio.sleep(max(0.0, began + PACE - time.monotonic()))

    def observe(self, seconds: float, then: Callable[[], None] = lambda: None) -> Phase:
        """Look for so long. What began before the end and took longer is waited for."""
        first, until = self._count[0], time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(0.02)
            then()
        last, patience = self._count[0], time.monotonic() + _PATIENCE
        while self._count[0] == last and time.monotonic() < patience:
            time.sleep(0.02)
            then()
        took = self._took[first : self._count[0]]
        span = self._began[self._count[0] - 1] + took[-1] - self._began[first] if took else seconds
        return Phase.of(took, max(seconds, span))

    def stop(self) -> None:
        self._process.kill()
        self._process.join()


def _started(run: Callable[..., None], *arguments: Any) -> BaseProcess:
    def alone() -> None:
        servers.die_with_parent()
        run(*arguments)

    process = _fork.Process(target=alone, daemon=True)
    process.start()
    return process


def _attack(name: str, target: Target) -> None:
    asyncio.run(ATTACKS[name].attacker(target))


def _compute() -> None:
    while True:
        sum(range(1_000))


@contextmanager
def attacked(folder: Path) -> Iterator[tuple[servers.Server, Target, str]]:
    """A broker with two principals: the target of one, and the token of the other."""
    access = folder / "data" / "access"
    tokens = {}
    for who, may in (("mallory", "true"), ("neighbour", "exists(neighbour)")):
        write_rights(access, who, parse_rights(may, may, ("inspect",), who))
        tokens[who] = create_token(access, who, now=time.time())[1]
    http = servers.free_port()
    further = ["--authentication", "--http", f"127.0.0.1:{http}"]
    server = servers.start_palio(folder, journal=True, further=further, pending=Limits().outgoing)
    try:
        yield server, Target(server.port, http, tokens["mallory"]), tokens["neighbour"]
    finally:
        server.stop()


def phases(name: str) -> float:
    """How many times the seconds of a phase an attack takes: warming, before, filling, under, and after it."""
    return 3.25 + bool(name and ATTACKS[name].idle)


def measure(name: str, seconds: float, tell: Tell) -> Row:
    """One attack on a broker of its own; an empty name is a process that only computes. Tells seconds done."""
    with tempfile.TemporaryDirectory() as place, attacked(Path(place)) as (server, target, token):
        neighbour = Neighbour(server.port, token)
        most, began = 0, time.monotonic()

        def look() -> None:
            nonlocal most
            most = max(most, server.resident())
            tell(time.monotonic() - began)

        neighbour.observe(seconds / 4, look)  # everything is warm then
        before, memory = neighbour.observe(seconds, look), server.resident()
        attacker = _started(_attack, name, target) if name else _started(_compute)
        if name and ATTACKS[name].idle:
            neighbour.observe(seconds, look)  # while it fills what will be idle
        under = neighbour.observe(seconds, look)
        attacker.kill()
        attacker.join()
        neighbour.observe(seconds, look)
        neighbour.stop()
        after = server.resident()
    return Row(ATTACKS[name].what if name else BUSY, before, under, (memory, most, after))


def show(console: Console, rows: Sequence[Row]) -> None:
    table = Table(header_style="dim", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("what one client does")
    for title in (
        "median",
        "times",
        "99 %",
        "times",
        "worst",
        "confirmed",
        "MB: before",
        "most",
        "after",
        "bar",
    ):
        table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        before, under = row.before, row.under
        table.add_row(
            row.what,
            duration(under.median),
            f"{under.median / before.median:.1f}",
            duration(under.high),
            f"{under.high / before.high:.1f}",
            duration(under.worst),
            f"{under.confirmed / before.confirmed:.0%}",
            *[f"{one / 1e6:,.0f}" for one in row.memory],
            "" if row.what == BUSY else "met" if row.is_met else "missed",
        )
    console.print(table)


def parsed(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="palio bench neighbours", description=(__doc__ or "").partition("\n")[0]
    )
    add = parser.add_argument
    add("--attack", action="append", choices=ATTACKS, help="one of them, repeatable (default: all)")
    add(
        "--seconds",
        type=float,
        default=SECONDS,
        help=f"of each phase (default {SECONDS:g})",
    )
    add("--json", action="store_true", help="the rows as JSON")
    add("--quick", action="store_true", help="a few seconds, one attack; its figures mean nothing")
    arguments = parser.parse_args(words)
    if arguments.quick:
        arguments.seconds, arguments.attack = 0.5, ["inspect"]
    arguments.attack = arguments.attack or list(ATTACKS)
    return arguments


def main(words: Sequence[str] | None = None) -> None:
    arguments = parsed(words)
    console = Console(width=150, stderr=arguments.json)
    show_setup(
        console,
        {
            **machine(),
            "others": f"{BATCH} confirmed events every {PACE * 1_000:g} ms, published and taken by one client",
            "bar": f"median within {MEDIAN:g} times, 99th percentile within {HIGH:g} times what they were, "
            f"confirmed events at least {CONFIRMED:.0%}, memory at most {BOUND / 1e6:,.0f} MB",
            "seconds": arguments.seconds,
        },
    )
    rows: list[Row] = []
    names = ["", *arguments.attack]
    total = sum([phases(name) for name in names]) * arguments.seconds
    with progress_bar(error_console(), "attacking", round(total)) as advance:
        done = 0.0
        for name in names:
            rows.append(measure(name, arguments.seconds, lambda more, done=done: advance(round(done + more))))  # type: ignore[misc]
            done += phases(name) * arguments.seconds
    show(console, rows)
    if arguments.json:
        print(msgspec.json.encode(rows).decode())
    if not arguments.quick:
        missed = [row.what for row in rows[1:] if not row.is_met]
        console.print(f"Missed: {'; '.join(missed)}." if missed else "The bar is met under every attack.")


if __name__ == "__main__":
    main()
