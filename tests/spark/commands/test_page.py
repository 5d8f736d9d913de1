"""What docs/spark.md shows is what happens."""

import re

import pytest

from palio.cli.main import Commands
from palio.matching.hints import MAX_BYTES, Hints
from palio.spark.lake import rewriting
from palio.spark.lake.files import MAX_COLUMNS
from palio.spark.matching.bulk import MOST_PAIRS
from palio.spark.matching.shards import SHARD_SUBSCRIPTIONS
from palio.spark.stats import event_scans, gathering, sketch


@pytest.fixture(scope="module")
def page(root) -> str:
    return (root / "docs" / "spark.md").read_text()


def test_every_command_that_it_names_is_there(page):
    jobs = set(re.findall(r"palio spark ([\w-]+)", page))
    expected = {
        "archive",
        "documents",
        "forget",
        "match",
        "package",
        "experiments",
        "patterns",
        "stats",
        "backtest",
        "reach-back",
    }
    assert expected <= jobs <= set(Commands()["spark"].commands)
    assert {"doctor", "spark"} <= set(Commands())


def test_its_numbers_are_those_of_the_code(page):
    assert f"at most {MOST_PAIRS:,} pairs" in page
    assert f"at most {SHARD_SUBSCRIPTIONS // 1000} thousand subscriptions" in page
    assert f"at most {gathering.MOST_ATTRIBUTES} attributes, {event_scans.LISTED} values of each" in page
    assert f"{gathering.MOST_CONSTRAINTS} constraints" in page
    assert f"{gathering.MOST_SUBSCRIPTIONS} subscriptions of each sort" in page
    assert f"merging {gathering.MOST_COMPARED:,} filters" in page
    assert f"estimates beyond {sketch.MOST_MARKS:,}" in page
    assert f"a sample of {sketch.MOST_SAMPLED:,}" in page
    assert f"at most {MAX_BYTES >> 20} MB" in page
    assert f"beyond {MAX_COLUMNS} typed columns" in page
    assert rewriting.GRACE == 86_400.0
    assert "after `--grace` (a day)" in page


def test_the_hints_that_it_shows_are_hints(page):
    shown = re.search(r"^```json\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert shown is not None
    told = Hints.decode(shown[1].encode())
    assert told.value("symbol", "AAPL") == 0.021
