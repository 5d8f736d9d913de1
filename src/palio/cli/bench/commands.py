"""`palio bench`: measurements, each beside a yardstick of the same run. One command a subject.

Measurements that need a compiler or large generated workloads are not part of the package; they lie in the
folder `benchmarks` of a checkout, have options of their own, and are only handed their words here.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path

import typer

import palio
from palio.cli.bench import filters as bench_filters
from palio.cli.program.loading import command_group
from palio.model.errors import PalioError

app = command_group(
    "palio bench filters --seconds 0.02",
    "palio bench matching --filters 1000 --workload stock",
    "palio bench hints --filters 1000",
    "palio bench reading --filters 10",
    "palio bench poset --filters 1000 --workload stock",
    "palio bench routing --subscriptions 1000 --notifications 500",
    "palio bench store --events 5000",
    "palio bench broker --quick",
    "palio bench security --quick",
    "palio bench neighbours --quick",
    "palio bench spark --events 2000 --subscriptions 300",
    "palio bench patterns --quick --ways plain",
    "palio bench xml --quick --row native",
)
app.command("filters", epilog=bench_filters.EPILOG)(bench_filters.filters)

_HANDED_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}

# What lies in the folder of a checkout, and its help.
SUBJECTS = {
    "matching": "Measure the match index beside a counting matcher in plain C, up to a million filters.",
    "hints": "Measure what hints change for an index: a skewed workload, without them and with them.",
    "reading": "Measure what it takes to read a filter in each dialect.",
    "poset": "Measure the poset beside comparing with every filter, up to 100 thousand filters.",
    "routing": (
        "Measure one router with 100 thousand subscriptions, and simulated networks up to 1,000 brokers."
    ),
    "store": "Measure what a durable event costs on disk beside SQLite alone.",
    "broker": "Measure a broker on real sockets beside nats-server and mosquitto.",
    "security": "Measure what TLS and rights cost: the same broker with them and without.",
    "neighbours": "Measure what one hostile client costs all others at a broker, attack by attack.",
    "spark": "Measure bulk matching on Spark beside Spark's own cross join.",
    "patterns": "Measure patterns in tables, in streams and without Spark, beside a self-join in Spark SQL.",
    "xml": "Measure XML documents beside lxml alone and a relational matcher.",
}


class NoCheckout(PalioError):
    """A measurement that is not installed with the package."""

    subject: str
    sentence = "The measurement of {subject} lies in the folder benchmarks of a checkout; run it from there."


def _handed_on(subject: str) -> Callable[[typer.Context], None]:
    def measure(context: typer.Context) -> None:
        checkout = Path(palio.__file__).resolve().parents[2]
        if not (checkout / "benchmarks" / f"{subject}.py").is_file():
            raise NoCheckout(subject)
        sys.path.insert(0, str(checkout))
        importlib.import_module(f"benchmarks.{subject}").main(context.args)

    return measure


for _subject, _help in SUBJECTS.items():
    app.command(_subject, help=_help, context_settings=_HANDED_ON)(_handed_on(_subject))
