"""The data pipeline on Spark: the same filters and the same matcher as the brokers, on tables of events.

>>> import palio.spark
>>> spark = palio.spark.start()                                    # local[*]; any SparkSession will do
>>> palio.spark.register(spark)                                    # format("palio")
>>> pairs = palio.spark.match(events, subscriptions)               # (event_id, subscription_id)

DataFrame in, DataFrame out: nothing that grows with the data comes to the driver. Whole jobs, from where events
lie to what is written, are in `palio.spark.jobs`. All of it runs on a laptop, on a cluster and over Spark
Connect; `docs/spark.md` is the page for users.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from palio.spark.documents.extracting import complete_documents, extract
    from palio.spark.documents.families import families_at, read_selections
    from palio.spark.documents.versions import read_documents
    from palio.spark.lake.archiving import archive, archive_continuously
    from palio.spark.lake.rewriting import compact, forget, sweep
    from palio.spark.lake.table import read_lake, read_quarantine
    from palio.spark.lookback.backtesting import backtest
    from palio.spark.lookback.history import history
    from palio.spark.lookback.reach_back import reach_back
    from palio.spark.matching.bulk import match, unreadable
    from palio.spark.matching.runs import Run, match_new, matches
    from palio.spark.matching.shards import Shards, build_shards
    from palio.spark.patterns.finding import find_patterns
    from palio.spark.runtime.session import start
    from palio.spark.source.format import register
    from palio.spark.source.operations import operations
    from palio.spark.source.reading import Crossed, read, read_stream
    from palio.spark.source.writing import write, write_stream

# Where names come from; each is loaded when it is first asked for, as a program that only wants to know whether
# there is a Java should not have to load Arrow for that.
_PLACES = {
    "documents.extracting": ("complete_documents", "extract"),
    "documents.families": ("families_at", "read_selections"),
    "documents.versions": ("read_documents",),
    "lake.archiving": ("archive", "archive_continuously"),
    "lake.rewriting": ("compact", "forget", "sweep"),
    "lake.table": ("read_lake", "read_quarantine"),
    "lookback.backtesting": ("backtest",),
    "lookback.history": ("history",),
    "lookback.reach_back": ("reach_back",),
    "matching.bulk": ("match", "unreadable"),
    "matching.runs": ("Run", "match_new", "matches"),
    "matching.shards": ("Shards", "build_shards"),
    "patterns.finding": ("find_patterns",),
    "runtime.session": ("start",),
    "source.reading": ("Crossed", "read", "read_stream"),
    "source.format": ("register",),
    "source.operations": ("operations",),
    "source.writing": ("write", "write_stream"),
}
_MODULES = {name: module for module, names in _PLACES.items() for name in names}

__all__ = [
    "Crossed",
    "Run",
    "Shards",
    "archive",
    "archive_continuously",
    "backtest",
    "build_shards",
    "compact",
    "complete_documents",
    "extract",
    "families_at",
    "find_patterns",
    "forget",
    "history",
    "match",
    "match_new",
    "matches",
    "operations",
    "reach_back",
    "read",
    "read_documents",
    "read_lake",
    "read_quarantine",
    "read_selections",
    "read_stream",
    "register",
    "start",
    "sweep",
    "unreadable",
    "write",
    "write_stream",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        found = getattr(import_module(f"palio.spark.{_MODULES[name]}"), name)
        return globals().setdefault(name, found)
    if name == "jobs":
        return import_module("palio.spark.jobs")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
