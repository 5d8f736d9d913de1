"""How fast a broker is: `palio bench broker [--scenario S] [--rounds N] [--events N] [--filters N] [--quick]`.

Ours, nats-server (with nats-py) and mosquitto (with paho-mqtt) in the same run, where they are installed. Each
server, publisher and subscriber is a process of its own, with the ordinary Python client of its system. Events
are 200 bytes; ours are a dict that the client encodes and the broker reads, and subscribers read an attribute
of. Those that do not look into events get 200 bytes made beforehand, of which subscribers read two fixed
places: that favours them. With `--payload json` they carry the same content as JSON.

Our broker has background filters, all different, of one further client that gets what they select (the ranges
of values are so wide that one event in ten satisfies one of 100 thousand). All publishers keep to the same
window (see `live.parties`), servers and clients may all hold more than that, and every event is counted where
it should arrive. Systems take turns, round by round.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import signal
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec
from rich.console import Console
from rich.text import Text

from benchmarks.live import of_palio, report, servers
from benchmarks.live.content import EVENT_BYTES, SHARE, WANTED, Background, StockBackground
from benchmarks.live.memory import watch_memory
from benchmarks.live.parties import WINDOW
from benchmarks.live.postgresql import postgresql
from benchmarks.live.run import Scenario, System
from palio.cli.bench.measuring import machine, show_setup
from palio.cli.program.terminal import error_console

FILTERS = (1, 10_000, 100_000)
STOCK_FILTERS = 10_000
ROUNDS = 3
RATE = 10_000.0
# What takes minutes for what others do in seconds gets this part of the events: mosquitto, and the stock
# workload, where an event satisfies some fifty filters of the background client.
SLOW_PACE = 0.2

SCENARIOS = {
    "one-to-one": Scenario("one to one", 1, 1, 200_000),
    "one-to-ten": Scenario("one to ten", 1, 10, 50_000),
    "ten-to-ten": Scenario("ten to ten", 10, 10, 50_000),
    "latency": Scenario("latency", 1, 1, 50_000, rate=RATE),
    "durable": Scenario("durable", 1, 1, 50_000, in_flight=4_000, group=250),
    "durable-single": Scenario("durable, single", 1, 1, 25_000, in_flight=2_000),
}
QUICK = {"events": 2_000, "filters": [1, 200], "stock": 100, "rounds": 1}


class Started:
    """All servers that are up, and what is missing."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        self._stack = stack
        self._folder = folder
        self.systems: list[System] = []
        self.durable: list[System] = []
        self.absent: list[str] = []

    def _place(self) -> Path:
        return Path(tempfile.mkdtemp(dir=self._folder))

    def _keep(self, systems: list[System], system: System) -> None:
        self._stack.callback(system.stop)
        systems.append(system)

    def palio(self, background: Background, label: str, pace: float = 1.0) -> None:
        server = servers.start_palio(self._place(), journal=False)
        system = System(
            label, server, of_palio.publish, of_palio.subscribe,
            background=background, crowd=of_palio.Crowd, pace=pace,
        )  # fmt: skip
        self._keep(self.systems, system)

    def palio_durable(self, label: str, store: str = "") -> None:
        server = servers.start_palio(self._place(), journal=True, sync="full", store=store)
        self._keep(self.durable, System(label, server, of_palio.publish, of_palio.subscribe))

    def nats(self) -> None:
        if self._installed("nats-server", "nats", "nats-py"):
            from benchmarks.live import of_nats  # noqa: PLC0415 (where it is installed)

            server = servers.start_nats(self._place())
            self._keep(self.systems, System(report.NATS, server, of_nats.publish, of_nats.subscribe))

    def mosquitto(self) -> None:
        if self._installed("mosquitto", "paho", "paho-mqtt"):
            from benchmarks.live import of_mosquitto  # noqa: PLC0415 (where it is installed)

            server = servers.start_mosquitto(self._place())
            system = System("mosquitto", server, of_mosquitto.publish, of_mosquitto.subscribe, pace=SLOW_PACE)
            self._keep(self.systems, system)

    def _installed(self, program: str, module: str, package: str) -> bool:
        missing = [
            name
            for name, there in (
                (program, servers.find(program)),
                (package, importlib.util.find_spec(module)),
            )
            if not there
        ]
        if missing:
            self.absent.append(f"{program} is left out: {' and '.join(missing)} not installed")
        return not missing


def version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def setup(arguments: argparse.Namespace) -> dict[str, object]:
    return {
        **machine(),
        "palio": f"{version('palio')}, server and clients on uvloop {version('uvloop')}",
        "nats": f"{servers.version_of('nats-server', '-v')}, nats-py {version('nats-py')} on uvloop, callback",
        "mqtt": f"{servers.version_of('mosquitto', '-h')}, paho-mqtt {version('paho-mqtt')}, QoS 0, callback",
        "sqlite": sqlite3.sqlite_version,
        "event": f"{EVENT_BYTES} bytes; others carry {arguments.payload}",
        "read": f"ours: {WANTED}, `async for`, one attribute; others: subject bench, the same field",
        "filters": f"key = … and value between …, a {SHARE:.0%} range each; {arguments.stock:,} of stock",
        "window": arguments.window,
        "pending": f"{servers.PENDING_BYTES // 2**20} MiB a subscriber, all servers",
        "journal": "off, but for durable: SQLite (WAL) and PostgreSQL, sync full, group commit",
        "durable": "1,000 deliveries unacknowledged, publishers 8,000 events ahead at the most",
        "rounds": arguments.rounds,
    }


def parsed(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="palio bench broker", description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--scenario", action="append", choices=SCENARIOS, help="one of them, repeatable (default: all)")
    add("--system", action="append", choices=("palio", "nats", "mosquitto"), help="default: all; repeatable")
    add("--rounds", type=int, help=f"how often each is measured (default {ROUNDS})")
    add("--events", type=int, help="events of one to one; the other scenarios have their part of it")
    add("--filters", type=int, action="append", help=f"background filters, repeatable (default {FILTERS})")
    add("--stock", type=int, help=f"filters of the stock workload (default {STOCK_FILTERS:,}; 0: none)")
    add("--window", type=int, default=WINDOW, help=f"events under way (default {WINDOW:,}; 0: no limit)")
    add("--payload", choices=("fixed", "json"), default="fixed", help="what the others carry")
    add("--no-postgresql", action="store_true", help="durable: SQLite only")
    add("--memory", type=float, metavar="MINUTES", help="only this: the broker's memory under sustained load")
    add("--folder", type=Path, help="where journals are put (default: a temporary folder)")
    add("--quick", action="store_true", help="a few seconds, small; its figures mean nothing")
    arguments = parser.parse_args(words)
    usual = QUICK if arguments.quick else {"filters": [*FILTERS], "stock": STOCK_FILTERS, "rounds": ROUNDS}
    for name, value in usual.items():
        if getattr(arguments, name) is None:
            setattr(arguments, name, value)
    arguments.scenario = arguments.scenario or list(SCENARIOS)
    arguments.system = arguments.system or ["palio", "nats", "mosquitto"]
    return arguments


def chosen(arguments: argparse.Namespace) -> list[Scenario]:
    part = arguments.events / SCENARIOS["one-to-one"].events if arguments.events else 1.0
    return [
        msgspec.structs.replace(SCENARIOS[name], events=max(100, round(SCENARIOS[name].events * part)))
        for name in arguments.scenario
    ]


def start(arguments: argparse.Namespace, stack: ExitStack, folder: Path, scenarios: list[Scenario]) -> Started:
    started = Started(stack, folder)
    if any(one.is_durable for one in scenarios) and "palio" in arguments.system:
        started.palio_durable("Palio, SQLite")
        if not arguments.no_postgresql:
            url = postgresql(stack, started.absent)
            if url is not None:
                started.palio_durable("Palio, PostgreSQL", url)
    if any(not one.is_durable for one in scenarios):
        steps: dict[str, list[Callable[[], None]]] = {
            "palio": [
                *[_filtered(started, count) for count in arguments.filters],
                *([_stock(started, arguments.stock)] if arguments.stock else []),
            ],
            "nats": [started.nats],
            "mosquitto": [started.mosquitto],
        }
        for name in arguments.system:
            for step in steps[name]:
                step()
        for system in started.systems:
            system.await_background()
    return started


def _filtered(started: Started, count: int) -> Callable[[], None]:
    noun = "filter" if count == 1 else "filters"
    return lambda: started.palio(Background(count), f"Palio, {count:,} {noun}")


def _stock(started: Started, count: int) -> Callable[[], None]:
    return lambda: started.palio(StockBackground(count), f"Palio, stock, {count:,}", SLOW_PACE)


def main(words: Sequence[str] | None = None) -> None:
    arguments = parsed(words)
    # Whoever ends this with a signal ends the servers with it, in order.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    console = Console()
    if not console.is_terminal:
        console = Console(width=report.WIDTH)
    bars = report.Bars(judged=not arguments.quick)
    scenarios = chosen(arguments)
    show_setup(console, setup(arguments))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=arguments.folder)))
        if arguments.memory:
            watch_memory(console, bars, folder, arguments)
            bars.show(console)
            return
        told = stack.enter_context(error_console().status("Servers are started, filters registered."))
        started = start(arguments, stack, folder, scenarios)
        for sentence in started.absent:
            console.print(Text(f"{sentence}.", style="yellow"))
        for scenario in scenarios:
            systems = started.durable if scenario.is_durable else started.systems
            results: report.Results = {system.label: [] for system in systems}
            for number in range(arguments.rounds):
                for system in systems:
                    told.update(f"{scenario.name}, round {number + 1}: {system.label}")
                    run = system.run(scenario, window=arguments.window, json=arguments.payload == "json")
                    results[system.label].append(run)
            report.show(console, scenario, results)
            bars.judge(scenario, results, systems)
    bars.show(console)


if __name__ == "__main__":
    main()
