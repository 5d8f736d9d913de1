"""How many documents a second a broker takes: beside the source's own algorithm, and beside lxml alone."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import msgspec
from lxml import etree

from benchmarks.documents.cards import card_family, cards
from benchmarks.documents.parties import DocumentPlan, DocumentRun, run_documents
from benchmarks.documents.report import XmlRow
from benchmarks.documents.serving import start_broker
from benchmarks.documents.source import AnyDatabase, PostgresqlDatabase, SourceBroker, SqliteDatabase, create
from benchmarks.live.postgresql import postgresql
from palio.broker.memory import memory_bound
from palio.broker.settings import Limits, Settings
from palio.documents import Family

ALL = 'xml.family = "card"'
SOURCE_SIZES = {1.66: 7, 3: 6, 5: 6, 8: 6, 10: 5}  # KB: publishes a second
SOURCE_SUBSCRIBERS = {1: 6, 2: 3, 4: 3, 8: 2, 16: 2}
AGAINST_SOURCE = {1.66: 20.0, 10: 10.0}
AGAINST_LXML = 0.5
AT_SIXTEEN = 0.5
LAST_TENTH = 0.95
SOURCE_OVERLOAD = {1.44: "13 h to the end", 3.33: "10 h to the end"}
PATHS = 50
DIFFERENT = 3_000  # documents, which come again and again


class XmlRun(msgspec.Struct, frozen=True):
    """How it is measured; `absent` says what could not be."""

    folder: Path
    publishers: int
    seconds: float
    rounds: int
    tell: Callable[[str], None]
    absent: list[str] = []
    sync: float = 0.0  # milliseconds that a sync takes at least, if not as long as it does


def best_run(run: XmlRun, family: Family, plan: DocumentPlan, store: str = "") -> DocumentRun:
    """The fastest of some rounds, each at a broker of its own: others on the machine only make it slower."""
    found = []
    for _ in range(run.rounds):
        server = start_broker(Path(tempfile.mkdtemp(dir=run.folder)), [family], store=store)
        try:
            found.append(run_documents(server, plan))
        finally:
            server.stop()
    lost = sum(run.lost for run in found)
    assert lost == 0, f"{lost:,} deliveries did not arrive."
    return max(found, key=lambda run: run.rate)


def sizes(run: XmlRun, kilobytes: Sequence[float], stores: Sequence[str]) -> list[XmlRow]:
    """T1: sizes, stores, and the source's algorithm on the same database, one publisher and many at a time."""
    rows = []
    family = card_family()
    slower = f", syncs of {run.sync:g} ms" if run.sync else ""
    with ExitStack() as stack:
        for store in stores:
            for size in kilobytes:
                documents = cards(DIFFERENT, size)
                run.tell(f"{size:g} KB, {store}")
                url = _place(stack, run, store)
                if url is None:
                    break
                plan = DocumentPlan(documents, run.publishers, [ALL], run.seconds)
                ours = best_run(run, family, plan, url if store == "postgresql" else "")
                for many in (1,) if store == "sqlite" else (1, run.publishers):
                    again = _place(stack, run, store)
                    assert again is not None
                    theirs = source_rate(again, family, documents, many, run.seconds)
                    rows.append(
                        XmlRow(
                            "sizes",
                            f"{size:g} KB, {_NAMES[store]}, {run.publishers} at a time{slower}",
                            ours.rate,
                            theirs,
                            f"the source's algorithm, {many} at a time",
                            ours.rate / theirs,
                            None if run.sync else AGAINST_SOURCE.get(size),
                            source=f"{SOURCE_SIZES[size]}/s" if size in SOURCE_SIZES else "",
                            line=f"{_NAMES[store]}: ",
                            x=size,
                        )
                    )
    return rows


_NAMES = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}


def _place(stack: ExitStack, run: XmlRun, store: str) -> str | None:
    """Where a new database is."""
    if store == "sqlite":
        return str(Path(tempfile.mkdtemp(dir=run.folder)) / "source.db")
    return postgresql(stack, run.absent)


def source_rate(place: str, family: Family, documents: Sequence[bytes], many: int, seconds: float) -> float:
    """Publishes a second of the source's algorithm, with so many publishers at a time."""

    def connect() -> AnyDatabase:
        return PostgresqlDatabase(place) if place.startswith("postgresql:") else SqliteDatabase(place)

    databases = [connect() for _ in range(many)]
    create(databases[0], family, [[]])
    brokers = [SourceBroker(database, family) for database in databases]
    counts = [0] * many
    until = time.perf_counter() + seconds

    def work(number: int) -> None:
        at = number
        while time.perf_counter() < until:
            assert brokers[number].publish(documents[at % len(documents)]) == [1]
            counts[number] += 1
            at += many

    began = time.perf_counter()
    with ThreadPoolExecutor(many) as threads:
        list(threads.map(work, range(many)))
    took = time.perf_counter() - began
    for database in databases:
        database.close()
    return sum(counts) / took


def native(run: XmlRun, kilobytes: Sequence[float]) -> list[XmlRow]:
    """The same with 50 paths, beside lxml alone: parse, validate, and 50 compiled XPaths one by one."""
    family = card_family(PATHS)
    rows = []
    for size in kilobytes:
        run.tell(f"{size:g} KB, {PATHS} paths")
        documents = cards(DIFFERENT, size, measures=True)
        ours = best_run(run, family, DocumentPlan(documents, run.publishers, [ALL], run.seconds))
        theirs = lxml_rate(family, documents, run.seconds)
        rows.append(
            XmlRow(
                "native",
                f"{size:g} KB, {PATHS} paths, journal",
                ours.rate,
                theirs,
                "lxml alone: parse, validate, XPaths one by one",
                ours.rate / theirs,
                AGAINST_LXML,
                x=size,
            )
        )
    return rows


def lxml_rate(family: Family, documents: Sequence[bytes], seconds: float) -> float:
    """Documents a second that lxml parses, validates and evaluates all paths of, in one thread."""
    schema = etree.XMLSchema(etree.fromstring(family.schemas[0].content))
    paths = [etree.XPath(path.expression, namespaces=family.prefixes) for path in family.paths]
    count, began = 0, time.perf_counter()
    while (took := time.perf_counter() - began) < seconds:
        for document in documents[:100]:
            tree = etree.fromstring(document)
            assert schema.validate(tree)
            for path in paths:
                path(tree)
        count += min(100, len(documents))
    return count / took


def subscribers(run: XmlRun, counts: Sequence[int], size: float) -> list[XmlRow]:
    """T2: the same documents for more and more durable subscribers, beside one."""
    documents, family = cards(DIFFERENT, size), card_family()
    rows: list[XmlRow] = []
    first = 0.0
    for count in counts:
        run.tell(f"{count} subscribers")
        ours = best_run(run, family, DocumentPlan(documents, run.publishers, [ALL] * count, run.seconds))
        first = first or ours.rate
        told = SOURCE_SUBSCRIBERS.get(count)
        rows.append(
            XmlRow(
                "subscribers",
                f"{count} subscriber{'s' if count > 1 else ''}, {size:g} KB",
                ours.rate,
                first,
                f"{counts[0]} subscriber",
                ours.rate / first,
                AT_SIXTEEN if count == 16 else None,
                source=f"{told}/s, {told / SOURCE_SUBSCRIBERS[1]:.2f}" if told else "",
                x=count,
            )
        )
    return rows


def overload(run: XmlRun, shares: Sequence[float], size: float, seconds: float) -> list[XmlRow]:
    """T3: more than what can be taken, for some time: the last tenth beside the first, and the memory."""
    documents, family = cards(DIFFERENT, size), card_family()
    sustained = best_run(run, family, DocumentPlan(documents, run.publishers, [ALL], run.seconds)).rate
    bound = sum(part.bytes for part in memory_bound(Settings()))
    rows = []
    for share in shares:
        run.tell(f"{share:.0%} of what can be taken")
        plan = DocumentPlan(documents, run.publishers, [ALL], seconds, rate=share * sustained)
        server = start_broker(Path(tempfile.mkdtemp(dir=run.folder)), [family], pending=Limits().outgoing)
        try:
            found = run_documents(server, plan)
        finally:
            server.stop()
        first, last = found.tenths[0], found.tenths[-1]
        what = f"{share:.0%} of {sustained:,.0f}/s, {seconds:,.0f} s; {found.refused:,} refused"
        rows += [
            XmlRow(
                "overload", what, last, first, "its first tenth", last / max(first, 1e-9), LAST_TENTH,
                source=SOURCE_OVERLOAD.get(share, ""), x=share,
            ),
            XmlRow(
                "overload", f"memory at {share:.0%}, of the bound by its settings", found.memory, bound,
                "palio config check", found.memory / bound, 1.0, at_most=True, unit="MB", x=share,
            ),
        ]  # fmt: skip
    return rows
