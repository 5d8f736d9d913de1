"""`palio spark archive`: what is in journals goes to the lake."""

from __future__ import annotations

from typing import Annotated

import msgspec

from palio.cli.output.progress import MovingBar
from palio.cli.program.dressing import argument, flag, option
from palio.cli.program.terminal import error_console, help_epilog, plural, say, write_json
from palio.cli.spark.gaps import say_gaps
from palio.cli.spark.options import Master, Remote, Settings, opened, told_if_interrupted
from palio.model.moments import parse_span
from palio.spark.jobs.archive_job import archive as archive_journals
from palio.spark.jobs.archive_job import archive_continuously
from palio.spark.lake.archiving import ArchiveProgress

EPILOG = help_epilog(
    "palio spark archive",
    "palio spark archive sqlite:///palio-data/palio.db --lake palio-lake",
    "palio spark archive palio://127.0.0.1:7070 --lake palio-lake --every 5m",
    "palio spark archive --compact --grace 7d",
    notes="Then `palio journal trim` lets the journals go; palio.spark.history reads both as one.",
)
DEFAULT_STORE = "sqlite:///palio-data/palio.db"
DEFAULT_LAKE = "palio-lake"

LakeFolder = Annotated[str, option("FOLDER", "The lake, reached by all executors under the same path.")]
Grace = Annotated[str, option("SPAN", "How long files stay that belong to earlier versions.")]


def archive(
    url: Annotated[str, argument("[JOURNALS]", "sqlite:///…, postgresql://… or palio://….")] = DEFAULT_STORE,
    *,
    lake: LakeFolder = DEFAULT_LAKE,
    every: Annotated[str | None, option("SPAN", "Go on: archive what is new again and again.")] = None,
    compact: Annotated[bool, flag("--compact", "Put small files together in the end.")] = False,
    grace: Grace = "1d",
    lossy: Annotated[
        bool, flag("--lossy", "Go on where a journal was trimmed before it was archived.")
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
    total: int | None = None
    interrupted = f"nothing came to {lake} yet, and the same command begins anew."

    def told(now: ArchiveProgress) -> None:
        nonlocal total, interrupted
        total = now.waiting if total is None else total
        interrupted = f"{plural(now.events, 'event')} came to {lake}, and the same command goes on from there."
        bar.show("Archiving", total - now.waiting, total)

    def merging(files: int, of: int) -> None:
        nonlocal interrupted
        interrupted = "what was put together stays so, and the same command goes on."
        bar.show("Putting files together", 100 * files // of, 100)

    said = 0

    def tell(now: ArchiveProgress) -> None:
        """A line for each commit, as long as it goes on, and for each journal that came back older."""
        nonlocal said
        say_gaps(now.gaps[said if said <= len(now.gaps) else 0 :])
        said = len(now.gaps)
        write_json({"version": now.version, "events": now.events, "quarantined": now.quarantined})

    with opened(master, remote, conf, "archive", own_bar=True) as spark:
        if seconds is not None:
            archive_continuously(spark, url, lake, every=seconds, told=tell)
            return
        with told_if_interrupted(lambda: interrupted), MovingBar(error_console()) as bar:
            done = archive_journals(
                spark, url, lake, lossy=lossy, compact=compact, grace=grace_seconds, told=told, merging=merging
            )
    gaps = {"gaps": [msgspec.structs.asdict(gap) for gap in done.gaps]}
    write_json(msgspec.structs.asdict(done) | gaps)
    say_gaps(done.gaps)
    if done.quarantined:
        say(f"{plural(done.quarantined, 'event')} could not be read, and lie in {lake}/quarantine.", "yellow")
