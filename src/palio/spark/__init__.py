"""The data pipeline on Spark: the same filters and the same matcher as the brokers, on tables of events.

>>> import palio.spark
>>> spark = palio.spark.start()                                    # local[*]; any SparkSession will do
>>> palio.spark.register(spark)                                    # format("palio")
>>> pairs = palio.spark.match(events, subscriptions)               # (event_id, subscription_id)

DataFrame in, DataFrame out: nothing that grows with the data comes to the driver. All of it runs on a laptop,
on a cluster and over Spark Connect; `docs/spark.md` is the page for users.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from palio.spark.archiving import archive, archive_continuously
    from palio.spark.backtesting import backtest
    from palio.spark.lake import read_lake, read_quarantine
    from palio.spark.lookback import history
    from palio.spark.matching import match, unreadable
    from palio.spark.patterns import find_patterns
    from palio.spark.reaching import reach_back
    from palio.spark.reading import Crossed, read, read_stream
    from palio.spark.registering import register
    from palio.spark.rewriting import compact, forget, sweep
    from palio.spark.runs import Run, match_new, matches
    from palio.spark.session import start
    from palio.spark.shards import Shards, build_shards
    from palio.spark.writing import write, write_stream

# Where each name comes from; loaded when it is first asked for, as a program that only wants to know whether
# there is a Java should not have to load Arrow for that.
_PLACES = {
    "Crossed": "reading",
    "Run": "runs",
    "Shards": "shards",
    "archive": "archiving",
    "archive_continuously": "archiving",
    "backtest": "backtesting",
    "build_shards": "shards",
    "compact": "rewriting",
    "find_patterns": "patterns",
    "forget": "rewriting",
    "history": "lookback",
    "match": "matching",
    "match_new": "runs",
    "matches": "runs",
    "reach_back": "reaching",
    "read": "reading",
    "read_lake": "lake",
    "read_quarantine": "lake",
    "read_stream": "reading",
    "register": "registering",
    "start": "session",
    "sweep": "rewriting",
    "unreadable": "matching",
    "write": "writing",
    "write_stream": "writing",
}

__all__ = [
    "Crossed",
    "Run",
    "Shards",
    "archive",
    "archive_continuously",
    "backtest",
    "build_shards",
    "compact",
    "find_patterns",
    "forget",
    "history",
    "match",
    "match_new",
    "matches",
    "reach_back",
    "read",
    "read_lake",
    "read_quarantine",
    "read_stream",
    "register",
    "start",
    "sweep",
    "unreadable",
    "write",
    "write_stream",
]


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        found = getattr(import_module(f"palio.spark.{_PLACES[name]}"), name)
        return globals().setdefault(name, found)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
