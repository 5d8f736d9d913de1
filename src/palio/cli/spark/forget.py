"""`palio spark forget`: events that shall be nowhere in the lake any more."""

from __future__ import annotations

from typing import Annotated

import msgspec

from palio.cli.input.inputs import Dialect
from palio.cli.output.progress import MovingBar
from palio.cli.program.confirming import Yes, want_yes
from palio.cli.program.dressing import argument, option
from palio.cli.program.terminal import error_console, help_epilog, plural, write_json
from palio.cli.spark.archive import DEFAULT_LAKE, Grace, LakeFolder
from palio.cli.spark.checkpoint import moment_of
from palio.cli.spark.options import Master, Remote, Settings, opened, told_if_interrupted
from palio.language import PALIO, read_filter
from palio.model.moments import parse_span
from palio.spark.jobs.archive_job import forget as forget_events
from palio.spark.lake.rewriting import Forgotten
from palio.store.lake.manifests import Lake

EPILOG = help_epilog(
    """palio spark forget 'customer = "c-1017"' --yes""",
    "palio spark forget true --before 365d --yes",
    """palio spark forget 'customer = "c-1017"' --grace 0s --yes""",
    notes="Journals are not touched: archive them, and let `palio journal trim` remove what is in the lake.",
)


def forget(
    filter_text: Annotated[str, argument("FILTER", "What is to be forgotten.")],
    *,
    dialect: Dialect = PALIO,
    lake: LakeFolder = DEFAULT_LAKE,
    before: Annotated[str | None, option("WHEN", "Only what is older: 365d, a date, a time, @seconds.")] = None,
    grace: Grace = "1d",
    yes: Yes = False,
    master: Master = None,
    remote: Remote = None,
    conf: Settings = None,
) -> None:
    """Remove events from the lake: for erasure, or because they are old enough.

    The files that have such events are written anew, and a new version of the
    lake has those instead. Whoever is reading an earlier one can finish within
    the grace period; files are deleted by the next run after it, so erasure is
    complete with --grace 0s, or with a second run a day later.

    It is done in parts, with a version for each. After an interrupt the same
    command looks through the lake again, and rewrites what is left.
    """
    filter = read_filter(filter_text, dialect).require_satisfiable()
    seconds = parse_span(grace)
    moment_of(before)
    Lake(lake).state()  # what is wrong with it is better said before Spark starts
    if not yes:
        want_yes(f"What {filter_text} selects is removed for good from {lake}.")
    forgotten = 0

    def told(now: Forgotten) -> None:
        nonlocal forgotten
        forgotten = now.events
        bar.show("Forgetting", 100 * now.looked_at // now.of, 100)

    def interrupted() -> str:
        return f"forgotten so far: {plural(forgotten, 'event')}; the same command goes on with the others."

    with (
        opened(master, remote, conf, "forget", own_bar=True) as spark,
        told_if_interrupted(interrupted),
        MovingBar(error_console()) as bar,
    ):
        bar.show("Forgetting", 0, 100)
        done = forget_events(spark, lake, filter, before=before, grace=seconds, told=told)
    write_json(msgspec.structs.asdict(done))
