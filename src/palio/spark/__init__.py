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
    from palio.spark.matching import match, unreadable
    from palio.spark.runs import Run, match_new, matches
    from palio.spark.session import start
    from palio.spark.shards import Shards, build_shards

# Where each name comes from; loaded when it is first asked for, as a program that only wants to know whether
# there is a Java should not have to load Arrow for that.
_PLACES = {
    "Run": "runs",
    "Shards": "shards",
    "build_shards": "shards",
    "match": "matching",
    "match_new": "runs",
    "matches": "runs",
    "start": "session",
    "unreadable": "matching",
}

__all__ = ["Run", "Shards", "build_shards", "match", "match_new", "matches", "start", "unreadable"]


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        found = getattr(import_module(f"palio.spark.{_PLACES[name]}"), name)
        return globals().setdefault(name, found)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
