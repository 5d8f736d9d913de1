"""What commands of Spark say of journals that came back older than they had been read."""

from __future__ import annotations

from collections.abc import Iterable

from palio.cli.program.terminal import printable, say
from palio.protocol.durable.lineage import JournalGap


def say_gaps(gaps: Iterable[JournalGap]) -> None:
    """Names what may be missing; what follows where the journal was the same has been read."""
    for gap in gaps:
        say(
            f"The journal of {printable(gap.origin)} came back older than it was: what it had after "
            f"{gap.after:,} may be missing. What it has now was read from where it was the same.",
            "yellow",
        )
