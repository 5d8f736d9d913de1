"""The jobs of the pipeline, whole: from the places where events lie to what comes out, as functions.

>>> from palio.spark import jobs
>>> looked = jobs.backtest(spark, "price > 100", "palio-lake", checkpoint="state")
>>> jobs.match(spark, "events.jsonl", "filters.jsonl", output="pairs", quarantine="aside").pairs.count()

The functions of `palio.spark` take tables and give tables; these take places (a lake, journals, Parquet, or
lines), look at them in parts that are kept in a checkpoint, put aside what cannot be read, write what they
find, and return a record of it. `palio spark …` are these functions with a command line around them: what a
job does is here, and what is typed and shown is there. None of them prints.

*Interrupts.* A job lets `KeyboardInterrupt` through, as every other exception: what is in its checkpoint, its
output or its lake by then stays, and the same call goes on there. `progress` and `told` hear how far it is.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from palio.spark.jobs.archive_job import (
        Archived,
        Compacted,
        Erased,
        archive,
        archive_continuously,
        compact,
        forget,
    )
    from palio.spark.jobs.backtest_job import backtest
    from palio.spark.jobs.backtest_result import LookedBack
    from palio.spark.jobs.checkpoint import PartsDone
    from palio.spark.jobs.documents_job import DocumentsRead, documents, match_documents
    from palio.spark.jobs.match_job import Matched, MatchedNew, match, match_new
    from palio.spark.jobs.patterns_job import PatternsFound, patterns
    from palio.spark.jobs.reach_back_job import ReachedBack, reach_back
    from palio.spark.jobs.stats_job import stats

# Where names come from; each is loaded when it is first asked for. No module has the name of a function: once
# it is loaded, the package would have the one in place of the other.
_PLACES = {
    "archive_job": ("Archived", "Compacted", "Erased", "archive", "archive_continuously", "compact", "forget"),
    "backtest_job": ("backtest",),
    "checkpoint": ("PartsDone",),
    "backtest_result": ("LookedBack",),
    "documents_job": ("DocumentsRead", "documents", "match_documents"),
    "match_job": ("Matched", "MatchedNew", "match", "match_new"),
    "patterns_job": ("PatternsFound", "patterns"),
    "reach_back_job": ("ReachedBack", "reach_back"),
    "stats_job": ("stats",),
}
_MODULES = {name: module for module, names in _PLACES.items() for name in names}

__all__ = [
    "Archived",
    "Compacted",
    "DocumentsRead",
    "Erased",
    "LookedBack",
    "Matched",
    "MatchedNew",
    "PartsDone",
    "PatternsFound",
    "ReachedBack",
    "archive",
    "archive_continuously",
    "backtest",
    "compact",
    "documents",
    "forget",
    "match",
    "match_documents",
    "match_new",
    "patterns",
    "reach_back",
    "stats",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        found = getattr(import_module(f"palio.spark.jobs.{_MODULES[name]}"), name)
        return globals().setdefault(name, found)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
