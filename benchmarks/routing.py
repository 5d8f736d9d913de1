"""How fast messages are routed: `python -m benchmarks.routing [--network]`.

*One router.* It has 10 neighbours, on links that were greeted in the proper way, and 100 thousand subscriptions
in its table, which the neighbours told it of, half of them covered by others. Then notifications come in, one a
message, and in between 1 % of the table is replaced, one row a message. Neighbours acknowledge what they are
sent. `messages/s` counts all that the router handled. The yardsticks are of the same run: the same messages for
a router with the simple strategy, and the mere matching of a notification by asking every filter (on a
sample, multiplied up). All times are CPU times of the one thread.

*Simulation.* Messages per second that simulated brokers handle, with the oracle and the checks of the tables.

`--network` simulates one large network instead and says what it took: 1,000 brokers, 10 thousand subscriptions
of which half are covered, 10 thousand notifications, one seed, one core. The bar is 5 minutes.
"""

from __future__ import annotations

import argparse
import cProfile
import platform
import pstats
import random
import resource
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec
from rich.console import Console
from rich.table import Table

from benchmarks.poset import Conditions, as_filter, draw, narrower, stock
from palio.model.filter import Filter
from palio.model.notification import Notification
from palio.protocol.envelope import Envelope
from palio.protocol.peers import Acknowledge, Component, Forward, Hello, LinkKind, Row, Update
from palio.routing import Configuration, Router, Strategy
from palio.routing.effects import Effect, Send
from palio.routing.occurrences import LinkUp, Message
from palio.sim.run import simulate
from palio.sim.scenario import Scenario

NEIGHBOURS = 10
SUBSCRIPTIONS = 100_000
NOTIFICATIONS = 10_000
CHURN = 0.01
COVERED = 0.5
ROWS_IN_AN_UPDATE = 100
SCANNED_FILTERS = 2_000
SCANNED_NOTIFICATIONS = 20
BATCH = 64  # notifications in a message
NETWORK_BROKERS = 1_000
BAR_SECONDS = 300.0


class Traffic:
    """Neighbours around one router: what they tell it, and their answers. Times every message by its kind."""

    def __init__(self, strategy: Strategy) -> None:
        self.router = Router(Configuration(broker="here", strategy=strategy))
        self.seconds: dict[str, list[float]] = {}
        self.sent: Counter[str] = Counter()
        self._versions = [0] * NEIGHBOURS
        self._now = 0.0
        for number in range(NEIGHBOURS):
            self.tell(number, LinkUp(LinkKind.PEER, 1.0))
            name, terms = f"n{number}", self.router.configuration.terms
            self.tell(number, Hello(LinkKind.PEER, 1.0, terms, Component(name), (name,)))

    def tell(self, neighbour: int, message: Message) -> None:
        """Hand the router a message, and the acknowledgements of what it sends because of it."""
        self._now += 1e-6
        started = time.process_time()
        effects = self.router.handle(message, f"n{neighbour}", self._now)
        self.seconds.setdefault(type(message).__name__, []).append(time.process_time() - started)
        self._answer(effects)

    def update(self, neighbour: int, add: Sequence[Row], remove: Sequence[int] = ()) -> None:
        self._versions[neighbour] += 1
        self.tell(neighbour, Update(self._versions[neighbour], tuple(add), tuple(remove)))

    def _answer(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Send):
                self.sent[type(effect.message).__name__] += 1
                if isinstance(effect.message, Update):
                    self.tell(int(effect.broker[1:]), Acknowledge(effect.message.version))


class Measured(msgspec.Struct, frozen=True):
    """What one router did; times in microseconds."""

    strategy: str
    load_seconds: float
    messages: int
    seconds: float
    forward: float
    update: float
    sent: int
    batch: float

    @property
    def rate(self) -> float:
        return self.messages / self.seconds


def events(count: int, seed: int) -> list[Notification]:
    """Trades that have all attributes that the filters ask for."""
    choose = random.Random(f"events {seed}")
    names = ("price", "change", "volume", "open", "high", "low", "pe", "yield")
    symbols = [f"S{number:03}" for number in range(500)]
    weights = [1 / (rank + 1) for rank in range(len(symbols))]
    drawn = choose.choices(symbols, weights, k=count)
    return [
        Notification(
            {"symbol": symbol, "grade": choose.randint(1, 1_000_000)}
            | {name: round(choose.uniform(0, 1_000), 3) for name in names}
        )
        for symbol in drawn
    ]


def replacements(count: int, seed: int) -> Iterator[Filter]:
    """Filters to put in the place of others, half of them covered ones."""
    choose = random.Random(f"replacements {seed}")
    source = stock(choose)
    drawn: list[Conditions] = [next(source) for _ in range(100)]
    for _ in range(count):
        fresh = next(source)
        drawn.append(fresh)
        yield as_filter(narrower(choose, choose.choice(drawn)) if choose.random() < COVERED else fresh)


def measure(
    strategy: Strategy, filters: list[Filter], notifications: list[Notification], seed: int
) -> Measured:
    """Load a router, then time the mixture, then the notifications alone in batches."""
    traffic = Traffic(strategy)
    load_seconds = load(traffic, filters)
    traffic.seconds.clear()
    traffic.sent.clear()
    seconds = mix(traffic, filters, notifications, seed)
    return Measured(
        strategy.value,
        load_seconds,
        sum(map(len, traffic.seconds.values())),
        seconds,
        statistics.fmean(traffic.seconds["Forward"]) * 1e6,
        statistics.fmean(traffic.seconds["Update"]) * 1e6,
        traffic.sent["Update"],
        batches(traffic, notifications) / len(notifications) * 1e6,
    )


def load(traffic: Traffic, filters: list[Filter]) -> float:
    started = time.process_time()
    for start in range(0, len(filters), ROWS_IN_AN_UPDATE):
        rows = list(enumerate(filters[start : start + ROWS_IN_AN_UPDATE], start + 1))
        traffic.update(start // ROWS_IN_AN_UPDATE % NEIGHBOURS, rows)
    return time.process_time() - started


def mix(traffic: Traffic, filters: list[Filter], notifications: list[Notification], seed: int) -> float:
    changes = max(1, int(len(filters) * CHURN))
    gone = random.Random(f"mixture {seed}").sample(range(len(filters)), changes)
    new = list(replacements(changes, seed))
    every = max(1, len(notifications) // changes)
    started = time.process_time()
    for number, notification in enumerate(notifications):
        traffic.tell(number % NEIGHBOURS, Forward((envelope(number, notification),)))
        change, rest = divmod(number, every)
        if rest == 0 and change < changes:
            neighbour = gone[change] // ROWS_IN_AN_UPDATE % NEIGHBOURS
            traffic.update(neighbour, [(len(filters) + change + 1, new[change])], [gone[change] + 1])
    return time.process_time() - started


def batches(traffic: Traffic, notifications: list[Notification]) -> float:
    started = time.process_time()
    for start in range(0, len(notifications), BATCH):
        block = enumerate(notifications[start : start + BATCH], len(notifications) + start)
        message = Forward(tuple(envelope(number, one) for number, one in block))
        traffic.router.handle(message, f"n{start // BATCH % NEIGHBOURS}", 1.0)
    return time.process_time() - started


def envelope(number: int, notification: Notification) -> Envelope:
    return Envelope("far", number + 1, 0.0, 1, "far", notification)


def scan(filters: list[Filter], notifications: list[Notification]) -> float:
    """Microseconds to ask every filter about one notification."""
    sample, some = filters[:SCANNED_FILTERS], notifications[:SCANNED_NOTIFICATIONS]
    started = time.process_time()
    for notification in some:
        for filter in sample:
            filter.matches(notification)
    seconds = time.process_time() - started
    return seconds / len(some) * len(filters) / len(sample) * 1e6


def one_router(console: Console, subscriptions: int, count: int, seed: int) -> None:
    filters = draw("stock", subscriptions, COVERED, seed)
    notifications = events(count, seed)
    ours, simple = (
        measure(strategy, filters, notifications, seed) for strategy in (Strategy.COVERING, Strategy.SIMPLE)
    )
    scanned = scan(filters, notifications)
    table = Table(title="One router, 10 neighbours", title_justify="left")
    for title in (
        "strategy",
        "messages/s",
        "forward µs",
        "in batches µs",
        "update µs",
        "updates sent",
        "load s",
    ):
        table.add_column(title, justify="left" if title == "strategy" else "right", no_wrap=True)
    for one in (ours, simple):
        cells = (one.rate, one.forward, one.batch, one.update, one.sent, one.load_seconds)
        table.add_row(one.strategy, *(f"{cell:,.0f}" if cell >= 10 else f"{cell:.1f}" for cell in cells))
    console.print(table)
    console.print(
        f"covering beside simple: {ours.rate / simple.rate:.2f} × the messages a second; "
        f"simple sends {simple.sent / max(1, ours.sent):.1f} × as many updates.\n"
        f"Asking all {subscriptions:,} filters would take {scanned:,.0f} µs a notification: "
        f"{scanned / ours.forward:,.0f} × what a forward takes.\n"
    )


def simulation(console: Console, seed: int) -> None:
    scenario = Scenario(
        seed=seed, brokers=100, subscribers=100, subscriptions=300, publishers=50, notifications=1_000,
        interests=100, covered=0.5, churn=0.1,
    )  # fmt: skip
    started = time.process_time()
    outcome = simulate(scenario).outcome()
    seconds = time.process_time() - started
    console.print(
        f"Simulation of 100 brokers: {outcome.simulated_messages:,} messages in {seconds:.1f} s "
        f"with all checks: {outcome.simulated_messages / seconds:,.0f} messages/s; "
        f"{outcome.violations} violations."
    )


def network(console: Console, brokers: int, topology: str, seed: int, *, profiled: bool) -> None:
    scenario = msgspec.convert(
        {
            "seed": seed, "shape": "tree", "topology": topology, "brokers": brokers, "strategy": "covering",
            "subscribers": 5 * brokers, "subscriptions": 10 * brokers, "publishers": brokers // 2,
            "notifications": 10 * brokers, "interests": brokers, "covered": 0.5, "ready": False,
        },
        Scenario,
    )  # fmt: skip
    profile = cProfile.Profile()
    started, cpu_started = time.perf_counter(), time.process_time()
    if profiled:
        profile.enable()
    run = simulate(scenario, tables=False)
    if profiled:
        profile.disable()
    seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - cpu_started
    outcome = run.outcome()
    if profiled:
        pstats.Stats(profile, stream=sys.stdout).sort_stats("tottime").print_stats(30)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    console.print(
        f"{brokers:,} brokers, {topology}, covering; {scenario.subscriptions:,} subscriptions, "
        f"{scenario.notifications:,} notifications, seed {seed}\n"
        f"  messages handled   {outcome.simulated_messages:>12,}\n"
        f"  updates            {outcome.subscription_messages:>12,}\n"
        f"  forwards           {outcome.forwards:>12,}\n"
        f"  deliveries         {outcome.deliveries:>12,}\n"
        f"  rows a table       {outcome.table_rows_mean:>12,.1f}\n"
        f"  violations         {outcome.violations:>12,}\n"
        f"  seconds            {seconds:>12,.1f}\n"
        f"  seconds of CPU     {cpu_seconds:>12,.1f}\n"
        f"  messages a second  {outcome.simulated_messages / cpu_seconds:>12,.0f}\n"
        f"  memory, MB         {memory:>12,.0f}"
    )
    if brokers == NETWORK_BROKERS:
        console.print(f"  bar of {BAR_SECONDS:.0f} s       {'met' if seconds <= BAR_SECONDS else 'missed':>12}")


def main(arguments: Sequence[str] | None = None) -> None:
    options = argparse.ArgumentParser(
        prog="palio bench routing", description="Time the router and the simulator."
    )
    options.add_argument("--subscriptions", type=int, default=SUBSCRIPTIONS, help="in the router's table")
    options.add_argument("--notifications", type=int, default=NOTIFICATIONS, help="for the router")
    options.add_argument("--network", action="store_true", help="simulate one large network instead")
    options.add_argument("--brokers", type=int, default=NETWORK_BROKERS, help="of the large network")
    options.add_argument("--topology", choices=("acyclic", "hierarchical", "graph"), default="acyclic")
    options.add_argument("--profile", action="store_true", help="show where the large network's time goes")
    options.add_argument("--seed", type=int, default=1)
    chosen = options.parse_args(arguments)
    console = Console(width=None if Console().is_terminal else 130, highlight=False)
    console.print(f"Python {platform.python_version()}, one thread, seed {chosen.seed}.")
    if chosen.network:
        network(console, chosen.brokers, chosen.topology, chosen.seed, profiled=chosen.profile)
        return
    one_router(console, chosen.subscriptions, chosen.notifications, chosen.seed)
    simulation(console, chosen.seed)


if __name__ == "__main__":
    main()
