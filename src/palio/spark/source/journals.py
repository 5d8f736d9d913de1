"""Journals, wherever they are: how far each is, what is in a range of one, and who needs it.

A URL names a store, which is read directly, or brokers, which read for us and see to it that we may. Both give
the same events; a broker does not tell who published them. What is not selected never leaves there.

Neither URL nor options may hold a password or token, as Spark shows them in plans and logs: they come from the
environment (`palio.client.environment`, and all that PostgreSQL's own library reads, such as `PGPASSWORD` or
`~/.pgpass`).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from palio.model.filter import Filter
from palio.protocol.durable.lineage import Lineage, agrees, fork_point, with_ancestors
from palio.spark.arrow import Batches
from palio.spark.errors import DataLoss, JournalForked, WrongOption
from palio.spark.source.rows import Damage

BROKERS = ("palio", "palios", "quic", "ws", "wss")


class JournalStanding(msgspec.Struct, frozen=True):
    """A journal: it has all after `trimmed` up to `head`; its lineage is empty where nobody knows it."""

    journal: str
    trimmed: int
    head: int
    lineage: Lineage = ()


class Span(msgspec.Struct, frozen=True, omit_defaults=True):
    """A range of a journal: all after one sequence up to another.

    `numbered` is the incarnation of the journal in which the last of these was numbered, if that is known: in a
    journal that came back older since, there is something else.
    """

    journal: str
    after: int
    upto: int
    numbered: Lineage = ()

    @property
    def rows(self) -> int:
        """How many sequences are in it."""
        return max(0, self.upto - self.after)


class WantedEvents(msgspec.Struct, frozen=True):
    """Which events of a span are wanted: what a filter selects, from one time on, before another."""

    filter: Filter | None = None
    since: float = 0.0
    until: float = math.inf
    lossy: bool = False  # what was trimmed meanwhile is done without
    rows: int = 8_192  # in a batch, at the most


class Journals(AbstractContextManager["Journals"]):
    """The journals that a URL names. Used by one thread, and closed in the end."""

    @abstractmethod
    def standings(self, *, lossy: bool = False) -> list[JournalStanding]:
        """How far each journal is. Raises `JournalMissing` if one is out of reach, unless it is `lossy`."""

    @abstractmethod
    def read(self, span: Span, wanted: WantedEvents, damage: Damage | None = None) -> Batches:
        """The events of a span (`rows.EVENT`), in order.

        Raises `DataLoss`. What is damaged is left out and logged, and goes to `damage`.
        """

    @abstractmethod
    def hold(self, reader: str, positions: Mapping[str, int], lineages: Mapping[str, Lineage]) -> None:
        """Have journals kept for a reader that has all up to these sequences of these lineages."""

    @abstractmethod
    def close(self) -> None:
        """Let go of it."""

    def __exit__(self, *problem: object) -> None:
        self.close()


def open_journals(url: str) -> Journals:
    """The journals of a URL. Raises `WrongOption`, and what a store or a broker refuses with."""
    require_open(url)
    if urlsplit(url).scheme in BROKERS:
        from palio.spark.source.from_broker import BrokerJournals  # noqa: PLC0415 (the client is not needed for a store)

        return BrokerJournals(url)
    from palio.spark.source.from_store import StoreJournals  # noqa: PLC0415 (nor the store for a broker)

    return StoreJournals(url)


def absolute(url: str) -> str:
    """The URL with the whole path of its file: executors may be in another folder than the driver."""
    begin = "sqlite:///"
    if not url.startswith(begin) or url.startswith(f"{begin}/"):
        return url
    return begin + str(Path(url.removeprefix(begin)).absolute())


def require_open(url: str) -> None:
    """A URL may be shown to everybody. Raises `WrongOption`."""
    try:
        secret = urlsplit(url).password
    except ValueError:
        raise WrongOption("url", "This is no URL.") from None
    if secret:
        raise WrongOption(
            "url",
            "It holds a password, and Spark shows options in plans and logs. Put it into the environment of "
            "driver and executors: PGPASSWORD or ~/.pgpass for a store, PALIO_TOKEN or PALIO_TOKEN_FILE for a "
            "broker.",
        )


def require_kept(span: Span, trimmed: int, *, lossy: bool) -> None:
    """Raises `DataLoss` if some of a span is gone."""
    if span.after < trimmed and not lossy:
        raise DataLoss(span.journal, span.after + 1, trimmed + 1)


def require_same(span: Span, lineage: Lineage) -> None:
    """Raises `JournalForked` if a journal, as it is now, is not the one of a span that was read."""
    for one in span.numbered:
        if not agrees(span.upto, one.id, lineage):
            mine = with_ancestors(span.numbered, lineage)
            raise JournalForked(span.journal, span.upto, fork_point(span.upto, mine, lineage))
