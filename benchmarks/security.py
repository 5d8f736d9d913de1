"""What security costs: `palio bench security [--scenario S] [--rounds N] [--events N] [--udp] [--quick]`.

The same broker, publishers and subscribers, each a process of its own, without and with: nothing; tokens and
rights; TLS; both. With `--udp` also over QUIC, which is not held to the bar. Rights are filters that no event
fails, as of somebody who keeps to them: what is published is matched against one, what is delivered against
the other, and subscriptions are narrowed. Systems take turns, round by round, and the ratio is to the broker
without any of it in the same run. At least 70 % is the bar.
"""

from __future__ import annotations

import argparse
import json
import ssl
import statistics
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec
import trustme
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks.live import of_palio, servers
from benchmarks.live.content import EVENT_BYTES, VALUES, Background
from benchmarks.live.parties import WINDOW
from benchmarks.live.run import Run, Scenario, System
from palio.broker.access.rights import parse_rights, write_rights
from palio.broker.access.tokens import create_token
from palio.cli.bench.measuring import machine, show_setup

BAR = 0.7
ROUNDS = 5
FILTERS = 10_000
OFF = "off"
PLAIN, TLS, QUIC = "palio", "palios", "quic"
SCENARIOS = {
    "one-to-one": Scenario("one to one", 1, 1, 100_000),
    "one-to-ten": Scenario("one to ten", 1, 10, 30_000),
    "durable": Scenario("durable", 1, 1, 30_000, in_flight=4_000, group=250),
}
# Every event satisfies both, and looking takes more than one attribute.
MAY_PUBLISH = f"key >= 0 and value between 0 and {VALUES:g} and exists(subject)"
MAY_SEE = f"value <= {VALUES:g} and (key >= 0 or exists(public))"
PRINCIPAL = "bench"


def start(folder: Path, label: str, *, rights: bool, scheme: str, durable: bool, filters: int) -> System:
    """A broker with what its label says, and the background client."""
    words: list[str] = []
    token = authority = None
    if rights:
        access = folder / "data" / "access"
        write_rights(access, PRINCIPAL, parse_rights(MAY_PUBLISH, MAY_SEE, (), PRINCIPAL))
        token = create_token(access, PRINCIPAL, now=time.time())[1]
        words += ["--authentication"]
    if scheme != PLAIN:
        signs = trustme.CA()
        certificate = signs.issue_cert("127.0.0.1")
        authority = str(folder / "authority.pem")
        signs.cert_pem.write_to_path(authority)
        certificate.cert_chain_pems[0].write_to_path(str(folder / "broker.pem"))
        certificate.private_key_pem.write_to_path(str(folder / "broker.key"))
        words += ["--certificate", str(folder / "broker.pem"), "--key", str(folder / "broker.key")]
    if scheme == QUIC:
        words += ["--quic", "127.0.0.1:0"]
    server = servers.start_palio(folder, journal=durable, further=words)
    if scheme == QUIC:
        server.port = json.loads((folder / "ready.json").read_text())["quic_port"]
    crowd = None if durable else of_palio.Crowd
    return System(
        label, server, of_palio.publish, of_palio.subscribe,
        background=Background(0 if durable else filters), crowd=crowd, token=token, authority=authority,
        scheme=scheme,
    )  # fmt: skip


def show(console: Console, scenario: Scenario, results: dict[str, list[Run]]) -> bool:
    """A table of one scenario. Returns whether all that was secured is above the bar."""
    table = Table(header_style="dim", box=SIMPLE_HEAD, pad_edge=False)
    for title in (scenario.name, "best/s", "median/s", "to off (best)", "CPU µs: pub", "srv", "sub", "lost"):
        table.add_column(title, justify="left" if title == scenario.name else "right", no_wrap=True)
    best = {label: max(run.rate for run in runs) for label, runs in results.items()}
    for label, runs in results.items():
        cpu = [
            statistics.median(getattr(run, side) for run in runs) * 1e6
            for side in ("publisher_cpu", "server_cpu", "subscriber_cpu")
        ]
        table.add_row(
            label,
            f"{best[label]:,.0f}",
            f"{statistics.median(run.rate for run in runs):,.0f}",
            f"{best[label] / best[OFF]:.0%}",
            *[f"{one:.1f}" for one in cpu],
            f"{sum(run.lost for run in runs)}",
        )
    console.print(table)
    return min(rate for label, rate in best.items() if label != QUIC) / best[OFF] >= BAR


def parsed(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="palio bench security", description=(__doc__ or "").partition("\n")[0]
    )
    add = parser.add_argument
    add("--scenario", action="append", choices=SCENARIOS, help="one of them, repeatable (default: all)")
    add("--rounds", type=int, default=ROUNDS, help=f"how often each is measured (default {ROUNDS})")
    add("--events", type=int, help="events of one to one; the other scenarios have their part of it")
    add("--filters", type=int, default=FILTERS, help=f"background filters (default {FILTERS:,})")
    add("--udp", action="store_true", help="also over QUIC")
    add("--quick", action="store_true", help="a few seconds, small; its figures mean nothing")
    arguments = parser.parse_args(words)
    if arguments.quick:
        arguments.rounds, arguments.events, arguments.filters = 1, 2_000, 100
    arguments.scenario = arguments.scenario or list(SCENARIOS)
    return arguments


def main(words: Sequence[str] | None = None) -> None:
    arguments = parsed(words)
    console = Console(width=110)
    show_setup(
        console,
        {
            **machine(),
            "tls": f"{ssl.OPENSSL_VERSION}, TLS 1.3",
            "rights": f"publish: {MAY_PUBLISH}; see: {MAY_SEE}",
            "event": f"{EVENT_BYTES} bytes",
            "filters": f"{arguments.filters:,} of a further client (none with durable)",
            "rounds": arguments.rounds,
        },
    )
    met = True
    part = arguments.events / SCENARIOS["one-to-one"].events if arguments.events else 1.0
    for name in arguments.scenario:
        usual = SCENARIOS[name]
        scenario = msgspec.structs.replace(usual, events=max(100, round(usual.events * part)))
        with ExitStack() as stack:
            systems = []
            for label, rights, scheme in (
                (OFF, False, PLAIN),
                ("rights", True, PLAIN),
                ("TLS", False, TLS),
                ("TLS and rights", True, TLS),
                *([(QUIC, False, QUIC)] if arguments.udp else []),
            ):
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
                durable, filters = scenario.is_durable, arguments.filters
                system = start(folder, label, rights=rights, scheme=scheme, durable=durable, filters=filters)
                stack.callback(system.stop)
                systems.append(system)
            for system in systems:
                system.await_background()
            results: dict[str, list[Run]] = {system.label: [] for system in systems}
            for _ in range(arguments.rounds):
                for system in systems:
                    results[system.label].append(system.run(scenario, window=WINDOW, json=False))
        met &= show(console, scenario, results)
    if not arguments.quick:
        console.print(f"At least {BAR:.0%} of what it is without: {'met' if met else 'missed'}.")


if __name__ == "__main__":
    main()
