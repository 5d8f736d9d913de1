"""What was found, published back: each match is a notification that names its constituents.

Matches are few where events are many, so they are published from here, in pieces, in the name of one
publisher. The id of a match is made from its pattern and its events: a broker that hears of it again, after a
restart of the job, knows it already.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from palio.model.notification import Notification

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Notifications that wait for one confirmation together.
_PIECE = 1_000
PUBLISHER = "palio-patterns"


def publish_matches(found: DataFrame, address: str, *, token: str | None = None, name: str = PUBLISHER) -> int:
    """Publish all matches of what `find_patterns` gave, and wait until they are confirmed. How many it were.

    Raises what `palio.sync.connect` and `publish` raise.
    """
    from palio import sync  # noqa: PLC0415

    rows = found.where("pattern is not null").select("id", "payload").toLocalIterator()
    published = 0
    with sync.connect(address, token=token, name=name) as client:
        for piece in _pieces(rows):
            client.publish([_notification(row) for row in piece])
            published += len(piece)
    return published


def _notification(row: Any) -> Notification:
    content = Notification.decode(bytes(row["payload"]))
    return Notification(content.attributes, id=row["id"])


def _pieces(rows: Iterable[Any]) -> Iterator[list[Any]]:
    waiting = iter(rows)
    while piece := list(islice(waiting, _PIECE)):
        yield piece
