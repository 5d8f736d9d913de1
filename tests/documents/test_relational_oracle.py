"""Who wants a document, against the query of the relational design: tables in SQLite, one row for each value.

Families, documents and subscriptions are drawn; paths may find nothing, one node or several with the same text,
and subscriptions may have no condition at all. The query knows nothing of filters, and evaluates by lxml.
"""

from __future__ import annotations

import random
from contextlib import closing

import pytest

from palio.documents import DocumentReader, Family, FamilyPath
from palio.documents.xpath import read_xpath
from palio.matching import MatchIndex
from palio.model.expression import literal
from palio.model.filter import Filter
from palio.model.notification import Notification
from tests.documents.generated_paths import PREFIXES, DocumentMaker, PathMaker
from tests.slices import sliced

pytest.importorskip("lxml")

from benchmarks.documents.source import SourceBroker, SqliteDatabase, create


def drawn_family(seed: int) -> Family:
    maker = PathMaker(seed, axes=())
    texts = {read_xpath(maker.path(), PREFIXES).text for _ in range(25)}
    texts |= {"//a", "//b", "//b/@x", "/a/@x", "//c/text()", "//*"}
    paths = tuple(FamilyPath(text, "string", many=True) for text in sorted(texts) if len(text) < 200)
    return Family("a", "", "a", PREFIXES, paths=paths)


def drawn_documents(seed: int) -> list[bytes]:
    documents = [DocumentMaker(seed * 1_000 + number).document() for number in range(60)]
    return [one.encode() for one in documents if "<a " in one[:20]][:30]


@pytest.mark.parametrize("seed", sliced(range(40), 6))
def test_the_index_selects_what_the_query_does(seed):
    chance = random.Random(seed)
    family, documents = drawn_family(seed), drawn_documents(seed)
    reader = DocumentReader(family)
    read = [reader.read(content).attributes for content in documents]
    there = [
        (name, value)
        for attributes in read
        for name, values in attributes.items()
        if isinstance(values, tuple)
        for value in values
    ]
    subscriptions = []
    for number in range(150):
        conditions = chance.sample(there, min(len(there), chance.randrange(5)))
        if number % 3 == 0:
            conditions = [(name, chance.choice((value, "2", "nothing"))) for name, value in conditions]
        subscriptions.append(conditions)
    index: MatchIndex[int] = MatchIndex(
        (number, Filter.parse(" and ".join(['xml.family = "a"', *[has(*one) for one in conditions]])))
        for number, conditions in enumerate(subscriptions, 1)
    )
    matches = 0
    with closing(SqliteDatabase(":memory:", sync="OFF")) as database:
        create(database, family, subscriptions)
        source = SourceBroker(database, family)
        for content, attributes in zip(documents, read, strict=True):
            expected = source.publish(content)
            assert sorted(index.match(Notification(attributes))) == expected, (seed, content)
            matches += len(expected)
    assert matches > len(documents)


def has(path: str, value: str) -> str:
    return f"`{path}` has {literal(value)}"
