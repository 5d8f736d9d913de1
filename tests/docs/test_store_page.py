"""The page about the store names every table, and its numbers are those of the code."""

import re

import pytest

from palio.routing.durable.effects import MAX_KEY
from palio.store import queue, schema, writer


@pytest.fixture(scope="module")
def page(root) -> str:
    return (root / "docs" / "store.md").read_text()


def test_every_table_is_on_the_page_with_its_key(page):
    rows = re.findall(r"^\| (`palio_[^|]*) \| ([^|]*)\|", page, re.MULTILINE)
    named = {table: re.findall(r"\w+", key) for tables, key in rows for table in re.findall(r"\w+", tables)}
    assert named == {
        table.name: [column.name for column in table.primary_key] for table in schema.metadata.sorted_tables
    }


def test_limits_are_those_of_the_code(page):
    assert f"{queue.MAX_GROUP_EFFECTS:,} writes or {queue.MAX_GROUP_BYTES >> 20} MB" in page
    assert f"in each {schema.SPAN:,} sequences" in page
    assert f"a *key* of at most {MAX_KEY:,} bytes" in page
    assert f"After {writer.GRACE:.0f} seconds" in page
