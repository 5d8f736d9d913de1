"""What docs/spark.md shows is what happens."""

import re

import pytest

from palio.cli.main import Commands
from palio.spark.matching import MOST_PAIRS
from palio.spark.shards import SHARD_SUBSCRIPTIONS


@pytest.fixture(scope="module")
def page(root) -> str:
    return (root / "docs" / "spark.md").read_text()


def test_the_examples_of_bulk_matching_run(spark, page):
    names: dict = {}
    for title in ("Quick start", "Bulk matching"):
        section = page.partition(f"## {title}\n")[2].partition("\n## ")[0]
        examples = re.findall(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
        assert examples
        for example in examples:
            exec(example, names)
    assert names["spark"] is spark


def test_every_command_that_it_names_is_there(page):
    jobs = set(re.findall(r"palio spark ([\w-]+)", page))
    assert {"archive", "forget", "match", "package", "experiments"} <= jobs <= set(Commands()["spark"].commands)
    assert {"doctor", "spark"} <= set(Commands())


def test_its_numbers_are_those_of_the_code(page):
    assert f"at most {MOST_PAIRS:,} pairs" in page
    assert f"at most {SHARD_SUBSCRIPTIONS // 1000} thousand subscriptions" in page
