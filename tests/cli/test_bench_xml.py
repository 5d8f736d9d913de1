"""`palio bench xml`: its documents are what they say, its yardstick does what the source says, and it runs."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from contextlib import closing

import pytest

from tests.cli.test_program import ROOT

pytest.importorskip("lxml")

from benchmarks.documents.cards import MOST_PATHS, card_family, cards
from benchmarks.documents.source import SourceBroker, SqliteDatabase, create

from palio.documents import DocumentReader

# Without that of Spark, which is tested where Spark runs.
ROWS = {
    "sizes",
    "native",
    "subscribers",
    "overload",
    "conditions",
    "subscriptions",
    "has",
    "bindings",
    "tables",
}
BRAND, SUPPLIER, PRICE = (path.expression for path in card_family().paths)


@pytest.mark.parametrize("size", [1.66, 3, 10])
def test_cards_have_their_size_and_all_their_paths(size):
    reader = DocumentReader(card_family(MOST_PATHS))
    for content in cards(20, size, measures=True):
        assert abs(len(content) - size * 1_000) < 80
        assert len(reader.read(content).attributes) == 3 + MOST_PATHS


def test_the_yardstick_selects_what_its_conditions_say():
    draw = random.Random(3)
    documents = cards(60, 0.5)
    reader = DocumentReader(card_family())
    read = [reader.read(content).attributes for content in documents]
    conditions = []
    for _ in range(40):
        one = draw.choice(read)
        price = next(text.split("<")[0] for text in documents[read.index(one)].decode().split("<price>")[1:])
        known = [(BRAND, str(one[BRAND])), (SUPPLIER, str(one[SUPPLIER])), (PRICE, price)]
        conditions.append(draw.sample(known, draw.randrange(4)))
    with closing(SqliteDatabase(":memory:", sync="OFF")) as database:
        create(database, card_family(), conditions)
        sent = []
        broker = SourceBroker(database, card_family(), lambda client, content: sent.append((client, content)))
        for content, attributes in zip(documents, read, strict=True):
            values = {name: str(value) for name, value in attributes.items()}
            values[PRICE] = content.decode().split("<price>")[1].split("<")[0]
            expected = [
                number
                for number, wanted in enumerate(conditions, 1)
                if all(values[name] == value for name, value in wanted)
            ]
            sent.clear()
            assert broker.publish(content) == expected
            assert sent == [(number, content) for number in expected]
        assert database.all("SELECT COUNT(*) FROM route WHERE routed = 0") == [(0,)]
        assert database.all("SELECT COUNT(*) FROM logging") == [(60,)]


def test_a_new_version_makes_the_one_before_obsolete():
    with closing(SqliteDatabase(":memory:", sync="OFF")) as database:
        create(database, card_family(), [[]])
        broker = SourceBroker(database, card_family())
        for content in cards(1, 0.5) * 3 + cards(2, 0.5)[1:]:
            broker.publish(content)
        assert database.all("SELECT content_id FROM content WHERE obsolete = 0") == [(3,), (4,)]


@pytest.mark.parametrize("wanted", [{"tables"}, pytest.param(ROWS, marks=pytest.mark.slow)])
def test_rows_are_measured_and_drawn(wanted, environment, tmp_path):
    words = [word for row in sorted(wanted) for word in ("--row", row)]
    words += ["--quick", "--json", "--plots", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "palio.cli.main", "bench", "xml", *words],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    assert {row["subject"] for row in rows} >= wanted - {"conditions"}  # left out without real documents
    assert all(row["ours"] > 0 and row["yardstick"] > 0 and row["ratio"] > 0 for row in rows)
    assert {path.stem for path in tmp_path.iterdir()} == {row["subject"] for row in rows}
    assert "met" not in done.stderr.replace("metrics", ""), "figures of a quick run are not judged"
