"""`palio bench`: measurements, each beside a yardstick of the same run. One command a subject.

Measurements that need a compiler or large generated workloads are not part of the package; they lie in the
folder `benchmarks` of a checkout, have options of their own, and are only handed their words here.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import typer

import palio
from palio.cli.bench import filters as bench_filters
from palio.cli.program.terminal import help_epilog
from palio.model.errors import PalioError

app = typer.Typer(
    help="Measure, each time beside a yardstick of the same run.",
    no_args_is_help=True,
    epilog=help_epilog(
        "palio bench filters --seconds 0.02",
        "palio bench matching --filters 1000 --workload stock",
        "palio bench hints --filters 1000",
        "palio bench poset --filters 1000 --workload stock",
        "palio bench routing --subscriptions 1000 --notifications 500",
        "palio bench store --events 5000",
        "palio bench broker --quick",
        "palio bench security --quick",
        "palio bench spark --events 2000 --subscriptions 300",
        "palio bench patterns --quick --ways plain",
    ),
)
app.command("filters", epilog=bench_filters.EPILOG)(bench_filters.filters)

_HANDED_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


class NoCheckout(PalioError):
    """A measurement that is not installed with the package."""

    subject: str

    def __init__(self, subject: str) -> None:
        super().__init__(
            f"The measurement of {subject} lies in the folder benchmarks of a checkout; run it from there.",
            subject=subject,
        )


@app.callback()
def bench() -> None:
    """Measure, each time beside a yardstick of the same run."""


@app.command("matching", context_settings=_HANDED_ON)
def matching(context: typer.Context) -> None:
    """Measure the match index beside a counting matcher in plain C, up to a million filters."""
    _run("matching", context.args)


@app.command("hints", context_settings=_HANDED_ON)
def hints(context: typer.Context) -> None:
    """Measure what hints change for an index: a skewed workload, without them and with them."""
    _run("hints", context.args)


@app.command("poset", context_settings=_HANDED_ON)
def poset(context: typer.Context) -> None:
    """Measure the poset beside comparing with every filter, up to 100 thousand filters."""
    _run("poset", context.args)


@app.command("routing", context_settings=_HANDED_ON)
def routing(context: typer.Context) -> None:
    """Measure one router with 100 thousand subscriptions, and simulated networks up to 1,000 brokers."""
    _run("routing", context.args)


@app.command("store", context_settings=_HANDED_ON)
def store(context: typer.Context) -> None:
    """Measure what a durable event costs on disk beside SQLite alone."""
    _run("store", context.args)


@app.command("broker", context_settings=_HANDED_ON)
def broker(context: typer.Context) -> None:
    """Measure a broker on real sockets beside nats-server and mosquitto."""
    _run("broker", context.args)


@app.command("security", context_settings=_HANDED_ON)
def security(context: typer.Context) -> None:
    """Measure what TLS and rights cost: the same broker with them and without."""
    _run("security", context.args)


@app.command("spark", context_settings=_HANDED_ON)
def spark(context: typer.Context) -> None:
    """Measure bulk matching on Spark beside Spark's own cross join."""
    _run("spark", context.args)


@app.command("patterns", context_settings=_HANDED_ON)
def patterns(context: typer.Context) -> None:
    """Measure patterns in tables, in streams and without Spark, beside a self-join in Spark SQL."""
    _run("patterns", context.args)


def _run(subject: str, words: list[str]) -> None:
    checkout = Path(palio.__file__).resolve().parents[2]
    if not (checkout / "benchmarks" / f"{subject}.py").is_file():
        raise NoCheckout(subject)
    sys.path.insert(0, str(checkout))
    module = importlib.import_module(f"benchmarks.{subject}")
    module.main(words)
