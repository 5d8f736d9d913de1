"""What docs/spark.md shows of reading, writing and the lake is what happens."""

import re

import pytest

import palio.spark
import palio.testing
from palio.spark import archiving, lakefiles, rewriting
from tests.spark.filling import fill

pytest.importorskip("pyspark", reason="pyspark is not installed")


@pytest.fixture(scope="module")
def page(root) -> str:
    return (root / "docs" / "spark.md").read_text()


def examples(page, title):
    section = page.partition(f"## {title}\n")[2].partition("\n## ")[0]
    return re.findall(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE)


def test_the_examples_run(spark, page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    url = "sqlite:///palio-data/palio.db"
    fill(url, [{"symbol": "ACME", "exchange": "NYSE", "price": 100.0 + n} for n in range(5)], at=1.8e9)
    archiving.archive(spark, url, "lake")
    names = {"url": url, "results": spark.range(3)}
    with palio.testing.broker(journal=True) as address:
        names["alerts"] = palio.spark.read_stream(spark, url, schema="price double")
        titles = ("Reading and writing", "History and the lake", "Looking back")
        for example in [one for title in titles for one in examples(page, title)]:
            text = example.replace('"/data/', f'"{tmp_path}/').replace('"prices"', f'"{tmp_path}/prices"')
            exec(text.replace("palio://127.0.0.1:7070", address), names)
        for query in spark.streams.active:
            query.processAllAvailable()
            query.stop()
        assert palio.spark.read(spark, address).count() == 3 + 5
    assert names["quotes"].count() == 4
    assert (tmp_path / "prices").is_dir()
    assert names["crossed"].rows == 5
    assert sum(row["both"] for row in names["counts"].collect()) == 1
    assert names["before"].count() == 2


def test_its_numbers_are_those_of_the_code(page):
    assert f"beyond {lakefiles.MAX_COLUMNS} typed columns" in page
    assert rewriting.GRACE == 86_400.0
    assert "after `--grace` (a day)" in page
