"""`palio spark archive`: what is in journals goes to the lake."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from palio.cli.output.progress import progress_bar
from palio.cli.program.terminal import error_console, help_epilog, plural, write_json
from palio.cli.spark.options import Master, Remote, Settings, opened, told_if_interrupted
from palio.model.moments import parse_span
from palio.spark.lake.archiving import Progress, archive_continuously, waiting
from palio.spark.lake.archiving import archive as archive_once
from palio.spark.lake.rewriting import compact as compact_lake
from palio.spark.lake.rewriting import sweep

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EPILOG = help_epilog(
    "palio spark archive",
    "palio spark archive sqlite:///palio-data/palio.db --lake palio-lake",
    "palio spark archive palio://127.0.0.1:7070 --lake palio-lake --every 5m",
    "palio spark archive --compact --grace 7d",
    notes="Then `palio journal trim` lets the journals go; palio.spark.history reads both as one.",
)
DEFAULT_STORE = "sqlite:///palio-data/palio.db"
DEFAULT_LAKE = "palio-lake"

LakeFolder = Annotated[
    str,
    typer.Option("--lake", metavar="FOLDER", help="The lake, reached by all executors under the same path."),
]
Grace = Annotated[
    str,
    typer.Option(metavar="SPAN", help="How long files stay that belong to earlier versions."),
]


def archive(
    url: Annotated[
        str, typer.Argument(metavar="[JOURNALS]", help="sqlite:///…, postgresql://… or palio://….")
    ] = DEFAULT_STORE,
    *,
    lake: LakeFolder = DEFAULT_LAKE,
    every: Annotated[
        str | None, typer.Option(metavar="SPAN", help="Go on: archive what is new again and again.")
    ] = None,
    compact: Annotated[bool, typer.Option("--compact", help="Put small files together in the end.")] = False,
    grace: Grace = "1d",
    lossy: Annotated[
        bool, typer.Option("--lossy", help="Go on where a journal was trimmed before it was archived.")
    ] = False,
    master: Master = None,
    remote: Remote = None,
    conf: Settings = None,
) -> None:
    """Write what was published to a lake of Parquet files, each event exactly once.

    It goes on where the last run ended, however that ended: events are committed
    a million or so at a time for each core, and --compact in parts as well. From
    the first run on, journals keep what the lake does not have. What cannot be
    read is set aside with the reason, and told.
    """
    seconds = None if every is None else parse_span(every)
    grace_seconds = parse_span(grace)
    console = error_console()
    with opened(master, remote, conf, "archive", own_bar=True) as spark:
        if seconds is not None:
            archive_continuously(spark, url, lake, every=seconds, told=_tell)
            return
        done = _archive(spark, url, lake, lossy=lossy)
        merged = _compact(spark, lake) if compact else 0
    swept = sweep(lake, grace=grace_seconds)
    write_json(
        {
            "version": done.version,
            "events": done.events,
            "quarantined": done.quarantined,
            "files": done.files,
            "merged": merged,
            "swept": swept,
        }
    )
    if done.quarantined:
        sentence = f"{plural(done.quarantined, 'event')} could not be read, and lie in {lake}/quarantine."
        console.print(sentence, style="yellow", soft_wrap=True)


def _archive(spark: SparkSession, url: str, lake: str, *, lossy: bool) -> Progress:
    total = waiting(url, lake, lossy=lossy)
    events = 0

    def told(now: Progress) -> None:
        nonlocal events
        events = now.events
        advance(total - now.waiting)

    def interrupted() -> str:
        return f"{plural(events, 'event')} came to {lake}, and the same command goes on from there."

    with told_if_interrupted(interrupted), progress_bar(error_console(), "Archiving", total) as advance:
        return archive_once(spark, url, lake, lossy=lossy, told=told)


def _compact(spark: SparkSession, lake: str) -> int:
    with (
        told_if_interrupted(lambda: "what was put together stays so, and the same command goes on."),
        progress_bar(error_console(), "Putting files together", 100) as advance,
    ):
        return compact_lake(spark, lake, told=lambda done, of: advance(100 * done // of))


def _tell(now: Progress) -> None:
    """A line for each commit, as long as it goes on."""
    write_json({"version": now.version, "events": now.events, "quarantined": now.quarantined})
