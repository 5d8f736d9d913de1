"""Documents in Spark are what brokers say: versions, current ones, values of paths, and pairs."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
import pytest

import palio
import palio.spark
import palio.sync
import palio.testing
from palio.documents import DocumentReader, FamilyPath
from palio.spark import jobs
from palio.spark.errors import MissingColumn, UnknownInput, WrongOption
from palio.spark.lake.archiving import archive
from tests.broker.documents.cards import CARD, PRICE, card
from tests.spark.filling import MIDNIGHT, fill

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("lxml")

EARLIER = msgspec.structs.replace(CARD, paths=CARD.paths[:1])  # the code only
NOW = msgspec.structs.replace(CARD, revision=2)
FILTERS = {
    "acme": '`/c:card/c:brand` has "Acme"',
    "cheap": f'`{PRICE}` < 10 and xml.family = "card"',
    "second": 'xml.key = "c2"',
    "north": f'region = "north" and `{PRICE}` >= 10',
    "dear": f"`{PRICE}` > 1000",
}
NORTH = 'family card where region = "north" and card.price >= 10'  # as one may say it of a family
OLD, ARCHIVED, ALL = 20, 30, 36


class Publishing:
    """What a broker was given, of which the lake has most; and what another broker, which had the present
    paths from the start, delivers of the same.
    """

    def __init__(self, spark, folder: Path) -> None:
        chance = random.Random(7)
        self.documents = []
        for number in range(1, ALL + 1):
            brands = chance.choice(("Acme", "Zeta", "Acme</brand><brand>Zeta"))
            content = card(f"c{chance.randrange(6)}", brands, chance.choice((7, 10, 12.5)))
            self.documents.append((content, {"region": chance.choice(("north", "south")), "number": number}))
        self.lake = str(folder / "lake")
        self.broker = palio.testing.broker(name="first", journal=True)
        self.address = self.broker.__enter__()
        self.broker.running.documents.readers.tell([EARLIER])
        with palio.sync.connect(self.address) as client:
            self.versions = self._publish(client, 0, OLD)
            self.broker.running.documents.readers.tell([NOW])
            self.versions += self._publish(client, OLD, ARCHIVED)
            client.publish({"symbol": "no document"})
            archive(spark, self.address, self.lake)
            self.versions += self._publish(client, ARCHIVED, ALL)
        self.delivered = self._delivered()

    def _publish(self, client, first, end):
        """For each the position, the family's revision, and the document."""
        found = []
        for content, own in self.documents[first:end]:
            confirmed = client.publish_document(content, own)
            found.append((confirmed.sequence, 1 if first < OLD else 2, content))
        return found

    def _delivered(self) -> set[tuple[str, int]]:
        other = palio.testing.broker(name="other")
        with other as address, palio.sync.connect(address) as client:
            other.running.documents.readers.tell([NOW])
            subscriptions = {
                name: client.subscribe(palio.Filter.parse(f"({text}) or stop = true"), ready="network")
                for name, text in FILTERS.items()
            }
            for content, own in self.documents:
                client.publish_document(content, own)
            client.publish({"stop": True})
            found = set()
            for name, subscription in subscriptions.items():
                while "stop" not in (event := subscription.next(timeout=20)):
                    found.add((name, event["number"]))
            return found

    @property
    def current(self) -> dict[str, tuple[int, int, bytes]]:
        """The last version of each key."""
        reader = DocumentReader(NOW)
        return {reader.read(one[2]).key: one for one in self.versions}


@pytest.fixture(scope="module")
def published(spark, tmp_path_factory):
    found = Publishing(spark, tmp_path_factory.mktemp("documents"))
    yield found
    found.broker.__exit__(None, None, None)


def test_versions_and_current_documents(spark, published):
    table = palio.spark.read_documents(spark, published.lake, published.address, versions=True)
    rows = sorted(table.collect(), key=lambda row: row.sequence)
    assert [(row.sequence, row.revision, bytes(row.document)) for row in rows] == published.versions
    assert {(row.family, row.withdrawn, row.journal) for row in rows} == {("card", False, "first")}
    assert [row.event_id for row in rows] == [f"first/{row.sequence}" for row in rows]
    current = palio.spark.read_documents(spark, published.lake, published.address)
    found = {row.key: (row.sequence, row.revision, bytes(row.document)) for row in current.collect()}
    assert found == published.current
    one = palio.spark.read_documents(spark, published.lake, family="card", key="c2", versions=True)
    assert {row.key for row in one.collect()} == {"c2"}
    upto = rows[9].time  # as it was then; times of one broker may be equal
    then = palio.spark.read_documents(spark, published.address, until=upto.astimezone())
    expected = {row.key: row.sequence for row in rows if row.time < upto}
    assert {row.key: row.sequence for row in then.collect()} == expected


def test_paths_are_typed_and_what_a_family_with_them_from_the_start_has_read(spark, published):
    documents = palio.spark.read_documents(spark, published.lake, published.address, versions=True)
    paths = ["price", "brand", FamilyPath("count(//c:brand)", "int", name="brands"), "/c:card/c:none"]
    paths += ["code:string,single=//c:code", "first=/c:card/c:brand[1]"]
    table = palio.spark.extract(documents, NOW, paths)
    assert [(one.name, one.dataType.simpleString()) for one in table.schema[-6:]] == [
        ("price", "double"),
        ("brand", "array<string>"),
        ("brands", "bigint"),
        ("/c:card/c:none", "array<string>"),
        ("code", "string"),
        ("first", "array<string>"),
    ]
    reader = DocumentReader(NOW)
    rows = table.collect()
    assert len(rows) == ALL
    for row in rows:
        read = reader.read(bytes(row.document)).attributes
        brands = read["/c:card/c:brand"]
        assert (row.price, tuple(row.brand), row.brands) == (read[PRICE], brands, len(brands))
        assert (row["/c:card/c:none"], row.code, row.first) == (None, row.key, [brands[0]])


def test_pairs_are_those_of_a_broker(spark, published):
    filters = spark.createDataFrame([*FILTERS.items()], "subscription_id string, filter string")
    versions = palio.spark.read_documents(spark, published.lake, published.address, versions=True)
    pairs = palio.spark.match(palio.spark.complete_documents(versions, [NOW]), filters)
    numbers = {f"first/{one[0]}": number for number, one in enumerate(published.versions, 1)}
    found = [(row.subscription_id, numbers[row.event_id]) for row in pairs.collect()]
    assert sorted(found) == sorted(published.delivered)
    assert {name for name, _ in found} == FILTERS.keys() - {"dear"}


def test_new_subscriptions_over_all_current_documents(spark, published, tmp_path):
    place = tmp_path / "filters.jsonl"
    said = FILTERS | {"cheap": 'family card where xpath("/c:card/c:price") < 10', "north": NORTH}
    lines = [msgspec.json.encode({"id": name, "filter": text}) for name, text in said.items()]
    place.write_bytes(b"\n".join(lines))
    output = str(tmp_path / "pairs")
    done = jobs.match_documents(
        spark, published.lake, str(place), journals=published.address, families=[NOW], output=output
    )
    current = {one[0] for one in published.current.values()}
    numbers = {one[0]: number for number, one in enumerate(published.versions, 1)}
    found = sorted((row.subscription_id, int(row.event_id.partition("/")[2])) for row in done.pairs.collect())
    assert found == sorted(
        (name, sequence)
        for sequence in current
        for name in FILTERS
        if (name, numbers[sequence]) in published.delivered
    )


def version(code, price, *, family=NOW, withdrawn=False):
    """A version as a journal has it, of a broker that has just read it."""
    read = DocumentReader(family).read(card(code, price=price))
    if withdrawn:
        names = ("xml.family", "xml.key", "xml.revision")
        return palio.Notification({**{one: read.attributes[one] for one in names}, "xml.withdrawn": True})
    return palio.Notification(read.attributes, payload=read.payload)


def test_which_version_is_current_over_several_brokers(spark, tmp_path):
    """Of one broker the later sequence, whatever its clock says; between brokers the later time, then the
    name. What is withdrawn has none.
    """
    x, y, z = urls = [f"sqlite:///{tmp_path}/{name}.db" for name in "xyz"]
    fill(
        x,
        [version("a", 1), version("b", 2), version("b", 3), version("c", 4), version("e", 11)],
        broker="x",
        step=0,
    )
    fill(y, [version("a", 5), version("c", 6, withdrawn=True)], broker="y", step=0)
    fill(z, [version("a", 7), version("d", 8)], broker="z", at=MIDNIGHT - 1, step=2)
    fill(x, [version("c", 9)], broker="x", at=MIDNIGHT + 1)
    fill(x, [version("e", 12)], broker="x", at=MIDNIGHT - 60)
    fill(y, [version("d", 10, withdrawn=True)], broker="y", at=MIDNIGHT + 2)
    lake = str(tmp_path / "lake")
    for url in urls:
        archive(spark, url, lake)
    table = palio.spark.extract(palio.spark.read_documents(spark, lake, family="card"), NOW, ["price"])
    assert {(row.key, row.price) for row in table.collect()} == {("a", 5), ("b", 3), ("c", 9), ("e", 12)}
    every = palio.spark.read_documents(spark, lake, versions=True)
    gone = [(row.key, row.document) for row in every.where("withdrawn").collect()]
    assert sorted(gone) == [("c", None), ("d", None)]


def test_documents_without_such_values_are_named(spark, tmp_path):
    url = f"sqlite:///{tmp_path}/palio.db"
    fill(url, [version("a", 1), version("b", "many", family=EARLIER)])
    documents = palio.spark.read_documents(spark, url)
    with pytest.raises(Exception, match=r"Event b/2 cannot be read: .* is 'many', and no finite number"):
        palio.spark.extract(documents, NOW, ["price"]).collect()
    for table in (
        palio.spark.extract(documents, NOW, ["price"], invalid="null"),
        palio.spark.complete_documents(documents, [NOW], invalid="null"),
    ):
        reasons = {row.key: row.reason for row in table.collect()}
        assert reasons["a"] is None
        assert "no finite number" in reasons["b"]


def test_what_cannot_be_asked(spark, tmp_path):
    table = spark.createDataFrame([("a", "<a/>")], "price string, document string")
    cases = [
        (WrongOption, "cast it", lambda: palio.spark.extract(table, NOW, ["price"])),
        (MissingColumn, "content", lambda: palio.spark.extract(table, NOW, ["price"], column="content")),
        (UnknownInput, "lake or in journals", lambda: palio.spark.read_documents(spark, str(tmp_path))),
    ]
    binary = table.selectExpr("price", "cast(document as binary) AS document")
    cases += [
        (WrongOption, "'another=", lambda: palio.spark.extract(binary, NOW, ["price"])),
        (WrongOption, "two|Two", lambda: palio.spark.extract(binary, NOW, ["brand", "//c:x/@*", "brand"])),
        (WrongOption, "invalid", lambda: palio.spark.extract(binary, NOW, ["brand"], invalid="skip")),
        (palio.PalioError, "prefix", lambda: palio.spark.extract(binary, NOW, ["/d:card"])),
    ]
    for error, said, call in cases:
        with pytest.raises(error, match=said):
            call()


def test_filters_may_name_xpaths_that_no_document_was_read_for(spark):
    """They become plain filters, and families with these paths; what cannot be read has a reason."""
    given = {
        "several": 'family card where xpath("count(//c:brand)") > 1',
        "short": "family card where card.price < 10",
        "plain": 'xml.key = "c2"',
        "typo": "price >",
        "unknown": 'family cart where xpath("/cart") = 1',
    }
    table = spark.createDataFrame([*given.items()], "subscription_id string, filter string")
    said = palio.spark.read_selections(table, [NOW])
    filters = {row.subscription_id: row.filter for row in said.subscriptions.collect()}
    assert filters.keys() == {"several", "short", "plain"}
    assert palio.Filter.parse(filters["short"]) == palio.Filter.parse(f'xml.family = "card" and `{PRICE}` < 10')
    (family,) = said.families
    assert [one.expression for one in family.paths[len(NOW.paths) :]] == ["count(//c:brand)"]
    documents = [card("a", "A</brand><brand>B", 7), card("c2", "A", 12)]
    events = [
        (f"e{place}", "card", palio.Notification(read.attributes).encode(), content)
        for place, content in enumerate(documents)
        if (read := DocumentReader(NOW).read(content))
    ]
    frame = spark.createDataFrame(events, "event_id string, family string, payload binary, document binary")
    pairs = palio.spark.match(palio.spark.complete_documents(frame, said.families), said.subscriptions)
    found = {(row.event_id, row.subscription_id) for row in pairs.collect()}
    assert found == {("e0", "several"), ("e0", "short"), ("e1", "plain")}
    reasons = {row.subscription_id: row.reason for row in said.unreadable.collect()}
    assert reasons.keys() == {"typo", "unknown"}
    assert "no family of documents called 'cart'" in reasons["unknown"]
